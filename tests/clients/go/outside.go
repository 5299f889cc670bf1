// Cases about what is beside containers: repositories, registries, builds, services, the host, sessions inside.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"dagger.io/dagger"
)

// A listener for a container, on port 8000; what it does with a connection comes after it.
const listen = "use IO::Socket::INET; $s = IO::Socket::INET->new(LocalPort => 8000, Listen => 5, ReuseAddr => 1) or die;"

// A repository with a tag, and a branch that has one commit more.
const repositoryScript = `
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.com GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=ann@example.com
git init -q -b main .
echo one > a.txt; git add .; git commit -qm first; git tag v1.2.0
git checkout -qb side
echo two > b.txt; git add .; git commit -qm second
git checkout -q main
`

const dockerfile = `
FROM deb://bookworm AS base
ARG WHO=nobody
COPY greeting /
RUN echo "for $WHO" >> /greeting
FROM base AS last
RUN --mount=type=secret,id=token wc -c < /run/secrets/token >> /greeting
CMD ["cat", "/greeting"]
FROM scratch
`

// Asks the session that a command finds in its environment.
const inside = `
body='{"query":"{ directory { withNewFile(path: \"inner\", contents: \"x\") { entries } } }"}'
exec 3<> /dev/tcp/127.0.0.1/$DAGGER_SESSION_PORT
printf 'POST /query HTTP/1.1\r\nHost: inside\r\nConnection: close\r\nContent-Type: application/json\r\n' >&3
printf 'Authorization: Basic %s\r\n' "$(printf %s: "$DAGGER_SESSION_TOKEN" | base64 -w 0)" >&3
printf 'Content-Length: %s\r\n\r\n%s' "$(printf %s "$body" | wc -c)" "$body" >&3
cat <&3
`

// saying is a service that says one thing to everybody.
func saying(words string) *dagger.Service {
	program := listen + " while ($c = $s->accept) { print $c qq(" + words + "); close $c }"
	options := dagger.ContainerAsServiceOpts{Args: []string{"perl", "-e", program}}
	return debian().WithExposedPort(8000).AsService(options)
}

func server() *dagger.Service {
	return saying(`served\n`)
}

// repository makes one, and gives the commit at the end of its branch.
func repository(folder string) string {
	script := exec.Command("sh", "-ec", repositoryScript+"git rev-parse side")
	script.Dir = folder
	return strings.TrimSpace(string(must(script.Output())))
}

// answering is a server of this machine that says one text to everybody.
func answering(text, network, address string, use func(net.Addr)) {
	listener := must(net.Listen(network, address))
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(connection, text)
			connection.Close()
		}
	}()
	use(listener.Addr())
}

// variable is one that the tests set.
func variable(name string) string {
	value := os.Getenv(name)
	holds(value != "", name+" is not set")
	return value
}

// refused says what a call that must fail says.
func refused[T any](value T, err error) string {
	holds(err != nil, fmt.Sprintf("it gave %v", value))
	return err.Error()
}

func without(prefix string, names []string) []string {
	for index, name := range names {
		names[index] = strings.TrimPrefix(name, prefix)
	}
	return names
}

