package drive

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/source"
	"reprise/workflows/control"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// StateTimeout bounds one delivery of the activity that claims and moves states.
const StateTimeout = time.Minute

// ReachState claims or moves states; place is the step, for summaries. If their store cannot be reached, for
// example because another process has locked a file, it retries. shown is called with the wait while it lasts, and
// with nil when it ends. people returns a wait that people may end: then the store is tried again at once, or given
// up. The error is ErrRenews if the wait continues in the next history.
func ReachState(
	ctx workflow.Context, input interpreter.StateInput, place string, people func() *control.OpenWait, shown func(wait *interpreter.Wait),
) (interpreter.StateOutput, error) {
	output, err := sendState(ctx, input, place, 1)
	if err == nil || ctx.Err() != nil {
		return output, err
	}
	failure := protocol.AttemptError(err)
	if failure.IsFinal() {
		return output, err
	}
	shown(&interpreter.Wait{Reason: interpreter.ReasonKeeper, Summary: failure.ShortMessage(), Cause: source.CutText(failure.Cause, protocol.MaxText)})
	defer shown(nil)
	for {
		trying, end := workflow.WithCancel(ctx)
		wait := people()
		wait.End = end
		over := control.ControlsOf(ctx).OpenWait(wait)
		output, err = sendState(trying, input, place, gate.MostDeliveries)
		over()
		if err == nil || trying.Err() == nil {
			return output, err
		}
		settlement, err := wait.WaitOutcome(ctx, err)
		if err != nil {
			return output, err
		}
		if settlement != nil && settlement.Skip {
			return output, &interpreter.ErrorObject{
				Kind: interpreter.KindExplicit, Class: interpreter.ClassFinal, Message: fmt.Sprintf("%s (%s)", settlement.SkipText(), failure.ShortMessage()),
			}
		}
	}
}

// sendState sends one request to claim or move states, with at most so many deliveries.
func sendState(ctx workflow.Context, input interpreter.StateInput, place string, tries int32) (interpreter.StateOutput, error) {
	summary := place + ": moves its state"
	switch {
	case input.Claim != nil:
		summary = place + ": claims the state " + input.Claim.Name
	case len(input.Begins) > 0:
		summary = place + ": begins to read for " + input.Begins[0].Place
	}
	to := gate.ToTool(interpreter.StateActivity, StateTimeout, summary)
	to.Tries = tries
	return gate.Send[interpreter.StateOutput](ctx, to, input, "the state of "+place)
}
