package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"

	"reprise/activities"
	"reprise/internal/base/exitcode"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/test/samples"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/schedule"
	"reprise/workflows"
	"reprise/workflows/protocol"
)

// planner makes schedules on a server with a worker.
type planner struct {
	t     *testing.T
	env   *testenv.Env
	queue string
	dir   string
	store string // address of the payload store, "" for none
}

func newPlanner(t *testing.T, resources activities.Resources) *planner {
	t.Helper()
	p := &planner{t: t, env: testenv.Temporal(t), dir: t.TempDir()}
	p.queue = p.env.NewTaskQueue()
	resources.AllowPython = true
	catalogue := activities.NewCatalogue(resources)
	w := host.NewWorker(p.env.Client(), catalogue, host.Options{TaskQueue: p.queue, StopTimeout: time.Second})
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		w.Stop()
		require.NoError(t, catalogue.Close())
	})
	return p
}

// file writes a playbook and gives its path.
func (p *planner) file(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	require.NoError(p.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// says runs schedule with arguments and gives both of its outputs.
func (p *planner) says(wanted int, args ...string) (out, errs string) {
	p.t.Helper()
	var to, toErr bytes.Buffer
	args = append([]string{"schedule"}, args...)
	args = append(args, "--address", p.env.Address, "--namespace", p.env.Namespace, "--task-queue", p.queue, "--payload-store", p.store)
	got := Main(p.t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &to, Err: &toErr})
	require.Equal(p.t, wanted, got, "%v\n%s%s", args, to.String(), toErr.String())
	return to.String(), toErr.String()
}

// create makes a schedule, which is deleted behind the test, and gives its name.
func (p *planner) create(file string, args ...string) string {
	p.t.Helper()
	name := "s-" + p.queue + "-" + fmt.Sprint(time.Now().UnixNano())
	p.says(exitcode.OK, append([]string{"create", name, file}, args...)...)
	p.t.Cleanup(func() {
		_ = p.env.Client().ScheduleClient().GetHandle(context.Background(), name).Delete(context.Background()) // unless the test has
	})
	return name
}

// show is what schedule show says of a schedule.
func (p *planner) show(name string) schedule.ScheduleDocument {
	p.t.Helper()
	out, _ := p.says(exitcode.OK, "show", name, "--output", "json")
	var doc schedule.ScheduleDocument
	require.NoError(p.t, json.Unmarshal([]byte(out), &doc))
	return doc
}

// trigger starts a run and gives it.
func (p *planner) trigger(name string, args ...string) schedule.TriggeredRun {
	p.t.Helper()
	out, _ := p.says(exitcode.OK, append([]string{"trigger", name, "--output", "json"}, args...)...)
	var result schedule.TriggeredRun
	require.NoError(p.t, json.Unmarshal([]byte(out), &result))
	require.Equal(p.t, "started", result.Outcome)
	return result
}

// result waits for a run and gives its result.
func (p *planner) result(workflowID, runID string) protocol.Result {
	p.t.Helper()
	var result protocol.Result
	require.NoError(p.t, p.env.Client().GetWorkflow(p.t.Context(), workflowID, runID).Get(p.t.Context(), &result))
	return result
}

// scheduledTimes are the nominal times of runs that a schedule has started, by their
// workflow IDs, as the server tells them.
func (p *planner) scheduledTimes(name string) map[string]time.Time {
	p.t.Helper()
	page, err := p.env.Client().ListWorkflow(p.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: "TemporalScheduledById = '" + name + "'",
	})
	require.NoError(p.t, err)
	times := map[string]time.Time{}
	for _, info := range page.GetExecutions() {
		var at time.Time
		payload := info.GetSearchAttributes().GetIndexedFields()[protocol.ScheduledAttribute]
		require.NoError(p.t, converter.GetDefaultDataConverter().FromPayload(payload, &at))
		times[info.GetExecution().GetWorkflowId()] = at.UTC()
	}
	return times
}