func init() {
	cases = append(cases, []testCase{
		{"repository at an address", func() {
			inFolder(func(folder string) {
				commit := repository(folder)
				remote := dag.Git("file://" + folder)
				equal(must(remote.Branch("side").Commit(ctx)), commit)
				equal(without("refs/tags/", must(remote.Tags(ctx))), []string{"v1.2.0"})
				plainTree := dagger.GitRefTreeOpts{DiscardGitDir: true}
				equal(must(remote.Branch("side").Tree(plainTree).Entries(ctx)), []string{"a.txt", "b.txt"})
				equal(must(remote.Commit(commit).Tree().File("b.txt").Contents(ctx)), "two\n")
				holds(strings.Contains(strings.Join(must(remote.Head().Tree().Entries(ctx)), " "), ".git"), "no .git")
				refused(remote.Branch("nothing").Tree().Entries(ctx))
			})
		}},
		{"repository in a directory", func() {
			inFolder(func(folder string) {
				repository(folder)
				here := dag.Host().Directory(folder).AsGit()
				plainTree := dagger.GitRefTreeOpts{DiscardGitDir: true}
				equal(must(here.Tag("v1.2.0").Tree(plainTree).Entries(ctx)), []string{"a.txt"})
				equal(must(here.Head().Tree().File("a.txt").Contents(ctx)), "one\n")
			})
		}},
		{"image of a dockerfile", func() {
			context := dag.Directory().WithNewFile("Dockerfile", dockerfile).WithNewFile("greeting", "hello\n")
			built := context.DockerBuild(dagger.DirectoryDockerBuildOpts{
				Target:    "last",
				BuildArgs: []dagger.BuildArg{{Name: "WHO", Value: "go"}},
				Secrets:   []*dagger.Secret{dag.SetSecret("token", "12345")},
			})
			equal(must(built.WithExec([]string{}).Stdout(ctx)), "hello\nfor go\n5\n")
			equal(must(built.DefaultArgs(ctx)), []string{"cat", "/greeting"})
		}},
		{"dockerfile that fails", func() {
			context := dag.Directory().WithNewFile("Dockerfile", "FROM deb://bookworm\nRUN exit 3\n")
			equal(execError(context.DockerBuild().Sync(ctx)).ExitCode, 3)
		}},
		{"difference of directories", func() {
			one := dag.Directory().WithNewFile("same", "s").WithNewFile("sub/edited", "1").WithTimestamps(1)
			two := one.WithNewFile("sub/edited", "2").WithNewFile("new", "n")
			equal(plain(must(one.Diff(two).Glob(ctx, "**"))), []string{"new", "sub", "sub/edited"})
			equal(len(must(one.Diff(one).Entries(ctx))), 0)
		}},
		{"session inside a container", func() {
			nesting := dagger.ContainerWithExecOpts{ExperimentalPrivilegedNesting: true}
			answer := must(debian().WithExec([]string{"bash", "-c", inside}, nesting).Stdout(ctx))
			holds(strings.Contains(strings.ReplaceAll(answer, " ", ""), `"entries":["inner"]`), answer)
		}},
		{"socket of the host", func() {
			inFolder(func(folder string) {
				path := filepath.Join(folder, "s")
				answering("by a socket\n", "unix", path, func(net.Addr) {
					program := `use IO::Socket::UNIX; $s = IO::Socket::UNIX->new(Peer => "/run/s") or die; print <$s>`
					container := debian().WithUnixSocket("/run/s", dag.Host().UnixSocket(path))
					equal(must(container.WithExec([]string{"perl", "-e", program}).Stdout(ctx)), "by a socket\n")
				})
			})
		}},
		{"service of the host", func() {
			answering("by a port\n", "tcp", "127.0.0.1:0", func(address net.Addr) {
				port := dagger.PortForward{Backend: address.(*net.TCPAddr).Port, Frontend: 80, Protocol: dagger.NetworkProtocolTcp}
				client := debian().WithServiceBinding("host", dag.Host().Service([]dagger.PortForward{port}))
				equal(must(client.WithExec([]string{"bash", "-c", "cat < /dev/tcp/host/80"}).Stdout(ctx)), "by a port\n")
			})
		}},
		{"tunnel to a service", func() {
			tunnel := must(dag.Host().Tunnel(server()).Start(ctx))
			connection := must(net.Dial("tcp", must(tunnel.Endpoint(ctx))))
			defer connection.Close()
			equal(string(must(io.ReadAll(connection))), "served\n")
			must(tunnel.Stop(ctx))
		}},
		{"service that is started and stopped", func() {
			service := server().WithHostname("named-in-go")
			equal(must(service.Hostname(ctx)), "named-in-go")
			ports := must(service.Ports(ctx))
			equal(len(ports), 1)
			equal(must(ports[0].Port(ctx)), 8000)
			must(service.Start(ctx))
			command := []string{"bash", "-c", "cat < /dev/tcp/named-in-go/8000"}
			equal(must(debian().WithExec(command).Stdout(ctx)), "served\n")
			must(service.Stop(ctx))
		}},
		{"service that cannot start", func() {
			options := dagger.ContainerAsServiceOpts{Args: []string{"sh", "-c", "echo broken >&2; exit 5"}}
			broken := debian().WithExposedPort(8000).AsService(options)
			client := debian().WithServiceBinding("web", broken)
			said := refused(client.WithExec([]string{"true"}).Sync(ctx))
			holds(strings.Contains(said, "exit code: 5"), said)
		}},
		{"file of a service", func() {
			service := saying(`HTTP/1.0 200 OK\r\n\r\nby a service`)
			address := must(service.Endpoint(ctx, dagger.ServiceEndpointOpts{Scheme: "http"}))
			file := dag.HTTP(address+"/file", dagger.HTTPOpts{ExperimentalServiceHost: service})
			equal(must(file.Contents(ctx)), "by a service")
		}},
		{"secrets of the host", func() {
			inFolder(func(folder string) {
				path := filepath.Join(folder, "token")
				holds(os.WriteFile(path, []byte("kept in a file"), 0o600) == nil, path)
				equal(must(dag.Secret("file://"+path).Plaintext(ctx)), "kept in a file")
			})
			equal(must(dag.Secret("env://CASES_REGISTRY").Plaintext(ctx)), variable("CASES_REGISTRY"))
			equal(must(dag.Secret("cmd://echo said").Plaintext(ctx)), "said\n")
			refused(dag.Secret("nowhere://at-all").Plaintext(ctx))
		}},
		{"image in a registry", func() {
			registry := variable("CASES_REGISTRY")
			password := dag.SetSecret("password", variable("CASES_PASSWORD"))
			account := dag.Container().WithRegistryAuth(registry, variable("CASES_USER"), password)
			image := account.WithNewFile("/a", "published").WithLabel("from", "go").WithAnnotation("a", "b")
			other := dag.Container(dagger.ContainerOpts{Platform: "linux/arm64"}).WithNewFile("/a", "other")
			variants := dagger.ContainerPublishOpts{PlatformVariants: []*dagger.Container{other}}
			address := must(image.Publish(ctx, registry+"/cases/go:1", variants))
			holds(strings.HasPrefix(address, registry+"/cases/go:1@sha256:"), address)
			pulled := account.From(address)
			equal(must(pulled.File("/a").Contents(ctx)), "published")
			equal(must(pulled.Label(ctx, "from")), "go")
			equal(must(pulled.ImageRef(ctx)), address)
			refused(image.WithoutRegistryAuth(registry).Publish(ctx, registry+"/cases/go:2"))
		}},
		{"image in a file of the host", func() {
			inFolder(func(folder string) {
				path := filepath.Join(folder, "image.tar")
				must(dag.Container().WithNewFile("/a", "exported").WithEntrypoint([]string{"/a"}).Export(ctx, path))
				again := dag.Container().Import(dag.Host().File(path))
				equal(must(again.File("/a").Contents(ctx)), "exported")
				equal(must(again.Entrypoint(ctx)), []string{"/a"})
			})
		}},
		{"what was set is taken away", func() {
			full := dag.Container().WithLabel("a", "b").WithExposedPort(80).WithEntrypoint([]string{"x"}).WithWorkdir("/w").
				WithMountedTemp("/t").WithNewFile("/gone", "g").WithAnnotation("c", "d")
			left := full.WithoutLabel("a").WithoutExposedPort(80).WithoutEntrypoint().WithoutWorkdir().
				WithoutMount("/t").WithoutFile("/gone").WithoutAnnotation("c")
			equal(len(must(left.Labels(ctx))), 0)
			equal(len(must(left.ExposedPorts(ctx))), 0)
			equal(len(must(left.Entrypoint(ctx))), 0)
			equal(must(left.Workdir(ctx)), "")
			equal(len(must(left.Mounts(ctx))), 0)
			equal(len(must(left.Rootfs().Entries(ctx))), 0)
			equal(must(full.Label(ctx, "a")), "b")
		}},
		{"owners and expanded paths", func() {
			source := dag.Directory().WithNewFile("sub/file", "text")
			owned := dagger.ContainerWithDirectoryOpts{Owner: "nobody", Expand: true}
			private := dagger.ContainerWithNewFileOpts{Permissions: 0o640, Owner: "1:2"}
			container := debian().WithEnvVariable("WHERE", "/srv/place").WithDirectory("$WHERE", source, owned).
				WithNewFile("/srv/own", "x", private)
			command := []string{"stat", "-c", "%U %u:%g %a", "/srv/place/sub/file", "/srv/own"}
			equal(must(container.WithExec(command).Stdout(ctx)), "nobody 65534:65534 644\ndaemon 1:2 640\n")
		}},
		{"cache of the engine", func() {
			must(debian().WithExec([]string{"true"}).Sync(ctx))
			entries := dag.Engine().LocalCache().EntrySet()
			holds(must(entries.EntryCount(ctx)) > 0, "no entries")
			holds(must(entries.DiskSpaceBytes(ctx)) > 0, "no space")
		}},
	}...)
}
