package answer

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/test/samples"
	"reprise/interpreter"
)

// TestGoldenAwaiting: what a run awaits, with the commands that answer.
func TestGoldenAwaiting(t *testing.T) {
	t.Parallel()
	now, three := samples.LocalBegan.Add(time.Hour), 3
	webhook, approval := samples.AwaitedSamples(now)
	item := func(awaits *interpreter.AwaitedDetails) runs.Item {
		return runs.Item{Status: interpreter.Awaiting, Attempt: awaits.Attempt, HeldBy: runs.HeldByAnswer, Waiting: "awaits an answer", Awaits: awaits}
	}
	var out bytes.Buffer
	render.PrintStatus(&terminal.Screen{To: &out}, &runs.Status{
		Found: runs.Found{WorkflowID: "imports-7x2k", Playbook: "imports", Status: interpreter.Awaiting, StartedAt: samples.LocalBegan, Since: now.Add(-time.Hour)}, At: now,
		Steps: []runs.Step{
			{Step: "import", Visit: 1, StartedAt: samples.LocalBegan, Item: item(webhook)},
			{Step: "ask", Visit: 2, StartedAt: samples.LocalBegan, Item: item(approval)},
			{
				Step: "each", Visit: 1, StartedAt: samples.LocalBegan, Item: runs.Item{Status: interpreter.Running},
				Loop:       &runs.Counts{Total: 9, Success: 1, Running: 8, Awaiting: 2, Asks: true},
				Iterations: []runs.Iteration{{Index: 3, Item: item(webhook)}, {Index: 4, Item: item(approval)}},
			},
			{
				Step: "all", Visit: 1, StartedAt: samples.LocalBegan, Item: runs.Item{Status: interpreter.Running},
				Loop: &runs.Counts{Total: 900, Running: 900, Asks: true},
			},
		},
	}, terminal.Paper{Width: 80})
	samples.Golden(t, "status/awaiting_80", strings.NewReplacer(terminal.ProgramName()+" ", "starter ").Replace(out.String()))
	for line := range strings.Lines(out.String()) {
		if !strings.Contains(line, terminal.ProgramName()+" ") { // a command is one piece
			require.LessOrEqual(t, text.StringWidth(strings.TrimRight(line, "\n")), 80, line)
		}
	}

	out.Reset()
	for _, asked := range []runs.AwaitedAttempt{{Step: "import", Visit: 1, AwaitedDetails: *webhook}, {Step: "ask", Visit: 2, Index: &three, AwaitedDetails: *approval}} {
		var b strings.Builder
		doc := AnswerDocument{WorkflowID: "imports-7x2k", Awaits: []runs.AwaitedAttempt{asked}}
		writeAwaited(&b, doc, 2, 80, now)
		out.WriteString(b.String())
	}
	many := make([]runs.AwaitedAttempt, 13)
	for i := range many {
		many[i] = runs.AwaitedAttempt{Step: "import", Visit: 1, Index: &i, AwaitedDetails: *webhook}
	}
	var b strings.Builder
	writeAwaited(&b, AnswerDocument{WorkflowID: "imports-7x2k", Awaits: many}, 0, 80, now)
	require.Contains(t, b.String(), "import[9]")
	require.Contains(t, b.String(), "  and 3 more\n")
	require.NotContains(t, b.String(), "import[10]")
	samples.Golden(t, "status/asked_80", strings.NewReplacer(terminal.ProgramName()+" ", "starter ").Replace(terminal.EscapeInvisible(out.String())))
}
