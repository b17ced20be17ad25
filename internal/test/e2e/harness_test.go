// Package e2e runs playbooks end to end: a real Temporal server, a real
// worker, the real demo API, real databases.
//
// Environment variables:
//
//	TEST_NO_CACHE=1  workers keep no workflow in memory, so that every workflow
//	                 task replays its history from the start (make test-nocache)
package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/internal/base/payload"
	"reprise/internal/base/seal"
	"reprise/internal/observe/ending"
	"reprise/internal/program/demoapi"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows"
	"reprise/workflows/protocol"
)

// recordHistories makes the tests that call recordAs write their histories to a folder of workflows/testdata:
// make record-histories.
var recordHistories = flag.String("record-histories", "", "write histories to this folder of workflows/testdata")

func TestMain(m *testing.M) {
	if os.Getenv("TEST_NO_CACHE") != "" {
		worker.SetStickyWorkflowCacheSize(0)
	}
	testworker.Main()
	debug.SetGCPercent(400)         // the collector was an eighth of what this process did
	debug.SetMemoryLimit(heapLimit) // from which on it does more
	testenv.RunInParallel(width)
	testenv.Main(m)
}

const (
	// width is how many tests run at once: most of their time they wait for timers.
	width = 8
	// replays is how often the histories of a run are replayed.
	replays = 3
	// shortRun is how many events the histories of a run have at most that are replayed
	// more than once: what the order of a map changes shows in the many short ones.
	shortRun = 200
	// tick is how often it looks.
	tick = 20 * time.Millisecond
	// heapLimit is how much memory the process takes, in bytes, before the collector runs more often than it was told to: its server
	// and the workers of its tests need theirs, on a machine of 8 GB.
	heapLimit = 1 << 30
)

// patience is how long a test waits for what has to happen.
var patience = testenv.Within(4 * time.Minute)

// smallLeaf is how many children a leaf of a loop's tree has where each of them gets the
// ballast. It is 400 otherwise, which tests of shards would spend their time on.
const smallLeaf = 40

// ballast is a value that comes with each child: what a leaf may hold of it makes a smallLeaf.
var ballast = strings.Repeat("x", 71_000)

// world is what one test runs against.
type world struct {
	t         *testing.T
	env       *testenv.Env
	store     *payload.Store // of large values
	api       *demoapi.Server
	dir       string // the worker's directory
	queue     string
	resources activities.Resources
	connected activities.Connections
	tools     []tool.Tool // that the worker has besides its own
	// secrets must not be part of any history.
	secrets []string
	// terminates says that a workflow is terminated by hand.
	terminates bool
	runs       int
	replays    int                  // of each history, 0 is timesReplayed
	patience   time.Duration        // 0 is patience
	histories  []testenv.RunHistory // of the last run that ended
	record     string               // where histories are kept, "" for nowhere
}

func newWorld(t *testing.T) *world {
	t.Helper()
	env := testenv.Temporal(t)
	dir := t.TempDir()
	w := &world{
		t: t, env: env, store: testenv.PayloadStore(t), api: testenv.DemoAPI(t), dir: dir, queue: env.NewTaskQueue(),
		connected: activities.Connections{},
	}
	w.resources = activities.Resources{Connections: w.connected, AllowPython: true, Directory: dir}
	t.Cleanup(func() {
		if t.Failed() {
			testenv.LogRunning(t, env.Client(), w.queue)
		}
	})
	return w
}

// makeKeys has the workers that are started after it seal secrets and tokens, with new
// keys.
func (w *world) makeKeys() *seal.Keys {
	w.t.Helper()
	keys, err := seal.Parse(seal.NewKey())
	require.NoError(w.t, err)
	w.resources.SecretKeys = keys
	return keys
}

// newWorking is a world with a worker.
func newWorking(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.work()
	return w
}

// work starts a worker that stops at the end of the test.
func (w *world) work() {
	w.t.Helper()
	w.workWith(w.env.Dial(w.t, client.Options{Logger: quiet{}}))
}

// spawn starts a worker in a process of its own.
func (w *world) spawn() *testworker.Process {
	w.t.Helper()
	return testworker.Start(w.t, testworker.Options{
		Address: w.env.Address, Namespace: w.env.Namespace, TaskQueue: w.queue, Directory: w.dir,
		Connections: w.connected,
	})
}

// quiet is the log of a worker without the failures of tools, which tests
// make on purpose.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}

