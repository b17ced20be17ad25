package call_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
)

// TestWhatNoticesSay: of itself a notice tells what has happened and to whom, and
// nothing of what answers and results hold; its expressions see all of it.
func TestWhatNoticesSay(t *testing.T) {
	t.Parallel()
	book := tables.DecodeBody(t, `
notify:
  - {on: failed, url: http://team}
  - {on: failed, url: http://team, body: "{{ event.step }} {{ event.visit }} {{ event.reason }} {{ event.at }} {{ event.error.body.why }} {{ status }}"}
workflow: [{step: fetch, tool: http, url: http://x, on_failure: {url: http://team}}]
`)
	at := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	run := interpreter.RunInfo{WorkflowID: "nightly-1", RunID: "r", Playbook: "nightly"}
	index := 7
	failure := &interpreter.ErrorObject{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Status: 503, Message: "HTTP 503",
		Body: expression.Of(map[string]any{"why": "asleep"}), Collected: expression.Of([]any{1, 2}),
	}
	short := map[string]any{"kind": "http", "class": "retryable", "status": 503, "message": "HTTP 503"}
	notices := book.Notices("failed")
	require.Len(t, notices, 2)
	require.Equal(t, "run.notify.1.failed", notices[0].Place)
	for name, test := range map[string]struct {
		notice int
		news   call.News
		writes any
	}{
		"little": {
			0,
			call.News{Event: "completed", At: at, Status: "completed"},
			map[string]any{"run": "nightly-1", "playbook": "nightly", "event": "completed", "at": "2026-03-01T02:00:00Z", "status": "completed"},
		},
		"all": {
			0,
			call.News{
				Event: "paused", At: at, Step: "fetch", Visit: 2, Index: &index, Status: "retry_pending", Attempts: 3, Error: failure,
				Reason: "why", By: "ann",
			},
			map[string]any{
				"run": "nightly-1", "playbook": "nightly", "event": "paused", "at": "2026-03-01T02:00:00Z", "step": "fetch", "visit": 2,
				"index": 7, "status": "retry_pending", "attempts": 3, "error": short, "reason": "why", "by": "ann",
			},
		},
		"as the author says": {
			1,
			call.News{Event: "failed", At: at, Step: "fetch", Visit: 1, Status: "failed", Error: failure},
			"fetch 1  2026-03-01T02:00:00Z asleep failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := call.NewNotice(call.Config{
				Source: request.Source{Book: book, Run: run, Scope: interpreter.NewScope(book, run, interpreter.Data{})},
			}, notices[test.notice], 1, test.news, "the result")
			input := call.Next(at).Input
			require.Equal(t, notices[test.notice].Place, input.Place)
			require.Equal(t, input.OperationKey, input.IdempotencyKey)
			if body, found := input.Fields["body"]; found {
				require.Equal(t, test.writes, body.Data)
				return
			}
			require.Equal(t, test.writes, input.Result.Data)
		})
	}
}
