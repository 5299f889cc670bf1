//! Cases about what is beside containers: repositories, registries, builds, services, the host, sessions inside.

use crate::{Folder, Outcome, debian, equal, failure, plain};
use dagger_sdk::{
    BuildArg, ContainerAsServiceOptsBuilder, ContainerPublishOptsBuilder,
    ContainerWithDirectoryOptsBuilder, ContainerWithExecOptsBuilder,
    ContainerWithNewFileOptsBuilder, DaggerConn, DirectoryDockerBuildOptsBuilder,
    GitRefTreeOptsBuilder, NetworkProtocol, Platform, PortForward, QueryContainerOpts,
    QueryHttpOptsBuilder, Service, ServiceEndpointOptsBuilder,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::process::Command;

/// A listener for a container, on port 8000; what it does with a connection comes after it.
const LISTEN: &str = "use IO::Socket::INET; $s = IO::Socket::INET->new(LocalPort => 8000, \
                      Listen => 5, ReuseAddr => 1) or die;";

/// A repository with a tag, and a branch that has one commit more.
const REPOSITORY: &str = "
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.com GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=ann@example.com
git init -q -b main .
echo one > a.txt; git add .; git commit -qm first; git tag v1.2.0
git checkout -qb side
echo two > b.txt; git add .; git commit -qm second
git checkout -q main
git rev-parse side
";

const DOCKERFILE: &str = r#"
FROM deb://bookworm AS base
ARG WHO=nobody
COPY greeting /
RUN echo "for $WHO" >> /greeting
FROM base AS last
RUN --mount=type=secret,id=token wc -c < /run/secrets/token >> /greeting
CMD ["cat", "/greeting"]
FROM scratch
"#;

/// Asks the session that a command finds in its environment.
const INSIDE: &str = r#"
body='{"query":"{ directory { withNewFile(path: \"inner\", contents: \"x\") { entries } } }"}'
exec 3<> /dev/tcp/127.0.0.1/$DAGGER_SESSION_PORT
printf 'POST /query HTTP/1.1\r\nHost: inside\r\nConnection: close\r\nContent-Type: application/json\r\n' >&3
printf 'Authorization: Basic %s\r\n' "$(printf %s: "$DAGGER_SESSION_TOKEN" | base64 -w 0)" >&3
printf 'Content-Length: %s\r\n\r\n%s' "$(printf %s "$body" | wc -c)" "$body" >&3
cat <&3
"#;

/// A service that says one thing to everybody.
fn saying(dag: &DaggerConn, words: &str) -> eyre::Result<Service> {
    let program = format!("{LISTEN} while ($c = $s->accept) {{ print $c qq({words}); close $c }}");
    let command = vec!["perl", "-e", &program];
    let command = ContainerAsServiceOptsBuilder::default().args(command).build()?;
    Ok(debian(dag).with_exposed_port(8000).as_service_opts(command))
}

pub fn server(dag: &DaggerConn) -> eyre::Result<Service> {
    saying(dag, r"served\n")
}

/// Makes a repository, and gives the commit at the end of its branch.
pub fn repository(folder: &Folder) -> eyre::Result<String> {
    let made =
        Command::new("sh").args(["-ec", REPOSITORY]).current_dir(folder.path("")).output()?;
    eyre::ensure!(made.status.success(), "{made:?}");
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

pub async fn repository_at_an_address(dag: DaggerConn) -> Outcome {
    let folder = Folder::new()?;
    let commit = repository(&folder)?;
    let remote = dag.git(format!("file://{}", folder.path("")));
    equal(remote.branch("side").commit().await?, commit.as_str())?;
    let tags = remote.tags().await?;
    equal(
        tags.iter().map(|tag| tag.trim_start_matches("refs/tags/")).collect::<Vec<_>>(),
        ["v1.2.0"],
    )?;
    let plain_tree = GitRefTreeOptsBuilder::default().discard_git_dir(true).build()?;
    equal(remote.branch("side").tree_opts(plain_tree).entries().await?, ["a.txt", "b.txt"])?;
    equal(remote.commit(commit).tree().file("b.txt").contents().await?, "two\n")?;
    eyre::ensure!(plain(remote.head().tree().entries().await?).contains(&".git".to_owned()));
    failure(remote.branch("nothing").tree().entries().await)?;
    Ok(())
}

pub async fn repository_in_a_directory(dag: DaggerConn) -> Outcome {
    let folder = Folder::new()?;
    repository(&folder)?;
    let here = dag.host().directory(folder.path("")).as_git();
    let plain_tree = GitRefTreeOptsBuilder::default().discard_git_dir(true).build()?;
    equal(here.tag("v1.2.0").tree_opts(plain_tree).entries().await?, ["a.txt"])?;
    equal(here.head().tree().file("a.txt").contents().await?, "one\n")
}

pub async fn image_of_a_dockerfile(dag: DaggerConn) -> Outcome {
    let context = dag.directory().with_new_file("Dockerfile", DOCKERFILE);
    let context = context.with_new_file("greeting", "hello\n");
    let options = DirectoryDockerBuildOptsBuilder::default()
        .target("last")
        .build_args(vec![BuildArg { name: "WHO".to_owned(), value: "rust".to_owned() }])
        .secrets(vec![dag.set_secret("token", "12345").id().await?])
        .build()?;
    let built = context.docker_build_opts(options);
    equal(built.with_exec(Vec::<String>::new()).stdout().await?, "hello\nfor rust\n5\n")?;
    equal(built.default_args().await?, ["cat", "/greeting"])
}

pub async fn dockerfile_that_fails(dag: DaggerConn) -> Outcome {
    let text = "FROM deb://bookworm\nRUN exit 3\n";
    let context = dag.directory().with_new_file("Dockerfile", text);
    let message = failure(context.docker_build().sync().await)?;
    eyre::ensure!(message.contains("exit code: 3"), message);
    Ok(())
}

pub async fn difference_of_directories(dag: DaggerConn) -> Outcome {
    let one = dag.directory().with_new_file("same", "s").with_new_file("sub/edited", "1");
    let one = one.with_timestamps(1);
    let two = one.with_new_file("sub/edited", "2").with_new_file("new", "n");
    equal(plain(one.diff(two).glob("**").await?), ["new", "sub", "sub/edited"])?;
    equal(one.diff(one.clone()).entries().await?.len(), 0)
}

pub async fn session_inside_a_container(dag: DaggerConn) -> Outcome {
    let nesting =
        ContainerWithExecOptsBuilder::default().experimental_privileged_nesting(true).build()?;
    let inside = debian(&dag).with_exec_opts(vec!["bash", "-c", INSIDE], nesting);
    let answer = inside.stdout().await?;
    eyre::ensure!(answer.replace(' ', "").contains(r#""entries":["inner"]"#), answer);
    Ok(())
}

pub async fn socket_of_the_host(dag: DaggerConn) -> Outcome {
    let folder = Folder::new()?;
    let listener = UnixListener::bind(folder.path("s"))?;
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let _ = connection.write_all(b"by a socket\n");
        }
    });
    let program =
        r#"use IO::Socket::UNIX; $s = IO::Socket::UNIX->new(Peer => "/run/s") or die; print <$s>"#;
    let socket = dag.host().unix_socket(folder.path("s"));
    let container = debian(&dag).with_unix_socket("/run/s", socket);
    equal(container.with_exec(vec!["perl", "-e", program]).stdout().await?, "by a socket\n")
}

pub async fn service_of_the_host(dag: DaggerConn) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let backend = isize::try_from(listener.local_addr()?.port())?;
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let _ = connection.write_all(b"by a port\n");
        }
    });
    let port = PortForward { backend, frontend: 80, protocol: NetworkProtocol::Tcp };
    let client = debian(&dag).with_service_binding("host", dag.host().service(vec![port]));
    let read = vec!["bash", "-c", "cat < /dev/tcp/host/80"];
    equal(client.with_exec(read).stdout().await?, "by a port\n")
}

