package serve_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

func TestRunOfACaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start("hello/runs", w.ci, `{"name": "Ada"}`, "Idempotency-Key", "monday")
	require.Equal(t, http.StatusAccepted, first.status, string(first.body))
	require.Equal(t, "hello:ci:monday", first.values["workflow_id"])
	require.Equal(t, "/v1/runs/hello:ci:monday", first.header.Get("Location"))
	require.Equal(t, "running", first.values["status"])
	require.NotContains(t, first.values, "result")

	w.work()
	ended := w.start("hello/runs?wait=60s", w.ci, `{"name":"Ada"}`, "Idempotency-Key", "monday")
	require.Equal(t, http.StatusOK, ended.status)
	require.Equal(t, map[string]any{
		"workflow_id": "hello:ci:monday", "run_id": first.values["run_id"], "status_url": "/v1/runs/hello:ci:monday",
		"repeated": true, "status": "completed", "result": "hello Ada", "warnings": []any{},
	}, ended.values)

	status := w.ask(http.MethodGet, first.header.Get("Location"), w.ci, nil)
	require.Equal(t, http.StatusOK, status.status)
	require.Equal(t, "hello Ada", status.values["result"])
	for _, other := range []string{w.ops, "", "rpr_wrong"} {
		status := w.ask(http.MethodGet, first.header.Get("Location"), other, nil)
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusNotFound}, status.status)
		require.NotContains(t, string(status.body), "Ada")
	}

	again := w.start("hello/runs", w.ci, `{"name": "Grace"}`, "Idempotency-Key", "monday")
	require.Equal(t, http.StatusUnprocessableEntity, again.status)
	require.Equal(t, "urn:reprise:problem:key-reused", again.values["type"])
	other := w.start("hello/runs", w.ops, `{"name": "Grace"}`, "Idempotency-Key", "monday")
	require.Equal(t, "hello:ops:monday", other.values["workflow_id"], "keys of callers are their own")

	odd := w.start("hello/runs?wait=60", w.ci, ``, "Idempotency-Key", "a/b: c~d")
	require.Equal(t, http.StatusOK, odd.status)
	require.Regexp(t, "^hello:ci:~[0-9a-f]{64}$", odd.values["workflow_id"])
	require.Equal(t, "hello world", odd.values["result"])
	require.Equal(t, "hello world", w.ask(http.MethodGet, odd.header.Get("Location"), w.ci, nil).values["result"])

	keyless := w.start("hello/runs", w.ci, `{}`)
	require.NotEqual(t, keyless.values["workflow_id"], w.start("hello/runs", w.ci, `{}`).values["workflow_id"])
}

// TestOneKeyIsOneRun: of requests at the same time one starts the run, over
// several servers.
func TestOneKeyIsOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	first := w.url
	w.serve() // another one beside it
	second := w.url
	const callers = 50
	replies := make([]reply, callers)
	var group sync.WaitGroup
	for i := range callers {
		own := *w
		own.url = []string{first, second}[i%2]
		group.Go(func() { replies[i] = own.start("hello/runs?wait=60s", w.ci, `{}`, "Idempotency-Key", "once") })
	}
	testenv.Wait(t, group.Wait, "the answers to all callers")
	began := 0
	for _, given := range replies {
		require.Equal(t, http.StatusOK, given.status, string(given.body))
		require.Equal(t, replies[0].values["run_id"], given.values["run_id"])
		require.Equal(t, "hello world", given.values["result"])
		if given.values["repeated"] == nil {
			began++
		}
	}
	require.Equal(t, 1, began)
}

// TestWaitingEndsWithTheServer: who waits for a result is told where to ask, and
// the next server knows the run.
func TestWaitingEndsWithTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan reply, 1)
	go func() { asked <- w.start("hello/runs?wait=60s", w.ci, `{}`, "Idempotency-Key", "restart") }()
	require.Eventually(t, func() bool {
		_, err := w.env.Client().DescribeWorkflowExecution(t.Context(), "hello:ci:restart", "")
		return err == nil
	}, patience, tick)
	w.stop()
	given := testenv.Receive(t, asked, "the answer to the start")
	require.Equal(t, http.StatusAccepted, given.status)
	require.Equal(t, "running", given.values["status"])
	w.serve()
	w.work()
	status := w.ask(http.MethodGet, given.header.Get("Location")+"?wait=60s", w.ci, nil)
	require.Equal(t, "hello world", status.values["result"])
	require.Equal(t, given.values["run_id"], status.values["run_id"])
}

