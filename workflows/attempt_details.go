package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// AttemptDetailsQuery takes an interpreter.AnswerTo that names an attempt, and returns
// its AttemptDetails: the request, for the people who are to answer it.
const AttemptDetailsQuery = "asked"

// AttemptDetails is what a workflow knows of an attempt that is answered from outside.
// One of its fields is set; none is set where the workflow knows nothing of the
// attempt, or no longer awaits its answer.
type AttemptDetails struct {
	// Awaiting is the attempt that has no answer yet; Since is zero while its request
	// is still being sent.
	Awaiting *interpreter.AwaitedDetails `json:"awaiting,omitempty"`
	// Answered is the answer that the attempt has.
	Answered *Answered `json:"answered,omitempty"`
	// Elsewhere is the ID of the workflow that accepts the answer in place of this one.
	Elsewhere string `json:"elsewhere,omitempty"`
}

// serveAttemptDetails sets the query handler for the details of an attempt.
func (c *controls) serveAttemptDetails(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, AttemptDetailsQuery, c.describeAttempt); err != nil {
		return fmt.Errorf("set query handler %s: %w", AttemptDetailsQuery, err)
	}
	return nil
}

// describeAttempt describes the attempt with an address.
func (c *controls) describeAttempt(to interpreter.AnswerTo) (AttemptDetails, error) {
	for _, one := range slices.Backward(c.Answered) {
		if one.is(to) {
			return AttemptDetails{Answered: &one}, nil
		}
	}
	for _, awaited := range c.awaited {
		if awaited.call.IsAddressed(to, awaited.sent) && !awaited.call.View().HasAnswer() {
			asking := &interpreter.AwaitedDetails{Attempt: awaited.call.View().Attempts + 1}
			asking.Approval, _ = awaited.call.Approval()
			return AttemptDetails{Awaiting: cmp.Or(awaited.call.AwaitedDetails(), asking)}, nil
		}
	}
	return AttemptDetails{Elsewhere: interpreter.AnsweredAt(c.notAwaited(to))}, nil
}

// answeredBy is an answer as it is remembered.
func answeredBy(key string, answer interpreter.Answer, taken interpreter.AnswerReceipt, at time.Time) Answered {
	return Answered{
		Key: key, Digest: answer.Digest(), Receipt: taken, Verb: answer.Verb, Option: answer.Option, By: answer.By, At: at,
	}
}
