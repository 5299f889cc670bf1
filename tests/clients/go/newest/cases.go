// Cases for what only newer versions of the library have.
package main

import (
	"strings"
)

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
		}},
		{"search in files", func() {
			directory := dag.Directory().WithNewFile("a", "one\ntwo\n").WithNewFile("b", "three\n")
			found := must(directory.Search(ctx, "^t"))
			equal(len(found), 2)
			equal(must(found[0].FilePath(ctx)), "a")
			equal(must(found[0].LineNumber(ctx)), 2)
		}},
		{"variables of a file", func() {
			variables := dag.EnvFile().WithVariable("A", "1").WithVariable("B", "$A-2")
			equal(must(variables.Get(ctx, "B")), "1-2")
		}},
	}...)
}