func (quiet) Error(message string, pairs ...any) {
	if message != "Activity error." && message != "the run failed" {
		slog.Error(message, pairs...)
	}
}

func (w *world) workWith(c client.Client) {
	w.t.Helper()
	catalogue := activities.NewCatalogue(w.resources)
	for _, tool := range w.tools {
		require.NoError(w.t, catalogue.RegisterTool(tool))
	}
	worker := host.NewWorker(c, catalogue, host.Options{TaskQueue: w.queue, StopTimeout: time.Second})
	require.NoError(w.t, worker.Start())
	w.t.Cleanup(func() {
		worker.Stop()
		require.NoError(w.t, catalogue.Close())
	})
}

// recordAs has the histories of the next run stored under a name, when they are
// being recorded.
func (w *world) recordAs(name string) {
	if *recordHistories != "" {
		w.record = filepath.Join("..", "..", "..", "workflows", "testdata", *recordHistories, name)
	}
}

// database gives the run an own PostgreSQL database as the connection pg.
func (w *world) database() *testenv.Database {
	w.t.Helper()
	database := testenv.Postgres(w.t)
	w.connected["pg"] = database.URL
	return database
}

// book is a playbook with these steps.
func book(steps string) string {
	return "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: test}\nworkflow:\n" + strings.TrimLeft(steps, "\n")
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// start starts a run of a playbook.
func (w *world) start(source string, workload map[string]any) client.WorkflowRun {
	w.t.Helper()
	run, err := w.tryStart(source, workload)
	require.NoError(w.t, err)
	return run
}

func (w *world) tryStart(source string, workload map[string]any) (client.WorkflowRun, error) {
	w.t.Helper()
	w.runs++
	id := notInID.ReplaceAllString(w.t.Name(), "-") + "-" + w.queue
	if w.runs > 1 {
		id += "-" + string(rune('0'+w.runs))
	}
	return w.env.Client().ExecuteWorkflow(w.t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: w.queue},
		protocol.PlaybookWorkflowName,
		w.input(source, workload))
}

// input is that of a run of a playbook. Its workload has the demo API's address.
func (w *world) input(source string, workload map[string]any) protocol.Input {
	w.t.Helper()
	given := map[string]any{"api": w.api.URL()}
	for key, value := range workload {
		given[key] = value
	}
	canonical, err := expression.Canonical(given)
	require.NoError(w.t, err)
	return protocol.Input{Name: "test.yaml", Source: source, Workload: expression.Of(canonical)}
}

// endsAs is outcome for a run that has to end with a status.
func (w *world) endsAs(run client.WorkflowRun, want interpreter.Status) protocol.Result {
	w.t.Helper()
	result, err := w.outcome(run)
	require.NoError(w.t, err)
	require.Equal(w.t, want, result.Status, "%+v", result.Error)
	return result
}

// outcome waits for a run, checks what holds for every run and replays its
// histories, those of its children included.
func (w *world) outcome(run client.WorkflowRun) (protocol.Result, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), cmp.Or(w.patience, patience))
	defer cancel()
	result, err := ending.WaitForResult(ctx, run)
	require.NoError(w.t, ctx.Err(), "the run did not end")
	histories := testenv.Histories(w.t, w.env.Client(), run.GetID(), run.GetRunID())
	w.histories = histories
	w.checkHistories(histories)
	require.NoError(w.t, testenv.Replay(histories, func(r worker.WorkflowReplayer) { workflows.Register(r) },
		w.timesReplayed(), testenv.StoredIn(w.store)))
	for _, record := range result.Steps {
		require.NotContains(w.t, []interpreter.Status{"running", "retry_pending"}, record.Status, "step %s was left behind", record.Step)
		if loop := record.Loop; loop != nil {
			stats := loop.Stats
			require.Equal(w.t, stats.Total, stats.Success+stats.Failed+stats.Cancelled, "loop %s: %+v", record.Step, stats)
		}
	}
	if err == nil && len(histories) <= mostTold {
		w.checkEvents(run, result)
	}
	if w.record != "" {
		require.NoError(w.t, os.RemoveAll(w.record))
		require.NoError(w.t, testenv.SaveHistories(w.record, histories))
		w.record = ""
	}
	return result, err
}

// timesReplayed is how often each history of the last run that ended is replayed.
func (w *world) timesReplayed() int {
	events := 0
	for _, history := range w.histories {
		events += len(history.History.GetEvents())
	}
	if w.replays != 0 || events <= shortRun {
		return cmp.Or(w.replays, replays)
	}
	return 1
}

