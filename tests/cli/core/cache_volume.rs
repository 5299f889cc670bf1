//! Cache volumes: who shares them, what they start with, whose they are.

use serde_json::{Value, json};
use testkit::process::{wait_until, with_argument};
use testkit::{Random, Session, State};

/// The id of a cache volume.
fn volume(session: &Session, arguments: &str) -> String {
    session.leaf(&format!("{{ cacheVolume({arguments}) {{ id }} }}")).to_string()
}

/// The document of a script with the volume at `/cache`.
fn script(session: &Session, volume: &str, mount: &str, script: &str) -> String {
    let script = Value::from(script);
    session.on_container(&format!(
        r#"withMountedCache(path: "/cache", cache: {volume}{mount}) {{
            withExec(args: ["sh", "-c", {script}]) {{ stdout }} }}"#
    ))
}

fn run(session: &Session, volume: &str, mount: &str, text: &str) -> String {
    session.leaf(&script(session, volume, mount, text)).as_str().unwrap().to_owned()
}

/// Sends a document and does not wait for the answer.
fn begin(session: &Session, document: &str) -> impl Sized + use<> {
    let body = json!({ "query": document }).to_string();
    let mut connection = session.endpoint.connect().unwrap();
    testkit::write_request(&mut connection, &session.endpoint.request(body)).unwrap();
    connection
}

/// A number that no other test uses, to find a process by.
fn tag(random: &mut Random) -> u64 {
    2_000_000 + random.below(1 << 30)
}

#[track_caller]
fn wait_for_sleeps(state: &State, name: &str, count: usize) {
    let begun = wait_until(state.remaining(), || with_argument(name).len() >= count);
    assert!(begun, "{count} of `{name}`: {:?}\n{}", with_argument(name), state.log());
}

#[test]
fn a_shared_volume_is_everybodys_at_once() {
    let state = State::new();
    let session = Session::start(&state);
    let shared = volume(&session, r#"key: "k""#);
    run(&session, &shared, "", "echo 1 > /cache/f");
    assert_eq!(run(&session, &shared, "", "cat /cache/f # 2"), "1\n");
    let sleep = format!("sleep {}", tag(&mut Random::new("shared")));
    let _one = begin(&session, &script(&session, &shared, "", &format!("{sleep} # 1")));
    let _two = begin(&session, &script(&session, &shared, "", &format!("{sleep} # 2")));
    wait_for_sleeps(&state, &sleep, 2);
    let other = volume(&session, r#"key: "k", namespace: "other""#);
    assert_eq!(run(&session, &other, "", "ls /cache"), "", "namespaces are apart");
}

#[test]
fn a_locked_volume_is_used_by_one_at_a_time() {
    let state = State::new();
    let session = Session::start(&state);
    let locked = volume(&session, r#"key: "k", sharing: LOCKED"#);
    let add = |number: usize| {
        let count = "n=$(cat /cache/n 2>/dev/null || echo 0)";
        let text = format!("{count}; usleep 20000; echo $((n + 1)) > /cache/n # {number}");
        script(&session, &locked, "", &text)
    };
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (session, document) = (&session, add(number));
            scope.spawn(move || session.leaf(&document));
        }
    });
    assert_eq!(run(&session, &locked, "", "cat /cache/n"), "8\n", "nobody lost a count");
}

