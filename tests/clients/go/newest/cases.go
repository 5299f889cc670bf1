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
	}...)
}
