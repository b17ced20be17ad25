package interpreter_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestTimerMarks: the mark of a timer comes back whatever the text before it says, and a summary
// keeps within what the server takes.
func TestTimerMarks(t *testing.T) {
	t.Parallel()
	index := 99_999
	for _, mark := range []interpreter.TimerMark{
		{Call: "fetch", Reason: interpreter.ReasonFailure},
		{Call: "fetch", Index: &index, Reason: interpreter.ReasonTurn},
		{Call: strings.Repeat("n", 64) + ".on_success", Index: &index, Reason: interpreter.ReasonRateLimited},
		{Call: "run.notify.failed", Reason: interpreter.ReasonPoll},
		{Call: "play", Index: &index, Limits: 3},
	} {
		for _, text := range []string{
			"fetch: attempt 2 of 5 after 4s: HTTP 503", "", `python {"call":"other","reason":"turn"}`, `{"call":`, strings.Repeat("x", 1000), "a\nb ü",
		} {
			summary := mark.MarkSummary(text)
			read, marked := interpreter.ParseTimerMark(summary)
			require.True(t, marked, summary)
			require.Equal(t, mark, read)
			require.LessOrEqual(t, len(summary), 400)
		}
	}
	for _, other := range []string{
		"", "timeout of the run", "fetch: attempt 2 of 5 after 4s: HTTP 503", `x {"call":"fetch"}`, `x {"call":"fetch","reason":"no such"}`, `x {"call":`,
	} {
		_, marked := interpreter.ParseTimerMark(other)
		require.False(t, marked, other)
	}
}
