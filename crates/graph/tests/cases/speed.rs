//! What a call costs. Prints figures, asserts nothing: for a release build, by hand.

use super::limits::chain;
use crate::fixture::ops::Probe;
use crate::fixture::{Silence, World};
use graph::{Extensions, Request, Session};
use std::sync::Arc;
use std::time::{Duration, Instant};

const DEPTH: usize = 900;
const ROUNDS: usize = 50;

fn session(world: &World) -> Arc<Session> {
    let mut extensions = Extensions::new();
    extensions.insert(Arc::new(Probe::default()));
    world.graph.session("one".into(), extensions, Arc::new(Silence))
}

/// The best of some rounds; `text` makes the document of a round.
async fn best(world: &World, text: impl Fn(usize) -> String) -> Duration {
    let mut best = Duration::MAX;
    for round in 0..ROUNDS {
        let session = session(world);
        let request = Request { query: text(round), ..Request::default() };
        let begin = Instant::now();
        let reply = session.execute(request).await;
        best = best.min(begin.elapsed());
        assert!(reply.starts_with(b"{\"data\":"));
    }
    best
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures"]
async fn a_chain_of_900_builder_calls() {
    let world = World::new();
    let fresh =
        |leaf: &'static str| move |round: usize| format!("#{round}\n{}", chain(DEPTH, leaf));
    let same = |leaf: &'static str| move |_| chain(DEPTH, leaf);
    let read = best(&world, fresh("__typename")).await;
    let make = best(&world, same("__typename")).await;
    let force = best(&world, same("count")).await;
    let small = best(&world, |round| format!("#{round}\n{{ __typename }}")).await;
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let each = |time: Duration| micros(time) / DEPTH as f64;
    println!("read and make {:.0} µs, {:.2} a call", micros(read), each(read));
    println!("of that read  {:.0} µs, {:.2} a call", micros(read - make), each(read - make));
    println!("make          {:.0} µs, {:.2} a call", micros(make), each(make));
    println!("force         {:.0} µs, {:.2} a call", micros(force - make), each(force - make));
    println!("smallest read {:.0} µs", micros(small));
}
