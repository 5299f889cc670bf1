//! A tenth of all layers and blobs is damaged: the next run succeeds, and makes again only what was
//! lost.

use super::workload::{Outputs, run};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use testkit::process::{wait_until, with_argument};
use testkit::{Random, Session, State, rounds};

/// Commands of a round.
const COMMANDS: usize = 24;

#[test]
fn damaged_layers_and_blobs_are_made_again_and_nothing_else_is() {
    let mut random = Random::new("damage");
    let state = State::new();
    let mut outputs = Outputs::new();
    for round in 0..rounds() {
        let session = Session::start(&state);
        let root = session.busybox();
        while outputs.len() < COMMANDS {
            let word = random.word();
            outputs.insert(word.clone(), run(&session, &root, &word).expect("the engine runs"));
        }
        assert_eq!(session.end(), 0);
        // Also in the middle of a run: the engine that has used the layers goes on.
        let restart = round % 2 == 0;
        if restart {
            state.stop();
        }
        let lost = damage(&state, &outputs, &mut random, restart);

        let session = Session::start(&state);
        let root = session.busybox();
        for (word, before) in &mut outputs {
            let after = run(&session, &root, word)
                .unwrap_or_else(|| panic!("round {round}: {word} failed\n{}", state.log()));
            let ran = after != *before;
            assert_eq!(ran, lost.contains(word), "round {round}: {word} (restart: {restart})");
            *before = after;
        }
        assert_eq!(session.end(), 0);
    }
}

#[test]
fn a_command_whose_tree_vanishes_under_it_runs_again_on_a_new_one() {
    let mut random = Random::new("vanish");
    let state = State::new();
    let session = Session::start(&state);
    let (made, waits) = (random.word(), random.word());
    let volume = session.leaf(r#"{ cacheVolume(key: "signal") { id } }"#);
    let make = format!("mkdir /d; : > /d/{made}; echo kept > /d/late");
    let wait = format!(": {waits}; while [ ! -e /v/go ]; do sleep 0.02; done; cat /d/late");
    let document = session.on_container(&format!(
        r#"withExec(args: ["sh", "-c", "{make}"]) {{
            withMountedCache(path: "/v", cache: {volume}) {{
                withExec(args: ["sh", "-c", "{wait}"]) {{ stdout }} }} }}"#
    ));
    let body = serde_json::json!({ "query": document }).to_string();
    let mut connection = session.endpoint.connect().unwrap();
    testkit::write_request(&mut connection, &session.endpoint.request(body)).unwrap();
    let started = || with_argument(&waits).len() == 1;
    assert!(wait_until(state.remaining(), started), "{}", state.log());
    let layers = below(&state.store().join("layers"), 2);
    let layer = layers.iter().find(|layer| layer.join("d").join(&made).exists()).unwrap();
    fs::remove_dir_all(layer).unwrap();
    let volumes = below(&state.store().join("volumes"), 2);
    let volume = volumes.iter().find(|path| path.is_dir()).unwrap();
    fs::write(volume.join("go"), "").unwrap();
    let reply = testkit::read_answer(connection).unwrap();
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    assert!(text.contains(r#""stdout":"kept\n""#), "{text}\n{}", state.log());
}

/// Damages a tenth of the layers and blobs of commands, and gives the words of these.
fn damage(state: &State, outputs: &Outputs, random: &mut Random, deep: bool) -> BTreeSet<String> {
    let mut lost = BTreeSet::new();
    let layers = below(&state.store().join("layers"), 2);
    let blobs = below(&state.store().join("blobs/sha256"), 2);
    let mut things: Vec<(String, PathBuf)> = vec![];
    for (word, output) in outputs {
        // By what was drawn: what an earlier round has damaged may still lie about.
        let holds = |file: &Path| {
            fs::read_to_string(file).is_ok_and(|text| text.starts_with(output.drawn()))
        };
        let layers = layers.iter().filter(|layer| holds(&layer.join("d/file")));
        let blobs = blobs.iter().filter(|blob| holds(blob));
        things.extend(layers.chain(blobs).map(|thing| (word.clone(), thing.clone())));
    }
    let count = things.len().div_ceil(10);
    for _ in 0..count {
        let (word, thing) = random.pick(&things).clone();
        let gone = !thing.exists();
        if gone || lost.contains(&word) {
            continue;
        }
        harm(&thing, random, deep);
        lost.insert(word);
    }
    lost
}

/// Deletes, cuts short or changes something. In a layer that the engine has looked at before it
/// only sees at once what is missing.
fn harm(thing: &Path, random: &mut Random, deep: bool) {
    let is_layer = thing.is_dir();
    let file = if is_layer { thing.join("d/file") } else { thing.to_owned() };
    match random.below(3) {
        0 if is_layer && random.below(2) == 0 && deep => fs::remove_file(&file).unwrap(),
        1 if deep || !is_layer => {
            let length = fs::metadata(&file).unwrap().len();
            let file = OpenOptions::new().write(true).open(&file).unwrap();
            file.set_len(random.below(length)).unwrap();
        }
        2 if deep || !is_layer => {
            let mut bytes = fs::read(&file).unwrap();
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1;
            fs::write(&file, bytes).unwrap();
        }
        _ if is_layer => fs::remove_dir_all(thing).unwrap(),
        _ => fs::remove_file(thing).unwrap(),
    }
}

/// Everything so many folders below a folder.
fn below(folder: &Path, levels: usize) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for _ in 0..levels {
        let inside = found.iter().filter_map(|folder| fs::read_dir(folder).ok());
        found = inside.flatten().flatten().map(|entry| entry.path()).collect();
    }
    found
}
