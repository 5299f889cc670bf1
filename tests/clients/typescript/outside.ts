// Cases about what is beside containers: repositories, registries, builds, services, the host, sessions inside.

import { deepStrictEqual as equal, ok } from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { writeFile } from "node:fs/promises"
import { connect } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { ExecError, GraphQLRequestError, dag } from "@dagger.io/dagger"
import type { Platform } from "@dagger.io/dagger"
import { answering, debian, plain, rejects, withFolder } from "./frame.ts"
import type { Cases } from "./frame.ts"

/** A listener for a container, on port 8000; what it does with a connection comes after it. */
const LISTEN = "use IO::Socket::INET; $s = IO::Socket::INET->new(LocalPort => 8000, Listen => 5, ReuseAddr => 1) or die;"

/** A repository with a tag, and a branch that has one commit more. */
const REPOSITORY = `
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.com GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=ann@example.com
git init -q -b main .
echo one > a.txt; git add .; git commit -qm first; git tag v1.2.0
git checkout -qb side
echo two > b.txt; git add .; git commit -qm second
git checkout -q main
`

const DOCKERFILE = `
FROM deb://bookworm AS base
ARG WHO=nobody
COPY greeting /
RUN echo "for $WHO" >> /greeting
FROM base AS last
RUN --mount=type=secret,id=token wc -c < /run/secrets/token >> /greeting
CMD ["cat", "/greeting"]
FROM scratch
`

/** Asks the session that a command finds in its environment. */
const INSIDE = String.raw`
body='{"query":"{ directory { withNewFile(path: \"inner\", contents: \"x\") { entries } } }"}'
exec 3<> /dev/tcp/127.0.0.1/$DAGGER_SESSION_PORT
printf 'POST /query HTTP/1.1\r\nHost: inside\r\nConnection: close\r\nContent-Type: application/json\r\n' >&3
printf 'Authorization: Basic %s\r\n' "$(printf %s: "$DAGGER_SESSION_TOKEN" | base64 -w 0)" >&3
printf 'Content-Length: %s\r\n\r\n%s' "$(printf %s "$body" | wc -c)" "$body" >&3
cat <&3
`

/** A service that says one thing to everybody. */
const saying = (words: string) =>
  debian()
    .withExposedPort(8000)
    .asService({ args: ["perl", "-e", `${LISTEN} while ($c = $s->accept) { print $c qq(${words}); close $c }`] })
export const server = () => saying("served\\n")

/** Makes a repository, and gives the commit at the end of its branch. */
export function repository(folder: string): string {
  execFileSync("sh", ["-ec", REPOSITORY], { cwd: folder })
  return execFileSync("git", ["rev-parse", "side"], { cwd: folder, encoding: "utf8" }).trim()
}

/** A variable that the tests set. */
function variable(name: string): string {
  const value = process.env[name]
  ok(value, `${name} is not set`)
  return value
}

