package call_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
)

// TestTextsOfRefusalsAreCut passes maxFailMessage and maxFailType: an answer may have them of any length.
func TestTextsOfRefusalsAreCut(t *testing.T) {
	t.Parallel()
	const maxFailMessage, maxFailType, mark = 4 << 10, interpreter.MaxErrorType / 4, 10
	c := &callCase{visit: 1, body: "workflow:\n  - step: get\n    tool: http\n    url: http://x\n    retry:\n" +
		"      - when: \"{{ response.long }}\"\n        then: {fail: \"{{ response.long }}\", type: \"{{ response.long }}\"}\n"}
	machine := c.call(t)
	machine.Next(tables.Started)
	machine.ApplyOutcome(interpreter.Outcome{Data: map[string]any{"long": strings.Repeat("ä", 10_000)}}, tables.Started)
	machine.Next(tables.Started)
	failure := machine.Result().Error
	for text, most := range map[string]int{failure.Message: maxFailMessage, failure.Type: maxFailType} {
		require.LessOrEqual(t, utf8.RuneCountInString(text), most+len("…"))
		require.Greater(t, utf8.RuneCountInString(text), most-mark)
	}
}
