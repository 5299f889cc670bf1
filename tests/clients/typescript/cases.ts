// Cases for the published TypeScript library. `tests/clients/README.md` says how they are run.

import { deepStrictEqual as equal, ok } from "node:assert/strict"
import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import {
  CacheSharingMode,
  ExecError,
  GraphQLRequestError,
  NetworkProtocol,
  ReturnType,
  connection,
  dag,
} from "@dagger.io/dagger"
import type { Container, ContainerID, Platform } from "@dagger.io/dagger"
import { debian, plain, rejects, shell, webServer, withFolder } from "./frame.ts"
import type { Cases } from "./frame.ts"
import { outside, server } from "./outside.ts"

const cases: Cases = {
  async versionIsText() {
    ok(await dag.version())
  },

  async outputOfACommand() {
    equal(await shell("echo out; echo err >&2").stdout(), "out\n")
  },

  async errorsOfACommand() {
    equal(await shell("echo out; echo err >&2").stderr(), "err\n")
  },

  async exitCodeThatWasExpected() {
    const container = debian().withExec(["sh", "-c", "exit 7"], { expect: ReturnType.Any })
    equal(await container.exitCode(), 7)
  },

  async failingCommandIsAnExecError() {
    const script = "echo some $1output; echo some talk >&2; exit 42"
    const error = await rejects(ExecError, shell(script).sync())
    equal(error.exitCode, 42)
    equal(error.cmd, ["sh", "-c", script])
    equal(error.stdout, "some output")
    equal(error.stderr, "some talk")
    ok(error.message.includes("exit code: 42"), error.message)
    ok(!error.message.includes("some output"), error.message)
  },

  async missingProgramIsAnExecError() {
    const error = await rejects(ExecError, debian().withExec(["no-such-program"]).stdout())
    ok(error.message.includes("exit code: 1"), error.message)
  },

  async missingFileIsARequestError() {
    const error = await rejects(GraphQLRequestError, dag.directory().file("nothing").contents())
    ok(String(error.cause ?? error).includes("no such file or directory"), String(error.cause))
  },

  async errorInTheMiddleOfAChain() {
    const chain = shell("exit 3").withEnvVariable("A", "b").withExec(["true"])
    equal((await rejects(ExecError, chain.stdout())).exitCode, 3)
  },

  async environmentVariables() {
    const container = debian().withEnvVariable("ONE", "1").withEnvVariable("TWO", "$ONE", { expand: true })
    equal(await container.envVariable("TWO"), "1")
    equal(await container.withExec(["sh", "-c", "echo $ONE-$TWO"]).stdout(), "1-1\n")
    ok(!(await container.withoutEnvVariable("ONE").envVariable("ONE")))
  },

  async listOfObjects() {
    const variables = await dag.container().withEnvVariable("A", "1").withEnvVariable("B", "2").envVariables()
    const found = variables.map(async (variable) => [await variable.name(), await variable.value()])
    equal(await Promise.all(found), [["A", "1"], ["B", "2"]])
  },

  async labels() {
    const container = dag.container().withLabel("org.example.one", "a=b, c")
    equal(await container.label("org.example.one"), "a=b, c")
    ok(!(await container.label("org.example.two")))
    equal(await Promise.all((await container.labels()).map((label) => label.name())), ["org.example.one"])
  },

  async workingDirectoryAndUser() {
    const container = debian().withWorkdir("/srv").withUser("nobody")
    equal(await container.workdir(), "/srv")
    equal(await container.user(), "nobody")
    equal(await container.withExec(["sh", "-c", "pwd; id -un"]).stdout(), "/srv\nnobody\n")
  },

  async entrypointAndDefaultArguments() {
    const container = debian().withEntrypoint(["echo", "from"]).withDefaultArgs(["default"])
    equal(await container.entrypoint(), ["echo", "from"])
    equal(await container.defaultArgs(), ["default"])
    equal(await container.withExec([], { useEntrypoint: true }).stdout(), "from default\n")
    equal(await container.withExec(["x"], { useEntrypoint: true }).stdout(), "from x\n")
  },

  async textOfEveryKind() {
    const text = "quote \" back\\slash 'single' \t tab\nline\r\n \u00e4\u00f6 \u65e5\u672c \u{1f600} \u2028 $X {{}} #"
    equal(await dag.directory().withNewFile("a b/\u00e4.txt", text).file("a b/\u00e4.txt").contents(), text)
    equal(await debian().withExec(["printf", "%s", text]).stdout(), text)
  },

  async longText() {
    const text = "0123456789abcdef".repeat(1 << 16)
    const file = dag.directory().withNewFile("long", text).file("long")
    equal(await file.size(), 1 << 20)
    ok((await file.contents()) === text)
  },

  async directories() {
    const directory = dag.directory().withNewFile("a/one", "1").withNewFile("b/two", "2").withNewDirectory("c")
    equal(plain(await directory.entries()), ["a", "b", "c"])
    equal(await directory.directory("a").entries(), ["one"])
    equal(plain(await directory.withoutDirectory("a").entries()), ["b", "c"])
    equal(await directory.withoutFile("b/two").directory("b").entries(), [])
  },

  async directoryInADirectory() {
    const source = dag.directory().withNewFile("keep.txt", "k").withNewFile("drop.log", "d")
    const without = dag.directory().withDirectory("/in", source, { exclude: ["*.log"] })
    equal(await without.directory("in").entries(), ["keep.txt"])
    const only = dag.directory().withDirectory("/in", source, { include: ["*.log"] })
    equal(await only.directory("in").entries(), ["drop.log"])
  },

  async files() {
    const file = dag.directory().withNewFile("dir/name.txt", "text", { permissions: 0o600 }).file("dir/name.txt")
    equal(await file.name(), "name.txt")
    equal(await file.size(), 4)
    const container = debian().withFile("/copy.txt", file)
    equal(await container.withExec(["stat", "-c", "%a", "/copy.txt"]).stdout(), "600\n")
    equal(await container.file("/copy.txt").contents(), "text")
  },

  async mountedDirectoryAndFile() {
    const directory = dag.directory().withNewFile("a", "mounted")
    const container = debian().withMountedDirectory("/d", directory).withMountedFile("/f", directory.file("a"))
    equal(await container.withExec(["cat", "/d/a", "/f"]).stdout(), "mountedmounted")
    equal(await container.mounts(), ["/d", "/f"])
    const written = container.withExec(["sh", "-c", "echo more >> /d/a"])
    equal(await written.directory("/d").file("a").contents(), "mountedmore\n")
  },

  async mountedTemporaryFiles() {
    const container = debian().withMountedTemp("/t").withExec(["touch", "/t/x"])
    equal(await container.withExec(["ls", "/t"]).stdout(), "")
  },

  async cacheVolume() {
    const volume = dag.cacheVolume("typescript cases")
    equal(await volume.id(), await dag.cacheVolume("typescript cases").id())
    const container = debian().withMountedCache("/c", volume, { sharing: CacheSharingMode.Locked })
    await container.withExec(["sh", "-c", "echo kept > /c/file"]).sync()
    equal(await container.withExec(["cat", "/c/file"]).stdout(), "kept\n")
  },

  async filesOfTheHost() {
    await withFolder(async (folder) => {
      await writeFile(join(folder, "a.txt"), "host")
      await writeFile(join(folder, "b.log"), "log")
      equal(await dag.host().directory(folder, { exclude: ["*.log"] }).entries(), ["a.txt"])
      equal(await dag.host().file(join(folder, "a.txt")).contents(), "host")
    })
  },

  async exportToTheHost() {
    await withFolder(async (folder) => {
      await dag.directory().withNewFile("sub/out.txt", "exported").export(join(folder, "tree"))
      equal(await readFile(join(folder, "tree/sub/out.txt"), "utf8"), "exported")
      await shell("echo made > /made").file("/made").export(join(folder, "made"))
      equal(await readFile(join(folder, "made"), "utf8"), "made\n")
    })
  },

  async idsNameObjects() {
    const container = dag.container().withEnvVariable("A", "b")
    const id = await container.id()
    equal(await dag.container().withEnvVariable("A", "b").id(), id)
    equal(await dag.loadContainerFromID(id as ContainerID).envVariable("A"), "b")
    ok((await container.withEnvVariable("A", "c").id()) !== id)
  },

  async chainsAreLazy() {
    const container = shell("exit 1")
    ok(await container.withEnvVariable("A", "b").id())
    await rejects(ExecError, container.sync())
  },

  async syncRunsAnObject() {
    const container: Container = await shell("echo synced > /file").sync()
    equal(await container.file("/file").contents(), "synced\n")
    equal(await (await dag.directory().withNewFile("x", "y").sync()).entries(), ["x"])
  },

  async manyRequestsAtOnce() {
    const numbers = [...Array(30).keys()]
    const answers = numbers.map((number) => debian().withExec(["echo", `${number}`]).stdout())
    equal(await Promise.all(answers), numbers.map((number) => `${number}\n`))
  },

  async objectsInArguments() {
    const files = ["one", "two", "three"].map((name) => dag.directory().withNewFile(name, name).file(name))
    const directory = dag.directory().withFiles("/all", files)
    equal((await directory.directory("all").entries()).sort(), ["one", "three", "two"])
  },

  async longChain() {
    let container = dag.container()
    for (let number = 0; number < 150; number++) {
      container = container.withEnvVariable(`V${number}`, `${number}`)
    }
    equal(await container.envVariable("V149"), "149")
  },

  async inputAndRedirectedOutput() {
    const container = debian().withExec(["cat"], { stdin: "typed", redirectStdout: "/out" })
    equal(await container.stdout(), "typed")
    equal(await container.file("/out").contents(), "typed")
  },

  async portsAndEnums() {
    const container = dag
      .container()
      .withExposedPort(80, { description: "web" })
      .withExposedPort(53, { protocol: NetworkProtocol.Udp })
    const ports = await container.exposedPorts()
    equal(await Promise.all(ports.map((port) => port.port())), [80, 53])
    equal(await Promise.all(ports.map((port) => port.protocol())), [NetworkProtocol.Tcp, NetworkProtocol.Udp])
    equal(await ports[0].description(), "web")
  },

  async platform() {
    const here = await dag.defaultPlatform()
    ok(here.startsWith("linux/"), here)
    equal(await dag.container({ platform: "linux/arm64" as Platform }).platform(), "linux/arm64")
  },

  async secrets() {
    const secret = dag.setSecret("token", "s3cret-of-typescript")
    equal(await secret.name(), "token")
    equal(await secret.plaintext(), "s3cret-of-typescript")
    ok(!(await secret.id()).includes("s3cret"))
  },

  async secretInAVariable() {
    const secret = dag.setSecret("variable", "hidden-in-typescript")
    const container = debian().withSecretVariable("TOKEN", secret)
    const script = "test $TOKEN = hidden-in-typescript && echo right; echo $TOKEN"
    equal(await container.withExec(["sh", "-c", script]).stdout(), "right\n***\n")
  },

  async secretInAFile() {
    const container = debian().withMountedSecret("/run/token", dag.setSecret("file", "hidden-in-a-file"))
    equal(await container.withExec(["sh", "-c", "wc -c < /run/token"]).stdout(), "16\n")
  },

  async rootFileSystem() {
    const container = dag.container().withRootfs(debian().rootfs())
    equal(await container.withExec(["echo", "same"]).stdout(), "same\n")
  },

  async imageInAFile() {
    const tarball = dag.container().withNewFile("/packed", "text").withLabel("a", "b").asTarball()
    ok((await tarball.size()) > 1 << 10)
    const imported = dag.container().import_(tarball)
    equal(await imported.label("a"), "b")
    equal(await imported.file("/packed").contents(), "text")
  },

  async fileOfAWebServer() {
    await webServer(async (address) => {
      equal(await dag.http(`${address}/page.txt`).contents(), "from the web")
      equal(await dag.http(`${address}/page.txt`).name(), "page.txt")
      const error = await rejects(GraphQLRequestError, dag.http(`${address}/nothing`).contents())
      ok(error.message.includes("status 404"), error.message)
    })
  },

  async serviceOfAContainer() {
    const service = server()
    equal(await service.endpoint({ port: 8000 }), `${await service.hostname()}:8000`)
    const client = debian().withServiceBinding("web", service)
    equal(await client.withExec(["bash", "-c", "cat < /dev/tcp/web/8000"]).stdout(), "served\n")
  },

  async equalTreesHaveEqualDigests() {
    const one = dag.directory().withNewFile("a", "1").withNewFile("b/c", "2")
    const two = dag.directory().withNewFile("b/c", "2").withNewFile("a", "1").withTimestamps(1)
    equal(await one.withTimestamps(1).digest(), await two.digest())
    ok((await one.digest()) !== (await one.withNewFile("a", "3").digest()))
  },

  async namesByPattern() {
    const directory = dag.directory().withNewFile("a.txt", "1").withNewFile("b/c.txt", "2").withNewFile("d.log", "3")
    equal((await directory.glob("**/*.txt")).sort(), ["a.txt", "b/c.txt"])
  },

  async changedName() {
    const file = dag.directory().withNewFile("a.txt", "text").file("a.txt").withName("b.txt")
    equal(await file.name(), "b.txt")
    equal(await dag.directory().withFile("", file).entries(), ["b.txt"])
  },
}

Object.assign(cases, outside)
if ("search" in dag.directory()) Object.assign(cases, (await import("./newer.ts")).newer)

let failures = 0
await connection(
  async () => {
    for (const [name, run] of Object.entries(cases)) {
      try {
        await run()
        console.log(`ok ${name}`)
      } catch (error) {
        failures += 1
        console.log(`failed ${name}: ${String(error)}`)
        console.error(error)
      }
    }
  },
  { LogOutput: process.stderr },
)
process.exitCode = failures === 0 ? 0 : 1
