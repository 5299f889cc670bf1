//! Cases for the published Rust library. `tests/clients/README.md` says how they are run.

#[cfg(feature = "newest")]
mod newer;
mod outside;

#[cfg(feature = "newest")]
use newer::*;
use outside::*;

use dagger_sdk::errors::DaggerError;
use dagger_sdk::{
    CacheSharingMode, Container, ContainerWithEnvVariableOpts, ContainerWithExecOpts,
    ContainerWithExecOptsBuilder, ContainerWithExposedPortOptsBuilder,
    ContainerWithMountedCacheOptsBuilder, DaggerConn, DirectoryWithDirectoryOptsBuilder,
    DirectoryWithNewFileOpts, HostDirectoryOptsBuilder, NetworkProtocol, Platform,
    QueryContainerOpts, ReturnType, ServiceEndpointOptsBuilder,
};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

const IMAGE: &str = "deb://bookworm";

type Outcome = eyre::Result<()>;

fn debian(dag: &DaggerConn) -> Container {
    dag.container().from(IMAGE)
}

fn shell(dag: &DaggerConn, script: &str) -> Container {
    debian(dag).with_exec(vec!["sh", "-c", script])
}

/// Fails the case when two values differ.
fn equal<A: PartialEq<B> + std::fmt::Debug, B: std::fmt::Debug>(actual: A, expected: B) -> Outcome {
    eyre::ensure!(actual == expected, "{actual:?} is not {expected:?}");
    Ok(())
}

/// What a call that must fail says.
fn failure<T>(result: Result<T, DaggerError>) -> eyre::Result<String> {
    match result {
        Ok(_) => eyre::bail!("it did not fail"),
        Err(error) => Ok(error.to_string()),
    }
}

fn plain(names: Vec<String>) -> Vec<String> {
    names.into_iter().map(|name| name.trim_end_matches('/').to_owned()).collect()
}

/// A folder of the host, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> eyre::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("cases-{}-{number}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn version_is_text(dag: DaggerConn) -> Outcome {
    eyre::ensure!(!dag.version().await?.is_empty());
    Ok(())
}

async fn output_of_a_command(dag: DaggerConn) -> Outcome {
    equal(shell(&dag, "echo out; echo err >&2").stdout().await?, "out\n")
}

async fn errors_of_a_command(dag: DaggerConn) -> Outcome {
    equal(shell(&dag, "echo out; echo err >&2").stderr().await?, "err\n")
}

async fn exit_code_that_was_expected(dag: DaggerConn) -> Outcome {
    let options = ContainerWithExecOptsBuilder::default().expect(ReturnType::Any).build()?;
    equal(debian(&dag).with_exec_opts(vec!["sh", "-c", "exit 7"], options).exit_code().await?, 7)
}

async fn failing_command_is_an_error(dag: DaggerConn) -> Outcome {
    let message = failure(shell(&dag, "exit 42").stdout().await)?;
    eyre::ensure!(message.contains("exit code: 42"), message);
    Ok(())
}

async fn missing_program_is_an_error(dag: DaggerConn) -> Outcome {
    let message = failure(debian(&dag).with_exec(vec!["no-such-program"]).stdout().await)?;
    eyre::ensure!(message.contains("exit code: 1"), message);
    Ok(())
}

async fn missing_file_is_an_error(dag: DaggerConn) -> Outcome {
    let message = failure(dag.directory().file("nothing").contents().await)?;
    eyre::ensure!(message.contains("no such file or directory"), message);
    Ok(())
}

async fn error_in_the_middle_of_a_chain(dag: DaggerConn) -> Outcome {
    let chain = shell(&dag, "exit 3").with_env_variable("A", "b").with_exec(vec!["true"]);
    let message = failure(chain.stdout().await)?;
    eyre::ensure!(message.contains("exit code: 3"), message);
    Ok(())
}

async fn environment_variables(dag: DaggerConn) -> Outcome {
    let expand = ContainerWithEnvVariableOpts { expand: Some(true) };
    let container = debian(&dag).with_env_variable("ONE", "1");
    let container = container.with_env_variable_opts("TWO", "$ONE", expand);
    equal(container.env_variable("TWO").await?, "1")?;
    equal(container.with_exec(vec!["sh", "-c", "echo $ONE-$TWO"]).stdout().await?, "1-1\n")
}

async fn labels(dag: DaggerConn) -> Outcome {
    let container = dag.container().with_label("org.example.one", "a=b, c");
    equal(container.label("org.example.one").await?, "a=b, c")
}

