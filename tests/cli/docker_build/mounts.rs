//! `RUN` with mounts, networks and variables.

use super::{World, exec, with};
use serde_json::json;

const BASE: &str = "ARG BASE\nFROM $BASE\n";

#[test]
fn mounts_are_there_for_one_command() {
    let world = World::new();
    let files = [("d/f", "file"), ("single", "one")];
    let dockerfile = format!(
        "{BASE}RUN --mount=target=/c cat /c/d/f > /out && ! touch /c/x\n\
         RUN --mount=type=bind,source=d,target=/c,rw touch /c/x && ls /c >> /out\n\
         RUN --mount=source=single,target=/etc/single cat /etc/single >> /out\n\
         RUN --mount=type=tmpfs,target=/t,size=1m touch /t/x && ls /t >> /out && ! dd if=/dev/zero of=/t/y bs=1M count=2 2>/dev/null\n\
         RUN --mount=type=cache,id=docker-test,target=/k,mode=0750,uid=5 stat -c '%a %u' /k >> /out && echo kept > /k/f\n\
         WORKDIR /w\nRUN --mount=type=cache,id=docker-test,target=rel cat rel/f >> /out\n"
    );
    let script = "cat /out; ls -a /c /t /k /etc/single /w/rel 2>/dev/null; true";
    assert_eq!(world.shell(&dockerfile, &files, script), "filef\nx\nonex\n750 5\nkept\n");
    let from = "ARG BASE\nFROM $BASE AS tools\nRUN echo tool > /tool\nFROM $BASE\nRUN --mount=from=tools,source=/tool,target=/t/tool cat /t/tool > /out\nRUN --mount=from=tools,target=/t ls /t/tool >> /out\n";
    assert_eq!(world.shell(from, &[], "cat /out"), "tool\n/t/tool\n");
}

