package e2e_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/program/backfill"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows/protocol"
)

// daily is a playbook of a name whose partitions are days of Berlin, that gives what partition is.
func daily(name, steps string) string {
	return "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: " + name + "}\n" +
		"partitions: {every: day, start: 2024-01-01, end: 2024-02-01, zone: Europe/Berlin}\nworkflow:\n" + steps
}

const givesPartition = `  - step: start
    vars: {got: "{{ partition }}"}
output: "{{ vars.got }}"
`

// startWith starts a run with an input of its own, for the time of a schedule.
func (w *world) startWith(input protocol.Input, at time.Time) client.WorkflowRun {
	w.t.Helper()
	scheduled := temporal.NewSearchAttributeKeyTime(protocol.ScheduledAttribute)
	options := client.StartWorkflowOptions{TaskQueue: w.queue}
	if !at.IsZero() {
		options.TypedSearchAttributes = temporal.NewSearchAttributes(scheduled.ValueSet(at)) // as the server's schedules do
	}
	run, err := w.env.Client().ExecuteWorkflow(w.t.Context(), options, protocol.PlaybookWorkflowName, input)
	require.NoError(w.t, err)
	return run
}

// TestPartitionsOfRuns: a run has the partition that it is given, else the newest that was complete
// when it was due; so has one that a step starts.
func TestPartitionsOfRuns(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("partition")
	source := daily("days-"+w.queue, givesPartition)
	at := func(text string) time.Time {
		t.Helper()
		found, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return found
	}
	for _, row := range []struct {
		key, at, want string
	}{
		{"", "", "2024-01-31"},
		{"", "2024-01-10T23:30:00Z", "2024-01-10"}, // as a schedule's backfill starts them
		{"", "2024-01-11T23:30:00Z", "2024-01-11"},
		{"2024-01-02", "2024-01-10T23:30:00Z", "2024-01-02"},
	} {
		var due time.Time
		if row.at != "" {
			due = at(row.at)
		}
		result, err := w.outcome(w.startWith(protocol.Input{Name: "days.yaml", Source: source, Partition: row.key}, due))
		require.NoError(t, err)
		got, _ := result.Result.Data.(map[string]any)
		require.Equal(t, row.want, got["key"], "%+v", row)
	}
	refused := w.startWith(protocol.Input{Name: "days.yaml", Source: source}, at("2024-01-01T10:00:00Z"))
	_, err := w.outcome(refused)
	require.ErrorContains(t, err, "days.yaml: no partition is complete yet: the first one, 2024-01-01, ends at 2024-01-02T00:00:00+01:00")
	outer := book(`
  - step: each
    tool: playbook
    loop: {collection: "{{ workload.keys }}", element: key}
    path: days.yaml
    partition: "{{ key }}"
    next: newest
  - step: newest
    tool: playbook
    path: days.yaml
output: {each: "{{ each.results | map(.key) }}", newest: "{{ newest }}"}
`)
	run := w.startWith(protocol.Input{
		Name: "outer.yaml", Source: outer, Files: map[string]string{"days.yaml": source},
		Workload: expression.Of(map[string]any{"keys": []any{"2024-01-03", "2024-01-30"}}),
	}, at("2024-01-20T10:00:00Z"))
	result := w.endsAs(run, interpreter.Completed)
	require.Equal(t, map[string]any{
		"each": []any{"2024-01-03", "2024-01-30"},
		"newest": map[string]any{
			"key": "2024-01-19", "index": 18, "start": "2024-01-19T00:00:00+01:00", "end": "2024-01-20T00:00:00+01:00",
		},
	}, result.Result.Data)
}

// matrix is what became of the partitions of a playbook.
func (w *world) matrix(text string) (*backfill.Matrix, *playbook.Playbook) {
	w.t.Helper()
	book, found := playbook.Decode(source.NewFile("book.yaml", []byte(text)))
	require.Empty(w.t, found)
	m, err := backfill.Read(w.t.Context(), w.env.Client(), book, time.Now())
	require.NoError(w.t, err)
	return m, book
}

// backfill starts a run of the partitions that are not done, and gives how many these are.
func (w *world) backfill(text string, concurrency int, given map[string]any) (run client.WorkflowRun, partitions int) {
	w.t.Helper()
	m, book := w.matrix(text)
	keys := m.SelectKeys(backfill.OnlyMissing)
	return w.backfillOf(text, m, book, keys, concurrency, given), len(keys)
}

