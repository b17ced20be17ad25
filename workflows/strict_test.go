package workflows_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// someFail is a loop of 20 of which one fails: enough for `completed`.
const someFail = `
  - step: fetch
    tool: http
    url: "http://x/{{ item }}"
    loop: {collection: "{{ 1..20 }}", element: item}
`

func failsFor(element string) play {
	return func(_ int, in interpreter.ToolInput) (any, error) {
		if in.Fields["url"].Data == "http://x/"+element {
			return nil, unavailable()
		}
		return map[string]any{"ok": true}, nil
	}
}

// TestFailedItemsAreNeverSilent: a loop that is good enough is completed, and
// the result says how many failed; strict makes that a partial success.
func TestFailedItemsAreNeverSilent(t *testing.T) {
	t.Parallel()
	const figures = "step fetch: 1 of 20 iterations failed (5%); the first (index 6): HTTP 503"
	handled := someFail + `    next: [{when: "{{ error is defined }}", step: after}, {step: after}]
  - step: after
`
	for name, test := range map[string]struct {
		steps        string
		head         string
		asked        bool
		fails        string
		status, step string
		warnings     []string
	}{
		"good enough":         {steps: someFail, fails: "7", status: "completed", step: "completed", warnings: []string{figures}},
		"nothing failed":      {steps: someFail, fails: "x", status: "completed", step: "completed"},
		"strict, and nothing": {steps: someFail, fails: "x", asked: true, status: "completed", step: "completed"},
		"strict run": {
			steps: someFail, fails: "7", asked: true, status: "partial_success", step: "completed", warnings: []string{figures},
		},
		"strict playbook": {
			steps: someFail, head: "strict: true\n", fails: "7", status: "partial_success", step: "completed",
			warnings: []string{figures},
		},
		"with steps behind it": {
			steps: handled, fails: "7", asked: true, status: "partial_success", step: "completed", warnings: []string{figures},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, failsFor(test.fails))
			s.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, protocol.Input{
				Name: "test.yaml", Strict: test.asked,
				Source: "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: test}\n" + test.head + "workflow:" + test.steps,
			})
			require.NoError(t, s.env.GetWorkflowError())
			var result protocol.Result
			require.NoError(t, s.env.GetWorkflowResult(&result))
			require.EqualValues(t, test.status, result.Status)
			require.EqualValues(t, test.step, result.Steps[0].Status)
			require.Equal(t, test.warnings, result.Warnings)
		})
	}
}

// TestAFailedLoopReportsItsFigures: also where its sink fails, whose error takes the place
// of the loop's.
func TestAFailedLoopReportsItsFigures(t *testing.T) {
	t.Parallel()
	s := newStage(t, failsFor("7"))
	s.refuses = func(int, interpreter.ToolInput) error { return unavailable() }
	result, _ := s.run(`
  - step: fetch
    tool: http
    url: "http://x/{{ item }}"
    loop: {collection: [7, 7, 1], element: item}
    sink: {tool: http, url: "http://x/7"}
`)
	require.EqualValues(t, "failed", result.Status)
	require.EqualValues(t, "sink", result.Error.Kind)
	require.Equal(t, []string{"step fetch: 2 of 3 iterations failed (66.7%); the first (index 0): HTTP 503"}, result.Warnings)
}

// TestEveryLoopReportsItsFailures: also one that is a partial success.
func TestEveryLoopReportsItsFailures(t *testing.T) {
	t.Parallel()
	for codes, want := range map[string]string{
		"[1, 7]":    "step fetch: 1 of 2 iterations failed (50%)",
		"[1, 2, 7]": "step fetch: 1 of 3 iterations failed (33.3%)",
	} {
		s := newStage(t, failsFor("7"))
		result, _ := s.run(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "http://x/{{ item }}"
    loop: {collection: %s, element: item}
`, codes))
		require.EqualValues(t, "partial_success", result.Status)
		require.Len(t, result.Warnings, 1)
		require.Contains(t, result.Warnings[0], want)
	}
}
