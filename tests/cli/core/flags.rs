//! Values of flags: every type that an argument can have takes what it should, and says one clear thing about what it cannot take.

use protocol::schema::TypeKind;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use testkit::git::{Guard, HttpServer, work};
use testkit::{Output, State, busybox};

/// What a command line gives: all of its output, or some words of its error.
enum Gives {
    Out(&'static str),
    Error(&'static str),
}
use Gives::{Error, Out};

/// Types that are no values of a flag: nothing that one could type names one of these.
const WITHOUT_FLAG: &[&str] = &["Changeset", "JSONValue", "Node"];

/// Type of the argument, words after `ci-tool core`, what comes of it. In the words, `PORT` is a port of
/// this machine where somebody says a line, `GIT` the address of a repository. `SECRET`, `SERVICE` and `SOCKET` are a whole chain with
/// a flag of that type in it, which a command then uses.
const VALUES: &[(&str, &str, Gives)] = &[
    ("String", "file --name=f --contents=a,\"b\" contents", Out("a,\"b\"")),
    ("String", "file --name f --contents -x contents", Out("-x")),
    ("String", "file --name=f --contents", Error("flag needs an argument: --contents")),
    ("Int", "container with-exposed-port --port=80 exposed-ports port", Out("80\n")),
    (
        "Int",
        "container with-exposed-port --port=eighty exposed-ports port",
        Error("invalid argument \"eighty\" for \"--port\" flag: not a whole number"),
    ),
    ("Boolean", "directory exists --path=x --do-not-follow-symlinks", Out("false")),
    ("Boolean", "directory exists --path=x --do-not-follow-symlinks=false", Out("false")),
    (
        "Boolean",
        "directory exists --path=x --do-not-follow-symlinks=maybe",
        Error("for \"--do-not-follow-symlinks\" flag: it is neither true nor false"),
    ),
    (
        "[String]",
        "container with-entrypoint --args=a,\"b,c\" --args=d entrypoint",
        Out("a\nb,c\nd\n"),
    ),
    ("[String]", "container with-entrypoint --args=\"a entrypoint", Error("a quote is not closed")),
    (
        "enum",
        "container with-exposed-port --port=53 --protocol=udp exposed-ports protocol",
        Out("UDP\n"),
    ),
    (
        "enum",
        "container with-exposed-port --port=53 --protocol=icmp exposed-ports protocol",
        Error("value should be one of TCP,UDP"),
    ),
    ("Platform", "container --platform=linux/arm64 platform", Out("linux/arm64")),
    (
        "Platform",
        "container --platform=windows98 platform",
        Error("unknown operating system or architecture"),
    ),
    ("JSON", "json with-contents --contents={\"a\":[1]} field --path=a contents", Out("[1]")),
    ("JSON", "json with-contents --contents={ contents", Error("invalid JSON")),
    ("[Container]", "container as-tarball --platform-variants= name", Out("image.tar")),
    (
        "[Container]",
        "container --platform=linux/s390x as-tarball --platform-variants=deb://bookworm name",
        Out("image.tar"),
    ),
    (
        "[Container]",
        "container as-tarball --platform-variants=127.0.0.1:1/a/b:c name",
        Error("failed to get value for argument `--platform-variants`"),
    ),
    ("Container", "directory terminal --container= sync", Error("flag: it is empty")),
    ("Directory", "directory with-directory --path=. --source=sub entries", Out("file\n")),
    ("Directory", "directory with-directory --path=. --source=./sub/ entries", Out("file\n")),
    ("Directory", "directory with-directory --path=. --source=~/here entries", Out("home\n")),
    ("Directory", "directory with-directory --path=. --source=file://sub entries", Out("file\n")),
    ("Directory", "directory with-directory --path=. --source=GIT entries", Out("a.txt\nd/\n")),
    ("Directory", "directory with-directory --path=. --source=GIT#side:d entries", Out("deep\n")),
    ("Directory", "directory with-directory --path=. --source=GIT@v1 entries", Out("a.txt\n")),
    (
        "Directory",
        "directory with-directory --path=. --source=nothing entries",
        Error("failed to get value for argument `--source`: nothing: no such file or directory"),
    ),
    (
        "Directory",
        "directory with-directory --path=. --source=sub/file entries",
        Error("is a file, not a directory"),
    ),
    (
        "Directory",
        "directory with-directory --path=. --source= entries",
        Error("flag: it is empty"),
    ),
    ("File", "directory with-file --path=f --source=sub/file file --path=f contents", Out("text")),
    (
        "File",
        "directory with-file --path=f --source=file://sub/file file --path=f contents",
        Out("text"),
    ),
    (
        "File",
        "directory with-file --path=f --source=GIT#side:d/deep file --path=f contents",
        Out("deep\n"),
    ),
    (
        "File",
        "directory with-file --path=f --source=GIT#side entries",
        Error("expected path of a file"),
    ),
    (
        "File",
        "directory with-file --path=f --source=sub entries",
        Error("is a directory, not a file"),
    ),
    (
        "File",
        "directory with-file --path=f --source=nothing entries",
        Error("nothing: no such file or directory"),
    ),
    (
        "[File]",
        "directory with-files --path=. --sources=sub/file,.env entries",
        Out(".env\nfile\n"),
    ),
    (
        "[File]",
        "directory with-files --path=. --sources=sub/file --sources=.env entries",
        Out(".env\nfile\n"),
    ),
    ("Secret", "SECRET=env://TOKEN", Out("right\n")),
    ("Secret", "SECRET=env:TOKEN", Out("right\n")),
    ("Secret", "SECRET=TOKEN", Out("right\n")),
    ("Secret", "SECRET=file://token", Out("right\n")),
    ("Secret", "SECRET=cmd://printf hush-hush", Out("right\n")),
    ("Secret", "SECRET=env://NOTHING", Error("secret env var not found: \"NOT...\"")),
    ("Secret", "SECRET=nowhere://x", Error("unsupported secret provider: \"nowhere\"")),
    ("Service", "SERVICE=tcp://localhost:PORT", Out("served\n")),
    ("Service", "SERVICE=http://localhost:PORT", Error("it is not of the form tcp://host:port")),
    ("Service", "SERVICE=tcp://localhost", Error("it is not of the form tcp://host:port")),
    ("Service", "SERVICE=tcp://localhost:70000", Error("it is not of the form tcp://host:port")),
    ("Socket", "SOCKET=unix://s.sock", Out("0")),
    ("Socket", "SOCKET=s.sock", Out("0")),
    ("Socket", "container with-unix-socket --path=/s --source= mounts", Error("flag: it is empty")),
    ("CacheVolume", "container with-mounted-cache --path=/c --cache=apt mounts", Out("/c\n")),
    (
        "CacheVolume",
        "container with-mounted-cache --path=/c --cache= mounts",
        Error("flag: it is empty"),
    ),
    (
        "Volume",
        "container with-mounted-volume --path=/v --volume=engine-volume://data mounts",
        Out("/v\n"),
    ),
    (
        "Volume",
        "container with-mounted-volume --path=/v --volume=engine-volume://data?subdir=a/b mounts",
        Out("/v\n"),
    ),
    (
        "Volume",
        "container with-mounted-volume --path=/v --volume=data mounts",
        Error("`data` names no volume"),
    ),
    (
        "EnvFile",
        "container with-env-file-variables --source=.env env-variable --name=A",
        Out("x y"),
    ),
    (
        "EnvFile",
        "container with-env-file-variables --source=nothing env-variable --name=A",
        Error("no such file"),
    ),
    (
        "GitRef",
        "git --url=GIT branch --name=side common-ancestor --other=GIT#v1 tree entries",
        Out(".git/\na.txt\n"),
    ),
    (
        "GitRef",
        "git --url=GIT branch --name=side common-ancestor --other=r#main:d commit",
        Error("not a reference"),
    ),
    (
        "GitRef",
        "git --url=GIT branch --name=side common-ancestor --other=GIT#no commit",
        Error("does not contain"),
    ),
    (
        "[BuildArg]",
        "host directory --path=context docker-build --build-args=WHO=a=b label --name=who",
        Out("a=b"),
    ),
    (
        "[BuildArg]",
        "host directory --path=context docker-build --build-args==b label --name=who",
        Error("it is not of the form NAME=value"),
    ),
    (
        "[Secret]",
        "host directory --path=context docker-build --secrets=env://TOKEN label --name=who",
        Out("nobody"),
    ),
    (
        "[Secret]",
        "host directory --path=context docker-build --secrets=,x label --name=who",
        Error("it is empty"),
    ),
    ("[PortForward]", "host service --ports=80:8080,81:8081 ports port", Out("80\n81\n")),
    (
        "[PortForward]",
        "host service --ports=80 ports port",
        Error("it is not of the form frontend:backend"),
    ),
];

/// The files and servers that the words are about.
struct Place {
    state: State,
    _socket: UnixListener,
    /// What stands for something in the words.
    replacements: Vec<(&'static str, String)>,
}

impl Place {
    fn new() -> Self {
        let state = State::debian();
        for (name, text) in [
            ("sub/file", "text"),
            (".env", "A='x y'\n"),
            ("token", "hush-hush"),
            ("context/Dockerfile", "FROM scratch\nARG WHO=nobody\nLABEL who=$WHO\n"),
            ("r/a.txt", "a\n"),
        ] {
            state.file(name, text);
        }
        let home = state.home().join("here");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("home"), "").unwrap();
        work(
            &state.workdir().join("r"),
            "git init -q; git add .; git commit -qm one; git tag v1; mkdir d; echo deep > d/deep; \
             git add .; git commit -qm two; git branch side",
        );
        let git = HttpServer::smart(&state.workdir(), Guard::Nobody);
        let socket = UnixListener::bind(state.workdir().join("s.sock")).unwrap();
        let rootfs = format!("--directory={}", busybox().display());
        let root = format!("container\twith-rootfs\t{rootfs}\t");
        let secret =
            root.clone() + "with-exec\t--args=true\twith-secret-variable\t--name=T\t--secret";
        let socket_at = root.clone() + "with-unix-socket\t--path=/s\t--source";
        let service = root + "with-service-binding\t--alias=db\t--service";
        let replacements = vec![
            ("PORT", serve().to_string()),
            ("GIT", git.url("r/.git")),
            ("SECRET", secret),
            ("SERVICE", service),
            ("SOCKET", socket_at),
        ];
        Self { state, _socket: socket, replacements }
    }

    fn run(&self, line: &str) -> Output {
        // What a value is used for, where a look at it is not enough.
        let end = match line.split('=').next() {
            Some("SECRET") => "\twith-exec\t--args=sh,-c,test $T = hush-hush && echo right\tstdout",
            Some("SOCKET") => "\twith-exec\t--args=test,-S,/s\texit-code",
            Some("SERVICE") => "\twith-exec\t--args=nc,-w,5,db,PORT\tstdout",
            _ => "",
        };
        // Words with spaces in them stand in lines that have no other spaces.
        let separated = if end.is_empty() { line.replace(' ', "\t") } else { line.to_owned() };
        let mut line = format!("--silent\tcore\t{separated}{end}");
        for (name, text) in &self.replacements {
            line = line.replace(name, text);
        }
        self.state.cli(line.split('\t')).env("TOKEN", "hush-hush").run()
    }
}

/// A server of this machine that says a line to everybody, and its port.
fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"served\n");
        }
    });
    port
}

