//! [`Link`]: a way between client and engine that takes its time, and that can go dead.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A port whose connections are passed on to another, every byte after a delay.
pub(crate) struct Link {
    /// Where it listens.
    pub(crate) port: u16,
    state: Arc<LinkState>,
}

#[derive(Default)]
struct LinkState {
    dead: AtomicBool,
    connections: AtomicUsize,
    turns: AtomicUsize,
}

/// Which side bytes come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Client,
    Engine,
}

impl Link {
    /// Opens a link to a port, with this delay each way.
    pub(crate) fn to(port: u16, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let state = Arc::new(LinkState::default());
        let shared = state.clone();
        // Ends with the test program.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(engine) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                shared.connections.fetch_add(1, Ordering::Relaxed);
                // Whether the client has heard something since it spoke last.
                let heard = Arc::new(AtomicBool::new(false));
                pass((&client, &engine), delay, &shared, (From::Client, &heard));
                pass((&engine, &client), delay, &shared, (From::Engine, &heard));
            }
        });
        Self { port: own, state }
    }

    /// From now on nothing arrives, and nobody is told.
    pub(crate) fn die(&self) {
        self.state.dead.store(true, Ordering::Relaxed);
    }

    /// How often the client has spoken after it had heard something: what waits for an answer is one of
    /// these at least, however fast the machine is.
    pub(crate) fn turns(&self) -> usize {
        self.state.turns.load(Ordering::Relaxed)
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

/// Passes bytes on in one direction, however many are on their way.
fn pass(
    (from, to): (&TcpStream, &TcpStream),
    delay: Duration,
    state: &Arc<LinkState>,
    (side, heard): (From, &Arc<AtomicBool>),
) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    to.set_nodelay(true).unwrap();
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    let (spoken, news) = (state.clone(), heard.clone());
    std::thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if side == From::Client && news.swap(false, Ordering::Relaxed) {
                spoken.turns.fetch_add(1, Ordering::Relaxed);
            }
            if sender.send((Instant::now() + delay, bytes[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    let (state, heard) = (state.clone(), heard.clone());
    std::thread::spawn(move || {
        for (due, bytes) in receiver {
            // This is the link: the time it takes is what it is for.
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if state.dead.load(Ordering::Relaxed) {
                continue;
            }
            // Before it can answer.
            heard.fetch_or(side == From::Engine, Ordering::Relaxed);
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
        if !state.dead.load(Ordering::Relaxed) {
            let _ = to.shutdown(Shutdown::Write);
        }
    });
}
