package call_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

// TestLapsTellRunsApart: whatever has started runs of one call, no two have the same.
func TestLapsTellRunsApart(t *testing.T) {
	t.Parallel()
	origin := interpreter.RunInfo{RunID: "r"}
	again := func(run interpreter.RunInfo, round int) interpreter.RunInfo {
		run.Round = round
		return run
	}
	below := func(run interpreter.RunInfo, attempt int) interpreter.RunInfo {
		return interpreter.RunInfo{Key: "k", Lap: run.ChildLap(attempt)}
	}
	require.Empty(t, below(origin, 1).Lap)
	require.Empty(t, below(below(origin, 1), 1).Lap)
	seen := map[string]bool{}
	for _, run := range []interpreter.RunInfo{
		below(origin, 2), below(origin, 12), below(below(origin, 1), 2), below(below(origin, 2), 1), below(below(origin, 2), 2),
		below(again(origin, 1), 1), below(again(origin, 1), 2), below(again(origin, 2), 1), below(again(origin, 12), 1),
		below(below(again(origin, 1), 1), 1), below(again(below(origin, 1), 1), 3), below(again(below(origin, 2), 1), 1),
	} {
		if run.Lap == "a2" { // two calls have it, of different keys
			continue
		}
		require.False(t, seen[run.Lap], run.Lap)
		seen[run.Lap] = true
	}
}

const printed = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workload: {n: 1}
workflow:
  - step: fetch
    tool: http
    url: "http://localhost/{{ n }}"
    # a remark
    headers: {X-Key: "{{ attempt_key }}", X-At: "{{ now() }}"}

    next: other
  - {step: other, tool: http, url: "http://localhost/other"}
output: "{{ fetch }}"
`

// TestPrint: what a call asks for, and what its step says, and neither keys nor remarks.
func TestPrint(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	print := func(source, step string, run interpreter.RunInfo, n any, at time.Time) string {
		task := call.Task{Name: "test.yaml", Source: source, Run: run, Step: step, Visit: 1, Data: interpreter.Data{
			Workload: expression.Of(map[string]any{"n": n}),
		}}
		book, found, err := task.LoadStep()
		require.NoError(t, err)
		return task.BuildCall(book, found, call.Snapshot{}, nil).Config().RequestDigest(at)
	}
	first := print(printed, "fetch", interpreter.RunInfo{RunID: "a"}, 1, at)
	require.NotEmpty(t, first)
	require.Equal(t, first, print(printed, "fetch", interpreter.RunInfo{RunID: "b", Round: 2}, 1, at))
	require.NotEqual(t, first, print(printed, "fetch", interpreter.RunInfo{RunID: "a"}, 2, at))
	require.NotEqual(t, first, print(printed, "fetch", interpreter.RunInfo{RunID: "a"}, 1, at.Add(time.Second)))
	require.NotEqual(t, first, print(printed, "other", interpreter.RunInfo{RunID: "a"}, 1, at))
	for name, test := range map[string]struct {
		old, new string
		same     bool
	}{
		"a remark":             {"# a remark", "# another one", true},
		"another step":         {`localhost/other"`, `localhost/elsewhere"`, true},
		"what is behind it":    {`output: "{{ fetch }}"`, `output: "{{ other }}"`, true},
		"a policy is added":    {"    next: other", "    retry: [{when: \"{{ error is defined }}\", then: {max_attempts: 2}}]\n    next: other", false},
		"where it goes on":     {"    next: other", "    next: [other]", false},
		"another value of now": {"{{ now() }}", "{{ now() | lower }}", false},
	} {
		changed := print(replaced(t, printed, test.old, test.new), "fetch", interpreter.RunInfo{RunID: "a"}, 1, at)
		require.Equal(t, test.same, first == changed, name)
	}
}

// TestReadsOnly: what makes another attempt go on where the one before failed.
func TestReadsOnly(t *testing.T) {
	t.Parallel()
	for steps, want := range map[string]bool{
		`{step: a, tool: http, url: "http://localhost"}`:                                        true,
		`{step: a, tool: http, method: head, url: "http://localhost"}`:                          true,
		`{step: a, tool: http, method: POST, url: "http://localhost"}`:                          false,
		`{step: a, tool: http, method: "{{ workload.m }}", url: "http://localhost"}`:            false,
		`{step: a, tool: http, url: "http://localhost", sink: {tool: file, path: a.jsonl}}`:     false,
		`{step: a, tool: python, code: "def main(): return 1"}`:                                 false,
		`{step: a, tool: playbook, workflow: [{step: b, tool: http, url: "http://localhost"}]}`: true,
		`{step: a, tool: playbook, workflow: [{step: b, tool: approval, message: "go?"}]}`:      false,
		`{step: a, tool: playbook, name: other}`:                                                false,
	} {
		book, err := interpreter.LoadPlaybook("test.yaml", "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: test}\nworkload: {m: GET}\nworkflow:\n  - "+steps+"\n")
		require.NoError(t, err, steps)
		require.Equal(t, want, call.IsReadOnly(book, book.Steps[0]), steps)
	}
}

// TestRecalledMerge: what later runs have counts, and what only earlier ones have too.
func TestRecalledMerge(t *testing.T) {
	t.Parallel()
	earlier := func(step, from string) interpreter.EarlierStep {
		return interpreter.EarlierStep{Step: step, Visit: 1, From: from}
	}
	var found interpreter.EarlierAnswers
	found.AddEarlier("second", interpreter.EarlierWork{
		Run: interpreter.RunInfo{RunID: "1"}, Steps: []interpreter.EarlierStep{earlier("a", "second")},
		Loops: []interpreter.EarlierLoop{{Step: "l", Visit: 1, Runs: []string{"second/l#1"}}},
	})
	found.AddEarlier("first", interpreter.EarlierWork{
		Run: interpreter.RunInfo{RunID: "0"}, Steps: []interpreter.EarlierStep{earlier("a", "first"), earlier("b", "first")}, Wrote: true,
		Loops: []interpreter.EarlierLoop{{Step: "l", Visit: 1, Runs: []string{"first/l#1"}}},
	})
	require.Equal(t, interpreter.EarlierAnswers{
		EarlierWork: interpreter.EarlierWork{
			Run: interpreter.RunInfo{RunID: "1"}, Steps: []interpreter.EarlierStep{earlier("a", "second"), earlier("b", "first")}, Wrote: true,
			Loops: []interpreter.EarlierLoop{{Step: "l", Visit: 1, Runs: []string{"second/l#1", "first/l#1"}}},
		},
		From: []string{"second", "first"},
	}, found)
}

// TestEarlierWorkWithinBytes: the largest results are left out first, and named.
func TestEarlierWorkWithinBytes(t *testing.T) {
	t.Parallel()
	step := func(name string, bytes int) interpreter.EarlierStep {
		return interpreter.EarlierStep{Step: name, Result: interpreter.CallResult{Data: expression.Of(strings.Repeat("x", bytes))}}
	}
	work := interpreter.EarlierWork{Steps: []interpreter.EarlierStep{step("a", 500), step("b", 3000), step("c", 400), step("d", 2000)}, Left: []string{"z"}}
	within := work.WithinBytes(3000)
	require.Equal(t, []string{"z", "b", "d"}, within.Left)
	require.Equal(t, []interpreter.EarlierStep{step("a", 500), step("c", 400)}, within.Steps)
	require.Len(t, work.Steps, 4)
	require.Equal(t, []string{"z"}, work.Left)
}

func replaced(t *testing.T, text, old, with string) string {
	t.Helper()
	require.Contains(t, text, old)
	return strings.Replace(text, old, with, 1)
}
