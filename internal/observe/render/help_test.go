package render_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/test/samples"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// TestGoldenPaused: what is held, by whom and why, and what would let it go on.
func TestGoldenPaused(t *testing.T) {
	t.Parallel()
	at := samples.LocalBegan.Add(90 * time.Second)
	said := interpreter.Said{By: "ada@clinic", Reason: "the API is down: \x1b[31mincident 7", At: samples.LocalBegan.Add(time.Minute)}
	status := func(control interpreter.Control, steps ...runs.Step) string {
		var out bytes.Buffer
		found := runs.Found{WorkflowID: "patients-7x2k", Playbook: "patients", Status: interpreter.Paused, StartedAt: samples.LocalBegan, Since: said.At}
		if !control.AnyPaused() {
			found.Status = interpreter.RetryPending
		}
		render.PrintStatus(&terminal.Screen{To: &out}, &runs.Status{
			Found: found,
			At:    at, Steps: steps, Control: control,
		}, terminal.Paper{Width: 80})
		return out.String()
	}
	paused := runs.Item{Status: interpreter.Paused, HeldBy: runs.HeldByPause, Waiting: "paused", Attempt: 2}
	person := runs.Item{
		Status: interpreter.RetryPending, HeldBy: runs.HeldByPerson, Waiting: "needs a person: HTTP 503", Attempt: 1, Error: samples.FailureOf503(),
	}
	loop := runs.Counts{Total: 9, Success: 2, Waiting: 3, Pending: 4}
	texts := []string{
		status(interpreter.Control{Version: 1, Paused: true, Held: map[string]interpreter.Said{"": said}},
			runs.Step{Step: "call", Visit: 1, StartedAt: samples.LocalBegan, Item: paused},
			runs.Step{Step: "fetch", Visit: 1, StartedAt: samples.LocalBegan, Item: paused, Loop: &loop}),
		status(interpreter.Control{Version: 2, Steps: []string{"fetch"}, Held: map[string]interpreter.Said{"fetch": said}},
			runs.Step{Step: "fetch", Visit: 1, StartedAt: samples.LocalBegan, Item: paused, Loop: &loop}),
		status(interpreter.Control{}, runs.Step{Step: "call", Visit: 1, StartedAt: samples.LocalBegan, Item: person}),
		status(interpreter.Control{},
			runs.Step{
				Step: "fetch", Visit: 1, StartedAt: samples.LocalBegan, Loop: &loop,
				Item:       runs.Item{Status: interpreter.RetryPending, HeldBy: runs.HeldByPerson},
				Iterations: []runs.Iteration{{Index: 4, Item: person}},
			},
			runs.Step{Step: "call", Visit: 1, StartedAt: samples.LocalBegan, Item: person}),
	}
	samples.Golden(t, "status/steered_80", strings.Join(texts, "\n"))
}

// TestHelpOfRuns: the command that helps where nothing of a run itself waits.
func TestHelpOfRuns(t *testing.T) {
	t.Parallel()
	found := runs.Found{WorkflowID: "patients-7x2k", TaskQueue: "night shift", StartedAt: samples.LocalBegan}
	unpolled := found
	unpolled.HeldBy = runs.HeldByNoWorker
	over := found
	over.EndedAt = samples.LocalBegan.Add(time.Minute)
	again := over
	again.WorkflowID, again.Origin = "patients-7x2k/reprocess-01a2-1", "patients-7x2k"
	loop := func(counts runs.Counts) []runs.Step { return []runs.Step{{Step: "fetch", Visit: 1, Loop: &counts}} }
	for _, c := range []struct {
		status runs.Status
		help   []string
	}{
		{runs.Status{Found: unpolled}, []string{"to start one: worker --task-queue 'night shift'"}},
		{runs.Status{Found: over, Steps: loop(runs.Counts{Total: 2, Success: 2})}, nil},
		{runs.Status{Found: over, Steps: loop(runs.Counts{Total: 2, Failed: 1})}, []string{"to see what failed: starter dead-letters list patients-7x2k"}},
		{runs.Status{Found: again, Steps: loop(runs.Counts{Total: 2, Failed: 1})}, []string{"to see what failed: starter dead-letters list patients-7x2k"}},
		{
			runs.Status{Found: over, Steps: loop(runs.Counts{Total: 2, Cancelled: 2})},
			[]string{"to see what failed or was cancelled: starter dead-letters list patients-7x2k --cancelled"},
		},
		{
			runs.Status{Found: over, Steps: []runs.Step{{Step: "below", Item: runs.Item{Error: &interpreter.ErrorObject{
				Kind: interpreter.KindPlaybook, Body: expression.Of(map[string]any{"workflow_id": "patients-7x2k/below#1!1"}),
			}}}}},
			[]string{"to see why a child run failed: starter status 'patients-7x2k/below#1!1'"},
		},
	} {
		help := render.HelpCommands(&c.status)
		for i := range help {
			help[i] = strings.ReplaceAll(help[i], terminal.ProgramName()+" ", "starter ")
		}
		require.Equal(t, c.help, help)
	}
}
