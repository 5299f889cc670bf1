//! What is said about a build that fails: always the line.

use super::{World, with};

const BASE: &str = "ARG BASE\nFROM $BASE\n";

#[test]
fn every_error_shows_its_line() {
    let world = World::new();
    for (dockerfile, said) in [
        (format!("{BASE}FOO bar\n"), "Dockerfile:3: `FOO bar`: unknown instruction: FOO"),
        (
            format!("{BASE}COPY missing /x\n"),
            "Dockerfile:3: `COPY missing /x`: \"missing\": not found",
        ),
        (format!("{BASE}COPY a b /x\n"), "the destination must be a directory and end with a /"),
        (
            format!("{BASE}COPY --chown=nobody2 Dockerfile /x\nRUN true\n"),
            "unable to find user `nobody2`",
        ),
        (format!("{BASE}COPY --chmod=abc Dockerfile /x\n"), "invalid chmod parameter"),
        (
            format!("{BASE}ENV A=\"${{B:?must be set}}\"\n"),
            "Dockerfile:3: `ENV A=\"${B:?must be set}\"`: B: must be set",
        ),
        (format!("{BASE}EXPOSE 99999\n"), "invalid containerPort: 99999"),
        (format!("{BASE}RUN --security=insecure true\n"), "security.insecure is not allowed"),
        (format!("{BASE}RUN --mount=type=secret,id=no,required true\n"), "secret no: not found"),
        (format!("{BASE}RUN --mount=type=ssh,required true\n"), "ssh agent default: not found"),
        (format!("{BASE}RUN --mount=from=nowhere/at/all:1,target=/x true\n"), "Dockerfile:3:"),
        ("FROM $NOTHING\n".to_owned(), "base name ($NOTHING) should not be blank"),
        (
            "# syntax=example/other\nFROM scratch\n".to_owned(),
            "syntax frontend `example/other` is unsupported",
        ),
        ("RUN true\n".to_owned(), "Dockerfile:1: `RUN true`: no build stage in current context"),
        (String::new(), "no instructions"),
        (format!("{BASE}ADD git@example:x/y.git /x\n"), "Dockerfile:3:"),
    ] {
        let found = world.error(&dockerfile, &[]);
        assert!(found.contains(said), "{dockerfile}\n{found}");
    }
    let missing = world.document(&[("x", "")], "", "sync");
    assert!(world.session.error(&missing).contains("Dockerfile: no such file or directory"));
    let named = world.document(&[("x", "FROM a b")], "dockerfile: \"x\"", "sync");
    assert!(world.session.error(&named).contains("x:1: `FROM a b`: FROM requires"));
}

#[test]
fn a_failing_command_is_an_exec_error_and_a_default_command_never_runs() {
    let world = World::new();
    let dockerfile = format!("{BASE}\nRUN echo out && echo err >&2 && exit 7\nCMD false\n");
    let error = world.session.exec_error(&world.document(&with(&dockerfile, &[]), "", "sync"));
    assert_eq!((error.code, error.stdout.as_str(), error.stderr.as_str()), (7, "out", "err"));
    assert!(error.message.starts_with("Dockerfile:4: `RUN echo out"), "{error:?}");
    assert!(error.message.contains("exit code: 7"), "{error:?}");
    let fine = format!("{BASE}CMD [\"echo\", \"by default\"]\n");
    assert_eq!(world.built(&fine, &[], "withExec(args: []) { stdout }"), "by default\n");
    let never = format!("{BASE}CMD exit 9\n");
    world.built(&never, &[], "sync");
    // Only the id stays lazy: it names a build that fails.
    world.session.leaf(&world.document(&with(&dockerfile, &[]), "", "id"));
}

#[test]
fn hostile_files_are_refused_and_nothing_hangs() {
    let world = World::new();
    let deep = format!("FROM scratch\nENV A={}x{}\n", "${N:-".repeat(5000), "}".repeat(5000));
    assert!(world.error(&deep, &[]).contains("nested too deep"));
    let long = format!("FROM scratch\n# {}\n", "x".repeat(1 << 20));
    assert!(world.error(&long, &[]).contains("is longer than"));
    let stages: String = (0..2000)
        .map(|n| {
            format!(
                "FROM {} AS s{n}\n",
                if n == 0 { "scratch".into() } else { format!("s{}", n - 1) }
            )
        })
        .collect();
    assert_eq!(world.built(&stages, &[], "rootfs { entries }"), serde_json::json!([]));
    let folder = world.context(&[]);
    std::fs::create_dir_all(folder.join("Dockerfile")).unwrap();
    let said = world.session.error(&world.document_in(&folder, "", "sync"));
    assert!(said.contains("is a directory, not a file"), "{said}");
    let outside = world.error(&format!("{BASE}COPY ../../../../etc/shadow /x\n"), &[]);
    assert!(outside.contains("not found"), "{outside}");
}