const nominalBook = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: nominal, schedule: {every: 1s}}
workload: {tenant: a}
workflow:
  - step: each
    tool: python
    loop: {collection: [1, 2], mode: parallel}
    args: {at: "{{ run.scheduled_at }}"}
    code: |
      def main(at):
          return at
output: {run: "{{ run.scheduled_at }}", each: "{{ each.results }}", tenant: "{{ tenant }}"}
`

// TestScheduledRuns: a schedule starts runs as starter run would, each for the time
// that it tells, until it is paused.
func TestScheduledRuns(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	file := p.file("nominal.yaml", nominalBook)
	name := p.create(file, "--set", "tenant=b", "--overlap", "allow")
	require.Eventually(t, func() bool { return len(p.scheduledTimes(name)) >= 3 }, patience, 50*time.Millisecond)
	p.says(exitcode.OK, "pause", name, "--note", "enough")
	p.trigger(name) // the server takes it behind the pause, and what was due before
	begun := p.show(name)
	require.True(t, begun.Paused)
	require.Equal(t, "enough", begun.Note)

	for id, at := range p.scheduledTimes(name) {
		text := at.Format(time.RFC3339)
		require.Equal(t, name+"-"+text, id)
		require.Equal(t, map[string]any{"run": text, "each": []any{text, text}, "tenant": "b"}, p.result(id, "").Result.Data)
		histories := testenv.Histories(t, p.env.Client(), id, "")
		require.NoError(t, testenv.Replay(histories, func(r worker.WorkflowReplayer) { workflows.Register(r) }, 1))
	}
	p.startsLikeRun(begun.Recent[0], file)

	// While it is paused nothing starts but what is triggered, seconds later too.
	triggers := 0
	require.Eventually(t, func() bool {
		told := p.trigger(name)
		triggers++
		return p.scheduledTimes(name)[told.WorkflowID].Sub(begun.Recent[0].StartedAt) > 3*time.Second
	}, patience, 500*time.Millisecond)
	require.Equal(t, begun.Started+triggers, p.show(name).Started)
	out, _ := p.says(exitcode.OK, "resume", name)
	require.Regexp(t, `is resumed: it runs nominal every 1s, UTC, next at `, out)
	require.Eventually(t, func() bool { return p.show(name).Started > begun.Started+triggers }, patience, 50*time.Millisecond)
}

// startsLikeRun holds the start of a scheduled run against that of starter run.
func (p *planner) startsLikeRun(scheduled schedule.ScheduledRun, file string) {
	p.t.Helper()
	var out, errs bytes.Buffer
	id := "run-" + p.queue
	require.Equal(p.t, exitcode.OK, Main(p.t.Context(), []string{
		"run", file, "--set", "tenant=b", "--detach", "--workflow-id", id,
		"--address", p.env.Address, "--namespace", p.env.Namespace, "--task-queue", p.queue, "--payload-store", "",
	}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}), errs.String())
	theirs, ours := p.firstEvent(scheduled.WorkflowID), p.firstEvent(id)
	require.True(p.t, proto.Equal(ours.GetUserMetadata(), theirs.GetUserMetadata()))
	begun, later := ours.GetWorkflowExecutionStartedEventAttributes(), theirs.GetWorkflowExecutionStartedEventAttributes()
	require.True(p.t, proto.Equal(begun.GetInput(), later.GetInput()), "%s\n%s", begun.GetInput(), later.GetInput())
	require.Equal(p.t, begun.GetTaskQueue().GetName(), later.GetTaskQueue().GetName())
	attribute := later.GetSearchAttributes().GetIndexedFields()[protocol.PlaybookAttribute]
	require.NotNil(p.t, attribute)
	require.True(p.t, proto.Equal(begun.GetSearchAttributes().GetIndexedFields()[protocol.PlaybookAttribute], attribute))
	require.Nil(p.t, p.result(id, "").Result.Data.(map[string]any)["run"], "no schedule has started it")
}

func (p *planner) firstEvent(id string) *historypb.HistoryEvent {
	p.t.Helper()
	events := p.env.Client().GetWorkflowHistory(p.t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	first, err := events.Next()
	require.NoError(p.t, err)
	return first
}

// TestBackfill: a run for each time of a window, with that time, and with the partition that was
// the newest then.
func TestBackfill(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	hours := strings.NewReplacer("workload:", "partitions: {every: hour, start: 2025-12-31, zone: Asia/Kolkata}\nworkload:", `tenant: "{{ tenant }}"`, `part: "{{ partition.key }}"`)
	name := p.create(p.file("nominal.yaml", hours.Replace(nominalBook)), "--cron", "30 * * * *", "--zone", "Asia/Kolkata", "--paused")
	out, _ := p.says(exitcode.OK, "backfill", name, "--from", "2026-01-01 00:30", "--to", "2026-01-01T02:45")
	require.Contains(t, out, "from 2026-01-01 00:30:00 IST to 2026-01-01 02:45:00 IST (buffer-all)")
	require.Eventually(t, func() bool { return len(p.scheduledTimes(name)) == 3 }, patience, 50*time.Millisecond)
	for at, part := range map[string]string{
		"2025-12-31T19:00:00Z": "2025-12-31T23", "2025-12-31T20:00:00Z": "2026-01-01T00", "2025-12-31T21:00:00Z": "2026-01-01T01",
	} {
		data := p.result(name+"-"+at, "").Result.Data.(map[string]any)
		require.Equal(t, at, data["run"])
		require.Equal(t, part, data["part"])
	}
	require.Equal(t, 3, p.show(name).Started)
}

// TestBackfillOfManyRuns is a question, and one of ten years at a second a mistake.
func TestBackfillOfManyRuns(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	file := p.file("nominal.yaml", nominalBook)
	_, said := p.says(exitcode.OK, "create", "often", file, "--every", "9s", "--paused")
	require.Contains(t, said, "warning: --every starts a run every 9s, 9600 a day")
	_, said = p.says(exitcode.OK, "create", "seldom", file, "--every", "10s", "--paused")
	require.NotContains(t, said, "warning: --every")
	name := p.create(file, "--every", "1s", "--paused")
	_, said = p.says(exitcode.Usage, "backfill", name, "--from", "2016-01-01", "--to", "2026-01-01", "--yes")
	require.Contains(t, said, "more than 10000 times from 2016-01-01T00:00:00Z to 2026-01-01T00:00:00Z")
	twoMinutes := []string{"backfill", name, "--from", "2026-01-01T00:00:01Z", "--to", "2026-01-01T00:02:00Z", "--overlap", "skip"}
	_, said = p.says(exitcode.Usage, twoMinutes...)
	require.Contains(t, said, "Start 120 runs of "+name+"? Standard input is not a terminal; confirm with --yes")
	require.Empty(t, p.begun(name))
	p.says(exitcode.OK, append(twoMinutes, "--yes")...)
	require.Eventually(t, func() bool { return len(p.begun(name)) > 0 }, patience, 50*time.Millisecond)
}

// TestBackfillOverAChangeOfClocks: a time that the clocks leave out has a run right behind the gap, and one
// that they have twice has one, the first time.
func TestBackfillOverAChangeOfClocks(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	name := p.create(p.file("nominal.yaml", nominalBook), "--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--paused")
	p.says(exitcode.OK, "backfill", name, "--from", "2026-03-28", "--to", "2026-03-31", "--overlap", "allow")
	p.says(exitcode.OK, "backfill", name, "--from", "2026-10-24", "--to", "2026-10-27", "--overlap", "allow")
	want := []string{
		"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z",
	}
	require.Eventually(t, func() bool { return len(p.begun(name)) == len(want) }, patience, 50*time.Millisecond)
	for _, at := range want {
		require.Equal(t, at, p.result(name+"-"+at, "").Result.Data.(map[string]any)["run"])
	}
}

// TestScheduleRunsWhatIsMissing: with --backfill the days that overlap has dropped are run by the next run, and
// an update leaves it so.
func TestScheduleRunsWhatIsMissing(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	book := strings.NewReplacer("workload:", "partitions: {every: day, start: 2026-05-01}\nworkload:", "every: 1s", "cron: 0 3 * * *", "name: nominal", "name: "+p.queue).Replace(nominalBook)
	file := p.file("nominal.yaml", book)
	name := p.create(file, "--paused", "--backfill", "--set", "tenant=b")
	p.says(exitcode.OK, "backfill", name, "--from", "2026-05-04", "--to", "2026-05-05")
	require.Eventually(t, func() bool { return len(p.begun(name)) == 1 }, patience, 50*time.Millisecond)
	ran := p.result(name+"-2026-05-04T03:00:00Z", "").Result.Data.(map[string]any)
	require.EqualValues(t, 3, ran["success"], "the first three days of May, and not the newest alone")
	out, _ := p.says(exitcode.OK, "update", name, "--set", "tenant=c", "--yes")
	require.Contains(t, out, `"tenant":"c"`)
	p.says(exitcode.OK, "backfill", name, "--from", "2026-05-06", "--to", "2026-05-07")
	require.Eventually(t, func() bool { return len(p.begun(name)) == 2 }, patience, 50*time.Millisecond)
	ran = p.result(name+"-2026-05-06T03:00:00Z", "").Result.Data.(map[string]any)
	require.EqualValues(t, 2, ran["total"], "what was done is not run again")
	_, said := p.says(exitcode.Usage, "create", "none", p.file("plain.yaml", nominalBook), "--backfill")
	require.Contains(t, said, "has no partitions")
}

// TestReprocessOfAScheduledRun: iterations that run again do so for the time that the
// run was for.
func TestReprocessOfAScheduledRun(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	name := p.create(p.file("fails.yaml", `apiVersion: reprise/v1
kind: Playbook
metadata: {name: fails, schedule: {cron: "@yearly"}}
workload: {good: false}
workflow:
  - step: each
    tool: python
    loop: {collection: [1]}
    args: {at: "{{ run.scheduled_at }}", good: "{{ good }}"}
    code: |
      def main(at, good):
          if not good:
              raise ValueError(at)
          return "at " + at
