package call

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/playbook"
)

// TestALongRefusedAnswerIsCutInTheMiddle: the error of an answer that a policy refuses has its beginning and its end.
func TestALongRefusedAnswerIsCutInTheMiddle(t *testing.T) {
	t.Parallel()
	c := &Config{Source: request.Source{Step: &playbook.Step{}}}
	short := map[string]any{"ok": false}
	require.Equal(t, short, c.answerBody(interpreter.Outcome{Data: short}).Data)
	long := c.answerBody(interpreter.Outcome{Data: "begin" + strings.Repeat(" row", 10_000) + " quota exceeded"}).Data.(string)
	require.LessOrEqual(t, len(long), maxFailBody)
	require.True(t, strings.HasPrefix(long, "begin") && strings.HasSuffix(long, "quota exceeded"), long[len(long)-40:])
	require.Equal(t, playbook.Hidden, (&Config{Source: request.Source{Step: &playbook.Step{Secret: true}}}).answerBody(interpreter.Outcome{Data: "secret"}).Data)
}