async fn working_directory_and_user(dag: DaggerConn) -> Outcome {
    let container = debian(&dag).with_workdir("/srv").with_user("nobody");
    equal(container.workdir().await?, "/srv")?;
    equal(container.user().await?, "nobody")?;
    equal(container.with_exec(vec!["sh", "-c", "pwd; id -un"]).stdout().await?, "/srv\nnobody\n")
}

async fn entrypoint_and_default_arguments(dag: DaggerConn) -> Outcome {
    let container = debian(&dag).with_entrypoint(vec!["echo", "from"]);
    let container = container.with_default_args(vec!["default"]);
    equal(container.entrypoint().await?, ["echo", "from"])?;
    equal(container.default_args().await?, ["default"])?;
    let exec = |args: Vec<&str>| -> eyre::Result<Container> {
        let options: ContainerWithExecOpts =
            ContainerWithExecOptsBuilder::default().use_entrypoint(true).build()?;
        Ok(container.with_exec_opts(args, options))
    };
    equal(exec(vec![])?.stdout().await?, "from default\n")?;
    equal(exec(vec!["x"])?.stdout().await?, "from x\n")
}

async fn text_of_every_kind(dag: DaggerConn) -> Outcome {
    let text = "quote \" back\\slash 'single' \t tab\nline\r\n \u{e4}\u{f6} \u{65e5}\u{672c} \u{1f600} \u{2028} $X {{}} #";
    let path = "a b/\u{e4}.txt";
    equal(dag.directory().with_new_file(path, text).file(path).contents().await?, text)?;
    equal(debian(&dag).with_exec(vec!["printf", "%s", text]).stdout().await?, text)
}

async fn long_text(dag: DaggerConn) -> Outcome {
    let text = "0123456789abcdef".repeat(1 << 16);
    let file = dag.directory().with_new_file("long", text.as_str()).file("long");
    equal(file.size().await?, 1 << 20)?;
    eyre::ensure!(file.contents().await? == text, "not what was written");
    Ok(())
}

async fn directories(dag: DaggerConn) -> Outcome {
    let directory = dag.directory().with_new_file("a/one", "1").with_new_file("b/two", "2");
    let directory = directory.with_new_directory("c");
    equal(plain(directory.entries().await?), ["a", "b", "c"])?;
    equal(directory.directory("a").entries().await?, ["one"])?;
    equal(plain(directory.without_directory("a").entries().await?), ["b", "c"])?;
    equal(directory.without_file("b/two").directory("b").entries().await?.len(), 0)
}

async fn directory_in_a_directory(dag: DaggerConn) -> Outcome {
    let source = dag.directory().with_new_file("keep.txt", "k").with_new_file("drop.log", "d");
    let without = DirectoryWithDirectoryOptsBuilder::default().exclude(vec!["*.log"]).build()?;
    let merged = dag.directory().with_directory_opts("/in", source.clone(), without);
    equal(merged.directory("in").entries().await?, ["keep.txt"])?;
    let only = DirectoryWithDirectoryOptsBuilder::default().include(vec!["*.log"]).build()?;
    let merged = dag.directory().with_directory_opts("/in", source, only);
    equal(merged.directory("in").entries().await?, ["drop.log"])
}

async fn files(dag: DaggerConn) -> Outcome {
    let private = DirectoryWithNewFileOpts { permissions: Some(0o600) };
    let file = dag.directory().with_new_file_opts("dir/name.txt", "text", private);
    let file = file.file("dir/name.txt");
    equal(file.name().await?, "name.txt")?;
    equal(file.size().await?, 4)?;
    let container = debian(&dag).with_file("/copy.txt", file);
    equal(container.with_exec(vec!["stat", "-c", "%a", "/copy.txt"]).stdout().await?, "600\n")?;
    equal(container.file("/copy.txt").contents().await?, "text")
}

async fn mounted_directory_and_file(dag: DaggerConn) -> Outcome {
    let directory = dag.directory().with_new_file("a", "mounted");
    let container = debian(&dag).with_mounted_directory("/d", directory.clone());
    let container = container.with_mounted_file("/f", directory.file("a"));
    equal(container.with_exec(vec!["cat", "/d/a", "/f"]).stdout().await?, "mountedmounted")?;
    equal(container.mounts().await?, ["/d", "/f"])?;
    let written = container.with_exec(vec!["sh", "-c", "echo more >> /d/a"]);
    equal(written.directory("/d").file("a").contents().await?, "mountedmore\n")
}