`))
	told := p.trigger(name)
	_ = testenv.WaitOutcome(t, p.env.Client().GetWorkflow(t.Context(), told.WorkflowID, told.RunID), nil) // it fails
	var out, errs bytes.Buffer
	got := Main(t.Context(), []string{
		"dead-letters", "reprocess", told.WorkflowID, "--set", "good=true", "--output", "json",
		"--address", p.env.Address, "--namespace", p.env.Namespace, "--payload-store", "",
	}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	require.Equal(t, exitcode.OK, got, errs.String())
	require.Contains(t, out.String(), `"at `+strings.TrimPrefix(told.WorkflowID, name+"-")+`"`)
}

// TestLargeSchedule: what a schedule starts with stays in Temporal, where no rule
// deletes it by its age, and is as large as Temporal takes.
func TestLargeSchedule(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{}) // which has no payload store
	p.store = "file://" + t.TempDir() + "?create_dir=true"
	book := p.file("nominal.yaml", nominalBook)
	load := func(size int) string {
		return p.file("workload.json", `{"tenant": "a", "large": "`+strings.Repeat("x", size)+`"}`)
	}
	name := p.create(book, "--paused", "--workload", load(300_000))
	told := p.trigger(name)
	require.EqualValues(t, "completed", p.result(told.WorkflowID, told.RunID).Status)
	_, errs := p.says(exitcode.Usage, "create", name+"-larger", book, "--workload", load(2_000_000))
	require.Contains(t, errs, "and a schedule can keep 1900000")
	p.says(exitcode.OK, "update", name, "--set", "tenant=b", "--yes")
	told = p.trigger(name)
	require.Equal(t, "b", p.result(told.WorkflowID, told.RunID).Result.Data.(map[string]any)["tenant"])
}

// TestOverlapSkip: while a run goes on, no other starts, and trigger says so.
func TestOverlapSkip(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	release := make(chan struct{})
	slow := httptest.NewServer(nethttp.HandlerFunc(func(_ nethttp.ResponseWriter, r *nethttp.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	name := p.create(p.file("slow.yaml", `apiVersion: reprise/v1