/// Whether a line gave something else, or said more or less than one clear thing.
fn wrong(output: &Output, gives: &Gives) -> bool {
    match gives {
        Out(expected) => !output.status.success() || output.stdout != *expected,
        Error(words) => {
            let errors = output.stderr.lines().filter(|line| line.starts_with("Error: ")).count();
            output.code() != 1
                || errors != 1
                || !output.stderr.contains(words)
                || !output.stdout.is_empty()
        }
    }
}

#[test]
fn each_type_takes_its_values_and_says_what_it_cannot_take() {
    let place = Place::new();
    let failed: Vec<Output> = VALUES
        .iter()
        .map(|(_, line, gives)| (place.run(line), gives))
        .filter(|(output, gives)| wrong(output, gives))
        .map(|(output, _)| output)
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_enum_takes_its_members_in_any_case() {
    let state = State::new();
    for (words, member) in [
        ("container with-exec --args=a --expect=ANY mounts", "any"),
        ("container with-mounted-cache --path=/c --cache=x --sharing=LOCKED mounts", "locked"),
        ("container as-tarball --media-types=DockerMediaTypes name", "docker-media-types"),
        ("container as-tarball --forced-compression=Zstd name", "zstd"),
        ("directory exists --path=x --expected-type=DIRECTORY_TYPE", "directory-type"),
    ] {
        let (before, rest) = words.rsplit_once('=').unwrap();
        let after = rest.split_once(' ').map_or("", |(_, after)| after);
        let expected = state.cli(["core"]).args(words.split(' ')).run();
        let line = format!("{before}={member} {after}");
        let got = state.cli(["core"]).args(line.trim().split(' ')).run();
        assert_eq!(
            (got.code(), &got.stdout),
            (expected.code(), &expected.stdout),
            "{line}: {got:#?}"
        );
    }
}

#[test]
fn the_old_form_of_a_secret_is_warned_about() {
    let place = Place::new();
    let output = place.run("SECRET=TOKEN");
    output.ok();
    assert!(output.stderr.contains("write `--secret=env://TOKEN`"), "{}", output.stderr);
}

/// Types of the arguments of everything that works and can be called from the command line.
fn types_of_arguments() -> BTreeSet<String> {
    let schema = e2e::schema().unwrap();
    let objects = schema.types.values().filter(|kind| kind.kind == TypeKind::Object);
    let fields = objects.flat_map(|kind| &kind.fields).filter(|field| field.implemented);
    let arguments = fields.flat_map(|field| &field.args).filter(|argument| argument.name != "id");
    let names = arguments.map(|argument| {
        let base = argument.type_ref.base();
        let kind = schema.types.get(base).map(|kind| kind.kind);
        let name = match (&argument.expected, kind) {
            (Some(object), _) => object.as_str(),
            (None, Some(TypeKind::Enum)) => "enum",
            (None, _) => base,
        };
        if argument.type_ref.is_list() { format!("[{name}]") } else { name.to_owned() }
    });
    names.collect()
}

#[test]
fn no_type_of_an_argument_is_forgotten() {
    let known = types_of_arguments();
    for name in &known {
        let plain = name.trim_matches(['[', ']']);
        assert!(
            VALUES.iter().any(|(type_name, ..)| type_name == name) || WITHOUT_FLAG.contains(&plain),
            "no row has a value of type {name}"
        );
    }
    for (name, ..) in VALUES {
        assert!(known.contains(*name), "nothing that works takes a value of type {name}");
    }
}

#[test]
fn what_needs_a_value_that_cannot_be_typed_says_so() {
    let state = State::new();
    for (words, function, argument) in [
        ("directory with-changes --changes=x entries", "with-changes", "changes"),
        ("json with-field --path=a --value=1 contents", "with-field", "value"),
        ("load-container-from-id --id=x platform", "load-container-from-id", "id"),
    ] {
        let output = state.cli(["core"]).args(words.split(' ')).run();
        let expected = format!(
            "function \"{function}\" needs arguments that cannot be given on the command line: {argument}"
        );
        assert!(output.fails(1).contains(&expected), "{output:#?}");
    }
}
