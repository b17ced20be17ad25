package e2e_test

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/codec"
	"reprise/internal/base/keyring"
	"reprise/internal/base/payload"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// strongbox is a world whose programs have keys. The client of plain sees what the server has.
type strongbox struct {
	*world

	plain *testenv.Env
	dir   string // of the payload store
	log   *testenv.Output
}

func newStrongbox(t *testing.T) *strongbox {
	t.Helper()
	w := newWorld(t)
	w.replays = 1
	return &strongbox{world: w, plain: w.env, dir: filepath.Join(t.TempDir(), "payloads"), log: &testenv.Output{}}
}

func codecOf(t *testing.T, keys string) *codec.Codec {
	t.Helper()
	encryption, err := codec.Parse(keys)
	require.NoError(t, err)
	return encryption
}

// storeWith opens the payload store for a program with keys.
func (v *strongbox) storeWith(encryption *codec.Codec) *payload.Store {
	v.t.Helper()
	address, err := payload.DirectoryAddress(v.dir)
	require.NoError(v.t, err)
	store, err := payload.Open(v.t.Context(), address)
	require.NoError(v.t, err)
	v.t.Cleanup(func() { require.NoError(v.t, store.Close()) })
	store.SetEncryption(encryption)
	return store
}

// readWith has the runs that follow started and read with keys.
func (v *strongbox) readWith(keys string) {
	v.t.Helper()
	encryption := codecOf(v.t, keys)
	v.store = v.storeWith(encryption)
	v.env = v.plain.WithEncryption(v.t, v.store, encryption)
}

// workWithKeys starts a worker with keys, until stop or the end of the test.
func (v *strongbox) workWithKeys(keys string) (stop func()) {
	v.t.Helper()
	encryption := codecOf(v.t, keys)
	store := v.storeWith(encryption)
	limits, err := host.PayloadLimits(store, func(string) (string, bool) { return "", false })
	require.NoError(v.t, err)
	v.resources.Payloads = limits
	logger := slog.New(slog.NewTextHandler(v.log, nil))
	options, err := encryption.ClientOptions(host.ClientOptions(store, client.Options{Logger: silent{}}, nil), logger)
	require.NoError(v.t, err)
	stop = sync.OnceFunc(v.workUntil(v.plain.Dial(v.t, options)))
	v.t.Cleanup(stop)
	return stop
}

// serverHas is all that the server and the payload store have of a run, its children and its description.
func (v *strongbox) serverHas(run client.WorkflowRun) []byte {
	v.t.Helper()
	var all []byte
	put := func(message proto.Message) {
		encoded, err := proto.Marshal(message)
		require.NoError(v.t, err)
		all = append(all, encoded...)
	}
	for _, history := range testenv.Histories(v.t, v.plain.Client(), run.GetID(), run.GetRunID()) {
		put(history.History)
		described, err := v.plain.Client().DescribeWorkflowExecution(v.t.Context(), history.WorkflowID, history.RunID)
		require.NoError(v.t, err)
		put(described)
	}
	require.NoError(v.t, filepath.WalkDir(v.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all = append(all, data...)
		return err
	}))
	return all
}

const secretive = `
  - step: fetch
    tool: http
    url: "{{ api }}/body?bytes=140000&note=CANARY-in-a-url"
    next: each
  - step: each
    tool: python
    args: {n: "{{ n }}", large: "{{ fetch }}"}
    code: |
      def main(n, large):
          if n == 2: raise ValueError("CANARY-in-an-error")
          return {"text": "CANARY-in-a-result", "n": n}
    loop: {collection: "{{ 1..4 }}", element: n, mode: parallel}
    retry: [{when: error is defined, then: {ignore: true}}]
    sink:
      tool: python
      args: {result: "{{ result }}", note: CANARY-in-a-sink}
      code: |
        def main(result, note):
            open("kept", "w").write(note + str(len(result["results"])))
    next: ask
  - step: ask
    tool: approval
    message: "CANARY-in-a-question about {{ given }}"
output: {given: "{{ given }}", size: "{{ len(fetch) }}", by: "{{ ask.by }}"}
`

// awaitQuestion waits until the run asks.
func (v *strongbox) awaitQuestion(run client.WorkflowRun) {
	v.t.Helper()
	v.await(run, "ask", interpreter.Awaiting)
}

func (v *strongbox) approve(run client.WorkflowRun) {
	v.t.Helper()
	v.answers(run.GetID(), interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "ask"}, Verb: interpreter.AnswerComplete, Option: "approve", By: "CANARY-ada"})
}