kind: Playbook
metadata: {name: slow, schedule: {cron: "@yearly"}}
workflow:
  - {step: wait, tool: http, url: "{{ workload.url }}"}
`), "--set", "url="+slow.URL)
	first := p.trigger(name, "--reason", "the API was down")
	_, errs := p.says(exitcode.Failed, "trigger", name)
	require.Contains(t, errs, "another run is open, and overlap is skip; choose otherwise with --overlap")
	require.Equal(t, 1, p.show(name).Skipped)
	second := p.trigger(name, "--overlap", "allow")
	close(release)
	for _, one := range []schedule.TriggeredRun{first, second} {
		require.EqualValues(t, "completed", p.result(one.WorkflowID, one.RunID).Status)
	}
	require.NotEqual(t, first.RunID, second.RunID)
	require.Equal(t, []string{cli.Whoami(), "the API was down"}, p.startedBy(first.WorkflowID))
	require.Equal(t, []string{cli.Whoami(), ""}, p.startedBy(second.WorkflowID))
}

// TestTriggersOfRunsThatEndAtOnce: a run that may have ended before the trigger returns has who triggered it in
// its events and in lists.
func TestTriggersOfRunsThatEndAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	name := p.create(p.file("short.yaml", `apiVersion: reprise/v1
kind: Playbook
metadata: {name: short, schedule: {cron: "@yearly"}}
workflow:
  - {step: start, vars: {a: 1}}
