package hosting_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

// TestALostBatchGivesWhatItHas: the calls that ended are not made again by the
// attempts that follow.
func TestALostBatchGivesWhatItHas(t *testing.T) {
	t.Parallel()

	p := &player{answer: pager(1, 0)}
	stage := newStage(t, p, activities.Resources{})
	stage.env.SetHeartbeatDetails(map[string]any{
		"calls":    []any{map[string]any{"result": interpreter.CallResult{Status: interpreter.StatusSuccess, Data: expression.Of("kept")}}, map[string]any{}},
		"delivery": attempt.DeliveryState{Delivery: 7, Acted: 3, Begun: true},
	})
	_, err := stage.tryDrive(driveInput("", "", "a", "b"))

	output := doneUntilLost(t, err)
	require.Equal(t, "kept", output.Calls[0].Result.Data.Data)
	require.Equal(t, call.Driven{}, output.Calls[1])
	require.Empty(t, p.asked)
}

// doneUntilLost is what an activity had done whose workers were lost too often.
func doneUntilLost(t *testing.T, err error) (output call.DriveOutput) {
	t.Helper()

	var application *temporal.ApplicationError

	require.ErrorAs(t, err, &application)
	require.True(t, application.NonRetryable())
	require.NoError(t, application.Details(&output))
	return output
}

// TestABatchWhoseWorkerTookInAnAnswer is given back at once: whoever ends the
// workers does so alone then, and the worker counts against it.
func TestABatchWhoseWorkerTookInAnAnswer(t *testing.T) {
	t.Parallel()

	p := &player{answer: pager(1, 0)}
	stage := newStage(t, p, activities.Resources{})
	stage.env.SetHeartbeatDetails(map[string]any{
		"calls":    []any{map[string]any{}, map[string]any{}},
		"delivery": attempt.DeliveryState{Delivery: 1, Begun: true, Receiving: []int{1}},
	})
	_, err := stage.tryDrive(driveInput("", "", "a", "b"))

	output := doneUntilLost(t, err)
	require.Equal(t, call.Driven{}, output.Calls[0])
	require.Equal(t, 1, output.Calls[1].State.Lost)
	require.Empty(t, p.asked)
}

// TestHeartbeatsOfABatchTellOfProgress: lost workers only count where nothing
// was done in between.
func TestHeartbeatsOfABatchTellOfProgress(t *testing.T) {
	t.Parallel()

	for name, further := range map[string]bool{"further": true, "no further": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			stop := make(chan struct{})
			done := 0
			p := &player{answer: func(ctx context.Context, in interpreter.ToolInput) (any, error) {
				if done++; further && done == 1 {
					return pager(1, 0)(ctx, in)
				}

				close(stop)
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			stage := newStage(t, p, activities.Resources{})
			stage.env.SetWorkerStopChannel(stop)

			var last struct{ Delivery attempt.DeliveryState }

			stage.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
				require.NoError(t, details.Get(&last))
			})
			stage.env.SetHeartbeatDetails(map[string]any{
				"calls": []any{map[string]any{}, map[string]any{}}, "delivery": attempt.DeliveryState{Delivery: 2, Acted: 2, Cut: 4, Begun: true},
			})

			in := driveInput("", "", "a", "b")
			in.Width = 1
			_, err := stage.tryDrive(in)
			require.ErrorContains(t, err, "the worker stopped")

			want := attempt.DeliveryState{Delivery: 1, Acted: 3, Cut: 5}
			if further {
				want = attempt.DeliveryState{Delivery: 1}
			}

			require.Equal(t, want, last.Delivery)
		})
	}
}
