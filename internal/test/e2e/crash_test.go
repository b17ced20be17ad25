package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// checkMedications: every patient is accounted for, and the rows in the
// database are those of the 24 patients that exist, each once.
func (w *world) checkMedications(run client.WorkflowRun, result protocol.Result, db *testenv.Database) {
	w.t.Helper()
	require.EqualValues(w.t, "partial_success", result.Status, "%+v", result.Error)
	require.Equal(w.t, map[string]any{
		"patients": 25, "success": 24,
		"failed": []any{map[string]any{"patient": demoapi.MissingPatient, "status": 404}},
	}, result.Result.Data)
	var want []any
	for _, m := range demoapi.AllMedications() {
		want = append(want, map[string]any{"id": m.ID, "patient_id": m.PatientID, "name": m.Name, "dose_mg": m.DoseMG})
	}
	require.Len(w.t, want, demoapi.MedicationRows())
	require.ElementsMatch(w.t, want, w.rows(db, "SELECT * FROM medications"))
	require.Equal(w.t, []any{map[string]any{"run_id": run.GetID(), "total": 25, "success": 24, "failed": 1}},
		w.rows(db, "SELECT * FROM batches"))
}

// rows are those of a query, with numbers as the playbook has them.
func (w *world) rows(db *testenv.Database, query string) []any {
	w.t.Helper()
	var all []any
	for _, row := range db.Query(w.t, query) {
		canonical, err := expression.Canonical(row)
		require.NoError(w.t, err)
		all = append(all, canonical)
	}
	return all
}

// TestKilledWorker: the only worker is killed in the middle of the loop over
// the patients, twice, and started again.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.database()
	worker := w.spawn()
	run := w.start(w.playbook("patient_medications.yaml"), map[string]any{"db": "postgres", "connection": "pg"})
	for _, requests := range []int{20, 45} {
		w.awaitRequests("/api/v1/patients/", requests)
		worker.Kill()
		worker = w.spawn()
	}
	result, err := w.outcome(run)
	require.NoError(t, err)
	w.checkMedications(run, result, db)
	require.GreaterOrEqual(t, w.api.CountRequests(run.GetID(), "/"), demoapi.MedicationRequests())
}

// suicide kills its worker, the parent of what supervises it, unless it finds the
// file that says enough.
const suicide = `
  - step: fetch
    tool: python
    args: {key: "{{ attempt_key }}"}
    code: |
      import os, signal
      def main(key):
          with open("attempts", "a") as file:
              file.write(key + "\n")
          if not os.path.exists("enough"):
              with open("/proc/%d/stat" % os.getppid()) as stat:
                  os.kill(int(stat.read().rpartition(") ")[2].split()[1]), signal.SIGKILL)
          return key
`

// TestAttemptIsDeliveredAgain: its worker was lost, so the same attempt goes
// out once more with the same key.
func TestAttemptIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.spawn()
	run := w.start(book(suicide), nil)
	testenv.Receive(t, first.Done(), "the end of the worker")
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "enough"), nil, 0o600))
	w.spawn()
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	key := result.Result.Data.(string)
	require.Equal(t, key+"\n"+key+"\n", w.file("attempts"))
	require.Equal(t, 1, step(t, result, "fetch").Attempts)
}

// TestWorkerLost: an attempt that kills every worker ends as worker_lost, and
// the policies are asked.
func TestWorkerLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.recordAs("worker_lost")
	run := w.start(book(suicide+`
    next:
      - when: "{{ error.kind == 'worker_lost' and error.class == 'retryable' }}"
        then: [{step: told, args: {message: "{{ error.message }}"}}]
  - step: told
    tool: http
    url: "{{ api }}/echo"
    params: {message: "{{ args.message }}"}
output: "{{ told.query.message[0] }}"
`), nil)
	for range 4 {
		testenv.Receive(t, w.spawn().Done(), "the end of the worker")
	}
	w.spawn()
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Contains(t, result.Result.Data, "dispatched 4 times")
	require.EqualValues(t, "worker_lost", step(t, result, "fetch").Error.Kind)
}

// TestStoppedWorker: an attempt that its worker did not let end is handed out
// again, as the same attempt.
func TestStoppedWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.spawn()
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/slow?ms=4000"
    headers: {X-Request-Id: "{{ attempt_key }}"}
`), nil)
	w.awaitRequests("/slow", 1)
	first.Stop()
	require.NoError(t, first.Err())
	w.spawn()
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, 1, step(t, result, "fetch").Attempts)
	logged := w.api.Requests("")
	require.Len(t, logged, 2)
	require.NotEmpty(t, logged[0].Headers["X-Request-Id"])
	require.Equal(t, logged[0].Headers["X-Request-Id"], logged[1].Headers["X-Request-Id"])
}

// TestPythonDiesWithItsWorker: a worker that is killed leaves nothing behind
// that it has started, nor what Python has started, be it in a session of its
// own.
func TestPythonDiesWithItsWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.spawn()
	run := w.start(book(`
  - step: work
    tool: python
    code: |
      import os, subprocess, time
      def main():
          child = subprocess.Popen(["sh", "-c", "setsid sh -c 'sleep 600 & echo $! > grandchild' & wait; sleep 600"])
          while not (os.path.exists("grandchild") and open("grandchild").read().endswith("\n")):
              time.sleep(0.01)
          with open("pids.new", "w") as file:
              file.write("%d %d %s" % (os.getpid(), child.pid, open("grandchild").read()))
          os.rename("pids.new", "pids")
          time.sleep(600)
`), nil)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(w.dir, "pids"))
		return err == nil
	}, patience, tick)
	pids := strings.Fields(w.file("pids"))
	require.Len(t, pids, 3)
	for _, pid := range pids {
		require.True(t, alive(t, pid), pid)
	}
	worker.Kill()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(t, pid) }, patience, tick, "process %s of %v", pid, pids)
	}
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), run.GetID(), "", "nobody works on it any more"))
}

// alive tells whether a process is there and no zombie.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if os.IsNotExist(err) || errors.Is(err, syscall.ESRCH) {
		return false
	}
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
