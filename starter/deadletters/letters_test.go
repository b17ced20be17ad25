package deadletters

import (
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/deadletter"
	"reprise/interpreter"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/expression"
)

// TestLettersFit: a narrow terminal shows every ID, element and error, and as many other columns as there is room for;
// a pipe gets all of it.
func TestLettersFit(t *testing.T) {
	t.Parallel()

	letter := sink.DeadLetter{
		LastAttemptAt: time.Date(2026, 3, 1, 8, 0, 0, 0, time.Local), Attempts: 3,
		Element: expression.Of(map[string]any{"id": strings.Repeat("p", 60)}),
		Error:   &interpreter.ErrorObject{Class: interpreter.ClassRateLimited, Message: "HTTP 429 from GET http://127.0.0.1:8088/api/v1/patients/p13"},
	}
	letters := []deadletter.Letter{
		{ID: "patient_medications-7x2k/fetch#1/13", DeadLetter: letter, State: "open", FailedRuns: 1},
		{ID: "b/fetch#1/1", DeadLetter: letter, State: "resolved"},
	}
	columns := map[int]int{}

	for width := leastTableWidth; width < 240; width += 5 {
		rendered := lettersTable(letters, terminal.Paper{Width: width})
		require.LessOrEqual(t, text.LongestLineLen(rendered), width)
		ids := ""
		for _, line := range strings.Split(rendered, "\n")[3:] {
			if cells := strings.Split(line, "│"); len(cells) > 1 {
				ids += strings.TrimSpace(cells[1])
			}
		}
		require.Equal(t, letters[0].ID+letters[1].ID, ids, "%d columns", width)
		columns[width] = strings.Count(strings.SplitN(rendered, "\n", 3)[1], "│") - 1
		require.GreaterOrEqual(t, columns[width], columns[width-5], "%d columns", width)
	}
	require.Equal(t, 3, columns[leastTableWidth])
	narrow := lettersTable(letters, terminal.Paper{Width: 40})
	require.LessOrEqual(t, text.LongestLineLen(narrow), 40)
	for _, want := range []string{letters[0].ID, "  element:\n    {\"id\":\"ppp", "error: HTTP 429 from GET\n", "http://127.0.0.1:8088", "open, rate_limited after 3 attempts"} {
		require.Contains(t, narrow, want)
	}
	require.Equal(t, 4, columns[90])
	require.Equal(t, 8, columns[200])
	whole := lettersTable(letters, terminal.Paper{Width: terminal.Unbounded})
	require.Contains(t, whole, letter.Error.Message)
	require.Contains(t, whole, strings.Repeat("p", 60))
}
