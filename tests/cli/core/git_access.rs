//! Credentials for git: over http by token, header, helper and `.netrc`, over ssh by an agent, and never for others.

use super::git::Remote;
use serde_json::json;
use testkit::SshServer;
use testkit::git::{Guard, HttpServer, work};
use testkit::{Session, State};

const GUARD: Guard = Guard::Basic("x-access-token", "hunter22");
const TREE: &str = "head { tree(discardGitDir: true) { entries } }";

fn secret(session: &Session, text: &str) -> String {
    let id =
        session.leaf(&format!("{{ setSecret(name: \"s\", plaintext: {}) {{ id }} }}", json!(text)));
    id.to_string()
}

#[test]
fn http_takes_tokens_headers_and_what_the_callers_git_knows() {
    let remote = Remote::new(GUARD);
    let session = Session::start(&remote.state);
    let url = json!(remote.server.url("r/.git"));
    let with = |arguments: &str| format!("{{ git(url: {url}, {arguments}) {{ {TREE} }} }}");
    let (right, wrong) = (secret(&session, "hunter22"), secret(&session, "wrong-token"));
    let files = json!(["d/", "g", "link", "run"]);
    // Nobody is let in without, and no error shows what was tried.
    for document in [remote.on(TREE), with(&format!("httpAuthToken: {wrong}"))] {
        let error = session.error(&document);
        assert!(error.contains("git error: authentication failed"), "{error}");
        assert!(!error.contains("wrong-token"), "{error}");
    }
    assert_eq!(session.leaf(&with(&format!("httpAuthToken: {right}"))), files);
    // What one call was given is not another's, though the mirror has it.
    assert!(session.error(&remote.on(TREE)).contains("authentication failed"));
    assert!(
        Session::start(&remote.state).error(&remote.on(TREE)).contains("authentication failed")
    );
    assert_eq!(session.leaf(&remote.on(&format!("withAuthToken(token: {right}) {{ url }}"))), url);
    remote.server.guard(Guard::Basic("ann", "hunter22"));
    let named = with(&format!("httpAuthToken: {right}, httpAuthUsername: \"ann\""));
    assert_eq!(session.leaf(&named), files);
    remote.server.guard(Guard::Header("Bearer abc"));
    let header = secret(&session, "Bearer abc");
    assert_eq!(session.leaf(&with(&format!("httpAuthHeader: {header}"))), files);
    let old = remote.on(&format!("withAuthHeader(header: {header}) {{ {TREE} }}"));
    assert_eq!(session.leaf(&old), files);
    remote.server.guard(GUARD);
    let helper = format!(
        "[credential \"http://{}\"]\n\thelper = \"!f() {{ echo username=x-access-token; echo password=hunter22; }}; f\"\n",
        remote.server.host()
    );
    std::fs::write(remote.state.home().join(".gitconfig"), helper).unwrap();
    assert_eq!(Session::start(&remote.state).leaf(&remote.on(TREE)), files);
    std::fs::remove_file(remote.state.home().join(".gitconfig")).unwrap();
    let netrc = "machine 127.0.0.1 login x-access-token password hunter22\n";
    std::fs::write(remote.state.home().join(".netrc"), netrc).unwrap();
    assert_eq!(Session::start(&remote.state).leaf(&remote.on(TREE)), files);
    // Nothing of it is on the engine's disk or in its log.
    let kept = work(&remote.state.dir(), "grep -rl 'hunter22' . || true");
    assert_eq!(kept, "");
}

#[test]
fn a_hint_is_in_the_words_of_who_asked() {
    let remote = Remote::new(GUARD);
    let url = format!("--url={}", remote.server.url("r/.git"));
    let typed = remote.state.cli(["core", "git", &url, "head", "tree", "entries"]).run();
    let hint = "hint: pass `--http-auth-token`, `--http-auth-header` or `--ssh-auth-socket`, or log in with";
    assert!(typed.fails(1).contains(hint), "{typed:#?}");
    let document = remote.state.cli(["query"]).stdin(remote.on(TREE)).run();
    assert!(document.fails(1).contains("hint: pass `httpAuthToken`, "), "{document:#?}");
}

#[test]
fn submodules_are_fetched_with_credentials_for_their_host_alone() {
    let remote = Remote::new(GUARD);
    let folder = remote.state.workdir();
    let other = HttpServer::smart(&folder, GUARD);
    work(
        &folder,
        "git init -q s; cd s; git submodule --quiet add ../r lib/r; git config -f .gitmodules submodule.lib/r.url ../../r/.git; \
         git add .; git commit -qm with",
    );
    let session = Session::start(&remote.state);
    let token = secret(&session, "hunter22");
    let on = |chain: &str| {
        let url = json!(remote.server.url("s/.git"));
        format!("{{ git(url: {url}, httpAuthToken: {token}) {{ head {{ {chain} }} }} }}")
    };
    let file = r#"file(path: "lib/r/d/f") { contents }"#;
    assert_eq!(
        session.leaf(&on(&format!("tree(discardGitDir: true) {{ {file} }}"))),
        json!("two\n")
    );
    let path = json!(folder.join("out").display().to_string());
    session.leaf(&on(&format!("tree {{ export(path: {path}) }}")));
    let said = work(
        &folder.join("out"),
        "git status --porcelain; git submodule status | cut -c1; cd lib/r; git status --porcelain; git rev-parse HEAD",
    );
    assert_eq!(said.trim(), remote.work("git rev-parse HEAD"), "clean, and at its commit");
    // A token is for the host that it was given for.
    let elsewhere = json!(other.url("r/.git"));
    work(
        &folder.join("s"),
        &format!(
            "git config -f .gitmodules submodule.lib/r.url {elsewhere}; git commit -qam moved"
        ),
    );
    let next = Session::start(&remote.state);
    let token = secret(&next, "hunter22");
    let url = json!(remote.server.url("s/.git"));
    let document = format!("{{ git(url: {url}, httpAuthToken: {token}) {{ {TREE} }} }}");
    assert!(next.error(&document).contains("authentication failed"));
}

