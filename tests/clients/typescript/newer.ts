// Cases about what only newer versions of the library have.

import { deepStrictEqual as equal, ok } from "node:assert/strict"
import { createHash } from "node:crypto"
import { readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { ChangesetMergeConflict, FileType, GraphQLRequestError, NetworkProtocol, dag } from "@dagger.io/dagger"
import type { JSON } from "@dagger.io/dagger"
import { answering, debian, rejects, shell, webServer, withFolder } from "./frame.ts"
import type { Cases } from "./frame.ts"
import { repository } from "./outside.ts"

const BEFORE = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"
const numbers = (text: string) => dag.directory().withNewFile("numbers", text)

export const newer: Cases = {
  async bothStreamsTogether() {
    const both = await shell("echo out; echo err >&2").combinedOutput()
    ok(both.includes("out\n") && both.includes("err\n"), both)
  },

  async whatIsInADirectory() {
    const directory = dag.directory().withNewFile("sub/file", "text")
    equal(await directory.exists("sub/file"), true)
    equal(await directory.exists("nothing"), false)
    equal(await directory.stat("sub/file").size(), 4)
    equal(await directory.stat("sub").fileType(), FileType.Directory)
    equal(await directory.findUp("file", "sub"), "sub/file")
  },

  async searchInFiles() {
    const directory = dag.directory().withNewFile("a", "one\ntwo\n").withNewFile("b", "three\n")
    const found = await directory.search({ pattern: "^t" })
    equal(await Promise.all(found.map((match) => match.filePath())), ["a", "b"])
    equal(await Promise.all(found.map((match) => match.lineNumber())), [2, 1])
    equal((await directory.file("a").search("TWO", { insensitive: true })).length, 1)
  },

  async variablesOfAFile() {
    const variables = dag.envFile().withVariable("A", "1").withVariable("B", "$A-2")
    equal(await variables.get("B"), "1-2")
    const container = debian().withEnvFileVariables(variables)
    equal(await container.withExec(["sh", "-c", "echo $B"]).stdout(), "1-2\n")
    const file = dag.directory().withNewFile(".env", "APP_NAME='x y'\nexport OTHER=z\n").file(".env")
    const read = (await file.asEnvFile().variables()).map(async (each) => [await each.name(), await each.value()])
    equal(await Promise.all(read), [["APP_NAME", "x y"], ["OTHER", "z"]])
    equal(await file.asEnvFile().namespace_("app").get("NAME"), "x y")
  },

  async jsonValues() {
    const value = dag.json().withContents('{"a":{"b":[1]}}' as JSON)
    equal(await value.field(["a", "b"]).contents(), "[1]")
    const more = value.withField(["a", "c"], dag.json().newString("text"))
    equal(await more.field(["a", "c"]).asString(), "text")
    equal(await more.field(["a"]).fields(), ["b", "c"])
    const read = dag.directory().withNewFile("j", '{"n": 7}').file("j").asJSON()
    equal(await read.field(["n"]).asInteger(), 7)
  },

  // Old versions take the ports in another place.
  async serviceOfTheHost() {
    await answering("by a port\n", { port: 0, host: "127.0.0.1" }, async (port) => {
      const service = dag.host().service([{ backend: port, frontend: 80, protocol: NetworkProtocol.Tcp }])
      const client = debian().withServiceBinding("host", service)
      equal(await client.withExec(["bash", "-c", "cat < /dev/tcp/host/80"]).stdout(), "by a port\n")
    })
  },

  async changesBetweenDirectories() {
    const before = dag.directory().withNewFile("edited", "one\ntwo\n").withNewFile("gone", "g\n")
    const after = before.withNewFile("edited", "one\n2\n").withoutFile("gone").withNewFile("new", "n\n")
    const changes = after.changes(before)
    equal(await changes.addedPaths(), ["new"])
    equal(await changes.modifiedPaths(), ["edited"])
    equal(await changes.removedPaths(), ["gone"])
    equal(await changes.layer().entries(), ["edited", "new"])
    equal(await Promise.all((await changes.diffStats()).map((stat) => stat.path())), ["edited", "gone", "new"])
    equal(await changes.isEmpty(), false)
    equal(await before.changes(before).isEmpty(), true)
    equal(await before.withChanges(changes).entries(), ["edited", "new"])
  },

  async patches() {
    const expected = BEFORE.replace("two", "2")
    const before = numbers(BEFORE)
    const patch = numbers(expected).changes(before).asPatch()
    const text = await patch.contents()
    ok(text.includes("-two\n+2\n"), text)
    equal(await before.withPatch(text).file("numbers").contents(), expected)
    equal(await before.withPatchFile(patch).file("numbers").contents(), expected)
    await rejects(GraphQLRequestError, numbers("other\n").withPatch(text).sync())
  },

  async mergedChanges() {
    const before = numbers(BEFORE)
    const changed = (from: string, to: string) => numbers(BEFORE.replace(from, to)).changes(before)
    const ours = changed("two", "2")
    const merged = ours.withChangeset(changed("seven", "7")).after().file("numbers")
    equal(await merged.contents(), BEFORE.replace("two", "2").replace("seven", "7"))
    const against = changed("two", "II")
    await rejects(GraphQLRequestError, ours.withChangeset(against).sync())
    const settled = ours.withChangeset(against, { onConflict: ChangesetMergeConflict.PreferTheirs })
    equal(await settled.after().file("numbers").contents(), BEFORE.replace("two", "II"))
  },

  async changesWrittenToTheHost() {
    await withFolder(async (folder) => {
      await writeFile(join(folder, "gone"), "g")
      await writeFile(join(folder, "kept"), "k")
      const before = dag.host().directory(folder)
      await before.withoutFile("gone").withNewFile("new", "n").changes(before).export(folder)
      equal((await readdir(folder)).sort(), ["kept", "new"])
    })
  },

  async historyOfARepository() {
    await withFolder(async (folder) => {
      repository(folder)
      const remote = dag.git(`file://${folder}`)
      const branches = (await remote.branches()).map((name) => name.replace("refs/heads/", ""))
      equal(branches.sort(), ["main", "side"])
      equal(await remote.latestVersion().ref(), "refs/tags/v1.2.0")
      const base = remote.branch("side").commonAncestor(remote.branch("main"))
      equal(await base.commit(), await remote.tag("v1.2.0").commit())
    })
  },

  async whatIsNotCommitted() {
    await withFolder(async (folder) => {
      repository(folder)
      await writeFile(join(folder, "a.txt"), "changed\n")
      await writeFile(join(folder, "new.txt"), "new\n")
      const changes = dag.host().directory(folder).asGit().uncommitted()
      equal(await changes.modifiedPaths(), ["a.txt"])
      equal(await changes.addedPaths(), ["new.txt"])
      equal(await changes.after().file("a.txt").contents(), "changed\n")
      ok((await changes.asPatch().contents()).includes("-one\n+changed\n"))
    })
  },

  async addresses() {
    await withFolder(async (folder) => {
      await writeFile(join(folder, "file"), "at an address")
      equal(await dag.address(folder).directory().entries(), ["file"])
      equal(await dag.address(join(folder, "file")).file().contents(), "at an address")
      equal(await dag.address(`file://${folder}/file`).secret().plaintext(), "at an address")
    })
    equal(await dag.address("deb://bookworm").container().withExec(["echo", "x"]).stdout(), "x\n")
  },

  async errorsAsValues() {
    const error = dag.error("it is said").withValue("code", "7" as JSON)
    equal(await error.message(), "it is said")
    const values = (await error.values()).map(async (each) => [await each.name(), await each.value()])
    equal(await Promise.all(values), [["code", "7"]])
    const raised = await rejects(GraphQLRequestError, dag.container().withError("not this way").sync())
    ok(raised.message.includes("not this way"), raised.message)
  },

  async healthCheck() {
    const container = dag.container().withDockerHealthcheck(["probe", "it"], { interval: "1m", retries: 3 })
    const check = container.dockerHealthcheck()
    equal(await check.args(), ["probe", "it"])
    equal(await check.interval(), "1m0s")
    equal(await check.retries(), 3)
  },

  async editedFiles() {
    const directory = dag.directory().withNewFile("a.txt", "one two one").withNewFile("b.log", "")
    equal(await directory.file("a.txt").withReplaced("one", "1", { all: true }).contents(), "1 two 1")
    equal(await directory.filter({ exclude: ["*.log"] }).entries(), ["a.txt"])
    equal(await directory.withSymlink("a.txt", "link").file("link").contents(), "one two one")
    const owned = debian().withDirectory("/d", directory.chown("a.txt", "7:8"), { owner: "1" })
    equal(await owned.withExec(["stat", "-c", "%u", "/d/b.log"]).stdout(), "1\n")
  },

  async checkedFileOfAWebServer() {
    await webServer(async (address) => {
      const checksum = "sha256:" + createHash("sha256").update("from the web").digest("hex")
      const file = dag.http(`${address}/page.txt`, { name: "other", permissions: 0o644, checksum })
      equal([await file.name(), await file.contents()], ["other", "from the web"])
      const wrong = dag.http(`${address}/page.txt`, { checksum: "sha256:" + "0".repeat(64) })
      const error = await rejects(GraphQLRequestError, wrong.contents())
      ok(error.message.includes("http checksum mismatch"), error.message)
    })
  },
}