pub async fn tunnel_to_a_service(dag: DaggerConn) -> Outcome {
    let tunnel = dag.host().tunnel(server(&dag)?);
    tunnel.start().await?;
    let mut text = String::new();
    TcpStream::connect(tunnel.endpoint().await?)?.read_to_string(&mut text)?;
    equal(text, "served\n")?;
    tunnel.stop().await?;
    Ok(())
}

pub async fn service_that_is_started_and_stopped(dag: DaggerConn) -> Outcome {
    let service = server(&dag)?.with_hostname("named-in-rust");
    equal(service.hostname().await?, "named-in-rust")?;
    service.start().await?;
    let read = vec!["bash", "-c", "cat < /dev/tcp/named-in-rust/8000"];
    equal(debian(&dag).with_exec(read).stdout().await?, "served\n")?;
    service.stop().await?;
    Ok(())
}

pub async fn service_that_cannot_start(dag: DaggerConn) -> Outcome {
    let command = vec!["sh", "-c", "echo broken >&2; exit 5"];
    let command = ContainerAsServiceOptsBuilder::default().args(command).build()?;
    let broken = debian(&dag).with_exposed_port(8000).as_service_opts(command);
    let client = debian(&dag).with_service_binding("web", broken);
    let message = failure(client.with_exec(vec!["true"]).sync().await)?;
    eyre::ensure!(message.contains("exit code: 5"), message);
    Ok(())
}