`))
	reader := &runs.Reader{Client: p.env.Client(), Namespace: p.env.Namespace}
	for i := range 3 {
		reason := fmt.Sprintf("number %d", i)
		run := p.trigger(name, "--reason", reason)
		p.result(run.WorkflowID, run.RunID)
		require.Equal(t, []string{cli.Whoami(), reason}, p.startedBy(run.WorkflowID))
		found, err := reader.Find(t.Context(), run.WorkflowID, run.RunID)
		require.NoError(t, err)
		require.Equal(t, interpreter.Said{By: cli.Whoami(), Reason: reason}, found.Started)
	}
}

// startedBy is who has started a run, and why, by its events.
func (p *planner) startedBy(workflowID string) []string {
	p.t.Helper()
	var out, errs bytes.Buffer
	got := Main(p.t.Context(), []string{
		"events", workflowID, "--kind", "execution_started", "--output", "jsonl",
		"--address", p.env.Address, "--namespace", p.env.Namespace, "--payload-store", p.store,
	}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	require.Equal(p.t, exitcode.OK, got, errs.String())
	var started struct{ By, Reason string }
	require.NoError(p.t, json.Unmarshal(out.Bytes(), &started), out.String())
	return []string{started.By, started.Reason}
}

// TestOverlaps: what becomes of three runs of a schedule that are due one after the
// other, while the first of them goes on, under each policy.
func TestOverlaps(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	const completed, cancelled, terminated = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, enums.WORKFLOW_EXECUTION_STATUS_CANCELED,
		enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
	type statuses []enums.WorkflowExecutionStatus
	for overlap, want := range map[string]struct {
		begun   [3]int // after each was due
		skipped int
		ends    statuses
		most    int // that go on at once
	}{
		"skip":            {[3]int{1, 1, 1}, 2, statuses{completed}, 1},
		"buffer-one":      {[3]int{1, 1, 1}, 1, statuses{completed, completed}, 1},
		"buffer-all":      {[3]int{1, 1, 1}, 0, statuses{completed, completed, completed}, 1},
		"cancel-other":    {[3]int{1, 2, 3}, 0, statuses{cancelled, cancelled, completed}, 1},
		"terminate-other": {[3]int{1, 2, 3}, 0, statuses{terminated, terminated, completed}, 1},
		"allow":           {[3]int{1, 2, 3}, 0, statuses{completed, completed, completed}, 3},
	} {
		t.Run(overlap, func(t *testing.T) {
			t.Parallel()
			open := make(chan struct{})
			gate := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
				w.Header().Set("Content-Type", "application/json")
				select {
				case <-open:
					_, _ = fmt.Fprint(w, `{"open": true}`)
				default:
					_, _ = fmt.Fprint(w, `{"open": false}`)
				}
			}))
			t.Cleanup(gate.Close)
			of := *p
			of.t = t
			name := of.create(of.file(overlap+".yaml", `apiVersion: reprise/v1
