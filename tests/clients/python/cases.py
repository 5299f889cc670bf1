"""Cases for the published Python library. `tests/clients/README.md` says how they are run."""

import asyncio
import contextlib
import pathlib
import sys
import tempfile
import traceback

import dagger
import newer  # noqa: F401 (it adds its cases)
import outside  # noqa: F401 (so does it)
from dagger import dag
from frame import CASES, case, debian, equal, raises, shell, web_server


@case
async def version_is_text():
    assert await dag.version()


@case
async def output_of_a_command():
    equal(await shell("echo out; echo err >&2").stdout(), "out\n")


@case
async def errors_of_a_command():
    equal(await shell("echo out; echo err >&2").stderr(), "err\n")


@case
async def exit_code_that_was_expected():
    container = debian().with_exec(["sh", "-c", "exit 7"], expect=dagger.ReturnType.ANY)
    equal(await container.exit_code(), 7)


@case
async def failing_command_is_an_exec_error():
    script = "echo some $1output; echo some talk >&2; exit 42"
    error = await raises(dagger.ExecError, shell(script).sync())
    equal(error.exit_code, 42)
    equal(error.command, ["sh", "-c", script])
    equal(error.stdout, "some output")
    equal(error.stderr, "some talk")
    assert "exit code: 42" in str(error), str(error)
    assert "some output" not in error.message, error.message


@case
async def missing_program_is_an_exec_error():
    error = await raises(dagger.ExecError, debian().with_exec(["no-such-program"]).stdout())
    assert "exit code: 1" in str(error), str(error)


@case
async def missing_file_is_a_query_error():
    error = await raises(dagger.QueryError, dag.directory().file("nothing").contents())
    assert not isinstance(error, dagger.ExecError)
    assert "no such file or directory" in str(error), str(error)


@case
async def error_in_the_middle_of_a_chain():
    chain = shell("exit 3").with_env_variable("A", "b").with_exec(["true"])
    equal((await raises(dagger.ExecError, chain.stdout())).exit_code, 3)


@case
async def environment_variables():
    container = debian().with_env_variable("ONE", "1").with_env_variable("TWO", "$ONE", expand=True)
    equal(await container.env_variable("TWO"), "1")
    equal(await container.with_exec(["sh", "-c", "echo $ONE-$TWO"]).stdout(), "1-1\n")
    assert await container.without_env_variable("ONE").env_variable("ONE") is None


@case
async def list_of_objects():
    container = dag.container().with_env_variable("A", "1").with_env_variable("B", "2")
    variables = await container.env_variables()
    equal([(await v.name(), await v.value()) for v in variables], [("A", "1"), ("B", "2")])


@case
async def labels():
    container = dag.container().with_label("org.example.one", "a=b, c")
    equal(await container.label("org.example.one"), "a=b, c")
    assert await container.label("org.example.two") is None
    equal([await label.name() for label in await container.labels()], ["org.example.one"])


@case
async def working_directory_and_user():
    container = debian().with_workdir("/srv").with_user("nobody")
    equal(await container.workdir(), "/srv")
    equal(await container.user(), "nobody")
    equal(await container.with_exec(["sh", "-c", "pwd; id -un"]).stdout(), "/srv\nnobody\n")


@case
async def entrypoint_and_default_arguments():
    container = debian().with_entrypoint(["echo", "from"]).with_default_args(["default"])
    equal(await container.entrypoint(), ["echo", "from"])
    equal(await container.default_args(), ["default"])
    equal(await container.with_exec([], use_entrypoint=True).stdout(), "from default\n")
    equal(await container.with_exec(["x"], use_entrypoint=True).stdout(), "from x\n")


@case
async def text_of_every_kind():
    text = "quote \" back\\slash 'single' \t tab\nline\r\n \u00e4\u00f6 \u65e5\u672c \U0001f600 \u2028 $X {{}} #"
    equal(await dag.directory().with_new_file("a b/\u00e4.txt", text).file("a b/\u00e4.txt").contents(), text)
    equal(await debian().with_exec(["printf", "%s", text]).stdout(), text)


@case
async def long_text():
    text = "0123456789abcdef" * (1 << 16)
    file = dag.directory().with_new_file("long", text).file("long")
    equal(await file.size(), 1 << 20)
    assert await file.contents() == text