pub async fn file_of_a_service(dag: DaggerConn) -> Outcome {
    let service = saying(&dag, r"HTTP/1.0 200 OK\r\n\r\nby a service")?;
    let scheme = ServiceEndpointOptsBuilder::default().scheme("http").build()?;
    let address = service.endpoint_opts(scheme).await?;
    let by =
        QueryHttpOptsBuilder::default().experimental_service_host(service.id().await?).build()?;
    equal(dag.http_opts(format!("{address}/file"), by).contents().await?, "by a service")
}

pub async fn secrets_of_the_host(dag: DaggerConn) -> Outcome {
    let folder = Folder::new()?;
    std::fs::write(folder.path("token"), "kept in a file")?;
    let file = dag.secret(format!("file://{}", folder.path("token")));
    equal(file.plaintext().await?, "kept in a file")?;
    let registry = std::env::var("CASES_REGISTRY")?;
    equal(dag.secret("env://CASES_REGISTRY").plaintext().await?, registry)?;
    equal(dag.secret("cmd://echo said").plaintext().await?, "said\n")?;
    failure(dag.secret("nowhere://at-all").plaintext().await)?;
    Ok(())
}

pub async fn image_in_a_registry(dag: DaggerConn) -> Outcome {
    let registry = std::env::var("CASES_REGISTRY")?;
    let password = dag.set_secret("password", std::env::var("CASES_PASSWORD")?);
    let user = std::env::var("CASES_USER")?;
    let account = dag.container().with_registry_auth(registry.as_str(), user, password);
    let image = account.with_new_file("/a", "published").with_label("from", "rust");
    let image = image.with_annotation("a", "b");
    let arm = QueryContainerOpts { platform: Some(Platform::from("linux/arm64")) };
    let other = dag.container_opts(arm).with_new_file("/a", "other").id().await?;
    let variants = ContainerPublishOptsBuilder::default().platform_variants(vec![other]).build()?;
    let address = image.publish_opts(format!("{registry}/cases/rust:1"), variants).await?;
    eyre::ensure!(address.starts_with(&format!("{registry}/cases/rust:1@sha256:")), address);
    let pulled = account.from(address.as_str());
    equal(pulled.file("/a").contents().await?, "published")?;
    equal(pulled.label("from").await?, "rust")?;
    equal(pulled.image_ref().await?, address)?;
    let nobody = image.without_registry_auth(registry.as_str());
    failure(nobody.publish(format!("{registry}/cases/rust:2")).await)?;
    Ok(())
}

pub async fn image_in_a_file_of_the_host(dag: DaggerConn) -> Outcome {
    let folder = Folder::new()?;
    let image = dag.container().with_new_file("/a", "exported").with_entrypoint(vec!["/a"]);
    image.export(folder.path("image.tar")).await?;
    let again = dag.container().import(dag.host().file(folder.path("image.tar")));
    equal(again.file("/a").contents().await?, "exported")?;
    equal(again.entrypoint().await?, ["/a"])
}

pub async fn what_was_set_is_taken_away(dag: DaggerConn) -> Outcome {
    let full = dag.container().with_label("a", "b").with_exposed_port(80);
    let full = full.with_entrypoint(vec!["x"]).with_workdir("/w").with_mounted_temp("/t");
    let full = full.with_new_file("/gone", "g").with_annotation("c", "d");
    let left = full.without_label("a").without_exposed_port(80).without_entrypoint();
    let left = left.without_workdir().without_mount("/t").without_file("/gone");
    let left = left.without_annotation("c");
    equal(left.entrypoint().await?.len(), 0)?;
    equal(left.workdir().await?, "")?;
    equal(left.mounts().await?.len(), 0)?;
    equal(left.rootfs().entries().await?.len(), 0)?;
    equal(full.label("a").await?, "b")
}

pub async fn owners_and_expanded_paths(dag: DaggerConn) -> Outcome {
    let source = dag.directory().with_new_file("sub/file", "text");
    let owned =
        ContainerWithDirectoryOptsBuilder::default().owner("nobody").expand(true).build()?;
    let mut private = ContainerWithNewFileOptsBuilder::default();
    let private = private.permissions(0o640isize).owner("1:2").build()?;
    let container = debian(&dag).with_env_variable("WHERE", "/srv/place");
    let container = container.with_directory_opts("$WHERE", source, owned);
    let container = container.with_new_file_opts("/srv/own", "x", private);
    let command = vec!["stat", "-c", "%U %u:%g %a", "/srv/place/sub/file", "/srv/own"];
    let expected = "nobody 65534:65534 644\ndaemon 1:2 640\n";
    equal(container.with_exec(command).stdout().await?, expected)
}

pub async fn cache_of_the_engine(dag: DaggerConn) -> Outcome {
    debian(&dag).with_exec(vec!["true"]).sync().await?;
    let entries = dag.engine().local_cache().entry_set();
    eyre::ensure!(entries.entry_count().await? > 0, "no entries");
    eyre::ensure!(entries.disk_space_bytes().await? > 0, "no space");
    Ok(())
}