kind: Playbook
metadata: {name: gate, schedule: {cron: "30 * * * *"}}
workflow:
  - step: ask
    tool: http
    url: "{{ workload.url }}"
    retry: [{when: "{{ not response.open }}", then: {max_attempts: 10000, delay: 200ms}}]
`), "--set", "url="+gate.URL, "--paused")
			all := func() (begun []workflowStatus, going int) {
				begun = of.begun(name)
				for _, one := range begun {
					if one.status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
						going++
					}
				}
				return begun, going
			}
			for i, wanted := range want.begun {
				of.says(exitcode.OK, "backfill", name, "--from", fmt.Sprintf("2026-01-01T%02d:00:00Z", i), "--to",
					fmt.Sprintf("2026-01-01T%02d:00:00Z", i+1), "--overlap", overlap)
				require.Eventually(t, func() bool {
					begun, going := all()
					return len(begun) == wanted && going == min(wanted, want.most)
				}, patience, 50*time.Millisecond)
			}
			require.Eventually(t, func() bool {
				described, err := of.env.Client().ScheduleClient().GetHandle(t.Context(), name).Describe(t.Context())
				return err == nil && described.Info.NumActionsSkippedOverlap == want.skipped
			}, patience, 50*time.Millisecond)
			close(open)
			var ends statuses
			require.Eventually(t, func() bool {
				begun, going := all()
				ends = nil
				for _, one := range begun {
					ends = append(ends, one.status)
				}
				return len(begun) >= len(want.ends) && going == 0
			}, patience, 50*time.Millisecond)
			require.Equal(t, want.ends, ends)
			begun, _ := all()
			for i := 1; i < len(begun) && want.most == 1; i++ {
				require.False(t, begun[i].started.Before(begun[i-1].ended), "one after the other")
			}
			require.Equal(t, len(want.ends), of.show(name).Started)
		})
	}
}

// workflowStatus is a run of a schedule.
type workflowStatus struct {
	at, started, ended time.Time
	status             enums.WorkflowExecutionStatus
}

// begun are the runs that a schedule has started, the earliest first; nil while the
// server cannot tell.
func (p *planner) begun(name string) []workflowStatus {
	page, err := p.env.Client().ListWorkflow(p.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: "TemporalScheduledById = '" + name + "'",
	})
	if err != nil {
		return nil
	}
	var all []workflowStatus
	for _, info := range page.GetExecutions() {
		one := workflowStatus{started: info.GetStartTime().AsTime(), ended: info.GetCloseTime().AsTime(), status: info.GetStatus()}
		payload := info.GetSearchAttributes().GetIndexedFields()[protocol.ScheduledAttribute]
		if converter.GetDefaultDataConverter().FromPayload(payload, &one.at) != nil {
			return nil
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(x, y workflowStatus) int { return x.at.Compare(y.at) })
	return all
}

// TestUpdateSchedule: what changes is shown, and nothing changes before yes.
func TestUpdateSchedule(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	name := p.create(p.file("nominal.yaml", nominalBook), "--cron", "0 3 * * *", "--set", "tenant=b", "--set", "n=1")
	changed := p.file("changed.yaml", strings.NewReplacer("every: 1s", `cron: ["0 4 * * mon-fri"], zone: Europe/Berlin, jitter: 90s`,
		"return at", "return [at]").Replace(nominalBook))

	out, errs := p.says(exitcode.Usage, "update", name, changed, "--set", "tenant=c", "--note", "new times")
	samples.Golden(t, "schedule/update", strings.NewReplacer(name, "NAME", p.queue, "QUEUE", p.dir, "DIR").Replace(out+errs))
	require.Equal(t, []string{"0 3 * * *"}, p.show(name).Cron)

	out, _ = p.says(exitcode.OK, "update", name, changed, "--set", "tenant=c", "--note", "new times", "--yes")
	require.Contains(t, out, name+" changed: it runs nominal mon-fri at 04:00, Europe/Berlin, next at ")
	doc := p.show(name)
	require.Equal(t, []string{"0 4 * * mon-fri"}, doc.Cron)
	require.Equal(t, "new times", doc.Note)
	require.Equal(t, map[string]any{"tenant": "c", "n": 1}, doc.Workload.Data)
	told := p.trigger(name)
	data := p.result(told.WorkflowID, told.RunID).Result.Data.(map[string]any)
	require.Equal(t, []any{[]any{data["run"]}, []any{data["run"]}}, data["each"])
	require.Equal(t, "c", data["tenant"])

	_, errs = p.says(exitcode.OK, "update", name, changed)
	require.Contains(t, errs, "nothing to change")
	out, _ = p.says(exitcode.OK, "update", name, "--every", "2h", "--offset", "5m", "--overlap", "allow", "--yes")
	require.Contains(t, out, "+every: 2h\n+offset: 5m\n")
	doc = p.show(name)
	require.Equal(t, []string{"2h", "5m", "allow", "c"}, []string{doc.Every, doc.Offset, doc.Overlap, load.AsMap(doc.Workload.Data)["tenant"].(string)})
	text, err := os.ReadFile(changed)
	require.NoError(t, err)
	out, _ = p.says(exitcode.OK, "show", name, "--output", "yaml")
	require.Equal(t, string(text), out)
}

// TestScheduleNames: names are found by their beginning, but for what cannot be undone,
// and a name is given once.
func TestScheduleNames(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	file := p.file("nominal.yaml", nominalBook)
	name := p.create(file, "--paused", "--note", "later")
	_, errs := p.says(exitcode.Failed, "create", name, file)
	require.Contains(t, errs, "the schedule "+name+" already exists; ")
	require.Contains(t, errs, " schedule update "+name+" FILE\n")
	require.Eventually(t, func() bool { // the server's list is behind
		out, _ := p.says(exitcode.OK, "list", "--output", "json", "--limit", "0")
		return strings.Contains(out, name)
	}, patience, 50*time.Millisecond)
	var page schedule.ScheduleList
	out, told := p.says(exitcode.OK, "list", "--output", "json", "--limit", "1", "--after", name[:len(name)-1])
	require.NoError(t, json.Unmarshal([]byte(out), &page))
	require.Len(t, page.Schedules, 1)
	require.Equal(t, name, page.Schedules[0].Name, told)
	out, told = p.says(exitcode.OK, "list", "--limit", "1", "--after", name)
	require.NotContains(t, out+told, name)
	out, _ = p.says(exitcode.OK, "pause", name[:len(name)-3])
	require.Contains(t, out, name+" is already paused: later")
	_, errs = p.says(exitcode.Usage, "delete", name[:len(name)-3], "--yes")
	require.Contains(t, errs, "write its whole name")
	_, errs = p.says(exitcode.Usage, "delete", name)
	require.Contains(t, errs, "confirm with --yes")
	_, errs = p.says(exitcode.Usage, "show", name+"x")
	require.Contains(t, errs, "did you mean")
	p.says(exitcode.OK, "delete", name, "--yes")
	_, errs = p.says(exitcode.Usage, "delete", name, "--yes")
	require.Contains(t, errs, "no schedule has the name")
}

// TestForeignSchedules: times that starter would not write stay as they are, and what
// runs no playbook is left alone.
func TestForeignSchedules(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	foreign := func(name, workflow string) client.ScheduleHandle {
		handle, err := p.env.Client().ScheduleClient().Create(t.Context(), client.ScheduleOptions{
			ID: name + p.queue, Paused: true,
			Spec: client.ScheduleSpec{
				CronExpressions: []string{"0 0 3 * * * 2030"}, Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour}, {Every: 7 * time.Minute}},
			},
			Action: &client.ScheduleWorkflowAction{
				ID: name, Workflow: workflow, TaskQueue: p.queue, Args: []any{protocol.Input{Name: "nominal.yaml", Source: nominalBook}},
			},
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, handle.Delete(context.Background())) })
		return handle
	}
	ours := foreign("foreign", protocol.PlaybookWorkflowName)
	before, err := ours.Describe(t.Context())
	require.NoError(t, err)
	out, _ := p.says(exitcode.OK, "update", ours.GetID(), "--set", "tenant=z", "--yes")
	require.Contains(t, out, `+workload.tenant: "z"`)
	after, err := ours.Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.Schedule.Spec, after.Schedule.Spec)
	told := p.trigger(ours.GetID())
	require.Equal(t, "z", p.result(told.WorkflowID, told.RunID).Result.Data.(map[string]any)["tenant"])

	theirs := foreign("theirs", "SomeWorkflow")
	for _, command := range []string{"show", "pause", "trigger", "delete"} {
		_, errs := p.says(exitcode.Usage, command, theirs.GetID())
		require.Contains(t, errs, "starts SomeWorkflow, and no playbook")
	}
}

// TestScheduleOfARefusedPlaybook: what the workers refuse fails, and show says why.
func TestScheduleOfARefusedPlaybook(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{Limits: playbook.Limits{MaxRetries: 1}})
	name := p.create(p.file("often.yaml", `apiVersion: reprise/v1