async fn mounted_temporary_files(dag: DaggerConn) -> Outcome {
    let container = debian(&dag).with_mounted_temp("/t").with_exec(vec!["touch", "/t/x"]);
    equal(container.with_exec(vec!["ls", "/t"]).stdout().await?, "")
}

async fn cache_volume(dag: DaggerConn) -> Outcome {
    let volume = dag.cache_volume("rust cases");
    equal(volume.id().await?.0, dag.cache_volume("rust cases").id().await?.0)?;
    let locked = ContainerWithMountedCacheOptsBuilder::default();
    let locked = locked.clone().sharing(CacheSharingMode::Locked).build()?;
    let container = debian(&dag).with_mounted_cache_opts("/c", volume, locked);
    container.with_exec(vec!["sh", "-c", "echo kept > /c/file"]).sync().await?;
    equal(container.with_exec(vec!["cat", "/c/file"]).stdout().await?, "kept\n")
}

async fn files_of_the_host(dag: DaggerConn) -> Outcome {
    let folder = Folder::new()?;
    std::fs::write(folder.path("a.txt"), "host")?;
    std::fs::write(folder.path("b.log"), "log")?;
    let without = HostDirectoryOptsBuilder::default().exclude(vec!["*.log"]).build()?;
    equal(dag.host().directory_opts(folder.path(""), without).entries().await?, ["a.txt"])?;
    equal(dag.host().file(folder.path("a.txt")).contents().await?, "host")
}

async fn export_to_the_host(dag: DaggerConn) -> Outcome {
    let folder = Folder::new()?;
    let tree = dag.directory().with_new_file("sub/out.txt", "exported");
    tree.export(folder.path("tree")).await?;
    equal(std::fs::read_to_string(folder.path("tree/sub/out.txt"))?, "exported")?;
    shell(&dag, "echo made > /made").file("/made").export(folder.path("made")).await?;
    equal(std::fs::read_to_string(folder.path("made"))?, "made\n")
}

async fn ids_name_objects(dag: DaggerConn) -> Outcome {
    let container = dag.container().with_env_variable("A", "b");
    let id = container.id().await?;
    equal(dag.container().with_env_variable("A", "b").id().await?.0, id.0.clone())?;
    equal(dag.load_container_from_id(id.clone()).env_variable("A").await?, "b")?;
    eyre::ensure!(container.with_env_variable("A", "c").id().await?.0 != id.0, "the same id");
    Ok(())
}

async fn chains_are_lazy(dag: DaggerConn) -> Outcome {
    let container = shell(&dag, "exit 1");
    eyre::ensure!(!container.with_env_variable("A", "b").id().await?.0.is_empty());
    failure(container.sync().await)?;
    Ok(())
}

async fn many_requests_at_once(dag: DaggerConn) -> Outcome {
    let ask = |number: usize| {
        let container = debian(&dag).with_exec(vec!["echo".to_owned(), number.to_string()]);
        tokio::spawn(async move { container.stdout().await })
    };
    let answers: Vec<_> = (0..30).map(ask).collect();
    for (number, answer) in answers.into_iter().enumerate() {
        equal(answer.await??, format!("{number}\n"))?;
    }
    Ok(())
}

async fn objects_in_arguments(dag: DaggerConn) -> Outcome {
    let mut files = vec![];
    for name in ["one", "two", "three"] {
        files.push(dag.directory().with_new_file(name, name).file(name).id().await?);
    }
    let directory = dag.directory().with_files("/all", files);
    let mut names = directory.directory("all").entries().await?;
    names.sort();
    equal(names, ["one", "three", "two"])
}

async fn long_chain(dag: DaggerConn) -> Outcome {
    let mut container = dag.container();
    for number in 0..100 {
        container = container.with_env_variable(format!("V{number}"), number.to_string());
    }
    equal(container.env_variable("V99").await?, "99")
}

async fn input_and_redirected_output(dag: DaggerConn) -> Outcome {
    let mut options = ContainerWithExecOptsBuilder::default();
    let options = options.stdin("typed").redirect_stdout("/out").build()?;
    let container = debian(&dag).with_exec_opts(vec!["cat"], options);
    equal(container.stdout().await?, "typed")?;
    equal(container.file("/out").contents().await?, "typed")
}

