//! Commands whose output tells a hit from a second run, since every run draws it anew.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::process::wait_until;
use testkit::{Random, Session, State};

/// What a command has left: its standard output, and a file it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) stdout: String,
    file: String,
}

/// Commands by their word, with what they have left.
pub(super) type Outputs = BTreeMap<String, Output>;

impl Output {
    /// What the run has drawn.
    pub(super) fn drawn(&self) -> &str {
        self.file.get(..64).unwrap_or_default()
    }

    fn is_consistent(&self) -> bool {
        let drawn = self.drawn();
        drawn.len() == 64
            && self.stdout.lines().all(|line| line.starts_with(&drawn[..1]))
            && self.stdout.trim_end().ends_with(drawn)
            && self.file.len().is_multiple_of(65)
            && self.file.lines().all(|line| line == drawn)
    }
}

/// Four kinds of work: a little, many files, a long output, a long file.
fn script(word: &str) -> String {
    let kind = u8::from_str_radix(&word[..1], 16).expect("a word is hex digits") % 4;
    let work = match kind {
        0 => ":",
        1 => "i=0; while [ $i -lt 120 ]; do echo $r > /d/$i; i=$((i+1)); done",
        2 => "yes $r | head -n 1500",
        _ => "yes $r | head -n 4000 > /d/file",
    };
    format!(
        ": {word}; r=$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n'); \
         mkdir -p /d; : > /d/{word}; echo $r > /d/file; {work}; echo $r"
    )
}

/// Runs the command of a word; none when there is no engine any more.
pub(super) fn run(session: &Session, root: &str, word: &str) -> Option<Output> {
    let (root, script) = (Value::from(root), Value::from(script(word)));
    let data = ask(
        session,
        &format!(
            r#"{{ container {{ withRootfs(directory: {root}) {{
                withExec(args: ["sh", "-c", {script}]) {{
                    stdout file(path: "/d/file") {{ contents }} }} }} }} }}"#
        ),
    )?;
    let exec = &data["container"]["withRootfs"]["withExec"];
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let output = Output { stdout: text(&exec["stdout"]), file: text(&exec["file"]["contents"]) };
    assert!(output.is_consistent(), "half of something was served: {output:?}");
    Some(output)
}

/// Words of the commands that the engine says are safe; none when there is no engine any more.
pub(super) fn committed(session: &Session) -> Option<BTreeSet<String>> {
    let query = "{ engine { localCache { entrySet { entries { description committed } } } } }";
    let data = ask(session, query)?;
    let entries = data["engine"]["localCache"]["entrySet"]["entries"].as_array()?.clone();
    let safe = entries.iter().filter(|entry| entry["committed"] == true);
    let word = |entry: &Value| {
        let line = entry["description"].as_str()?;
        let (_, rest) = line.split_once(": ")?;
        Some(rest.split_once(';')?.0.to_owned())
    };
    Some(safe.filter_map(word).collect())
}

/// Has the engine forget all that is not in use, so that listing what it has stays short.
#[track_caller]
pub(super) fn begin_anew(session: &Session) {
    session.query("{ engine { localCache { prune } } }");
}

/// Sends a document that must succeed if there is an engine.
fn ask(session: &Session, document: &str) -> Option<Value> {
    let body = json!({ "query": document }).to_string();
    let reply = session.endpoint.send(&session.endpoint.request(body)).ok()?;
    let json: Value = serde_json::from_slice(&reply.body).ok()?;
    match json.get("data") {
        Some(data) if !data.is_null() => Some(data.clone()),
        // What is on its way when the engine is killed ends in any error.
        _ => None,
    }
}

/// What workers have seen so far.
#[derive(Default)]
pub(super) struct Seen {
    state: Mutex<(Outputs, BTreeSet<String>)>,
    stop: AtomicBool,
}

impl Seen {
    /// Runs fresh commands until told to stop, or until there is no engine any more.
    fn work(&self, session: &Session, root: &str, mut random: Random) {
        while !self.stop.load(Ordering::Relaxed) {
            let word = random.word();
            let Some(output) = run(session, root, &word) else { return };
            self.state.lock().unwrap().0.insert(word, output);
        }
    }

    /// Looks which commands are safe until told to stop.
    fn watch(&self, session: &Session) {
        while !self.stop.load(Ordering::Relaxed) {
            let words = committed(session).unwrap_or_default();
            self.state.lock().unwrap().1.extend(words);
        }
    }

    /// Works until so many commands are said to be safe, and a random moment longer; then comes
    /// `interrupt`, in the middle of everything.
    pub(super) fn interrupted<T>(
        &self,
        (state, session, root): (&State, &Session, &str),
        (target, random): (usize, &mut Random),
        interrupt: impl FnOnce() -> T,
    ) -> T {
        let workers = [(); 2].map(|()| Random::from_seed(random.next_number()));
        let pause = Duration::from_micros(random.below(60_000));
        std::thread::scope(|scope| {
            // Nobody goes on after a failed assertion.
            let _stop = StopOnDrop(self);
            for random in workers {
                scope.spawn(|| self.work(session, root, random));
            }
            scope.spawn(|| self.watch(session));
            let enough = || self.safe().len() >= target;
            assert!(wait_until(state.remaining(), enough), "{}", state.log());
            // Not to wait for anything: to be interrupted anywhere.
            std::thread::sleep(pause);
            interrupt()
        })
    }

    /// Outputs of the commands that the engine said were safe.
    pub(super) fn safe(&self) -> Outputs {
        let state = self.state.lock().unwrap();
        let safe = state.0.iter().filter(|(word, _)| state.1.contains(*word));
        safe.map(|(word, output)| (word.clone(), output.clone())).collect()
    }
}

/// Tells workers to stop when dropped.
struct StopOnDrop<'a>(&'a Seen);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// Runs commands again: each must be a hit.
#[track_caller]
pub(super) fn all_hit(session: &Session, root: &str, outputs: &Outputs, context: &str) {
    for (word, output) in outputs {
        let again = run(session, root, word).unwrap_or_else(|| panic!("{context}: {word} failed"));
        assert!(again == *output, "{context}: {word} ran again");
    }
}