@case
async def directories():
    directory = dag.directory().with_new_file("a/one", "1").with_new_file("b/two", "2").with_new_directory("c")
    equal([name.rstrip("/") for name in await directory.entries()], ["a", "b", "c"])
    equal(await directory.directory("a").entries(), ["one"])
    equal([name.rstrip("/") for name in await directory.without_directory("a").entries()], ["b", "c"])
    equal(await directory.without_file("b/two").directory("b").entries(), [])


@case
async def directory_in_a_directory():
    source = dag.directory().with_new_file("keep.txt", "k").with_new_file("drop.log", "d")
    merged = dag.directory().with_directory("/in", source, exclude=["*.log"])
    equal(await merged.directory("in").entries(), ["keep.txt"])
    merged = dag.directory().with_directory("/in", source, include=["*.log"])
    equal(await merged.directory("in").entries(), ["drop.log"])


@case
async def files():
    file = dag.directory().with_new_file("dir/name.txt", "text", permissions=0o600).file("dir/name.txt")
    equal(await file.name(), "name.txt")
    equal(await file.size(), 4)
    container = debian().with_file("/copy.txt", file)
    equal(await container.with_exec(["stat", "-c", "%a", "/copy.txt"]).stdout(), "600\n")
    equal(await container.file("/copy.txt").contents(), "text")


@case
async def mounted_directory_and_file():
    directory = dag.directory().with_new_file("a", "mounted")
    container = debian().with_mounted_directory("/d", directory).with_mounted_file("/f", directory.file("a"))
    equal(await container.with_exec(["cat", "/d/a", "/f"]).stdout(), "mountedmounted")
    equal(await container.mounts(), ["/d", "/f"])
    written = container.with_exec(["sh", "-c", "echo more >> /d/a"])
    equal(await written.directory("/d").file("a").contents(), "mountedmore\n")


@case
async def mounted_temporary_files():
    container = debian().with_mounted_temp("/t").with_exec(["touch", "/t/x"])
    equal(await container.with_exec(["ls", "/t"]).stdout(), "")


@case
async def cache_volume():
    volume = dag.cache_volume("python cases")
    equal(await volume.id(), await dag.cache_volume("python cases").id())
    container = debian().with_mounted_cache("/c", volume, sharing=dagger.CacheSharingMode.LOCKED)
    await container.with_exec(["sh", "-c", "echo kept > /c/file"]).sync()
    equal(await container.with_exec(["cat", "/c/file"]).stdout(), "kept\n")


@case
async def files_of_the_host():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "a.txt").write_text("host")
        (path / "b.log").write_text("log")
        directory = dag.host().directory(folder, exclude=["*.log"])
        equal(await directory.entries(), ["a.txt"])
        equal(await dag.host().file(f"{folder}/a.txt").contents(), "host")


@case
async def export_to_the_host():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        await dag.directory().with_new_file("sub/out.txt", "exported").export(f"{folder}/tree")
        equal((path / "tree/sub/out.txt").read_text(), "exported")
        await shell("echo made > /made").file("/made").export(f"{folder}/made")
        equal((path / "made").read_text(), "made\n")


@case
async def ids_name_objects():
    container = dag.container().with_env_variable("A", "b")
    identity = await container.id()
    equal(await dag.container().with_env_variable("A", "b").id(), identity)
    equal(await dag.load_container_from_id(dagger.ContainerID(identity)).env_variable("A"), "b")
    assert await container.with_env_variable("A", "c").id() != identity


@case
async def chains_are_lazy():
    container = shell("exit 1")
    assert await container.with_env_variable("A", "b").id()
    await raises(dagger.ExecError, container.sync())


@case
async def awaiting_an_object_runs_it():
    container = await shell("echo synced > /file")
    equal(await container.file("/file").contents(), "synced\n")
    directory = await dag.directory().with_new_file("x", "y")
    equal(await directory.entries(), ["x"])


@case
async def many_requests_at_once():
    async def ask(number):
        return await debian().with_exec(["echo", str(number)]).stdout()

    answers = await asyncio.gather(*(ask(number) for number in range(30)))
    equal(answers, [f"{number}\n" for number in range(30)])


@case
async def objects_in_arguments():
    files = [dag.directory().with_new_file(name, name).file(name) for name in ("one", "two", "three")]
    directory = dag.directory().with_files("/all", files)
    equal(sorted(await directory.directory("all").entries()), ["one", "three", "two"])


@case
async def long_chain():
    container = dag.container()
    for number in range(150):
        container = container.with_env_variable(f"V{number}", str(number))
    equal(await container.env_variable("V149"), "149")


@case
async def input_and_redirected_output():
    container = debian().with_exec(["cat"], stdin="typed", redirect_stdout="/out")
    equal(await container.stdout(), "typed")
    equal(await container.file("/out").contents(), "typed")