// backfillOf starts a run of some partitions.
func (w *world) backfillOf(text string, m *backfill.Matrix, book *playbook.Playbook, keys []string, concurrency int, given map[string]any) client.WorkflowRun {
	w.t.Helper()
	claim := m.BackfillClaim(keys)
	return w.startWith(protocol.Input{
		Name: backfill.FileName("book.yaml"), Source: string(backfill.PlaybookSource(book, "book.yaml", concurrency)),
		Files: map[string]string{"book.yaml": text}, Workload: expression.Of(backfill.BackfillWorkload(keys, given)),
		Claim: &claim,
	}, time.Time{})
}

// TestBackfillsAtOnce: of backfills that begin at once those run whose partitions no other one has,
// and the others are skipped and say why; a run that was terminated has none any more.
func TestBackfillsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.spawn()
	text := daily("at-once-"+w.queue, `  - step: read
    tool: http
    url: http://127.0.0.1:1/
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, delay: 10m}}]
`)
	m, book := w.matrix(text)
	keys := m.SelectKeys(backfill.OnlyMissing)
	begin := func(from, to int) client.WorkflowRun { return w.backfillOf(text, m, book, keys[from:to], 2, nil) }
	first := begin(0, 10)
	w.awaitClaim(text, keys[:1], first)
	result := w.endsAs(begin(9, 20), interpreter.Skipped)
	require.Equal(t, []string{fmt.Sprintf("the backfill was skipped: %s is open and covers some of its partitions: from %s to %s",
		first.GetID(), m.Rows[9].Start.UTC().Format(time.RFC3339), m.Rows[9].End.UTC().Format(time.RFC3339))}, result.Warnings)
	second := begin(10, 20)
	w.awaitClaim(text, keys[19:20], second)
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), first.GetID(), "", "a test"))
	third := begin(0, 10)
	w.awaitClaim(text, keys[:1], third)
	for _, run := range []client.WorkflowRun{second, third} {
		require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), run.GetID(), ""))
		w.endsAs(run, interpreter.Cancelled)
	}
	last := begin(0, 20)
	w.awaitClaim(text, keys[:20], last)
	require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), last.GetID(), ""))
	w.endsAs(last, interpreter.Cancelled)
}

// awaitClaim waits until a backfill has claimed partitions.
func (w *world) awaitClaim(text string, keys []string, run client.WorkflowRun) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		m, _ := w.matrix(text)
		id, found, err := m.FindOpen(w.t.Context(), w.env.Client(), m.BackfillClaim(keys))
		require.NoError(w.t, err)
		return id == run.GetID() && slices.Equal(found, keys)
	}, patience, tick, "%s did not claim %v", run.GetID(), keys)
}

// afterBackfill: what a run by itself has done is not run again by a backfill, and what that has
// done by no other one.
func afterBackfill(t *testing.T, w *world, _ protocol.Result) {
	text, given := w.playbook("backfill.yaml"), map[string]any{"connection": "sqlite:rows.db", "api": w.api.URL()}
	run, partitions := w.backfill(text, 2, given)
	require.Equal(t, 3, partitions)
	w.endsAs(run, interpreter.Completed)
	require.Equal(t, []any{map[string]any{"rows": 12}}, w.query("SELECT count(*) AS rows FROM sales"))
	_, left := w.backfill(text, 2, given)
	require.Zero(t, left)
}

// TestBackfillSurvives: the worker is killed in the midst of a backfill of a month; each partition
// is done in the end, was asked for no more often than deaths explain, and asking again runs none.
func TestBackfillSurvives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := daily("survives-"+w.queue, `  - step: read
    tool: http
    url: "{{ api }}/api/v1/users"
    params: {day: "{{ partition.key }}"}
`)
	text = "workload: {api: ''}\n" + text
	first := w.spawn()
	run, partitions := w.backfill(text, 4, map[string]any{"api": w.api.URL()})
	require.Equal(t, 31, partitions)
	w.awaitRequests("/api/v1/users", 8)
	first.Kill()
	w.spawn()
	result := w.endsAs(run, interpreter.Completed)
	stats, _ := result.Result.Data.(map[string]any)
	require.Equal(t, 31, stats["success"])
	days := map[string]int{}
	for _, request := range w.api.Requests("") {
		days[request.Query]++
	}
	require.Len(t, days, 31)
	for day, n := range days {
		require.LessOrEqual(t, n, 2, day)
	}
	m, _ := w.matrix(text)
	require.Equal(t, fmt.Sprintf("survives-%s: 31 partitions, 31 done\n2024-01  %s\n# done\n", w.queue, "###############################"), m.Text())
	_, left := w.backfill(text, 4, nil)
	require.Zero(t, left)
}

// hourly is a playbook of a name with many partitions.
func hourly(name string, partitions int, steps string) string {
	start := time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)
	return fmt.Sprintf("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: %s}\npartitions: {every: hour, start: 2020-01-01, end: %q}\nworkflow:\n%s",
		name, start.Add(time.Duration(partitions)*time.Hour).Format(time.RFC3339), steps)
}