#[test]
fn who_waits_for_a_locked_volume_says_so_and_can_give_up() {
    let state = State::new();
    let session = Session::start(&state);
    let volume = volume(&session, r#"key: "k""#);
    let locked = ", sharing: LOCKED";
    let sleep = format!("sleep {}", tag(&mut Random::new("locked")));
    let holder = Session::start(&state);
    let held = begin(&holder, &script(&holder, &volume, locked, &sleep));
    wait_for_sleeps(&state, &sleep, 1);
    // Somebody gives up: nobody is kept from the volume by that.
    let root = testkit::busybox();
    let words = |script: &str| {
        state
            .cli(["core", "--progress=plain", "container", "with-rootfs", "--directory"])
            .args([root.to_str().unwrap(), "with-mounted-cache", "--path=/cache"])
            .args(["--sharing=LOCKED", "--cache=k"])
            .args(["with-exec", &format!("--args=sh,-c,{script}"), "stdout"])
    };
    let mut given_up = words("echo never").spawn();
    given_up.wait_for("wait for cache volume k");
    given_up.signal(rustix::process::Signal::INT);
    assert!(!given_up.wait().status.success());
    let mut next = words("echo mine").spawn();
    next.wait_for("wait for cache volume k");
    assert_eq!(with_argument(&sleep).len(), 1);
    drop(held);
    holder.end();
    assert_eq!(next.wait().ok().trim(), "mine");
}

#[test]
fn a_private_volume_is_a_copy_of_ones_own_while_others_use_it() {
    let state = State::new();
    let session = Session::start(&state);
    let private = volume(&session, r#"key: "k", sharing: PRIVATE"#);
    run(&session, &private, "", "echo kept > /cache/f");
    assert_eq!(run(&session, &private, "", "cat /cache/f # again"), "kept\n", "it is free again");
    let sleep = format!("sleep {}", tag(&mut Random::new("private")));
    let holder = Session::start(&state);
    let held = begin(&holder, &script(&holder, &private, "", &format!("cat /cache/f && {sleep}")));
    wait_for_sleeps(&state, &sleep, 1);
    assert_eq!(run(&session, &private, "", "ls /cache; echo second > /cache/f"), "");
    assert_eq!(run(&session, &private, "", "cat /cache/f # third"), "second\n", "a pool by key");
    drop(held);
    holder.end();
    let freed = || run(&session, &private, "", &format!("cat /cache/f # {}", rand())) == "kept\n";
    assert!(wait_until(state.remaining(), freed));
}

/// Something new each time, so that a command runs anew.
fn rand() -> u128 {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    clock.unwrap().as_nanos()
}

#[test]
fn a_new_volume_starts_with_its_source_and_owner() {
    let state = State::new();
    let session = Session::start(&state);
    let seed = session
        .leaf(r#"{ directory { withNewFile(path: "d/f", contents: "seed") { id } } }"#)
        .to_string();
    let seeded = volume(&session, &format!(r#"key: "s", source: {seed}, owner: "1234:5""#));
    let look = "cat /cache/d/f; stat -c ' %u:%g %a' /cache /cache/d/f; echo changed > /cache/d/f";
    assert_eq!(run(&session, &seeded, "", look), "seed 1234:5 755\n 1234:5 644\n");
    assert_eq!(run(&session, &seeded, "", "cat /cache/d/f # 2"), "changed\n", "only when empty");
    let plain = volume(&session, r#"key: "m""#);
    let mount = format!(r#", source: {seed}, owner: "7""#);
    assert_eq!(run(&session, &plain, &mount, "cat /cache/d/f; stat -c ' %u' /cache"), "seed 7\n");
    let bare = volume(&session, r#"key: "b""#);
    assert_eq!(run(&session, &bare, "", "stat -c '%u:%g %a' /cache"), "0:0 755\n");
}

#[test]
fn a_volume_is_listed_and_pruned_when_nobody_uses_it() {
    let state = State::new();
    let session = Session::start(&state);
    let kept = volume(&session, r#"key: "kept""#);
    run(&session, &kept, "", "head -c 500000 /dev/zero > /cache/f");
    let gone = volume(&session, r#"key: "gone""#);
    run(&session, &gone, "", "head -c 600000 /dev/zero > /cache/f");
    let listed = || {
        let set = session.query(
            "{ engine { localCache { entrySet { entries {
                recordType description diskSpaceBytes activelyUsed } } } } }",
        );
        let entries = set["engine"]["localCache"]["entrySet"]["entries"].as_array().unwrap();
        let volumes = entries.iter().filter(|entry| entry["recordType"] == "cache-volume");
        volumes.cloned().collect::<Vec<_>>()
    };
    assert_eq!(listed().len(), 2, "{:?}", listed());
    assert!(listed().iter().all(|entry| entry["diskSpaceBytes"].as_i64().unwrap() >= 500_000));
    let sleep = format!("sleep {}", tag(&mut Random::new("prune")));
    let holder = Session::start(&state);
    let held = begin(&holder, &script(&holder, &kept, "", &sleep));
    wait_for_sleeps(&state, &sleep, 1);
    session.query("{ engine { localCache { prune } } }");
    let left = listed();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0]["description"], "cache volume kept");
    assert_eq!(left[0]["activelyUsed"], true);
    drop(held);
    holder.end();
    assert_eq!(run(&session, &kept, "", "stat -c %s /cache/f"), "500000\n");
    assert_eq!(run(&session, &gone, "", "ls /cache # anew"), "");
}