// TestEncryptedRuns: the server and the payload store have none of a run's texts in plain, keys rotate while it waits, and who has the
// keys reads it like any other.
func TestEncryptedRuns(t *testing.T) {
	t.Parallel()
	v, old, next := newStrongbox(t), keyring.NewKey(), keyring.NewKey()
	v.readWith(old)
	stop := v.workWithKeys(old)
	run := v.start(book(secretive), map[string]any{"given": "CANARY-in-a-workload"})
	v.awaitQuestion(run)
	stop()
	v.readWith(next + "," + old)
	v.workWithKeys(next + "," + old)
	run = v.env.Client().GetWorkflow(t.Context(), run.GetID(), run.GetRunID())
	v.approve(run)
	result := v.endsAs(run, interpreter.Completed)
	require.Equal(t, map[string]any{"given": "CANARY-in-a-workload", "size": 139998, "by": "CANARY-ada"}, result.Result.Data)
	require.Equal(t, "CANARY-in-a-sink4", v.file("kept"))
	reader := &runs.Reader{Client: v.env.Client(), Store: v.store, Namespace: v.env.Namespace}
	found, err := reader.Find(t.Context(), run.GetID(), "")
	require.NoError(t, err)
	_, err = reader.Status(t.Context(), found, time.Now())
	require.NoError(t, err)
	has := v.serverHas(run)
	require.Contains(t, string(has), codecOf(t, old).IDs()[0])
	require.Contains(t, string(has), codecOf(t, next).IDs()[0])
	for _, hidden := range []string{"CANARY", "def main", "ValueError", "apiVersion", old, next, strings.Repeat("x", 100)} {
		require.NotContains(t, string(has), hidden)
	}

	plain := newStrongbox(t)
	plain.readWith("")
	plain.workWithKeys("")
	run = plain.start(book(secretive), map[string]any{"given": "CANARY-in-a-workload"})
	plain.awaitQuestion(run)
	plain.approve(run)
	plain.endsAs(run, interpreter.Completed)
	has = plain.serverHas(run)
	for _, found := range []string{"a-url", "an-error", "a-result", "a-sink", "a-question", "a-workload"} {
		require.Contains(t, string(has), "CANARY-in-"+found, "the test looks where texts are")
	}
}

// TestEncryptedValuesAreStoredOnce: the payload store keeps one copy of a value that two programs store.
func TestEncryptedValuesAreStoredOnce(t *testing.T) {
	t.Parallel()
	v, key := newStrongbox(t), keyring.NewKey()
	files := map[string]bool{}
	for range 2 {
		v.readWith(key)
		run, err := v.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: v.queue}, "Nothing", strings.Repeat("x", 200_000))
		require.NoError(t, err)
		require.NoError(t, v.env.Client().TerminateWorkflow(t.Context(), run.GetID(), run.GetRunID(), "done"))
		require.NoError(t, filepath.WalkDir(v.dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && strings.Contains(path, "sha256") && !entry.IsDir() && !strings.HasSuffix(path, ".attrs") {
				files[path] = true
			}
			return err
		}))
	}
	require.Len(t, files, 1)
}

// TestEncryptedFailures: the messages of failures are encrypted too, and come back.
func TestEncryptedFailures(t *testing.T) {
	t.Parallel()
	v, key := newStrongbox(t), keyring.NewKey()
	v.readWith(key)
	v.workWithKeys(key)
	run := v.start(book("  - {step: a, tool: CANARYtool}\n"), nil)
	_, err := v.outcome(run)
	require.ErrorContains(t, err, "CANARYtool")
	has := string(v.serverHas(run))
	require.Contains(t, has, "Encoded failure")
	require.NotContains(t, has, "CANARY")
}

// TestWorkersWithoutTheKey: a run that its workers cannot decrypt waits, says why, and continues with the key; who reads it without
// the key gets an error.
func TestWorkersWithoutTheKey(t *testing.T) {
	t.Parallel()
	v, key, other := newStrongbox(t), keyring.NewKey(), keyring.NewKey()
	v.readWith(key)
	stop := v.workWithKeys(other)
	run := v.start(book("  - {step: a, tool: python, code: \"def main(): return 'done'\"}\n"), map[string]any{"given": "CANARY"})
	reader := &runs.Reader{Client: v.env.Client(), Store: v.store, Namespace: v.env.Namespace}
	found, err := reader.Find(t.Context(), run.GetID(), "")
	require.NoError(t, err)
	reason := "values are encrypted with the key " + codecOf(t, key).IDs()[0] + ", but this program has the keys " + codecOf(t, other).IDs()[0]
	require.Eventually(t, func() bool {
		status, err := reader.Status(t.Context(), found, time.Now())
		return err == nil && status.HeldBy == runs.HeldByTask && strings.Contains(status.Failure, reason)
	}, patience, tick)
	require.Contains(t, v.log.String(), reason)
	require.Contains(t, v.log.String(), run.GetID())
	stop()
	v.workWithKeys(key)
	v.endsAs(run, interpreter.Completed)

	blind := &runs.Reader{Client: v.plain.WithEncryption(t, nil, codecOf(t, other)).Client(), Namespace: v.env.Namespace}
	found, err = blind.Find(t.Context(), run.GetID(), "")
	require.NoError(t, err, "it has no memo")
	_, err = blind.Status(t.Context(), found, time.Now())
	require.ErrorContains(t, err, reason)
	var result any
	require.ErrorContains(t, blind.Client.GetWorkflow(t.Context(), run.GetID(), "").Get(t.Context(), &result), reason)
	_, err = blind.Client.WorkflowService().GetWorkflowExecutionHistory(t.Context(), &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: v.env.Namespace, Execution: &common.WorkflowExecution{WorkflowId: run.GetID()},
	})
	require.ErrorContains(t, err, reason)
}
