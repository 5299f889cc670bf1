"""Cases about what only newer versions of the library have."""

import hashlib

import dagger
from dagger import dag
from frame import debian, equal, folder, newest, raises, shell, web_server
from outside import repository

BEFORE = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"


def numbers(text):
    return dag.directory().with_new_file("numbers", text)


@newest
async def both_streams_together():
    both = await shell("echo out; echo err >&2").combined_output()
    assert "out\n" in both and "err\n" in both, both


@newest
async def what_is_in_a_directory():
    directory = dag.directory().with_new_file("sub/file", "text")
    assert await directory.exists("sub/file")
    assert not await directory.exists("nothing")
    equal(await directory.stat("sub/file").size(), 4)
    equal(await directory.stat("sub").file_type(), dagger.FileType.DIRECTORY)
    equal(await directory.find_up("file", "sub"), "sub/file")


@newest
async def search_in_files():
    directory = dag.directory().with_new_file("a", "one\ntwo\n").with_new_file("b", "three\n")
    found = await directory.search("^t")
    equal([(await match.file_path(), await match.line_number()) for match in found], [("a", 2), ("b", 1)])
    equal(len(await directory.file("a").search("TWO", insensitive=True)), 1)


@newest
async def variables_of_a_file():
    variables = dag.env_file().with_variable("A", "1").with_variable("B", "$A-2")
    equal(await variables.get("B"), "1-2")
    equal(await debian().with_env_file_variables(variables).with_exec(["sh", "-c", "echo $B"]).stdout(), "1-2\n")
    read = dag.directory().with_new_file(".env", "APP_NAME='x y'\nexport OTHER=z\n").file(".env").as_env_file()
    equal([(await v.name(), await v.value()) for v in await read.variables()], [("APP_NAME", "x y"), ("OTHER", "z")])
    equal(await read.namespace("app").get("NAME"), "x y")


@newest
async def json_values():
    value = dag.json().with_contents(dagger.JSON('{"a":{"b":[1]}}'))
    equal(await value.field(["a", "b"]).contents(), "[1]")
    more = value.with_field(["a", "c"], dag.json().new_string("text"))
    equal(await more.field(["a", "c"]).as_string(), "text")
    equal(await more.field(["a"]).fields(), ["b", "c"])
    read = dag.directory().with_new_file("j", '{"n": 7}').file("j").as_json()
    equal(await read.field(["n"]).as_integer(), 7)


@newest
async def changes_between_directories():
    before = dag.directory().with_new_file("edited", "one\ntwo\n").with_new_file("gone", "g\n")
    after = before.with_new_file("edited", "one\n2\n").without_file("gone").with_new_file("new", "n\n")
    changes = after.changes(before)
    equal(await changes.added_paths(), ["new"])
    equal(await changes.modified_paths(), ["edited"])
    equal(await changes.removed_paths(), ["gone"])
    equal(await changes.layer().entries(), ["edited", "new"])
    equal([await stat.path() for stat in await changes.diff_stats()], ["edited", "gone", "new"])
    assert not await changes.is_empty()
    assert await before.changes(before).is_empty()
    equal(await before.with_changes(changes).entries(), ["edited", "new"])


@newest
async def patches():
    before, after = numbers(BEFORE), numbers(BEFORE.replace("two", "2"))
    patch = after.changes(before).as_patch()
    text = await patch.contents()
    assert "-two\n+2\n" in text, text
    equal(await before.with_patch(text).file("numbers").contents(), BEFORE.replace("two", "2"))
    equal(await before.with_patch_file(patch).file("numbers").contents(), BEFORE.replace("two", "2"))
    await raises(dagger.QueryError, numbers("other\n").with_patch(text).sync())


