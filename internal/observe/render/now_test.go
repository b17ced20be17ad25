package render_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// TestNowOfAChildRun: of a step that runs another playbook the line has that run, and what holds it.
func TestNowOfAChildRun(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	step := runs.Step{Step: "import", Child: "nightly/import#1!1", StartedAt: now.Add(-time.Minute), Item: runs.Item{Status: interpreter.Running, Attempt: 1}}
	status := &runs.Status{At: now, Steps: []runs.Step{step}}
	require.Equal(t, "import: runs nightly/import#1!1", render.NowText(status))
	status.Steps[0].Held = []runs.ChildWait{{Run: step.Child, Step: "fetch", Visit: 1, Item: runs.Item{
		Status: interpreter.RetryPending, Attempt: 1, MaxAttempts: 10, NextRetryAt: now.Add(5 * time.Minute),
	}}}
	require.Equal(t, "import: runs nightly/import#1!1, fetch retry_pending, attempt 2 of 10, in 5m00s", render.NowText(status))
}
