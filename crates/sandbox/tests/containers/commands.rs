//! Exit codes, programs that cannot be run, working directory, environment, user.

use crate::fixture::{Fixture, make_root, run, spec_in};
use crate::{Case, cases};
use sandbox::{Error, User};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

pub(crate) fn cases() -> Vec<Case> {
    cases![
        exit_codes_come_through,
        signals_are_128_and_their_number,
        a_missing_program_is_127,
        what_is_no_program_is_126,
        a_root_without_a_shell_is_no_problem,
        programs_are_searched_in_the_commands_own_path,
        hostile_program_names_are_refused,
        the_environment_is_exactly_the_given_one,
        the_working_directory_is_entered,
        the_user_is_changed,
        without_init_the_command_is_process_1,
        long_requests_arrive_whole,
        senseless_specifications_are_refused,
        many_commands_run_at_once,
        containers_made_ahead_run_at_the_usual_pace,
    ]
}

async fn exit_codes_come_through(fixture: Arc<Fixture>) {
    assert_eq!(fixture.run(&["true"]).await.exit.code, 0);
    assert_eq!(fixture.run(&["false"]).await.exit.code, 1);
    assert_eq!(fixture.shell("exit 42").await.exit.code, 42);
    assert_eq!(fixture.shell("exit 255").await.exit.code, 255);
}

async fn signals_are_128_and_their_number(fixture: Arc<Fixture>) {
    assert_eq!(fixture.shell("kill -KILL $$").await.exit.code, 137);
    assert_eq!(fixture.shell("kill -TERM $$").await.exit.code, 143);
    assert_eq!(fixture.shell("kill -SEGV $$").await.exit.code, 139);
    let mut spec = fixture.spec(&["sh", "-c", "kill -PIPE $$"]);
    spec.init = true;
    assert_eq!(run(&fixture.plain, spec).await.unwrap().exit.code, 141, "SIGPIPE is not ignored");
}

/// The error and its code.
async fn refused(fixture: &Fixture, args: &[&str]) -> (i32, String) {
    let mut answers = Vec::new();
    for init in [true, false] {
        let mut spec = fixture.spec(args);
        spec.init = init;
        match run(&fixture.plain, spec).await {
            Err(Error::Program { code, reason, program }) => {
                assert!(args[0].starts_with(program.trim_end_matches('.')), "{program}");
                answers.push((code, reason));
            }
            other => panic!("{args:?} gave {other:?}"),
        }
    }
    assert_eq!(answers[0], answers[1], "with and without init");
    answers.remove(0)
}

async fn a_missing_program_is_127(fixture: Arc<Fixture>) {
    assert_eq!(refused(&fixture, &["nosuch"]).await.0, 127);
    assert_eq!(refused(&fixture, &["/bin/nosuch"]).await.0, 127);
    assert_eq!(refused(&fixture, &["./nosuch"]).await.0, 127);
    assert_eq!(refused(&fixture, &["/bin/true/nosuch"]).await.0, 127);
    assert_eq!(refused(&fixture, &[""]).await.0, 127);
}

