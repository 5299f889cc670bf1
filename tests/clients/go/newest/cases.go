// Cases for what only newer versions of the library have.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dagger.io/dagger"
)

const before = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"

func numbers(text string) *dagger.Directory {
	return dag.Directory().WithNewFile("numbers", text)
}

// replaced is the changes that one word for another makes.
func replaced(from, to string) *dagger.Changeset {
	return numbers(strings.Replace(before, from, to, 1)).Changes(numbers(before))
}

func write(folder, name, text string) {
	holds(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644) == nil, name)
}

func init() {
	cases = append(cases, []testCase{
		{"both streams together", func() {
			both := must(shell("echo out; echo err >&2").CombinedOutput(ctx))
			holds(strings.Contains(both, "out\n") && strings.Contains(both, "err\n"), both)
		}},
		{"what is in a directory", func() {
			directory := dag.Directory().WithNewFile("sub/file", "text")
			holds(must(directory.Exists(ctx, "sub/file")), "it is there")
			holds(!must(directory.Exists(ctx, "nothing")), "it is not there")
			equal(must(directory.Stat("sub/file").Size(ctx)), 4)
			equal(must(directory.Stat("sub").FileType(ctx)), dagger.FileTypeDirectory)
			equal(must(directory.FindUp(ctx, "file", "sub")), "sub/file")
		}},
		{"search in files", func() {
			directory := dag.Directory().WithNewFile("a", "one\ntwo\n").WithNewFile("b", "three\n")
			found := must(directory.Search(ctx, "^t"))
			equal(len(found), 2)
			equal(must(found[0].FilePath(ctx)), "a")
			equal(must(found[0].LineNumber(ctx)), 2)
			insensitive := dagger.FileSearchOpts{Insensitive: true}
			equal(len(must(directory.File("a").Search(ctx, "TWO", insensitive))), 1)
		}},
		{"variables of a file", func() {
			variables := dag.EnvFile().WithVariable("A", "1").WithVariable("B", "$A-2")
			equal(must(variables.Get(ctx, "B")), "1-2")
			container := debian().WithEnvFileVariables(variables)
			equal(must(container.WithExec([]string{"sh", "-c", "echo $B"}).Stdout(ctx)), "1-2\n")
			file := dag.Directory().WithNewFile(".env", "APP_NAME='x y'\nexport OTHER=z\n").File(".env").AsEnvFile()
			var found []string
			for _, variable := range must(file.Variables(ctx)) {
				found = append(found, must(variable.Name(ctx))+"="+must(variable.Value(ctx)))
			}
			equal(found, []string{"APP_NAME=x y", "OTHER=z"})
			equal(must(file.Namespace("app").Get(ctx, "NAME")), "x y")
		}},
		{"json values", func() {
			value := dag.JSON().WithContents(`{"a":{"b":[1]}}`)
			equal(must(value.Field([]string{"a", "b"}).Contents(ctx)), "[1]")
			more := value.WithField([]string{"a", "c"}, dag.JSON().NewString("text"))
			equal(must(more.Field([]string{"a", "c"}).AsString(ctx)), "text")
			equal(must(more.Field([]string{"a"}).Fields(ctx)), []string{"b", "c"})
			read := dag.Directory().WithNewFile("j", `{"n": 7}`).File("j").AsJSON()
			equal(must(read.Field([]string{"n"}).AsInteger(ctx)), 7)
		}},
		{"changes between directories", func() {
			older := dag.Directory().WithNewFile("edited", "one\ntwo\n").WithNewFile("gone", "g\n")
			newer := older.WithNewFile("edited", "one\n2\n").WithoutFile("gone").WithNewFile("new", "n\n")
			changes := newer.Changes(older)
			equal(must(changes.AddedPaths(ctx)), []string{"new"})
			equal(must(changes.ModifiedPaths(ctx)), []string{"edited"})
			equal(must(changes.RemovedPaths(ctx)), []string{"gone"})
			equal(must(changes.Layer().Entries(ctx)), []string{"edited", "new"})
			var paths []string
			for _, stat := range must(changes.DiffStats(ctx)) {
				paths = append(paths, must(stat.Path(ctx)))
			}
			equal(paths, []string{"edited", "gone", "new"})
			holds(!must(changes.IsEmpty(ctx)), "it is not empty")
			holds(must(older.Changes(older).IsEmpty(ctx)), "it is empty")
			equal(must(older.WithChanges(changes).Entries(ctx)), []string{"edited", "new"})
		}},
		{"patches", func() {
			expected := strings.Replace(before, "two", "2", 1)
			patch := replaced("two", "2").AsPatch()
			text := must(patch.Contents(ctx))
			holds(strings.Contains(text, "-two\n+2\n"), text)
			equal(must(numbers(before).WithPatch(text).File("numbers").Contents(ctx)), expected)
			equal(must(numbers(before).WithPatchFile(patch).File("numbers").Contents(ctx)), expected)
			refused(numbers("other\n").WithPatch(text).Sync(ctx))
		}},
		{"merged changes", func() {
			ours, against := replaced("two", "2"), replaced("two", "II")
			merged := ours.WithChangeset(replaced("seven", "7")).After().File("numbers")
			equal(must(merged.Contents(ctx)), strings.NewReplacer("two", "2", "seven", "7").Replace(before))
			refused(ours.WithChangeset(against).Sync(ctx))
			theirs := dagger.ChangesetWithChangesetOpts{OnConflict: dagger.ChangesetMergeConflictPreferTheirs}
			settled := ours.WithChangeset(against, theirs).After().File("numbers")
			equal(must(settled.Contents(ctx)), strings.Replace(before, "two", "II", 1))
		}},
		{"changes written to the host", func() {
			inFolder(func(folder string) {
				write(folder, "gone", "g")
				write(folder, "kept", "k")
				older := dag.Host().Directory(folder)
				must(older.WithoutFile("gone").WithNewFile("new", "n").Changes(older).Export(ctx, folder))
				var names []string
				for _, entry := range must(os.ReadDir(folder)) {
					names = append(names, entry.Name())
				}
				equal(names, []string{"kept", "new"})
			})
		}},
		{"history of a repository", func() {
			inFolder(func(folder string) {
				repository(folder)
				remote := dag.Git("file://" + folder)
				branches := without("refs/heads/", must(remote.Branches(ctx)))
				slices.Sort(branches)
				equal(branches, []string{"main", "side"})
				equal(must(remote.LatestVersion().Ref(ctx)), "refs/tags/v1.2.0")
				base := remote.Branch("side").CommonAncestor(remote.Branch("main"))
				equal(must(base.Commit(ctx)), must(remote.Tag("v1.2.0").Commit(ctx)))
			})
		}},
		{"what is not committed", func() {
			inFolder(func(folder string) {
				repository(folder)
				write(folder, "a.txt", "changed\n")
				write(folder, "new.txt", "new\n")
				changes := dag.Host().Directory(folder).AsGit().Uncommitted()
				equal(must(changes.ModifiedPaths(ctx)), []string{"a.txt"})
				equal(must(changes.AddedPaths(ctx)), []string{"new.txt"})
				equal(must(changes.After().File("a.txt").Contents(ctx)), "changed\n")
				patch := must(changes.AsPatch().Contents(ctx))
				holds(strings.Contains(patch, "-one\n+changed\n"), patch)
			})
		}},
		{"addresses", func() {
			inFolder(func(folder string) {
				write(folder, "file", "at an address")
				equal(must(dag.Address(folder).Directory().Entries(ctx)), []string{"file"})
				equal(must(dag.Address(folder+"/file").File().Contents(ctx)), "at an address")
				equal(must(dag.Address("file://"+folder+"/file").Secret().Plaintext(ctx)), "at an address")
			})
			equal(must(dag.Address("deb://bookworm").Container().WithExec([]string{"echo", "x"}).Stdout(ctx)), "x\n")
		}},
		{"errors as values", func() {
			failure := dag.Error("it is said").WithValue("code", "7")
			equal(must(failure.Message(ctx)), "it is said")
			values := must(failure.Values(ctx))
			equal(len(values), 1)
			equal(must(values[0].Name(ctx)), "code")
			equal(must(values[0].Value(ctx)), "7")
			said := refused(dag.Container().WithError("not this way").Sync(ctx))
			holds(strings.Contains(said, "not this way"), said)
		}},
		{"health check", func() {
			options := dagger.ContainerWithDockerHealthcheckOpts{Interval: "1m", Retries: 3}
			check := dag.Container().WithDockerHealthcheck([]string{"probe", "it"}, options).DockerHealthcheck()
			equal(must(check.Args(ctx)), []string{"probe", "it"})
			equal(must(check.Interval(ctx)), "1m0s")
			equal(must(check.Retries(ctx)), 3)
		}},
		{"edited files", func() {
			directory := dag.Directory().WithNewFile("a.txt", "one two one").WithNewFile("b.log", "")
			all := dagger.FileWithReplacedOpts{All: true}
			equal(must(directory.File("a.txt").WithReplaced("one", "1", all).Contents(ctx)), "1 two 1")
			noLogs := dagger.DirectoryFilterOpts{Exclude: []string{"*.log"}}
			equal(must(directory.Filter(noLogs).Entries(ctx)), []string{"a.txt"})
			equal(must(directory.WithSymlink("a.txt", "link").File("link").Contents(ctx)), "one two one")
			owner := dagger.ContainerWithDirectoryOpts{Owner: "1"}
			owned := debian().WithDirectory("/d", directory.Chown("a.txt", "7:8"), owner)
			equal(must(owned.WithExec([]string{"stat", "-c", "%u", "/d/b.log"}).Stdout(ctx)), "1\n")
		}},
		{"checked file of a web server", func() {
			webServer(func(address string) {
				digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("from the web")))
				file := dag.HTTP(address+"/page.txt", dagger.HTTPOpts{Name: "other", Permissions: 0o644, Checksum: digest})
				equal(must(file.Name(ctx)), "other")
				equal(must(file.Contents(ctx)), "from the web")
				wrong := dagger.HTTPOpts{Checksum: "sha256:" + strings.Repeat("0", 64)}
				said := refused(dag.HTTP(address+"/page.txt", wrong).Contents(ctx))
				holds(strings.Contains(said, "http checksum mismatch"), said)
			})
		}},
	}...)
}