async fn ports_in_arguments(dag: DaggerConn) -> Outcome {
    eyre::ensure!(!exposing(&dag)?.id().await?.0.is_empty());
    Ok(())
}

fn exposing(dag: &DaggerConn) -> eyre::Result<Container> {
    let web = ContainerWithExposedPortOptsBuilder::default().description("web").build()?;
    let mut names = ContainerWithExposedPortOptsBuilder::default();
    let names = names.protocol(NetworkProtocol::Udp).build()?;
    Ok(dag.container().with_exposed_port_opts(80, web).with_exposed_port_opts(53, names))
}

async fn platform(dag: DaggerConn) -> Outcome {
    eyre::ensure!(dag.default_platform().await?.0.starts_with("linux/"));
    let other = QueryContainerOpts { platform: Some(Platform::from("linux/arm64")) };
    equal(dag.container_opts(other).platform().await?.0, "linux/arm64")
}

async fn secrets(dag: DaggerConn) -> Outcome {
    let secret = dag.set_secret("token", "s3cret-of-rust");
    equal(secret.name().await?, "token")?;
    equal(secret.plaintext().await?, "s3cret-of-rust")?;
    eyre::ensure!(!secret.id().await?.0.contains("s3cret"), "the id holds the text");
    Ok(())
}

async fn secret_in_a_variable(dag: DaggerConn) -> Outcome {
    let secret = dag.set_secret("variable", "hidden-in-rust");
    let container = debian(&dag).with_secret_variable("TOKEN", secret);
    let script = "test $TOKEN = hidden-in-rust && echo right; echo $TOKEN";
    equal(container.with_exec(vec!["sh", "-c", script]).stdout().await?, "right\n***\n")
}

async fn secret_in_a_file(dag: DaggerConn) -> Outcome {
    let secret = dag.set_secret("file", "hidden-in-a-file");
    let container = debian(&dag).with_mounted_secret("/run/token", secret);
    equal(container.with_exec(vec!["sh", "-c", "wc -c < /run/token"]).stdout().await?, "16\n")
}

async fn root_file_system(dag: DaggerConn) -> Outcome {
    let container = dag.container().with_rootfs(debian(&dag).rootfs());
    equal(container.with_exec(vec!["echo", "same"]).stdout().await?, "same\n")
}

async fn image_in_a_file(dag: DaggerConn) -> Outcome {
    let packed = dag.container().with_new_file("/packed", "text").with_label("a", "b");
    let tarball = packed.as_tarball();
    eyre::ensure!(tarball.size().await? > 1 << 10, "too small");
    let imported = dag.container().import(tarball);
    equal(imported.label("a").await?, "b")?;
    equal(imported.file("/packed").contents().await?, "text")
}

/// The address of a web server of this machine that has one page.
fn web_server() -> eyre::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let count = connection.read(&mut request).unwrap_or(0);
            let found = request[..count].windows(10).any(|part| part == b" /page.txt");
            let status = if found { "200 OK" } else { "404 Not Found" };
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: 12\r\nconnection: close");
            let _ = write!(connection, "{head}\r\n\r\nfrom the web");
        }
    });
    Ok(address)
}

async fn file_of_a_web_server(dag: DaggerConn) -> Outcome {
    let address = web_server()?;
    let file = dag.http(format!("{address}/page.txt"));
    equal(file.contents().await?, "from the web")?;
    equal(file.name().await?, "page.txt")?;
    let error = failure(dag.http(format!("{address}/nothing")).contents().await)?;
    eyre::ensure!(error.contains("status 404"), "{error}");
    Ok(())
}

async fn service_of_a_container(dag: DaggerConn) -> Outcome {
    let service = server(&dag)?;
    let port = ServiceEndpointOptsBuilder::default().port(8000isize).build()?;
    let endpoint = service.endpoint_opts(port).await?;
    equal(endpoint, format!("{}:8000", service.hostname().await?))?;
    let client = debian(&dag).with_service_binding("web", service);
    let read = vec!["bash", "-c", "cat < /dev/tcp/web/8000"];
    equal(client.with_exec(read).stdout().await?, "served\n")
}

async fn equal_trees_have_equal_digests(dag: DaggerConn) -> Outcome {
    let one = dag.directory().with_new_file("a", "1").with_new_file("b/c", "2");
    let two = dag.directory().with_new_file("b/c", "2").with_new_file("a", "1").with_timestamps(1);
    equal(one.with_timestamps(1).digest().await?, two.digest().await?)?;
    let other = one.with_new_file("a", "3").digest().await?;
    eyre::ensure!(one.digest().await? != other, "other content has another digest");
    Ok(())
}

