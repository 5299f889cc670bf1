//! Two execs that leave equal trees but print differently each give their own output.

use testkit::{Random, Session, State, rounds};

/// Prints a word and leaves the tree as it was, or as another such command left it.
fn print(session: &Session, word: &str, write: &str) -> String {
    session.shell(&format!("{write}; echo {word}"))
}

#[test]
fn equal_trees_have_their_own_output() {
    let mut random = Random::new("equal trees");
    let state = State::new();
    for round in 0..rounds() {
        let write = *random.pick(&["true", "echo same > /tree", "mkdir -p /a/b; rm -rf /bin/tty"]);
        let (one, two) = (random.word(), random.word());
        let expected = |word: &str| format!("{word}\n");

        let session = Session::start(&state);
        assert_eq!(print(&session, &one, write), expected(&one), "round {round}");
        assert_eq!(print(&session, &two, write), expected(&two), "the same session, round {round}");
        assert_eq!(print(&session, &one, write), expected(&one), "again, round {round}");
        session.end();

        let session = Session::start(&state);
        assert_eq!(print(&session, &two, write), expected(&two), "another session, round {round}");
        assert_eq!(print(&session, &one, write), expected(&one), "another session, round {round}");
        session.end();

        match round % 5 {
            0 => state.stop(),
            1 => drop(state.kill_engine()),
            _ => continue,
        }
        let session = Session::start(&state);
        assert_eq!(print(&session, &one, write), expected(&one), "after a restart, round {round}");
        assert_eq!(print(&session, &two, write), expected(&two), "after a restart, round {round}");
    }
}

#[test]
fn standard_error_and_exit_code_are_ones_own_too() {
    let mut random = Random::new("own stderr");
    let state = State::new();
    let session = Session::start(&state);
    for _ in 0..rounds() {
        let word = random.word();
        let code = random.below(127);
        let document = session.on_container(&format!(
            r#"withExec(args: ["sh", "-c", "echo {word} >&2; exit {code}"], expect: ANY) {{ stderr exitCode }}"#
        ));
        let exec = session.query(&document)["container"]["withRootfs"]["withExec"].clone();
        assert_eq!(exec["stderr"], format!("{word}\n"));
        assert_eq!(exec["exitCode"], code);
    }
}

#[test]
fn what_is_built_on_equal_trees_is_shared() {
    let state = State::new();
    let session = Session::start(&state);
    let on_tree_of = |word: &str| {
        let rootfs = session
            .container(&format!(r#"withExec(args: ["echo", "{word}"]) {{ rootfs {{ id }} }}"#));
        let document = format!(
            r#"{{ container {{ withRootfs(directory: "{rootfs}") {{
                withExec(args: ["cat", "/proc/sys/kernel/random/uuid"]) {{ stdout }} }} }} }}"#
        );
        session.leaf(&document)
    };
    assert_eq!(
        on_tree_of("one"),
        on_tree_of("two"),
        "the tree left the object, and it is the same tree"
    );
}