@case
async def ports_and_enums():
    container = (
        dag.container()
        .with_exposed_port(80, description="web")
        .with_exposed_port(53, protocol=dagger.NetworkProtocol.UDP)
    )
    ports = await container.exposed_ports()
    equal([await port.port() for port in ports], [80, 53])
    equal([await port.protocol() for port in ports], [dagger.NetworkProtocol.TCP, dagger.NetworkProtocol.UDP])
    equal(await ports[0].description(), "web")


@case
async def platform():
    here = await dag.default_platform()
    assert here.startswith("linux/"), here
    equal(await dag.container(platform=dagger.Platform("linux/arm64")).platform(), "linux/arm64")


@case
async def secrets():
    secret = dag.set_secret("token", "s3cret-of-python")
    equal(await secret.name(), "token")
    equal(await secret.plaintext(), "s3cret-of-python")
    assert "s3cret" not in await secret.id()


@case
async def secret_in_a_variable():
    secret = dag.set_secret("variable", "hidden-in-python")
    container = debian().with_secret_variable("TOKEN", secret)
    script = "test $TOKEN = hidden-in-python && echo right; echo $TOKEN"
    equal(await container.with_exec(["sh", "-c", script]).stdout(), "right\n***\n")


@case
async def secret_in_a_file():
    secret = dag.set_secret("file", "hidden-in-a-file")
    container = debian().with_mounted_secret("/run/token", secret)
    equal(await container.with_exec(["sh", "-c", "wc -c < /run/token"]).stdout(), "16\n")


@case
async def root_file_system():
    container = dag.container().with_rootfs(debian().rootfs())
    equal(await container.with_exec(["echo", "same"]).stdout(), "same\n")


@case
async def image_in_a_file():
    tarball = dag.container().with_new_file("/packed", "text").with_label("a", "b").as_tarball()
    assert await tarball.size() > 1 << 10
    imported = dag.container().import_(tarball)
    equal(await imported.label("a"), "b")
    equal(await imported.file("/packed").contents(), "text")


@case
async def file_of_a_web_server():
    with tempfile.TemporaryDirectory() as folder, web_server(folder) as address:
        (pathlib.Path(folder) / "page.txt").write_text("from the web")
        file = dag.http(f"{address}/page.txt")
        equal(await file.contents(), "from the web")
        equal(await file.name(), "page.txt")
        error = await raises(dagger.QueryError, dag.http(f"{address}/nothing").contents())
        assert "status 404" in str(error), str(error)


@case
async def service_of_a_container():
    program = (
        "use IO::Socket::INET; $s = IO::Socket::INET->new(LocalPort => 8000, Listen => 5, ReuseAddr => 1) or die;"
        'while ($c = $s->accept) { print $c "served\\n"; close $c }'
    )
    service = debian().with_exposed_port(8000).as_service(args=["perl", "-e", program])
    equal(await service.endpoint(port=8000), f"{await service.hostname()}:8000")
    client = debian().with_service_binding("web", service)
    equal(await client.with_exec(["bash", "-c", "cat < /dev/tcp/web/8000"]).stdout(), "served\n")


@case
async def equal_trees_have_equal_digests():
    one = dag.directory().with_new_file("a", "1").with_new_file("b/c", "2")
    two = dag.directory().with_new_file("b/c", "2").with_new_file("a", "1").with_timestamps(1)
    equal(await one.with_timestamps(1).digest(), await two.digest())
    assert await one.digest() != await one.with_new_file("a", "3").digest()


@case
async def names_by_pattern():
    directory = dag.directory().with_new_file("a.txt", "1").with_new_file("b/c.txt", "2").with_new_file("d.log", "3")
    equal(sorted(await directory.glob("**/*.txt")), ["a.txt", "b/c.txt"])


@case
async def changed_name():
    file = dag.directory().with_new_file("a.txt", "text").file("a.txt").with_name("b.txt")
    equal(await file.name(), "b.txt")
    equal(await dag.directory().with_file("", file).entries(), ["b.txt"])


async def run():
    failures = 0
    config = dagger.Config(log_output=sys.stderr)
    async with dagger.connection(config):
        for function in CASES:
            try:
                await function()
            except Exception as error:
                failures += 1
                print(f"failed {function.__name__}: {error!r}")
                traceback.print_exc()
            else:
                print(f"ok {function.__name__}")
    return 1 if failures else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(asyncio.run(run()))
