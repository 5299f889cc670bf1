"""Cases about what is beside containers: repositories, registries, builds, services, the host, sessions inside."""

import os
import socket
import socketserver
import subprocess

import dagger
from dagger import dag
from frame import answering, case, debian, equal, folder, raises

# A server for a container that says one line to everybody, on port 8000.
SERVER = (
    "use IO::Socket::INET; $s = IO::Socket::INET->new(LocalPort => 8000, Listen => 5, ReuseAddr => 1) or die;"
    "while ($c = $s->accept) { print $c qq(served\\n); close $c }"
)
# A repository with a tag, and a branch that has one commit more.
REPOSITORY = """
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.com GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=ann@example.com
git init -q -b main .
echo one > a.txt; git add .; git commit -qm first; git tag v1.2.0
git checkout -qb side
echo two > b.txt; git add .; git commit -qm second
git checkout -q main
"""
DOCKERFILE = """
FROM deb://bookworm AS base
ARG WHO=nobody
COPY greeting /
RUN echo "for $WHO" >> /greeting
FROM base AS last
RUN --mount=type=secret,id=token wc -c < /run/secrets/token >> /greeting
CMD ["cat", "/greeting"]
FROM scratch
"""
# Asks the session that a command finds in its environment.
INSIDE = r"""
body='{"query":"{ directory { withNewFile(path: \"inner\", contents: \"x\") { entries } } }"}'
exec 3<> /dev/tcp/127.0.0.1/$DAGGER_SESSION_PORT
printf 'POST /query HTTP/1.1\r\nHost: inside\r\nConnection: close\r\nContent-Type: application/json\r\n' >&3
printf 'Authorization: Basic %s\r\n' "$(printf %s: "$DAGGER_SESSION_TOKEN" | base64 -w 0)" >&3
printf 'Content-Length: %s\r\n\r\n%s' "$(printf %s "$body" | wc -c)" "$body" >&3
cat <&3
"""


def server():
    return debian().with_exposed_port(8000).as_service(args=["perl", "-e", SERVER])


def repository(path):
    """Makes a repository, and gives the commit at the end of its branch."""
    subprocess.run(["sh", "-ec", REPOSITORY], cwd=path, check=True)
    asked = subprocess.run(["git", "rev-parse", "side"], cwd=path, check=True, capture_output=True, text=True)
    return asked.stdout.strip()


@case
async def repository_at_an_address():
    with folder() as path:
        commit = repository(path)
        remote = dag.git(f"file://{path}")
        equal(await remote.branch("side").commit(), commit)
        equal([tag.removeprefix("refs/tags/") for tag in await remote.tags()], ["v1.2.0"])
        equal(await remote.branch("side").tree(discard_git_dir=True).entries(), ["a.txt", "b.txt"])
        equal(await remote.commit(commit).tree().file("b.txt").contents(), "two\n")
        assert ".git" in [name.rstrip("/") for name in await remote.head().tree().entries()]
        await raises(dagger.QueryError, remote.branch("nothing").tree().entries())


@case
async def repository_in_a_directory():
    with folder() as path:
        repository(path)
        here = dag.host().directory(str(path)).as_git()
        equal(await here.tag("v1.2.0").tree(discard_git_dir=True).entries(), ["a.txt"])
        equal(await here.head().tree().file("a.txt").contents(), "one\n")


@case
async def image_of_a_dockerfile():
    context = dag.directory().with_new_file("Dockerfile", DOCKERFILE).with_new_file("greeting", "hello\n")
    token = dag.set_secret("token", "12345")
    built = context.docker_build(target="last", build_args=[dagger.BuildArg("WHO", "python")], secrets=[token])
    equal(await built.with_exec([]).stdout(), "hello\nfor python\n5\n")
    equal(await built.default_args(), ["cat", "/greeting"])


@case
async def dockerfile_that_fails():
    context = dag.directory().with_new_file("Dockerfile", "FROM deb://bookworm\nRUN exit 3\n")
    equal((await raises(dagger.ExecError, context.docker_build().sync())).exit_code, 3)


@case
async def difference_of_directories():
    one = dag.directory().with_new_file("same", "s").with_new_file("sub/edited", "1").with_timestamps(1)
    two = one.with_new_file("sub/edited", "2").with_new_file("new", "n")
    equal([name.rstrip("/") for name in await one.diff(two).glob("**")], ["new", "sub", "sub/edited"])
    equal(await one.diff(one).entries(), [])


@case
async def session_inside_a_container():
    command = ["bash", "-c", INSIDE]
    inside = debian().with_exec(command, experimental_privileged_nesting=True)
    answer = await inside.stdout()
    assert '"entries":["inner"]' in answer.replace(" ", ""), answer


@case
async def socket_of_the_host():
    with folder() as path, answering(b"by a socket\n", socketserver.ThreadingUnixStreamServer, str(path / "s")):
        program = 'use IO::Socket::UNIX; $s = IO::Socket::UNIX->new(Peer => "/run/s") or die; print <$s>'
        container = debian().with_unix_socket("/run/s", dag.host().unix_socket(str(path / "s")))
        equal(await container.with_exec(["perl", "-e", program]).stdout(), "by a socket\n")


