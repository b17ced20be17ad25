package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows"
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
func (w *world) startWith(input workflows.Input, at time.Time) client.WorkflowRun {
	w.t.Helper()
	scheduled := temporal.NewSearchAttributeKeyTime(workflows.ScheduledAttribute)
	options := client.StartWorkflowOptions{TaskQueue: w.queue}
	if !at.IsZero() {
		options.TypedSearchAttributes = temporal.NewSearchAttributes(scheduled.ValueSet(at)) // as the server's schedules do
	}
	run, err := w.env.Client().ExecuteWorkflow(w.t.Context(), options, workflows.PlaybookWorkflowName, input)
	require.NoError(w.t, err)
	return run
}

// TestPartitionsOfRuns: a run has the partition that it is given, else the newest that was complete
// when it was due; so has one that a step starts.
func TestPartitionsOfRuns(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
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
		result, err := w.outcome(w.startWith(workflows.Input{Name: "days.yaml", Source: source, Partition: row.key}, due))
		require.NoError(t, err)
		got, _ := result.Result.Data.(map[string]any)
		require.Equal(t, row.want, got["key"], "%+v", row)
	}
	refused := w.startWith(workflows.Input{Name: "days.yaml", Source: source}, at("2024-01-01T10:00:00Z"))
	_, err := w.outcome(refused)
	require.ErrorContains(t, err, "days.yaml: no partition is complete yet: the first one, 2024-01-01, is over at 2024-01-02T00:00:00+01:00")
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
	run := w.startWith(workflows.Input{
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
