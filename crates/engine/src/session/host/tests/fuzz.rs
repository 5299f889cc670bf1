//! A client that answers with anything: every question ends, in an error or not.

use super::*;
use testkit::{Random, rounds};

/// Damaged answers in one round.
const ANSWERS: usize = 10;
/// Bounds a hang.
const DEADLINE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn damaged_answers_end_every_question() {
    let mut random = Random::new("damaged answers");
    let tree = [
        entry(),
        frame(FrameKind::Data, b"hi"),
        frame(FrameKind::EndOfFile, b""),
        frame(FrameKind::Failed, &serde_json::to_vec(&Error::user("no")).unwrap()),
        frame(FrameKind::End, b""),
    ];
    for _ in 0..rounds() as usize * ANSWERS {
        let mut answer = tree.concat();
        random.damage(&mut answer);
        let status = *random.pick(&[StatusCode::OK, StatusCode::OK, StatusCode::IM_A_TEAPOT]);
        let world = World::new(status, answer);
        let (sender, mut parts) = mpsc::channel(1);
        let taking = tokio::spawn(async move { while parts.recv().await.is_some() {} });
        let questions = async {
            // What comes of it does not matter, as long as something does.
            let _ = world.host.read(request(), sender).await;
            let _ = world.host.find_up("name".into()).await;
            let _ = world.host.login("registry.example".into()).await;
            let _ = world.host.open("p".into(), OpenFor::Read { gitignore: false }).await;
        };
        tokio::time::timeout(DEADLINE, questions).await.expect("every question ends");
        taking.await.unwrap();
        world.client.abort();
    }
}

#[tokio::test]
async fn noise_in_place_of_a_client_ends_every_question() {
    let mut random = Random::new("noise of a client");
    for _ in 0..rounds() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let host = Arc::new(AttachedHost::default());
        let serving = tokio::spawn({
            let host = host.clone();
            async move { host.serve(BufReader::new(ours.into())).await }
        });
        let mut noise = vec![0; random.below(4096) as usize];
        random.damage(&mut noise);
        let _ = tokio::io::AsyncWriteExt::write_all(&mut theirs, &noise).await;
        drop(theirs);
        let asked = tokio::time::timeout(DEADLINE, host.find_up("name".into()));
        assert!(asked.await.expect("the question ends").is_err());
        let _ = tokio::time::timeout(DEADLINE, serving).await.expect("the connection ends");
    }
}