async fn what_is_no_program_is_126(fixture: Arc<Fixture>) {
    let place = fixture.root.join("tmp");
    let make = |name: &str, contents: &str, mode: u32| {
        fs::write(place.join(name), contents).unwrap();
        fs::set_permissions(place.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    make("plain", "text", 0o644);
    make("garbage", "\x01\x02\x03", 0o755);
    make("orphan", "#!/no/such/interpreter\n", 0o755);
    let (code, reason) = refused(&fixture, &["/tmp"]).await;
    assert_eq!((code, reason.as_str()), (126, "it is a directory"));
    let (code, reason) = refused(&fixture, &["/tmp/plain"]).await;
    assert_eq!((code, reason.as_str()), (126, "permission denied"));
    let (code, reason) = refused(&fixture, &["/tmp/garbage"]).await;
    assert!(code == 126 && reason.contains("neither a program"), "{reason}");
    let (code, reason) = refused(&fixture, &["/tmp/orphan"]).await;
    assert!(code == 126 && reason.contains("interpreter"), "{reason}");
}

async fn a_root_without_a_shell_is_no_problem(fixture: Arc<Fixture>) {
    let root = fixture.outside("shell-less");
    make_root(&root);
    fs::remove_file(root.join("bin/sh")).unwrap();
    let outcome = run(&fixture.plain, spec_in(&root, &["echo", "fine"])).await.unwrap();
    assert_eq!(outcome.text(), "fine");
    let error = run(&fixture.plain, spec_in(&root, &["sh", "-c", "echo"])).await.unwrap_err();
    assert!(matches!(error, Error::Program { code: 127, .. }), "{error}");
}

async fn programs_are_searched_in_the_commands_own_path(fixture: Arc<Fixture>) {
    let place = fixture.root.join("tmp/own-path");
    fs::create_dir_all(place.join("found")).unwrap();
    fs::write(place.join("found/tool"), "#!/bin/sh\necho from here\n").unwrap();
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.join("found/tool"), executable).unwrap();
    let mut spec = fixture.spec(&["tool"]);
    spec.env = vec![("PATH".into(), "/nowhere:/tmp/own-path/found:/bin".into())];
    assert_eq!(run(&fixture.plain, spec).await.unwrap().text(), "from here");
    let mut spec = fixture.spec(&["true"]);
    spec.env = Vec::new();
    assert_eq!(run(&fixture.plain, spec).await.unwrap().exit.code, 0, "the default PATH has /bin");
}

async fn hostile_program_names_are_refused(fixture: Arc<Fixture>) {
    let long = "x".repeat(4 << 20);
    let (code, _) = refused(&fixture, &[&long]).await;
    assert_eq!(code, 127);
    let error = run(&fixture.plain, fixture.spec(&["/../../../../../../usr/bin/env"])).await;
    assert!(matches!(error, Err(Error::Program { code: 127, .. })), "{error:?}");
}

async fn the_environment_is_exactly_the_given_one(fixture: Arc<Fixture>) {
    let mut spec = fixture.spec(&["/bin/env"]);
    spec.env = vec![
        ("ONE".into(), "1".into()),
        ("EMPTY".into(), String::new()),
        ("ODD".into(), "a=b c".into()),
    ];
    let outcome = run(&fixture.plain, spec).await.unwrap();
    assert_eq!(outcome.text(), "ONE=1\nEMPTY=\nODD=a=b c");
}

async fn the_working_directory_is_entered(fixture: Arc<Fixture>) {
    let mut spec = fixture.spec(&["pwd"]);
    spec.workdir = "/tmp".into();
    assert_eq!(run(&fixture.plain, spec).await.unwrap().text(), "/tmp");
    for missing in
        ["/no/such", "/bin/busybox", "/proc/self/fd/3", "/proc/self/root", "/proc/self/cwd"]
    {
        let mut spec = fixture.spec(&["pwd"]);
        spec.workdir = missing.into();
        let error = run(&fixture.plain, spec).await.unwrap_err();
        assert!(matches!(&error, Error::Workdir { path, .. } if path == missing), "{error}");
    }
}

async fn the_user_is_changed(fixture: Arc<Fixture>) {
    let line = "id -u; id -g; grep Groups /proc/self/status; echo hi > /dev/stdout; cat /dev/stdin";
    let mut spec = fixture.spec(&["sh", "-c", line]);
    spec.user = User { uid: 1234, gid: 5678, groups: vec![5678, 9] };
    let outcome = run(&fixture.plain, spec).await.unwrap();
    assert_eq!(outcome.text(), "1234\n5678\nGroups:\t9 5678 \nhi");
    assert_eq!(fixture.shell("id -u; grep Groups /proc/self/status").await.text(), "0\nGroups:");
}

async fn without_init_the_command_is_process_1(fixture: Arc<Fixture>) {
    let mut spec = fixture.spec(&["sh", "-c", "echo $$; readlink /proc/1/exe"]);
    spec.init = false;
    assert_eq!(run(&fixture.plain, spec).await.unwrap().text(), "1\n/bin/busybox");
    let code = |line: &str| {
        let mut spec = fixture.spec(&["sh", "-c", line]);
        spec.init = false;
        let sandbox = fixture.plain.clone();
        async move { run(&sandbox, spec).await.unwrap().exit.code }
    };
    assert_eq!(code("exit 7").await, 7);
}

async fn long_requests_arrive_whole(fixture: Arc<Fixture>) {
    let text = "y".repeat(120_000);
    let mut spec = fixture.spec(&["sh", "-c", "echo ${#A} ${#B}"]);
    spec.env.push(("A".into(), text.clone()));
    spec.env.push(("B".into(), text));
    assert_eq!(run(&fixture.plain, spec).await.unwrap().text(), "120000 120000");
    let mut spec = fixture.spec(&["true"]);
    spec.env = (0..100).map(|index| (format!("V{index}"), "z".repeat(100_000))).collect();
    let error = run(&fixture.plain, spec).await.unwrap_err();
    assert!(matches!(error, Error::Program { code: 126 | 127, .. }), "{error}");
}

async fn senseless_specifications_are_refused(fixture: Arc<Fixture>) {
    let mut specs = vec![fixture.spec(&[]), fixture.spec(&["a\0b"])];
    let mut relative = fixture.spec(&["true"]);
    relative.workdir = "tmp".into();
    specs.push(relative);
    for name in ["", "A=B", "A\0"] {
        let mut variable = fixture.spec(&["true"]);
        variable.env.push((name.into(), "x".into()));
        specs.push(variable);
    }
    for spec in specs {
        let error = run(&fixture.plain, spec).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
    }
}

async fn many_commands_run_at_once(fixture: Arc<Fixture>) {
    let mut tasks = Vec::new();
    for number in 0..100 {
        let fixture = fixture.clone();
        tasks.push(tokio::spawn(async move {
            let outcome = fixture.shell(&format!("echo {number}; exit {number}")).await;
            assert_eq!(outcome.exit.code, number);
            assert_eq!(outcome.stdout.trim(), number.to_string());
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// Field 41 of `stat` is the policy by which the kernel schedules; the name before it has no space here.
async fn containers_made_ahead_run_at_the_usual_pace(fixture: Arc<Fixture>) {
    for _ in 0..20 {
        let output = fixture.shell("cut -d ' ' -f 41 /proc/self/stat /proc/1/stat").await;
        assert_eq!(output.stdout, "0\n0\n");
    }
}
