// Package answers brings answers from outside to the workflows whose attempts await
// them: at once, or by way of a mailbox where no worker takes them now
// (docs/decisions/0023-kept-answers.md).
package answers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/connect"
	"reprise/interpreter"
)

// Errors of answers that had no effect.
var (
	// ErrNoAnswer: no worker responded in time; what was sent may still take effect.
	ErrNoAnswer = errors.New("no worker responds")
	// ErrClosed says that the workflow has ended.
	ErrClosed = errors.New("the workflow has ended")
)

// MostFollowed bounds how often an answer is sent on to another workflow. Two workflows that
// each name the other would send it to and fro until its timeout.
const MostFollowed = 4

// Send sends an answer to a workflow, and to another one if the workflow redirects it; at is
// the ID of the last receiver, and patience is how long each may take. An answer that says for
// which attempt it is, and is no report of progress, has the same effect however often it is
// sent, also when the workflow has ended. The error is an *interpreter.AnswerError, ErrNoAnswer
// or ErrClosed where that is why.
func Send(
	ctx context.Context, c client.Client, workflowID string, answer interpreter.Answer, patience time.Duration,
) (taken interpreter.AnswerReceipt, at string, err error) {
	for followed := range MostFollowed {
		taken, err = sendOnce(ctx, c, workflowID, answer, patience)
		if followed > 0 && errors.Is(err, ErrClosed) {
			err = cmp.Or(notBegun(ctx, c, workflowID, answer), err)
		}
		next := interpreter.AnsweredAt(err)
		if next == "" || next == workflowID {
			return taken, workflowID, err
		}
		workflowID = next
	}
	return interpreter.AnswerReceipt{}, workflowID, &interpreter.AnswerError{Type: interpreter.AnswerUnknown, Message: "no workflow of the run accepts this answer"}
}

// notBegun returns the error for an answer to an iteration that the run names but whose workflow has
// not begun; nil if it has.
func notBegun(ctx context.Context, c client.Client, workflowID string, answer interpreter.Answer) error {
	if _, err := c.DescribeWorkflowExecution(ctx, workflowID, ""); !connect.NotFound(err) {
		return nil
	}
	name := answer.Step
	if answer.Index != nil {
		name = fmt.Sprintf("%s[%d]", name, *answer.Index)
	}
	return &interpreter.AnswerError{Type: interpreter.AnswerUnknown, Message: fmt.Sprintf(
		"%s has not started, or ended so long ago that the server has deleted it", name)}
}

func sendOnce(
	ctx context.Context, c client.Client, workflowID string, answer interpreter.Answer, patience time.Duration,
) (taken interpreter.AnswerReceipt, err error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = connect.SendUpdate(limited, c, client.UpdateWorkflowOptions{
		UpdateID: ID(answer), WorkflowID: workflowID, UpdateName: interpreter.AnswerUpdate, Args: []any{answer},
	}, &taken)
	var refused *temporal.ApplicationError
	switch {
	case err == nil || ctx.Err() != nil:
		return taken, err
	case connect.UpdateEnded(err):
		return taken, fmt.Errorf("%w: %s", ErrClosed, workflowID)
	case errors.As(err, &refused) && strings.HasPrefix(refused.Type(), "answer_"):
		return taken, answerError(refused)
	case connect.UpdateTimedOut(err):
		return taken, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return taken, fmt.Errorf("answer %s: %w", workflowID, err)
}

// answerError returns the error of an answer as the workflow has returned it.
func answerError(refusal *temporal.ApplicationError) error {
	refused := &interpreter.AnswerError{Type: refusal.Type(), Message: refusal.Message()}
	if refusal.HasDetails() {
		_ = refusal.Details(&refused.WorkflowID)
	}
	return refused
}

// ID returns the ID of the update that brings an answer. It is equal for equal answers to the same
// attempt, so that the server recognises a repetition even after the workflow has ended; "" if
// an equal answer may mean something else. Reports of progress may be equal, so their IDs come
// from their senders.
func ID(answer interpreter.Answer) string {
	switch {
	case answer.Attempt == 0 || answer.Verb == interpreter.AnswerProgress && answer.ID == "":
		return ""
	case answer.Verb != interpreter.AnswerProgress:
		answer.ID = ""
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(encoded)
	return "answer-" + hex.EncodeToString(sum[:16])
}