#[test]
fn a_plain_web_server_is_enough() {
    let state = State::new();
    let folder = state.workdir();
    work(
        &folder,
        "git init -q r; cd r; echo one > f; git add f; git commit -qm one; git tag -am x v1.0.0; git update-server-info",
    );
    let server = HttpServer::dumb(&folder);
    let session = Session::start(&state);
    let url = json!(server.url("r/.git"));
    let leaf = |chain: &str| session.leaf(&format!("{{ git(url: {url}) {{ {chain} }} }}"));
    // It gives no part of a history, so all of it comes.
    let log =
        session.query(&format!("{{ git(url: {url}) {{ head {{ log(limit: 1) {{ sha }} }} }} }}"));
    assert_eq!(
        log["git"]["head"]["log"],
        json!([{ "sha": work(&folder.join("r"), "git rev-parse HEAD") }])
    );
    assert_eq!(
        leaf(
            r#"tag(name: "v1.0.0") { tree(discardGitDir: true) { file(path: "f") { contents } } }"#
        ),
        json!("one\n")
    );
    assert_eq!(leaf("head { tree { entries } }"), json!([".git/", "f"]));
}

#[test]
fn a_service_may_be_the_server() {
    let state = State::new();
    let folder = state.workdir();
    work(
        &folder,
        "git init -q srv/r; cd srv/r; echo one > f; git add f; git commit -qm one; git update-server-info",
    );
    let session = Session::start(&state);
    let files = json!(session.host_directory(&folder.join("srv")));
    let service = session.leaf(&session.on_container(&format!(
        r#"withMountedDirectory(path: "/srv", source: {files}) {{ withExposedPort(port: 8080) {{
           asService(args: ["sh", "-c", "exec httpd -f -p 8080 -h /srv"]) {{ id }} }} }}"#
    )));
    let url = "http://server:8080/r/.git";
    let on = format!("{{ git(url: \"{url}\", experimentalServiceHost: {service}) {{");
    let found = session.leaf(&format!("{on} {TREE} }} }}"));
    assert_eq!(found, json!(["f"]));
    assert_eq!(session.leaf(&format!("{on} url }} }}")), json!(url));
}

#[test]
fn ssh_asks_the_callers_agent() {
    let state = State::new();
    let folder = state.workdir();
    work(&folder, "git init -q r; cd r; echo one > f; git add f; git commit -qm one");
    let server = SshServer::start(&state.home().join("ssh"));
    let session = Session::start(&state);
    let url = json!(server.url(&folder.join("r/.git")));
    let socket = json!(server.agent().display().to_string());
    let socket = session.leaf(&format!("{{ host {{ unixSocket(path: {socket}) {{ id }} }} }}"));
    let with = |arguments: &str| format!("{{ git(url: {url}, {arguments}) {{ {TREE} }} }}");
    assert_eq!(session.leaf(&with(&format!("sshAuthSocket: {socket}"))), json!(["f"]));
    let known = json!(server.known_hosts());
    assert_eq!(
        session.leaf(&with(&format!("sshAuthSocket: {socket}, sshKnownHosts: {known}"))),
        json!(["f"])
    );
    let stranger = "[127.0.0.1]:1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5Fq0Hq2cHq0Hq2cHq0Hq2cHq0Hq2cHq0Hq2cHq0Hq2";
    let refused = session
        .error(&with(&format!("sshAuthSocket: {socket}, sshKnownHosts: {}", json!(stranger))));
    assert!(refused.contains("is not trusted"), "{refused}");
    let nobody = session.error(&format!("{{ git(url: {url}) {{ {TREE} }} }}"));
    assert!(nobody.contains("needs the socket of an agent"), "{nobody}");
    // A user's own agent needs no word.
    let words = ["core", "git", "--url", url.as_str().unwrap(), "head", "tree", "entries"];
    let said = state.cli(words).env("SSH_AUTH_SOCK", server.agent()).run();
    assert_eq!(said.ok(), ".git/\nf\n");
}

#[test]
fn a_url_is_refused_or_told_to_lead_nowhere() {
    let state = State::new();
    let session = Session::start(&state);
    let error = |url: &str| {
        session.error(&format!("{{ git(url: {}) {{ head {{ commit }} }} }}", json!(url)))
    };
    for url in [
        "",
        "--upload-pack=touch x",
        "ext::sh -c x",
        "ssh://-oProxyCommand=x/r",
        "https://host/a b",
    ] {
        assert!(error(url).contains("is not the url of a git repository"), "{url}: {}", error(url));
    }
    assert!(error("ftp://host/r").contains("`ftp`, which is not supported"));
    assert!(
        error("127.0.0.1/o/r").starts_with("failed to determine Git URL protocol"),
        "{}",
        error("127.0.0.1/o/r")
    );
    assert!(error("http://127.0.0.1:1/r").starts_with("git error: "));
    assert!(error("file:///nowhere/at/all").contains("no such file or directory"));
}
