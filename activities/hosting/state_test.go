package hosting_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// stateTool keeps states beside its rows.
type stateTool struct {
	tool.StateStore
	claims []incremental.Claim
	moves  []incremental.StateWrite
	inputs []interpreter.ToolInput
	fail   func(write *incremental.StateWrite) error
}

func (s *stateTool) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{Name: "keeps", Writes: true}
}

func (s *stateTool) Run(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
	return interpreter.ToolResult{}, errors.New("nobody reads")
}

func (s *stateTool) Write(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
	return interpreter.ToolResult{}, errors.New("nobody writes")
}

func (s *stateTool) ClaimState(_ context.Context, in interpreter.ToolInput, claim incremental.Claim) (incremental.ClaimedState, error) {
	s.inputs, s.claims = append(s.inputs, in), append(s.claims, claim)
	return incremental.ClaimedState{Refused: &incremental.Refusal{Type: "other", Message: claim.Name}}, s.fail(nil)
}

func (s *stateTool) MoveState(_ context.Context, _ interpreter.ToolInput, write incremental.StateWrite) error {
	s.moves = append(s.moves, write)
	return s.fail(&write)
}

// runState makes the activity for states with a tool.
func runState(t *testing.T, store *stateTool, waited time.Duration, in interpreter.StateInput) (interpreter.StateOutput, error) {
	t.Helper()
	catalogue := activities.NewCatalogue(activities.Resources{})
	require.NoError(t, catalogue.RegisterTool(store))
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(func(ctx context.Context, in interpreter.StateInput) (interpreter.StateOutput, error) {
		return catalogue.States.ApplyAfter(ctx, waited, in)
	}, activity.RegisterOptions{Name: interpreter.StateActivity})
	value, err := env.ExecuteActivity(interpreter.StateActivity, in)
	var out interpreter.StateOutput
	if err == nil {
		require.NoError(t, value.Get(&out))
	}
	return out, err
}

// TestStateOfAPlace: the tool of the destination is asked, with its fields and without what makes an
// attempt wait.
func TestStateOfAPlace(t *testing.T) {
	t.Parallel()
	store := &stateTool{fail: func(*incremental.StateWrite) error { return nil }}
	place := &interpreter.ToolInput{
		Tool: "keeps", Step: "orders", Fields: map[string]expression.Value{"table": expression.Of("orders")}, ControlID: "run",
	}
	out, err := runState(t, store, 0, interpreter.StateInput{Place: place, Claim: &incremental.Claim{Name: "s", Holder: "a"}})
	require.NoError(t, err)
	require.Equal(t, "s", out.Claimed.Refused.Message)
	require.Equal(t, "orders", store.inputs[0].Fields["table"].Data)
	require.Empty(t, store.inputs[0].ControlID)
	_, err = runState(t, store, 0, interpreter.StateInput{Place: place, Moves: []incremental.Moves{{Writes: []incremental.StateWrite{{Name: "s", Number: 1}, {Name: "t", Number: 2}}}}})
	require.NoError(t, err)
	require.Equal(t, []string{"s", "t"}, []string{store.moves[0].Name, store.moves[1].Name})
	place.Tool = "http"
	_, err = runState(t, store, 0, interpreter.StateInput{Place: place, Claim: &incremental.Claim{Name: "s", Holder: "a"}})
	require.ErrorContains(t, err, `no tool "http" that keeps the state of a step`)
}

// TestDeliveriesOfAnHour: a destination may be away for an hour, in which an activity is delivered less
// often than it may be (mostDeliveries in workflows).
func TestDeliveriesOfAnHour(t *testing.T) {
	t.Parallel()
	place := &interpreter.ToolInput{Tool: "keeps"}
	store := &stateTool{fail: func(*incremental.StateWrite) error {
		return &tool.Error{Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable, Message: "it is away"}
	}}
	moves := []incremental.Moves{{Writes: []incremental.StateWrite{{Name: "s", Number: 1}}}}
	deliveries := 0
	for away := time.Duration(0); away < time.Hour-time.Minute; deliveries++ {
		_, err := runState(t, store, away, interpreter.StateInput{Place: place, Moves: moves})
		var failure *temporal.ApplicationError
		require.ErrorAs(t, err, &failure)
		require.False(t, failure.NonRetryable(), "after %s", away)
		require.GreaterOrEqual(t, failure.NextRetryDelay(), time.Second)
		var object interpreter.ErrorObject
		require.NoError(t, failure.Details(&object))
		require.Equal(t, []string{"the state s is out of reach: it is away", "it is away"}, []string{object.Message, object.Cause})
		away += failure.NextRetryDelay()
	}
	require.Less(t, deliveries, 500)
}

// TestStateErrors: a destination that is away is asked again for an hour; a state that somebody
// else has taken is not, and keeps no other move back.
func TestStateErrors(t *testing.T) {
	t.Parallel()
	away := &tool.Error{Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable, Message: "it is away"}
	moved := &tool.Error{Kind: interpreter.KindIncremental, Class: interpreter.ClassFinal, Type: incremental.TypeMoved, Final: true, Message: "it is another's"}
	two := []incremental.Moves{
		{Writes: []incremental.StateWrite{{Name: "s", Number: 1}, {Name: "t", Number: 1}}}, {Group: "another", Writes: []incremental.StateWrite{{Name: "u", Number: 1}}},
	}
	for name, row := range map[string]struct {
		err     error
		waited  time.Duration
		again   bool
		moves   int
		message string
	}{
		"away":      {away, 0, true, 1, "it is away"},
		"away long": {away, 2 * time.Hour, false, 1, "it is away"},
		"moved":     {moved, 0, false, 3, "it is another's"},
		"a mistake": {tool.ConfigErrorf("no connection"), 0, false, 1, "no connection"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &stateTool{fail: func(write *incremental.StateWrite) error {
				if write.Name == "s" {
					return row.err
				}
				return nil
			}}
			_, err := runState(t, store, row.waited, interpreter.StateInput{Place: &interpreter.ToolInput{Tool: "keeps"}, Moves: two})
			require.ErrorContains(t, err, row.message)
			require.Len(t, store.moves, row.moves)
			var failure *temporal.ApplicationError
			require.ErrorAs(t, err, &failure)
			require.Equal(t, row.again, !failure.NonRetryable())
			var object interpreter.ErrorObject
			require.NoError(t, failure.Details(&object))
			if name == "moved" {
				require.Equal(t, incremental.TypeMoved, object.Type)
				require.True(t, object.Final)
			}
		})
	}
}