async fn names_by_pattern(dag: DaggerConn) -> Outcome {
    let directory = dag.directory().with_new_file("a.txt", "1").with_new_file("b/c.txt", "2");
    let mut names = directory.with_new_file("d.log", "3").glob("**/*.txt").await?;
    names.sort();
    equal(names, ["a.txt", "b/c.txt"])
}

async fn changed_name(dag: DaggerConn) -> Outcome {
    let file = dag.directory().with_new_file("a.txt", "text").file("a.txt").with_name("b.txt");
    equal(file.name().await?, "b.txt")?;
    equal(dag.directory().with_file("", file).entries().await?, ["b.txt"])
}

async fn combined_configuration(dag: DaggerConn) -> Outcome {
    let container = dag.container().with_workdir("/srv").with_user("nobody").with_label("a", "b");
    let again = container.without_user();
    equal(again.user().await?, "")?;
    equal(again.label("a").await?, "b")?;
    equal(again.workdir().await?, "/srv")
}

/// Runs cases by name and counts those that fail.
macro_rules! run {
    ($dag:expr, $failures:expr, $($case:ident),* $(,)?) => {
        $(match $case($dag.clone()).await {
            Ok(()) => println!("ok {}", stringify!($case)),
            Err(error) => {
                $failures.fetch_add(1, Ordering::Relaxed);
                println!("failed {}: {error:#}", stringify!($case));
            }
        })*
    };
}

static FAILURES: AtomicU32 = AtomicU32::new(0);

async fn all(dag: DaggerConn) -> Outcome {
    run!(dag, FAILURES, version_is_text, output_of_a_command, errors_of_a_command);
    run!(dag, FAILURES, exit_code_that_was_expected, failing_command_is_an_error);
    run!(dag, FAILURES, missing_program_is_an_error, missing_file_is_an_error);
    run!(dag, FAILURES, error_in_the_middle_of_a_chain, environment_variables, labels);
    run!(dag, FAILURES, working_directory_and_user, entrypoint_and_default_arguments);
    run!(dag, FAILURES, text_of_every_kind, long_text, directories, directory_in_a_directory);
    run!(dag, FAILURES, files, mounted_directory_and_file, mounted_temporary_files, cache_volume);
    run!(dag, FAILURES, files_of_the_host, export_to_the_host, ids_name_objects, chains_are_lazy);
    run!(dag, FAILURES, many_requests_at_once, objects_in_arguments, long_chain);
    run!(dag, FAILURES, input_and_redirected_output, ports_in_arguments, platform);
    run!(dag, FAILURES, secrets, secret_in_a_variable, secret_in_a_file);
    run!(dag, FAILURES, root_file_system, image_in_a_file, file_of_a_web_server);
    run!(dag, FAILURES, service_of_a_container, equal_trees_have_equal_digests, names_by_pattern);
    run!(dag, FAILURES, changed_name, combined_configuration);
    run!(
        dag,
        FAILURES,
        repository_at_an_address,
        repository_in_a_directory,
        image_of_a_dockerfile,
        dockerfile_that_fails,
        difference_of_directories,
        session_inside_a_container,
        socket_of_the_host,
        service_of_the_host,
        tunnel_to_a_service,
        service_that_is_started_and_stopped,
        service_that_cannot_start,
        file_of_a_service,
        secrets_of_the_host,
        image_in_a_registry,
        image_in_a_file_of_the_host,
        what_was_set_is_taken_away,
        owners_and_expanded_paths,
        cache_of_the_engine
    );
    #[cfg(feature = "newest")]
    run!(
        dag,
        FAILURES,
        failing_command_is_an_exec_error,
        list_of_objects,
        ports_and_enums,
        what_is_in_a_directory,
        both_streams_together,
        search_in_files,
        variables_of_a_file,
        json_values,
        changes_between_directories,
        patches,
        merged_changes,
        changes_written_to_the_host,
        history_of_a_repository,
        what_is_not_committed,
        addresses,
        errors_as_values,
        health_check,
        edited_files,
        checked_file_of_a_web_server
    );
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    if let Err(error) = dagger_sdk::connect(all).await {
        println!("failed to connect: {error:?}");
        return ExitCode::FAILURE;
    }
    match FAILURES.load(Ordering::Relaxed) {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
