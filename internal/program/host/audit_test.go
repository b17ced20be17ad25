package host_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/internal/base/audit"
	"reprise/internal/base/connect"
	"reprise/internal/base/egress"
	"reprise/internal/base/known"
	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// asks is a playbook that asks a person.
const asks = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: asks}
workload: {note: "Go on?"}
workflow:
  - {step: ask, tool: approval, message: "{{ note }}"}
`

// auditedWorker is a worker with an audit log on a task queue of its own.
type auditedWorker struct {
	t     *testing.T
	env   *testenv.Env
	queue string
	path  string
}

func newAuditedWorker(t *testing.T, resources activities.Resources) *auditedWorker {
	t.Helper()
	w := &auditedWorker{t: t, env: testenv.Temporal(t), path: filepath.Join(t.TempDir(), "audit.log")}
	w.queue = w.env.NewTaskQueue()
	trail, err := audit.Open(w.path, "worker", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, trail.Close()) })
	resources.Audit = trail
	startWorker(t, w.env.Client(), w.queue, resources)
	return w
}

// start starts a run.
func (w *auditedWorker) start(id, source string, workload, memo map[string]any) client.WorkflowRun {
	w.t.Helper()
	run, err := w.env.Client().ExecuteWorkflow(w.t.Context(), client.StartWorkflowOptions{ID: w.queue + "-" + id, TaskQueue: w.queue, Memo: memo},
		protocol.PlaybookWorkflowName, protocol.Input{Name: id, Source: source, Workload: expression.Of(workload)})
	require.NoError(w.t, err)
	return run
}

// send sends an update of a person.
func (w *auditedWorker) send(run client.WorkflowRun, update string, arg any) error {
	w.t.Helper()
	return connect.SendUpdate(w.t.Context(), w.env.Client(), client.UpdateWorkflowOptions{
		WorkflowID: run.GetID(), UpdateName: update, Args: []any{arg}, WaitForStage: client.WorkflowUpdateStageCompleted,
	}, nil)
}

// lines are the lines of the log about a run, as "actor (proof) action step: outcome type".
func (w *auditedWorker) lines(run client.WorkflowRun) []string {
	w.t.Helper()
	text, err := os.ReadFile(w.path)
	require.NoError(w.t, err)
	_, err = audit.Verify(strings.NewReader(string(text)), "")
	require.NoError(w.t, err)
	var lines []string
	for one := range strings.Lines(string(text)) {
		var line audit.LoggedAction
		require.NoError(w.t, json.Unmarshal([]byte(one), &line))
		if line.Target.Run == run.GetID() {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s (%s) %s %s: %s %s", line.Actor, line.Proof, line.Action, line.Target.Step, line.Outcome, line.Type)))
		}
	}
	return lines
}

// TestSteeringIsAudited: by whom a run was started, steered, answered and cancelled, as they say of themselves, and nothing of what
// the run is about.
func TestSteeringIsAudited(t *testing.T) {
	t.Parallel()
	w := newAuditedWorker(t, activities.Resources{})
	run := w.start("steered", asks, map[string]any{"note": "a value of the run"}, map[string]any{protocol.StartedByMemo: "ada"})
	require.NoError(t, w.send(run, protocol.PauseUpdate, protocol.CommandInput{By: "bob", Reason: "a reason"}))
	require.NoError(t, w.send(run, protocol.ResumeUpdate, protocol.CommandInput{}))
	require.Error(t, w.send(run, protocol.SkipUpdate, protocol.CommandInput{By: "bob", Step: "absent"}))
	w.answer(run)
	_, err := ending.WaitForResult(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, []string{
		"ada (claimed) start : begun", "bob (claimed) pause : accepted", "(none) resume : accepted", "bob (claimed) skip absent: refused",
		"eve (claimed) answer ask: accepted",
	}, w.lines(run))

	cancelled := w.start("cancelled", asks, nil, map[string]any{protocol.RequestMemo: map[string]string{"caller": "ci"}})
	require.NoError(t, w.send(cancelled, protocol.PauseUpdate, protocol.CommandInput{}))
	require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), cancelled.GetID(), ""))
	_, _ = ending.WaitForResult(t.Context(), cancelled)
	require.Equal(t, []string{"ci (claimed) start : begun", "(none) pause : accepted", "(none) cancel : accepted"}, w.lines(cancelled))
	text, err := os.ReadFile(w.path)
	require.NoError(t, err)
	for _, hidden := range []string{"a value of the run", "a reason", "approve"} {
		require.NotContains(t, string(text), hidden)
	}
}

// answer approves the question of a run, once it is asked.
func (w *auditedWorker) answer(run client.WorkflowRun) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		return w.send(run, protocol.AnswerUpdate, interpreter.Answer{
			AnswerTo: interpreter.AnswerTo{Step: "ask"}, Verb: interpreter.AnswerComplete, Option: "approve", By: "eve", ID: run.GetRunID(),
		}) == nil
	}, testenv.Within(time.Minute), 50*time.Millisecond)
}

// TestWorkersRefuseWhatTheyCannotLog: commands and answers are rejected and change nothing, and runs do not begin, until the log can
// be written again.
func TestWorkersRefuseWhatTheyCannotLog(t *testing.T) {
	t.Parallel()
	w := newAuditedWorker(t, activities.Resources{})
	open := w.start("open", asks, nil, nil)
	require.NoError(t, w.send(open, protocol.ResumeUpdate, protocol.CommandInput{}))
	require.NoError(t, os.Rename(w.path, w.path+".away"))
	require.ErrorContains(t, w.send(open, protocol.PauseUpdate, protocol.CommandInput{By: "bob"}), "the worker refuses what it cannot log: the audit log cannot be written")
	waits := w.start("waits", asks, nil, nil)
	require.Eventually(t, func() bool {
		history := w.env.Client().GetWorkflowHistory(t.Context(), waits.GetID(), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			require.NoError(t, err)
			if strings.Contains(event.GetWorkflowTaskFailedEventAttributes().GetFailure().GetMessage(), "the run does not begin: the audit log cannot be written") {
				return true
			}
		}
		return false
	}, testenv.Within(time.Minute), 50*time.Millisecond)
	require.NoError(t, os.Rename(w.path+".away", w.path))
	w.answer(waits)
	w.answer(open)
	for _, run := range []client.WorkflowRun{open, waits} {
		result, err := ending.WaitForResult(t.Context(), run)
		require.NoError(t, err)
		require.Equal(t, interpreter.Completed, result.Status)
	}
	require.Equal(t, []string{"(none) start : begun", "(none) resume : accepted", "eve (claimed) answer ask: accepted"}, w.lines(open))
	require.Equal(t, []string{"(none) start : begun", "eve (claimed) answer ask: accepted"}, w.lines(waits))
}

// TestDenialsAreAudited: connections, addresses and playbooks that the operator's rules exclude, without the address.
func TestDenialsAreAudited(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "1") }))
	t.Cleanup(api.Close)
	connections := activities.Connections{"shop": `{"bearer": "a-token-of-some-length-7", "host": "` + api.URL + `", "uses": {"tools": ["postgres"]}}`}
	w := newAuditedWorker(t, activities.Resources{Connections: connections, Egress: egress.RemotePolicy()})
	const head = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: denied}\nworkload: {api: x}\nworkflow:\n  - {step: fetch, tool: http, url: \"{{ api }}\""
	for id, c := range map[string]struct{ field, wanted string }{
		"address":    {"}\n", "(none) attempt fetch: denied egress_denied"},
		"connection": {", auth: shop}\n", "(none) attempt fetch: denied connection_denied"},
	} {
		run := w.start(id, head+c.field, map[string]any{"api": api.URL}, nil)
		result, err := ending.WaitForResult(t.Context(), run)
		require.NoError(t, err)
		require.Equal(t, interpreter.Failed, result.Status)
		lines := w.lines(run)
		require.Len(t, lines, 2, "%v", lines)
		require.Equal(t, c.wanted, lines[1])
	}
	books, err := known.OpenFolder("", "")
	require.NoError(t, err)
	books.Only = true
	only := newAuditedWorker(t, activities.Resources{Known: books})
	run := only.start("unknown", head+"}\n", map[string]any{"api": api.URL}, nil)
	_, _ = ending.WaitForResult(t.Context(), run)
	require.Equal(t, []string{"(none) start : begun", "(none) start : denied unknown_playbook"}, only.lines(run))
	text, err := os.ReadFile(w.path)
	require.NoError(t, err)
	for _, hidden := range []string{"127.0.0.1", "a-token-of-some-length-7", strings.TrimPrefix(api.URL, "http://")} {
		require.NotContains(t, string(text), hidden)
	}
}
