package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestUses: a run on a task queue, or with a tool, that a connection does not name ends at its first attempt, whatever the policies say.
func TestUses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resources.TaskQueue = w.queue
	w.connected["ours"] = `{"url": "` + w.api.URL() + `", "uses": {"tools": ["http"], "task_queues": ["` + w.queue + `"]}}`
	w.connected["theirs"] = `{"url": "` + w.api.URL() + `", "uses": {"task_queues": ["nightly"]}}`
	w.connected["rows"] = `{"url": "` + w.api.URL() + `", "uses": {"tools": ["postgres"]}}`
	w.work()
	const step = `
  - step: call
    tool: http
    auth: AUTH
    url: /echo
    retry: [{when: "error is defined", then: {max_attempts: 5, delay: 10ms}}]
`
	w.completes(book(strings.Replace(step, "AUTH", "ours", 1)), nil)
	for auth, says := range map[string]string{
		"theirs": `connection "theirs" may be used on task queues nightly, and this worker polls ` + w.queue + `: its uses.task_queues decides`,
		"rows":   `connection "rows" may be used by postgres, and not by http: its uses.tools decides`,
	} {
		result := w.ends("failed", book(strings.Replace(step, "AUTH", auth, 1)), nil)
		require.Equal(t, says, result.Error.Message)
		require.Equal(t, []any{interpreter.KindTool, interpreter.ClassFinal, "connection_denied", 1}, []any{result.Error.Kind, result.Error.Class, result.Error.Type, result.Error.Attempt})
	}
}
