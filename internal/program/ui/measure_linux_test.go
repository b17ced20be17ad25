package ui_test

import (
	"flag"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

var measured = flag.Int("measure", 0, "print how long pages take among so many runs, of which one in ten has failed")

// realRuns is how many runs are played. More are copies of them in the server's index of runs, which pages read: to play 20,000 takes minutes.
const realRuns = 2000

// TestMeasurePages prints calls and milliseconds of pages among many runs: the median and the worst of loads that are seconds apart, as those
// of an open page are. The server's state is in a PostgreSQL. It judges no time. make bench-page runs it.
func TestMeasurePages(t *testing.T) {
	if *measured == 0 {
		t.Skip("-measure")
	}
	server, db := testenv.TemporalOnPostgres(t)
	w := newWorldOn(t, server.Env)
	w.start("open-"+w.queue, loops, nil) // before others: it adds the search attributes
	failed := w.start("failed-"+w.queue, fails, nil)
	w.books["nightly"] = fails
	w.queue = w.env.NewTaskQueue() // of no worker
	w.start("silent-"+w.queue, fails, nil)
	began := time.Now()
	w.startMany(t, min(*measured, realRuns))
	copyRuns(t, db, *measured-realRuns)
	t.Logf("%d runs in %s", *measured, time.Since(began).Round(time.Second))
	for _, path := range []string{"/", "/?status=failed", "/?now=running", "/?q=run-1", "/playbooks", "/playbooks/nightly", "/runs/" + failed} {
		var took []time.Duration
		once, most := int64(0), int64(0) // the first page reads the causes of failed runs
		for load := range 12 {
			if load > 0 {
				time.Sleep(time.Second) // loads of an open page
			}
			before, began := w.calls.Load(), time.Now()
			status, _, _ := w.get(path)
			require.Equal(t, 200, status, path)
			took = append(took, time.Since(began))
			if load == 0 {
				once = w.calls.Load() - before
				continue
			}
			most = max(most, w.calls.Load()-before)
		}
		first := took[0]
		slices.Sort(took)
		fmt.Printf("%-18s %2d calls, then %2d at most; first %4d ms, median %4d ms, worst %4d ms\n",
			strings.TrimSuffix(path, failed), once, most, first.Milliseconds(), took[len(took)/2].Milliseconds(), took[len(took)-1].Milliseconds())
	}
}

// copyRuns adds copies of the runs that have ended to the index of runs: of each one several, each of which ended a minute before the other.
func copyRuns(t *testing.T, db *testenv.Database, n int) {
	at, err := url.Parse(db.URL)
	require.NoError(t, err)
	at.Path += "_visibility"
	index := &testenv.Database{URL: at.String(), Name: db.Name + "_visibility"}
	for copied := 1; n > 0; copied, n = copied+1, n-realRuns {
		index.Exec(t, `INSERT INTO executions_visibility (namespace_id, run_id, _version, start_time, execution_time, workflow_id, workflow_type_name, status,
				close_time, history_length, history_size_bytes, execution_duration, state_transition_count, memo, encoding, task_queue, search_attributes,
				root_workflow_id, root_run_id)
			SELECT namespace_id, gen_random_uuid()::text, _version, start_time - $1::int * interval '1 minute', execution_time - $1::int * interval '1 minute',
				workflow_id || '-' || $1::int, workflow_type_name, status, close_time - $1::int * interval '1 minute', history_length, history_size_bytes,
				execution_duration, state_transition_count, memo, encoding, task_queue,
				regexp_replace(search_attributes::text, '"(run-[^"]*)"', '"\1-' || $1::int || '"')::jsonb, workflow_id || '-' || $1::int, root_run_id
			FROM executions_visibility WHERE close_time IS NOT NULL AND workflow_id LIKE 'run-%' AND workflow_id NOT LIKE 'run-%-%-%-%'
			ORDER BY run_id LIMIT $2::int`, copied, min(n, realRuns))
	}
	index.Exec(t, "ANALYZE executions_visibility")
}

// batchOfRuns is how many runs are started before the first ones must have ended.
const batchOfRuns = 200

// kindOfRun says what a played run is: most have completed.
type kindOfRun struct {
	Failed bool
	Origin string // of a reprocess
}

// startMany starts runs whose playbook does nothing, and waits for their ends. One in ten has failed with failed iterations, and one in
// a hundred runs those of another again.
func (w *world) startMany(t *testing.T, n int) {
	queue := w.env.NewTaskQueue()
	id := func(i int) string { return fmt.Sprintf("run-%d-%s", i, queue) }
	ends := worker.New(w.env.Client(), queue, worker.Options{MaxConcurrentWorkflowTaskPollers: 20})
	ends.RegisterWorkflowWithOptions(func(ctx workflow.Context, kind kindOfRun) error {
		attributes := []temporal.SearchAttributeUpdate{
			temporal.NewSearchAttributeKeyKeyword(protocol.StatusAttribute).ValueSet(string(interpreter.Completed)),
			temporal.NewSearchAttributeKeyKeyword(protocol.PlaybookAttribute).ValueSet("nightly"),
		}
		if kind.Failed {
			attributes = append(attributes,
				temporal.NewSearchAttributeKeyKeyword(protocol.StatusAttribute).ValueSet(string(interpreter.Failed)),
				temporal.NewSearchAttributeKeyInt64(protocol.DeadLettersAttribute).ValueSet(3))
		}
		if kind.Origin != "" {
			attributes = append(attributes, temporal.NewSearchAttributeKeyKeyword(protocol.OriginAttribute).ValueSet(kind.Origin))
		}
		err := workflow.UpsertTypedSearchAttributes(ctx, attributes...)
		if err == nil && kind.Failed {
			err = temporal.NewNonRetryableApplicationError("no reason", "test", nil)
		}
		return err
	}, workflow.RegisterOptions{Name: protocol.PlaybookWorkflowName})
	require.NoError(t, ends.Start())
	defer ends.Stop()
	for first := 0; first < n; first += batchOfRuns {
		var group errgroup.Group
		group.SetLimit(32)
		for i := first; i < min(n, first+batchOfRuns); i++ {
			group.Go(func() error {
				kind := kindOfRun{Failed: i%10 == 0}
				if i%100 == 1 {
					kind.Origin = id(i - 1)
				}
				options := client.StartWorkflowOptions{ID: id(i), TaskQueue: queue}
				run, err := w.env.Client().ExecuteWorkflow(t.Context(), options, protocol.PlaybookWorkflowName, kind)
				if err == nil && !kind.Failed {
					err = run.Get(t.Context(), nil)
				}
				return err
			})
		}
		require.NoError(t, testenv.WaitResult(t, group.Wait, "the ends of runs"))
	}
}
