// Cases for the published Go library. `tests/clients/README.md` says how they are run.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"dagger.io/dagger"
)

const image = "deb://bookworm"

var (
	ctx = context.Background()
	dag *dagger.Client
)

func debian() *dagger.Container {
	return dag.Container().From(image)
}

func shell(script string) *dagger.Container {
	return debian().WithExec([]string{"sh", "-c", script})
}

// must gives a value that has to be there; run catches the panic and names the case.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func equal[T any](actual, expected T) {
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Sprintf("%#v is not %#v", actual, expected))
	}
}

func holds(condition bool, what any) {
	if !condition {
		panic(fmt.Sprint(what))
	}
}

// execError gives the exec error that a call must have ended with.
func execError[T any](value T, err error) *dagger.ExecError {
	var found *dagger.ExecError
	holds(errors.As(err, &found), fmt.Sprintf("no exec error but %v, %v", value, err))
	return found
}

func plain(names []string) []string {
	for index, name := range names {
		names[index] = strings.TrimSuffix(name, "/")
	}
	return names
}

func inFolder(use func(folder string)) {
	folder := must(os.MkdirTemp("", "cases-"))
	defer os.RemoveAll(folder)
	use(folder)
}

func read(path string) string {
	return string(must(os.ReadFile(path)))
}

// webServer is one of this machine that has one page, at `/page.txt`.
func webServer(use func(address string)) {
	server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/page.txt" {
			reply.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(reply, "from the web")
	}))
	defer server.Close()
	use(server.URL)
}

type testCase struct {
	name string
	run  func()
}