// TestManyPartitions: what is done of 10,000 partitions is known within a second, is left out by a
// backfill, and outlives the end of its workflow.
func TestManyPartitions(t *testing.T) {
	t.Parallel()
	const partitions = 10_000
	w := newWorking(t)
	text := hourly("many-"+w.queue, partitions, givesPartition)
	m, book := w.matrix(text)
	require.Equal(t, map[partition.Status]int{partition.Missing: partitions}, m.Counts)
	ledger := &partition.Ledger{}
	for _, row := range m.Rows {
		p := partition.Partition{Key: row.Key, Index: row.Index, Start: row.Start, End: row.End}
		require.NoError(t, ledger.ApplyNote(partition.Note{Playbook: book.Name, Partition: p, Identity: m.Identity, Run: "run", Status: partition.Done}))
	}
	snapshot, err := ledger.Snapshot()
	require.NoError(t, err)
	id := partition.WorkflowID(book.Name)
	_, err = w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: w.queue}, partition.WorkflowName, snapshot)
	require.NoError(t, err)
	began := time.Now()
	m, _ = w.matrix(text)
	shown := m.Text()
	took := time.Since(began)
	t.Logf("the matrix of %d partitions took %s", partitions, took)
	require.Less(t, took, testenv.Within(time.Second))
	require.Contains(t, shown, ": 10000 partitions, 10000 done\n2020-01-01  ########################\n")
	require.Empty(t, m.SelectKeys(backfill.OnlyMissing))
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), id, "", "the test ends it"))
	again := w.startWith(protocol.Input{Name: "book.yaml", Source: text, Partition: m.Rows[77].Key}, time.Time{})
	w.endsAs(again, interpreter.Completed)
	m, _ = w.matrix(text)
	require.Equal(t, map[partition.Status]int{partition.Done: partitions}, m.Counts)
	forged, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: w.queue}, partition.WorkflowName, []byte("forged"))
	require.NoError(t, err)
	require.ErrorContains(t, testenv.WaitOutcome(t, forged, nil), "read the partitions")
}

var (
	soakPartitions = flag.Int("backfill.partitions", 40, "how many partitions TestBackfillSoak has")
	soakKills      = flag.Int("backfill.kills", 2, "how often TestBackfillSoak kills the worker")
)

// TestBackfillSoak: many partitions, and a worker that is killed again and again. Each is done once, by the rows of a table
// to which every run of one adds a row, and asking again runs none.
func TestBackfillSoak(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text, kills := hourly("soak-"+w.queue, *soakPartitions, `  - step: add
    tool: sqlite
    path: rows.db
    table: done
    schema_contract: evolve
    args: {partition: "{{ partition.key }}", run: "{{ run.id }}"}
`), *soakKills
	worker := w.spawn()
	run, partitions := w.backfill(text, 50, nil)
	_, book := w.matrix(text)
	require.Equal(t, *soakPartitions, partitions)
	began := time.Now()
	for killed := 1; killed <= kills; killed++ {
		done := partitions * killed / (kills + 1)
		require.Eventually(t, func() bool {
			m, err := backfill.Read(t.Context(), w.env.Client(), book, time.Now()) // no worker may answer
			return err == nil && m.Counts[partition.Done] >= done
		}, testenv.Within(time.Hour), 50*time.Millisecond)
		worker.Kill()
		worker = w.spawn()
	}
	w.endsAs(run, interpreter.Completed)
	m, _ := w.matrix(text)
	require.Equal(t, map[partition.Status]int{partition.Done: partitions}, m.Counts)
	const rows, timesDone = "SELECT count(DISTINCT partition) AS partitions, count(*) AS runs FROM done", "SELECT partition, count(*) AS runs FROM done GROUP BY partition HAVING count(*) > 1"
	require.Empty(t, w.query(timesDone))
	require.Equal(t, []any{map[string]any{"partitions": partitions, "runs": partitions}}, w.query(rows))
	t.Logf("%d partitions with %d kills took %s", partitions, kills, time.Since(began).Round(time.Second))
	again, left := w.backfill(text, 50, nil)
	require.Zero(t, left)
	w.endsAs(again, interpreter.Completed)
	require.Equal(t, []any{map[string]any{"partitions": partitions, "runs": partitions}}, w.query(rows))
	twice := m.Rows[partitions/2].Key
	w.endsAs(w.startWith(protocol.Input{Name: "book.yaml", Source: text, Partition: twice}, time.Time{}), interpreter.Completed)
	require.Equal(t, []any{map[string]any{"partition": twice, "runs": 2}}, w.query(timesDone), "a second run of one would be seen")
}