export const outside: Cases = {
  async repositoryAtAnAddress() {
    await withFolder(async (folder) => {
      const commit = repository(folder)
      const remote = dag.git(`file://${folder}`)
      equal(await remote.branch("side").commit(), commit)
      equal((await remote.tags()).map((tag) => tag.replace("refs/tags/", "")), ["v1.2.0"])
      equal(await remote.branch("side").tree({ discardGitDir: true }).entries(), ["a.txt", "b.txt"])
      equal(await remote.commit(commit).tree().file("b.txt").contents(), "two\n")
      ok(plain(await remote.head().tree().entries()).includes(".git"))
      await rejects(GraphQLRequestError, remote.branch("nothing").tree().entries())
    })
  },

  async repositoryInADirectory() {
    await withFolder(async (folder) => {
      repository(folder)
      const here = dag.host().directory(folder).asGit()
      equal(await here.tag("v1.2.0").tree({ discardGitDir: true }).entries(), ["a.txt"])
      equal(await here.head().tree().file("a.txt").contents(), "one\n")
    })
  },

  async imageOfADockerfile() {
    const context = dag.directory().withNewFile("Dockerfile", DOCKERFILE).withNewFile("greeting", "hello\n")
    const built = context.dockerBuild({
      target: "last",
      buildArgs: [{ name: "WHO", value: "typescript" }],
      secrets: [dag.setSecret("token", "12345")],
    })
    equal(await built.withExec([]).stdout(), "hello\nfor typescript\n5\n")
    equal(await built.defaultArgs(), ["cat", "/greeting"])
  },

  async dockerfileThatFails() {
    const context = dag.directory().withNewFile("Dockerfile", "FROM deb://bookworm\nRUN exit 3\n")
    equal((await rejects(ExecError, context.dockerBuild().sync())).exitCode, 3)
  },

  async differenceOfDirectories() {
    const one = dag.directory().withNewFile("same", "s").withNewFile("sub/edited", "1").withTimestamps(1)
    const two = one.withNewFile("sub/edited", "2").withNewFile("new", "n")
    equal(plain(await one.diff(two).glob("**")), ["new", "sub", "sub/edited"])
    equal(await one.diff(one).entries(), [])
  },

  async sessionInsideAContainer() {
    const inside = debian().withExec(["bash", "-c", INSIDE], { experimentalPrivilegedNesting: true })
    const answer = await inside.stdout()
    ok(answer.replaceAll(" ", "").includes('"entries":["inner"]'), answer)
  },

  async socketOfTheHost() {
    await withFolder(async (folder) => {
      const path = join(folder, "s")
      await answering("by a socket\n", { path }, async () => {
        const program = 'use IO::Socket::UNIX; $s = IO::Socket::UNIX->new(Peer => "/run/s") or die; print <$s>'
        const container = debian().withUnixSocket("/run/s", dag.host().unixSocket(path))
        equal(await container.withExec(["perl", "-e", program]).stdout(), "by a socket\n")
      })
    })
  },

  async tunnelToAService() {
    const tunnel = await dag.host().tunnel(server()).start()
    const [host, port] = (await tunnel.endpoint()).split(":")
    equal(await text(connect(Number(port), host)), "served\n")
    await tunnel.stop()
  },

  async serviceThatIsStartedAndStopped() {
    const service = server().withHostname("named-in-typescript")
    equal(await service.hostname(), "named-in-typescript")
    equal(await Promise.all((await service.ports()).map((port) => port.port())), [8000])
    await service.start()
    const command = ["bash", "-c", "cat < /dev/tcp/named-in-typescript/8000"]
    equal(await debian().withExec(command).stdout(), "served\n")
    await service.stop()
  },

  async serviceThatCannotStart() {
    const broken = debian().withExposedPort(8000).asService({ args: ["sh", "-c", "echo broken >&2; exit 5"] })
    const client = debian().withServiceBinding("web", broken)
    const error = await rejects(Error, client.withExec(["true"]).sync())
    ok(error.message.includes("exit code: 5"), error.message)
  },

  async fileOfAService() {
    const service = saying("HTTP/1.0 200 OK\\r\\n\\r\\nby a service")
    const address = await service.endpoint({ scheme: "http" })
    equal(await dag.http(`${address}/file`, { experimentalServiceHost: service }).contents(), "by a service")
  },

  async secretsOfTheHost() {
    await withFolder(async (folder) => {
      await writeFile(join(folder, "token"), "kept in a file")
      equal(await dag.secret(`file://${folder}/token`).plaintext(), "kept in a file")
    })
    equal(await dag.secret("env://CASES_REGISTRY").plaintext(), variable("CASES_REGISTRY"))
    equal(await dag.secret("cmd://echo said").plaintext(), "said\n")
    await rejects(GraphQLRequestError, dag.secret("nowhere://at-all").plaintext())
  },

  async imageInARegistry() {
    const registry = variable("CASES_REGISTRY")
    const password = dag.setSecret("password", variable("CASES_PASSWORD"))
    const account = dag.container().withRegistryAuth(registry, variable("CASES_USER"), password)
    const image = account.withNewFile("/a", "published").withLabel("from", "typescript").withAnnotation("a", "b")
    const other = dag.container({ platform: "linux/arm64" as Platform }).withNewFile("/a", "other")
    const address = await image.publish(`${registry}/cases/typescript:1`, { platformVariants: [other] })
    ok(address.startsWith(`${registry}/cases/typescript:1@sha256:`), address)
    const pulled = account.from(address)
    equal(await pulled.file("/a").contents(), "published")
    equal(await pulled.label("from"), "typescript")
    equal(await pulled.imageRef(), address)
    const refused = image.withoutRegistryAuth(registry).publish(`${registry}/cases/typescript:2`)
    await rejects(GraphQLRequestError, refused)
  },

  async imageInAFileOfTheHost() {
    await withFolder(async (folder) => {
      const image = dag.container().withNewFile("/a", "exported").withEntrypoint(["/a"])
      await image.export(join(folder, "image.tar"))
      const again = dag.container().import_(dag.host().file(join(folder, "image.tar")))
      equal(await again.file("/a").contents(), "exported")
      equal(await again.entrypoint(), ["/a"])
    })
  },

  async whatWasSetIsTakenAway() {
    const full = dag
      .container()
      .withLabel("a", "b")
      .withExposedPort(80)
      .withEntrypoint(["x"])
      .withWorkdir("/w")
      .withMountedTemp("/t")
      .withNewFile("/gone", "g")
      .withAnnotation("c", "d")
    const left = full
      .withoutLabel("a")
      .withoutExposedPort(80)
      .withoutEntrypoint()
      .withoutWorkdir()
      .withoutMount("/t")
      .withoutFile("/gone")
      .withoutAnnotation("c")
    equal(await left.labels(), [])
    equal(await left.exposedPorts(), [])
    equal(await left.entrypoint(), [])
    equal(await left.workdir(), "")
    equal(await left.mounts(), [])
    equal(await left.rootfs().entries(), [])
    equal(await full.label("a"), "b")
  },

  async ownersAndExpandedPaths() {
    const source = dag.directory().withNewFile("sub/file", "text")
    const container = debian()
      .withEnvVariable("WHERE", "/srv/place")
      .withDirectory("$WHERE", source, { owner: "nobody", expand: true })
      .withNewFile("/srv/own", "x", { permissions: 0o640, owner: "1:2" })
    const command = ["stat", "-c", "%U %u:%g %a", "/srv/place/sub/file", "/srv/own"]
    equal(await container.withExec(command).stdout(), "nobody 65534:65534 644\ndaemon 1:2 640\n")
  },

  async cacheOfTheEngine() {
    await debian().withExec(["true"]).sync()
    const entries = dag.engine().localCache().entrySet()
    ok((await entries.entryCount()) > 0)
    ok((await entries.diskSpaceBytes()) > 0)
  },
}