var cases = []testCase{
	{"version is text", func() {
		holds(must(dag.Version(ctx)) != "", "empty")
	}},
	{"output of a command", func() {
		equal(must(shell("echo out; echo err >&2").Stdout(ctx)), "out\n")
	}},
	{"errors of a command", func() {
		equal(must(shell("echo out; echo err >&2").Stderr(ctx)), "err\n")
	}},
	{"exit code that was expected", func() {
		options := dagger.ContainerWithExecOpts{Expect: dagger.ReturnTypeAny}
		equal(must(debian().WithExec([]string{"sh", "-c", "exit 7"}, options).ExitCode(ctx)), 7)
	}},
	{"failing command is an exec error", func() {
		script := "echo some $1output; echo some talk >&2; exit 42"
		failed := execError(shell(script).Sync(ctx))
		equal(failed.ExitCode, 42)
		equal(failed.Cmd, []string{"sh", "-c", script})
		equal(failed.Stdout, "some output")
		equal(failed.Stderr, "some talk")
		holds(strings.Contains(failed.Error(), "exit code: 42"), failed.Error())
	}},
	{"missing program is an exec error", func() {
		failed := execError(debian().WithExec([]string{"no-such-program"}).Stdout(ctx))
		holds(strings.Contains(failed.Error(), "exit code: 1"), failed.Error())
	}},
	{"missing file is a plain error", func() {
		_, err := dag.Directory().File("nothing").Contents(ctx)
		var failed *dagger.ExecError
		holds(err != nil && !errors.As(err, &failed), err)
		holds(strings.Contains(err.Error(), "no such file or directory"), err)
	}},
	{"error in the middle of a chain", func() {
		chain := shell("exit 3").WithEnvVariable("A", "b").WithExec([]string{"true"})
		equal(execError(chain.Stdout(ctx)).ExitCode, 3)
	}},
	{"environment variables", func() {
		expand := dagger.ContainerWithEnvVariableOpts{Expand: true}
		container := debian().WithEnvVariable("ONE", "1").WithEnvVariable("TWO", "$ONE", expand)
		equal(must(container.EnvVariable(ctx, "TWO")), "1")
		equal(must(container.WithExec([]string{"sh", "-c", "echo $ONE-$TWO"}).Stdout(ctx)), "1-1\n")
		equal(must(container.WithoutEnvVariable("ONE").EnvVariable(ctx, "ONE")), "")
	}},
	{"list of objects", func() {
		container := dag.Container().WithEnvVariable("A", "1").WithEnvVariable("B", "2")
		var found []string
		for _, variable := range must(container.EnvVariables(ctx)) {
			found = append(found, must(variable.Name(ctx))+"="+must(variable.Value(ctx)))
		}
		equal(found, []string{"A=1", "B=2"})
	}},
	{"labels", func() {
		container := dag.Container().WithLabel("org.example.one", "a=b, c")
		equal(must(container.Label(ctx, "org.example.one")), "a=b, c")
		equal(must(container.Label(ctx, "org.example.two")), "")
		equal(len(must(container.Labels(ctx))), 1)
	}},
	{"working directory and user", func() {
		container := debian().WithWorkdir("/srv").WithUser("nobody")
		equal(must(container.Workdir(ctx)), "/srv")
		equal(must(container.User(ctx)), "nobody")
		equal(must(container.WithExec([]string{"sh", "-c", "pwd; id -un"}).Stdout(ctx)), "/srv\nnobody\n")
	}},
	{"entrypoint and default arguments", func() {
		container := debian().WithEntrypoint([]string{"echo", "from"}).WithDefaultArgs([]string{"default"})
		equal(must(container.Entrypoint(ctx)), []string{"echo", "from"})
		equal(must(container.DefaultArgs(ctx)), []string{"default"})
		use := dagger.ContainerWithExecOpts{UseEntrypoint: true}
		equal(must(container.WithExec([]string{}, use).Stdout(ctx)), "from default\n")
		equal(must(container.WithExec([]string{"x"}, use).Stdout(ctx)), "from x\n")
	}},
	{"text of every kind", func() {
		text := "quote \" back\\slash 'single' \t tab\nline\r\n \u00e4\u00f6 \u65e5\u672c \U0001f600 \u2028 $X {{}} #"
		equal(must(dag.Directory().WithNewFile("a b/\u00e4.txt", text).File("a b/\u00e4.txt").Contents(ctx)), text)
		equal(must(debian().WithExec([]string{"printf", "%s", text}).Stdout(ctx)), text)
	}},
	{"long text", func() {
		text := strings.Repeat("0123456789abcdef", 1<<16)
		file := dag.Directory().WithNewFile("long", text).File("long")
		equal(must(file.Size(ctx)), 1<<20)
		holds(must(file.Contents(ctx)) == text, "not what was written")
	}},
	{"directories", func() {
		directory := dag.Directory().WithNewFile("a/one", "1").WithNewFile("b/two", "2").WithNewDirectory("c")
		equal(plain(must(directory.Entries(ctx))), []string{"a", "b", "c"})
		equal(must(directory.Directory("a").Entries(ctx)), []string{"one"})
		equal(plain(must(directory.WithoutDirectory("a").Entries(ctx))), []string{"b", "c"})
		equal(len(must(directory.WithoutFile("b/two").Directory("b").Entries(ctx))), 0)
	}},
	{"directory in a directory", func() {
		source := dag.Directory().WithNewFile("keep.txt", "k").WithNewFile("drop.log", "d")
		without := dagger.DirectoryWithDirectoryOpts{Exclude: []string{"*.log"}}
		equal(must(dag.Directory().WithDirectory("/in", source, without).Directory("in").Entries(ctx)), []string{"keep.txt"})
		only := dagger.DirectoryWithDirectoryOpts{Include: []string{"*.log"}}
		equal(must(dag.Directory().WithDirectory("/in", source, only).Directory("in").Entries(ctx)), []string{"drop.log"})
	}},
	{"files", func() {
		private := dagger.DirectoryWithNewFileOpts{Permissions: 0o600}
		file := dag.Directory().WithNewFile("dir/name.txt", "text", private).File("dir/name.txt")
		equal(must(file.Name(ctx)), "name.txt")
		equal(must(file.Size(ctx)), 4)
		container := debian().WithFile("/copy.txt", file)
		equal(must(container.WithExec([]string{"stat", "-c", "%a", "/copy.txt"}).Stdout(ctx)), "600\n")
		equal(must(container.File("/copy.txt").Contents(ctx)), "text")
	}},
	{"mounted directory and file", func() {
		directory := dag.Directory().WithNewFile("a", "mounted")
		container := debian().WithMountedDirectory("/d", directory).WithMountedFile("/f", directory.File("a"))
		equal(must(container.WithExec([]string{"cat", "/d/a", "/f"}).Stdout(ctx)), "mountedmounted")
		equal(must(container.Mounts(ctx)), []string{"/d", "/f"})
		written := container.WithExec([]string{"sh", "-c", "echo more >> /d/a"})
		equal(must(written.Directory("/d").File("a").Contents(ctx)), "mountedmore\n")
	}},
	{"mounted temporary files", func() {
		container := debian().WithMountedTemp("/t").WithExec([]string{"touch", "/t/x"})
		equal(must(container.WithExec([]string{"ls", "/t"}).Stdout(ctx)), "")
	}},
	{"cache volume", func() {
		volume := dag.CacheVolume("go cases")
		equal(must(volume.ID(ctx)), must(dag.CacheVolume("go cases").ID(ctx)))
		locked := dagger.ContainerWithMountedCacheOpts{Sharing: dagger.CacheSharingModeLocked}
		container := debian().WithMountedCache("/c", volume, locked)
		must(container.WithExec([]string{"sh", "-c", "echo kept > /c/file"}).Sync(ctx))
		equal(must(container.WithExec([]string{"cat", "/c/file"}).Stdout(ctx)), "kept\n")
	}},
	{"files of the host", func() {
		inFolder(func(folder string) {
			for name, text := range map[string]string{"a.txt": "host", "b.log": "log"} {
				holds(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644) == nil, name)
			}
			without := dagger.HostDirectoryOpts{Exclude: []string{"*.log"}}
			equal(must(dag.Host().Directory(folder, without).Entries(ctx)), []string{"a.txt"})
			equal(must(dag.Host().File(filepath.Join(folder, "a.txt")).Contents(ctx)), "host")
		})
	}},
	{"export to the host", func() {
		inFolder(func(folder string) {
			tree := filepath.Join(folder, "tree")
			must(dag.Directory().WithNewFile("sub/out.txt", "exported").Export(ctx, tree))
			equal(read(filepath.Join(tree, "sub/out.txt")), "exported")
			made := filepath.Join(folder, "made")
			must(shell("echo made > /made").File("/made").Export(ctx, made))
			equal(read(made), "made\n")
		})
	}},
	{"ids name objects", func() {
		container := dag.Container().WithEnvVariable("A", "b")
		id := must(container.ID(ctx))
		equal(must(dag.Container().WithEnvVariable("A", "b").ID(ctx)), id)
		equal(must(dag.LoadContainerFromID(dagger.ContainerID(id)).EnvVariable(ctx, "A")), "b")
		holds(must(container.WithEnvVariable("A", "c").ID(ctx)) != id, "the same id")
	}},
	{"chains are lazy", func() {
		container := shell("exit 1")
		holds(must(container.WithEnvVariable("A", "b").ID(ctx)) != "", "empty")
		execError(container.Sync(ctx))
	}},
	{"sync runs an object", func() {
		container := must(shell("echo synced > /file").Sync(ctx))
		equal(must(container.File("/file").Contents(ctx)), "synced\n")
		directory := must(dag.Directory().WithNewFile("x", "y").Sync(ctx))
		equal(must(directory.Entries(ctx)), []string{"x"})
	}},
	{"many requests at once", func() {
		answers := make([]string, 30)
		var group sync.WaitGroup
		for number := range answers {
			group.Add(1)
			go func() {
				defer group.Done()
				answer, err := debian().WithExec([]string{"echo", fmt.Sprint(number)}).Stdout(ctx)
				if err != nil {
					answer = err.Error()
				}
				answers[number] = answer
			}()
		}
		group.Wait()
		for number, answer := range answers {
			equal(answer, fmt.Sprintln(number))
		}
	}},
	{"objects in arguments", func() {
		var files []*dagger.File
		for _, name := range []string{"one", "two", "three"} {
			files = append(files, dag.Directory().WithNewFile(name, name).File(name))
		}
		names := must(dag.Directory().WithFiles("/all", files).Directory("all").Entries(ctx))
		slices.Sort(names)
		equal(names, []string{"one", "three", "two"})
	}},
	{"long chain", func() {
		container := dag.Container()
		for number := range 150 {
			container = container.WithEnvVariable(fmt.Sprintf("V%d", number), fmt.Sprint(number))
		}
		equal(must(container.EnvVariable(ctx, "V149")), "149")
	}},
	{"input and redirected output", func() {
		options := dagger.ContainerWithExecOpts{Stdin: "typed", RedirectStdout: "/out"}
		container := debian().WithExec([]string{"cat"}, options)
		equal(must(container.Stdout(ctx)), "typed")
		equal(must(container.File("/out").Contents(ctx)), "typed")
	}},
	{"ports and enums", func() {
		container := dag.Container().
			WithExposedPort(80, dagger.ContainerWithExposedPortOpts{Description: "web"}).
			WithExposedPort(53, dagger.ContainerWithExposedPortOpts{Protocol: dagger.NetworkProtocolUdp})
		ports := must(container.ExposedPorts(ctx))
		equal(len(ports), 2)
		equal(must(ports[0].Port(ctx)), 80)
		equal(must(ports[0].Protocol(ctx)), dagger.NetworkProtocolTcp)
		equal(must(ports[0].Description(ctx)), "web")
		equal(must(ports[1].Protocol(ctx)), dagger.NetworkProtocolUdp)
	}},
	{"platform", func() {
		here := must(dag.DefaultPlatform(ctx))
		holds(strings.HasPrefix(string(here), "linux/"), here)
		other := dagger.ContainerOpts{Platform: "linux/arm64"}
		equal(must(dag.Container(other).Platform(ctx)), "linux/arm64")
	}},
	{"secrets", func() {
		secret := dag.SetSecret("token", "s3cret-of-go")
		equal(must(secret.Name(ctx)), "token")
		equal(must(secret.Plaintext(ctx)), "s3cret-of-go")
		holds(!strings.Contains(string(must(secret.ID(ctx))), "s3cret"), "the id holds the text")
	}},
	{"secret in a variable", func() {
		container := debian().WithSecretVariable("TOKEN", dag.SetSecret("variable", "hidden-in-go"))
		script := "test $TOKEN = hidden-in-go && echo right; echo $TOKEN"
		equal(must(container.WithExec([]string{"sh", "-c", script}).Stdout(ctx)), "right\n***\n")
	}},
	{"secret in a file", func() {
		container := debian().WithMountedSecret("/run/token", dag.SetSecret("file", "hidden-in-a-file"))
		equal(must(container.WithExec([]string{"sh", "-c", "wc -c < /run/token"}).Stdout(ctx)), "16\n")
	}},
	{"root file system", func() {
		container := dag.Container().WithRootfs(debian().Rootfs())
		equal(must(container.WithExec([]string{"echo", "same"}).Stdout(ctx)), "same\n")
	}},
	{"image in a file", func() {
		tarball := dag.Container().WithNewFile("/packed", "text").WithLabel("a", "b").AsTarball()
		holds(must(tarball.Size(ctx)) > 1<<10, "too small")
		imported := dag.Container().Import(tarball)
		equal(must(imported.Label(ctx, "a")), "b")
		equal(must(imported.File("/packed").Contents(ctx)), "text")
	}},
	{"file of a web server", func() {
		webServer(func(address string) {
			file := dag.HTTP(address + "/page.txt")
			equal(must(file.Contents(ctx)), "from the web")
			equal(must(file.Name(ctx)), "page.txt")
			said := refused(dag.HTTP(address + "/nothing").Contents(ctx))
			holds(strings.Contains(said, "status 404"), said)
		})
	}},
	{"service of a container", func() {
		service := server()
		endpoint := must(service.Endpoint(ctx, dagger.ServiceEndpointOpts{Port: 8000}))
		equal(endpoint, must(service.Hostname(ctx))+":8000")
		client := debian().WithServiceBinding("web", service)
		equal(must(client.WithExec([]string{"bash", "-c", "cat < /dev/tcp/web/8000"}).Stdout(ctx)), "served\n")
	}},
	{"equal trees have equal digests", func() {
		one := dag.Directory().WithNewFile("a", "1").WithNewFile("b/c", "2")
		two := dag.Directory().WithNewFile("b/c", "2").WithNewFile("a", "1").WithTimestamps(1)
		equal(must(one.WithTimestamps(1).Digest(ctx)), must(two.Digest(ctx)))
		holds(must(one.Digest(ctx)) != must(one.WithNewFile("a", "3").Digest(ctx)), "other content")
	}},
	{"names by pattern", func() {
		directory := dag.Directory().WithNewFile("a.txt", "1").WithNewFile("b/c.txt", "2").WithNewFile("d.log", "3")
		names := must(directory.Glob(ctx, "**/*.txt"))
		slices.Sort(names)
		equal(names, []string{"a.txt", "b/c.txt"})
	}},
	{"changed name", func() {
		file := dag.Directory().WithNewFile("a.txt", "text").File("a.txt").WithName("b.txt")
		equal(must(file.Name(ctx)), "b.txt")
		equal(must(dag.Directory().WithFile("", file).Entries(ctx)), []string{"b.txt"})
	}},
}

// attempt runs a case and says why it failed; empty when it did not.
func attempt(run func()) (failure string) {
	defer func() {
		if reason := recover(); reason != nil {
			failure = fmt.Sprint(reason)
		}
	}()
	run()
	return ""
}

func main() {
	client, err := dagger.Connect(ctx, dagger.WithLogOutput(os.Stderr))
	if err != nil {
		fmt.Println("failed to connect:", err)
		os.Exit(1)
	}
	dag = client
	failures := 0
	for _, each := range cases {
		if failure := attempt(each.run); failure != "" {
			failures++
			fmt.Printf("failed %s: %s\n", each.name, failure)
			continue
		}
		fmt.Println("ok", each.name)
	}
	if err := client.Close(); err != nil {
		failures++
		fmt.Println("failed to close:", err)
	}
	if failures > 0 {
		os.Exit(1)
	}
}