@newest
async def merged_changes():
    before = numbers(BEFORE)
    ours = numbers(BEFORE.replace("two", "2")).changes(before)
    theirs = numbers(BEFORE.replace("seven", "7")).changes(before)
    merged = ours.with_changeset(theirs).after().file("numbers")
    equal(await merged.contents(), BEFORE.replace("two", "2").replace("seven", "7"))
    against = numbers(BEFORE.replace("two", "II")).changes(before)
    await raises(dagger.QueryError, ours.with_changeset(against).sync())
    settled = ours.with_changeset(against, on_conflict=dagger.ChangesetMergeConflict.PREFER_THEIRS)
    equal(await settled.after().file("numbers").contents(), BEFORE.replace("two", "II"))


@newest
async def changes_written_to_the_host():
    with folder() as path:
        (path / "gone").write_text("g")
        (path / "kept").write_text("k")
        before = dag.host().directory(str(path))
        await before.without_file("gone").with_new_file("new", "n").changes(before).export(str(path))
        equal(sorted(entry.name for entry in path.iterdir()), ["kept", "new"])


@newest
async def history_of_a_repository():
    with folder() as path:
        repository(path)
        remote = dag.git(f"file://{path}")
        equal(sorted(name.removeprefix("refs/heads/") for name in await remote.branches()), ["main", "side"])
        equal(await remote.latest_version().ref(), "refs/tags/v1.2.0")
        base = remote.branch("side").common_ancestor(remote.branch("main"))
        equal(await base.commit(), await remote.tag("v1.2.0").commit())


@newest
async def what_is_not_committed():
    with folder() as path:
        repository(path)
        (path / "a.txt").write_text("changed\n")
        (path / "new.txt").write_text("new\n")
        changes = dag.host().directory(str(path)).as_git().uncommitted()
        equal(await changes.modified_paths(), ["a.txt"])
        equal(await changes.added_paths(), ["new.txt"])
        equal(await changes.after().file("a.txt").contents(), "changed\n")
        assert "-one\n+changed\n" in await changes.as_patch().contents()


@newest
async def addresses():
    with folder() as path:
        (path / "file").write_text("at an address")
        equal(await dag.address(str(path)).directory().entries(), ["file"])
        equal(await dag.address(f"{path}/file").file().contents(), "at an address")
        equal(await dag.address(f"file://{path}/file").secret().plaintext(), "at an address")
    equal(await dag.address("deb://bookworm").container().with_exec(["echo", "x"]).stdout(), "x\n")


@newest
async def errors_as_values():
    error = dag.error("it is said").with_value("code", dagger.JSON("7"))
    equal(await error.message(), "it is said")
    equal([(await v.name(), await v.value()) for v in await error.values()], [("code", "7")])
    raised = await raises(dagger.QueryError, dag.container().with_error("not this way").sync())
    assert "not this way" in str(raised), str(raised)


@newest
async def health_check():
    container = dag.container().with_docker_healthcheck(["probe", "it"], interval="1m", retries=3)
    check = container.docker_healthcheck()
    equal(await check.args(), ["probe", "it"])
    equal(await check.interval(), "1m0s")
    equal(await check.retries(), 3)


@newest
async def edited_files():
    directory = dag.directory().with_new_file("a.txt", "one two one").with_new_file("b.log", "")
    equal(await directory.file("a.txt").with_replaced("one", "1", all=True).contents(), "1 two 1")
    equal(await directory.filter(exclude=["*.log"]).entries(), ["a.txt"])
    equal(await directory.with_symlink("a.txt", "link").file("link").contents(), "one two one")
    owned = debian().with_directory("/d", directory.chown("a.txt", "7:8"), owner="1")
    equal(await owned.with_exec(["stat", "-c", "%u", "/d/b.log"]).stdout(), "1\n")


@newest
async def checked_file_of_a_web_server():
    with folder() as path, web_server(path) as address:
        (path / "page.txt").write_text("from the web")
        digest = "sha256:" + hashlib.sha256(b"from the web").hexdigest()
        file = dag.http(f"{address}/page.txt", name="other", permissions=0o644, checksum=digest)
        equal((await file.name(), await file.contents()), ("other", "from the web"))
        wrong = dag.http(f"{address}/page.txt", checksum="sha256:" + "0" * 64)
        error = await raises(dagger.QueryError, wrong.contents())
        assert "http checksum mismatch" in str(error), str(error)
