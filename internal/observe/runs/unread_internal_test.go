package runs

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// answering is a server whose workflows answer queries with values or errors, by their IDs.
type answering struct {
	client.Client
	values map[string]any
}

type answered struct{ value any }

func (a answered) HasValue() bool { return true }

func (a answered) Get(into any) error {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(a.value))
	return nil
}

func (a answering) QueryWorkflow(_ context.Context, id, _, _ string, _ ...any) (converter.EncodedValue, error) {
	if err, failed := a.values[id].(error); failed {
		return nil, err
	}
	return answered{a.values[id]}, nil
}

// TestALoopThatGivesNoAnswer: what nobody has answered is unknown, and not pending: it may have
// ended long ago.
func TestALoopThatGivesNoAnswer(t *testing.T) {
	t.Parallel()
	lost := errors.New("the worker was lost")
	shard := protocol.Progress{Stats: interpreter.LoopStats{Total: 400, Success: 90, Failed: 1}, Active: 5}
	whole := protocol.Progress{Stats: interpreter.LoopStats{Total: 1000, Success: 400, Cancelled: 600}, Shards: []string{"one", "two"}}
	for name, row := range map[string]struct {
		values map[string]any
		want   Counts
		heldBy string
		notes  int
	}{
		"the loop":       {map[string]any{"loop": lost}, Counts{Unknown: 1000}, "", 1},
		"a shard of it":  {map[string]any{"loop": whole, "one": lost, "two": shard}, Counts{Success: 490, Failed: 1, Running: 5, Unknown: 504}, "", 1},
		"all has":        {map[string]any{"loop": whole, "one": shard, "two": shard}, Counts{Success: 580, Failed: 2, Running: 10, Pending: 408}, HeldByWindow, 0},
		"it is to start": {map[string]any{"loop": serviceerror.NewNotFound("no such workflow")}, Counts{Pending: 1000}, "", 0},
	} {
		status := &Status{At: noon}
		q := &inquiry{Reader: &Reader{Client: answering{values: row.values}}, status: status}
		step := &Step{Step: "each", StartedAt: noon, Loop: &Counts{WorkflowID: "loop", Total: 1000, Cancelled: 1000}}
		q.queryLoop(t.Context(), step)
		row.want.WorkflowID, row.want.Total = "loop", 1000
		require.Equal(t, row.want, *step.Loop, name)
		require.Equal(t, row.heldBy, step.HeldBy, name)
		require.Len(t, status.Notes, row.notes, name)
	}
}