#[test]
fn secrets_are_matched_by_name_and_stay_secret() {
    let world = World::new();
    let session = &world.session;
    let secret = session.leaf(r#"{ setSecret(name: "token", plaintext: "s3cr3t-value") { id } }"#);
    let dockerfile = format!(
        "{BASE}RUN --mount=type=secret,id=token cat /run/secrets/token | wc -c > /a\n\
         RUN --mount=type=secret,id=token,target=/t,mode=0444,uid=7 stat -c '%a %u' /t > /b\n\
         RUN --mount=type=secret,id=token,env=TOKEN echo ${{#TOKEN}} > /c; test ! -e /run/secrets/token; echo $TOKEN\n\
         RUN --mount=type=secret,id=other test ! -e /run/secrets/other\n"
    );
    let options = format!("secrets: [{secret}]");
    let files = with(&dockerfile, &[]);
    let text = session.leaf(&world.document(
        &files,
        &options,
        &exec("cat /a /b /c; ls /run/secrets /t 2>/dev/null; env | grep TOKEN; true"),
    ));
    assert_eq!(text, "12\n444 7\n12\n");
    // What a command prints of it is hidden.
    let shown = format!("{BASE}RUN --mount=type=secret,id=token,env=T echo \"[$T]\" && exit 1\n");
    let error = session.exec_error(&world.document(&with(&shown, &[]), &options, "sync"));
    assert_eq!(error.stdout, "[***]");
    // A secret of this machine goes by the last part of its address too.
    world.state.file("pass.txt", "from a file");
    let path = json!(format!("file://{}", world.state.workdir().join("pass.txt").display()));
    let kept = session.leaf(&format!("{{ secret(uri: {path}) {{ id }} }}"));
    let by_name = format!(
        "{BASE}RUN --mount=type=secret,id=pass.txt,required wc -c < /run/secrets/pass.txt > /n\n"
    );
    let document =
        world.document(&with(&by_name, &[]), &format!("secrets: [{kept}]"), &exec("cat /n"));
    assert_eq!(session.leaf(&document), "11\n");
}

#[test]
fn the_socket_of_an_agent_is_there_for_who_asks() {
    let world = World::new();
    let path = world.state.workdir().join("agent.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let session = &world.session;
    let socket = session.leaf(&format!(
        "{{ host {{ unixSocket(path: {}) {{ id }} }} }}",
        json!(path.to_string_lossy())
    ));
    let dockerfile = format!(
        "{BASE}RUN --mount=type=ssh echo $SSH_AUTH_SOCK > /a && test -S $SSH_AUTH_SOCK\n\
         RUN --mount=type=ssh,target=/agent,uid=1000 stat -c %u /agent >> /a\nRUN test -z \"$SSH_AUTH_SOCK\"\n"
    );
    let document =
        world.document(&with(&dockerfile, &[]), &format!("ssh: {socket}"), &exec("cat /a"));
    assert_eq!(session.leaf(&document), "/run/buildkit/ssh_agent.0\n1000\n");
}

#[test]
fn networks_are_chosen_by_command() {
    let world = World::new();
    let dockerfile = format!(
        "{BASE}RUN --network=none ip -o link | wc -l > /n\nRUN --network=host ip -o link | wc -l > /h\nRUN --network=default true\n"
    );
    let text = world.shell(&dockerfile, &[], "cat /n");
    assert_eq!(text, "1\n");
}

#[test]
fn arguments_and_variables_have_their_scopes() {
    let world = World::new();
    let dockerfile = "ARG BASE\nARG GLOBAL=g\nARG UNSEEN=u\nFROM $BASE AS one\nARG GLOBAL\nARG OWN=${GLOBAL}o\nARG GIVEN=default\nARG NONE\nENV E=$OWN E2=\"a b\" E3=$E\nENV OLD the old form\n\
        RUN echo \"$GLOBAL $OWN $GIVEN [$NONE] [$UNSEEN] $E $E2 [$E3] $OLD\" > /a\nFROM one\nARG TARGETARCH\nARG TARGETPLATFORM\nRUN echo \"$OWN $TARGETPLATFORM\" >> /a\n";
    let options =
        "buildArgs: [{name: \"GIVEN\", value: \"given\"}, {name: \"UNKNOWN\", value: \"x\"}]";
    let document = world.document(
        &with(dockerfile, &[]),
        options,
        &exec("cat /a; env | grep -c GLOBAL; echo $E; true"),
    );
    let text = world.session.leaf(&document);
    assert_eq!(text, "g go given [] [] go a b [] the old form\ngo linux/amd64\n0\ngo\n");
    let proxies = format!("{BASE}RUN echo $HTTP_PROXY > /p\n");
    let options = "buildArgs: [{name: \"HTTP_PROXY\", value: \"http://proxy.example\"}]";
    let document =
        world.document(&with(&proxies, &[]), options, &exec("cat /p; echo [$HTTP_PROXY]"));
    assert_eq!(world.session.leaf(&document), "http://proxy.example\n[]\n");
}

#[test]
fn the_command_line_builds_too() {
    let world = World::new();
    let folder = world
        .context(&[("Dockerfile", "ARG BASE\nFROM $BASE\nARG WHO\nRUN echo hello $WHO > /hi\n")]);
    let (path, base) = (format!("--path={}", folder.display()), format!("BASE={}", world.base()));
    let output = world
        .state
        .cli([
            "core",
            "host",
            "directory",
            &path,
            "docker-build",
            &format!("--build-args={base},WHO=there"),
            "with-exec",
            "--args=cat,/hi",
            "stdout",
        ])
        .run();
    assert_eq!(output.ok(), "hello there\n");
    // The old field does the same.
    let context = world.session.host_directory(&folder);
    let document = format!(
        "{{ container {{ build(context: {}, buildArgs: [{{name: \"BASE\", value: {}}}, {{name: \"WHO\", value: \"old\"}}]) {{ {} }} }} }}",
        json!(context),
        json!(world.base()),
        exec("cat /hi")
    );
    assert_eq!(world.session.leaf(&document), "hello old\n");
}