// checkHistories: every workflow of the run has ended, and no history holds a
// secret.
func (w *world) checkHistories(histories []testenv.RunHistory) {
	w.t.Helper()
	for _, history := range histories {
		if !w.terminates || history.Ending() != "Terminated" {
			require.Contains(w.t, testenv.OrderlyEndings(), history.Ending(), "%s", history)
		}
		encoded, err := proto.Marshal(history.History)
		require.NoError(w.t, err)
		for _, secret := range w.secrets {
			require.False(w.t, bytes.Contains(encoded, []byte(secret)), "%s holds the secret %q", history, secret)
		}
	}
}

// run runs a playbook to its end.
func (w *world) run(source string, workload map[string]any) (protocol.Result, error) {
	w.t.Helper()
	return w.outcome(w.start(source, workload))
}

// ends runs a playbook that ends with a status and gives its result.
func (w *world) ends(status, source string, workload map[string]any) protocol.Result {
	w.t.Helper()
	result, err := w.run(source, workload)
	require.NoError(w.t, err)
	require.EqualValues(w.t, status, result.Status, "%+v", result.Error)
	return result
}

// completes runs a playbook that ends well and gives what it returns.
func (w *world) completes(source string, workload map[string]any) any {
	w.t.Helper()
	return w.ends("completed", source, workload).Result.Data
}

// progress asks the run where it stands; false while it cannot tell.
func (w *world) progress(run client.WorkflowRun) (protocol.Progress, bool) {
	var progress protocol.Progress
	told := w.ask(run.GetID(), run.GetRunID(), protocol.ProgressQuery, &progress)
	return progress, told
}

// ask asks a workflow; false while it cannot tell.
func (w *world) ask(workflowID, runID, query string, into any) bool {
	answer, err := w.env.Client().QueryWorkflow(w.t.Context(), workflowID, runID, query)
	return err == nil && answer.Get(into) == nil
}

// await waits until the run says that a step has a status.
func (w *world) await(run client.WorkflowRun, step string, status interpreter.Status) protocol.StepRecord {
	w.t.Helper()
	var found protocol.StepRecord
	require.Eventually(w.t, func() bool {
		progress, _ := w.progress(run)
		for _, record := range progress.Steps {
			if record.Step == step && record.Status == status {
				found = record
				return true
			}
		}
		return false
	}, patience, tick, "step %s did not become %s", step, status)
	return found
}

// awaitRequests waits until the API has had n requests.
func (w *world) awaitRequests(path string, n int) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.api.CountRequests("", path) >= n }, patience, tick,
		"%s did not get %d requests", path, n)
}

// cancel cancels a run and gives its result; it has to end within seconds.
func (w *world) cancel(run client.WorkflowRun) protocol.Result {
	w.t.Helper()
	began := time.Now()
	require.NoError(w.t, w.env.Client().CancelWorkflow(w.t.Context(), run.GetID(), run.GetRunID()))
	_ = testenv.WaitOutcome(w.t, run, nil) // only waits; the outcome is looked at below
	require.Less(w.t, time.Since(began), testenv.Within(time.Minute), "a cancelled run has to end soon")
	result, err := w.outcome(run)
	require.NoError(w.t, err)
	require.EqualValues(w.t, "cancelled", result.Status, "%+v", result.Error)
	return result
}

// bodies are what sinks have written to the demo API, in order of arrival.
func (w *world) bodies() []any {
	writes := w.api.Writes("")
	all := make([]any, len(writes))
	for i, write := range writes {
		canonical, err := expression.Canonical(write.Body)
		require.NoError(w.t, err)
		all[i] = canonical
	}
	return all
}

// step finds the record of a step.
func step(t *testing.T, result protocol.Result, name string) protocol.StepRecord {
	t.Helper()
	for _, record := range result.Steps {
		if record.Step == name {
			return record
		}
	}
	require.Fail(t, "no record of step "+name)
	return protocol.StepRecord{}
}

// refused runs a playbook that ends without a result and gives the reason.
func (w *world) refused(source string) string {
	w.t.Helper()
	_, err := w.run(source, nil)
	require.ErrorIs(w.t, err, ending.ErrRefused)
	return err.Error()
}

// file reads a file of the worker's directory.
func (w *world) file(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	require.NoError(w.t, err)
	return string(text)
}

// playbook reads one of the playbooks that come with Reprise.
func (w *world) playbook(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "playbooks", name))
	require.NoError(w.t, err)
	return string(text)
}