kind: Playbook
metadata: {name: often, schedule: {cron: "@yearly"}}
workflow:
  - step: call
    tool: http
    url: http://127.0.0.1:1
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 9}}]
`))
	told := p.trigger(name)
	_ = testenv.WaitOutcome(t, p.env.Client().GetWorkflow(t.Context(), told.WorkflowID, told.RunID), nil) // it fails
	doc := p.show(name)
	require.EqualValues(t, "failed", doc.Recent[0].Status)
	require.Contains(t, doc.Recent[0].Error, "the worker refused the playbook")
	require.Contains(t, doc.Recent[0].Error, "often.yaml:8:")
	out, _ := p.says(exitcode.OK, "show", name)
	require.Contains(t, out, "often.yaml:8:")
}

// TestTimesOnServer: what the check takes, the server takes, and it tells the same
// times again.
func TestTimesOnServer(t *testing.T) {
	t.Parallel()
	p := newPlanner(t, activities.Resources{})
	file := p.file("nominal.yaml", nominalBook)
	lines := []string{
		"0 3 * * *", "*/15 * * * *", "5/20 8-18/2 1,15 jan,JUL *", "0 0 29 2 *", "59 23 31 12 *", "0 6 * * mon-fri", "0 6 * * 0,6", "@hourly",
		"@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually",
	}
	args := []string{
		"--paused", "--zone", "America/New_York", "--jitter", "90s", "--catch-up-window", "1h", "--overlap", "cancel-other",
		"--start", "2026-01-01", "--end", "2036-01-01T00:00:00Z",
	}
	for _, line := range lines {
		args = append(args, "--cron", line)
	}
	doc := p.show(p.create(file, args...))
	require.ElementsMatch(t, lines, doc.Cron)
	require.Equal(t, []string{"America/New_York", "1m30s", "1h", "cancel-other", "2026-01-01T05:00:00Z", "2036-01-01T00:00:00Z"},
		[]string{doc.Zone, doc.Jitter, doc.CatchUp, doc.Overlap, doc.Start, doc.End})
	for _, overlap := range playbook.Overlaps {
		require.Equal(t, overlap, p.show(p.create(file, "--paused", "--overlap", overlap)).Overlap)
	}
}