// TestUnknownClientsLearnNothing: answers do not tell what is there.
func TestUnknownClientsLearnNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var answers []string
	for _, token := range []string{"", "rpr_wrong", strings.ToUpper(w.ci), w.ci + "x"} {
		for _, name := range []string{"hello", "signed", "broken", "absent", "hello%0d%0aX-Injected:%201"} {
			given := w.start(name+"/runs", token, `{`)
			require.Equal(t, http.StatusUnauthorized, given.status, name)
			require.Equal(t, "Bearer", given.header.Get("WWW-Authenticate"))
			require.Empty(t, given.header.Get("X-Injected"))
			answers = append(answers, string(given.body))
		}
		given := w.ask(http.MethodGet, "/v1/runs/hello:ci:x", token, nil)
		answers = append(answers, string(given.body))
	}
	for _, one := range answers {
		require.JSONEq(t, answers[0], one)
	}
	unseen := w.start("signed/runs", w.ops, `{}`)
	require.Equal(t, http.StatusNotFound, unseen.status)
	for _, path := range []string{
		"absent/runs", "%2e%2e%2fhello/runs", "hello%0d%0aX-Injected:%201/runs", "..%2f..%2fetc%2fpasswd/runs", ".hello/runs",
		url.PathEscape(w.folder+"/hello") + "/runs", "hello%00/runs", strings.Repeat("a", 300) + "/runs",
	} {
		given := w.start(path, w.ci, `{}`)
		require.Equal(t, http.StatusNotFound, given.status, path)
		require.Equal(t, unseen.body, given.body, path)
		require.Empty(t, given.header.Get("X-Injected"))
	}
}

// TestCallersChange: a file of callers counts from the next request on, and one
// that is broken changes nothing.
func TestCallersChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token, line, err := newToken("next")
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, w.start("hello/runs", token, `{}`).status)
	w.rewriteCallers(line + "\n")
	require.Equal(t, http.StatusAccepted, w.start("hello/runs", token, `{}`).status)
	require.Equal(t, http.StatusUnauthorized, w.start("hello/runs", w.ci, `{}`).status)
	w.rewriteCallers("next: [")
	require.Equal(t, http.StatusServiceUnavailable, w.start("hello/runs", token, `{}`).status, "a file with a mistake opens nothing")
	require.Contains(t, w.log.String(), "cannot read the file of callers; every token is refused until it can be read")
	w.rewriteCallers(line + "\n")
	require.Equal(t, http.StatusAccepted, w.start("hello/runs", token, `{}`).status)
	require.NoError(t, os.Remove(w.callers))
	require.Equal(t, http.StatusServiceUnavailable, w.start("hello/runs", token, `{}`).status, "a file that is gone opens nothing")
}

func TestOneThousandCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickStart)
	const callers = 1000
	statuses := make([]int, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			statuses[i] = w.start("hello/runs", w.ci, fmt.Sprintf(`{"name": %d}`, i), "Idempotency-Key", fmt.Sprint(i)).status
		})
	}
	testenv.Wait(t, group.Wait, "the answers to all callers")
	taken := 0
	for _, status := range statuses {
		require.Contains(t, []int{http.StatusAccepted, http.StatusServiceUnavailable}, status)
		if status == http.StatusAccepted {
			taken++
		}
	}
	require.Positive(t, taken)
	require.Equal(t, http.StatusAccepted, w.start("hello/runs", w.ci, `{}`).status, "every place was given back")
}

// TestRunThatIsSkipped: the answer has every status that a run may end with.
func TestRunThatIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.write("alone", `apiVersion: reprise/v1
kind: Playbook
metadata: {name: alone}
concurrency: {key: `+w.queue+`, limit: 1, on_conflict: skip}
workflow: [{step: ask, tool: approval, message: "go on?"}]
`)
	first := w.start("alone/runs", w.ci, `{}`, "Idempotency-Key", w.queue)
	require.Equal(t, http.StatusAccepted, first.status)
	reader := &runs.Reader{Client: w.env.Client(), Namespace: w.env.Namespace}
	require.Eventually(t, func() bool { // it has the key
		found, err := reader.Find(t.Context(), first.values["workflow_id"].(string), "")
		if err != nil {
			return false
		}
		status, err := reader.Status(t.Context(), found, time.Now())
		return err == nil && len(status.Steps) == 1 && status.Steps[0].Status == interpreter.Awaiting
	}, patience, tick)
	require.Equal(t, "skipped", w.start("alone/runs?wait=60s", w.ci, `{}`).values["status"])
	require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), first.values["workflow_id"].(string), ""))
	require.Equal(t, "cancelled", w.ask(http.MethodGet, first.header.Get("Location")+"?wait=60s", w.ci, nil).values["status"])
}