@case
async def service_of_the_host():
    with answering(b"by a port\n", socketserver.ThreadingTCPServer, ("127.0.0.1", 0)) as listening:
        ports = [dagger.PortForward(backend=listening.server_address[1], frontend=80)]
        client = debian().with_service_binding("host", dag.host().service(ports))
        equal(await client.with_exec(["bash", "-c", "cat < /dev/tcp/host/80"]).stdout(), "by a port\n")


@case
async def tunnel_to_a_service():
    tunnel = await dag.host().tunnel(server()).start()
    address, port = (await tunnel.endpoint()).rsplit(":", 1)
    with socket.create_connection((address, int(port))) as connection:
        equal(connection.makefile().read(), "served\n")
    await tunnel.stop()


@case
async def service_that_is_started_and_stopped():
    service = server().with_hostname("named-in-python")
    equal(await service.hostname(), "named-in-python")
    equal([await port.port() for port in await service.ports()], [8000])
    await service.start()
    command = ["bash", "-c", "cat < /dev/tcp/named-in-python/8000"]
    equal(await debian().with_exec(command).stdout(), "served\n")
    await service.stop()


@case
async def service_that_cannot_start():
    broken = debian().with_exposed_port(8000).as_service(args=["sh", "-c", "echo broken >&2; exit 5"])
    client = debian().with_service_binding("web", broken)
    error = await raises(dagger.QueryError, client.with_exec(["true"]).sync())
    assert "exit code: 5" in str(error), str(error)


@case
async def file_of_a_service():
    answer = 'while ($c = $s->accept) { print $c qq(HTTP/1.0 200 OK\\r\\n\\r\\nby a service); close $c }'
    program = SERVER[: SERVER.index("while")] + answer
    service = debian().with_exposed_port(8000).as_service(args=["perl", "-e", program])
    address = await service.endpoint(scheme="http")
    file = dag.http(f"{address}/file", experimental_service_host=service)
    equal(await file.contents(), "by a service")


@case
async def secrets_of_the_host():
    with folder() as path:
        (path / "token").write_text("kept in a file")
        equal(await dag.secret(f"file://{path}/token").plaintext(), "kept in a file")
    equal(await dag.secret("env://CASES_REGISTRY").plaintext(), os.environ["CASES_REGISTRY"])
    equal(await dag.secret("cmd://echo said").plaintext(), "said\n")
    await raises(dagger.QueryError, dag.secret("nowhere://at-all").plaintext())


@case
async def image_in_a_registry():
    registry = os.environ["CASES_REGISTRY"]
    password = dag.set_secret("password", os.environ["CASES_PASSWORD"])
    account = dag.container().with_registry_auth(registry, os.environ["CASES_USER"], password)
    image = account.with_new_file("/a", "published").with_label("from", "python").with_annotation("a", "b")
    other = dag.container(platform=dagger.Platform("linux/arm64")).with_new_file("/a", "other")
    address = await image.publish(f"{registry}/cases/python:1", platform_variants=[other])
    assert address.startswith(f"{registry}/cases/python:1@sha256:"), address
    pulled = account.from_(address)
    equal(await pulled.file("/a").contents(), "published")
    equal(await pulled.label("from"), "python")
    equal(await pulled.image_ref(), address)
    await raises(dagger.QueryError, image.without_registry_auth(registry).publish(f"{registry}/cases/python:2"))


@case
async def image_in_a_file_of_the_host():
    with folder() as path:
        image = dag.container().with_new_file("/a", "exported").with_entrypoint(["/a"])
        await image.export(str(path / "image.tar"))
        again = dag.container().import_(dag.host().file(str(path / "image.tar")))
        equal(await again.file("/a").contents(), "exported")
        equal(await again.entrypoint(), ["/a"])


@case
async def what_was_set_is_taken_away():
    full = (
        dag.container()
        .with_label("a", "b")
        .with_exposed_port(80)
        .with_entrypoint(["x"])
        .with_workdir("/w")
        .with_mounted_temp("/t")
        .with_new_file("/gone", "g")
        .with_annotation("c", "d")
    )
    left = (
        full.without_label("a")
        .without_exposed_port(80)
        .without_entrypoint()
        .without_workdir()
        .without_mount("/t")
        .without_file("/gone")
        .without_annotation("c")
    )
    equal(await left.labels(), [])
    equal(await left.exposed_ports(), [])
    equal(await left.entrypoint(), [])
    equal(await left.workdir(), "")
    equal(await left.mounts(), [])
    equal(await left.rootfs().entries(), [])
    equal(await full.label("a"), "b")


@case
async def owners_and_expanded_paths():
    source = dag.directory().with_new_file("sub/file", "text")
    container = debian().with_env_variable("WHERE", "/srv/place")
    container = container.with_directory("$WHERE", source, owner="nobody", expand=True)
    container = container.with_new_file("/srv/own", "x", permissions=0o640, owner="1:2")
    command = ["stat", "-c", "%U %u:%g %a", "/srv/place/sub/file", "/srv/own"]
    equal(await container.with_exec(command).stdout(), "nobody 65534:65534 644\ndaemon 1:2 640\n")


@case
async def cache_of_the_engine():
    await debian().with_exec(["true"]).sync()
    entries = dag.engine().local_cache().entry_set()
    assert await entries.entry_count() > 0
    assert await entries.disk_space_bytes() > 0
