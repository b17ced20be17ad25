// Package answers delivers answers from outside to the workflows whose attempts await them: directly, or through a
// mailbox if no worker responds (docs/decisions/0023-kept-answers.md).
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

// Reasons why an answer had no effect.
var (
	// ErrNoAnswer: no worker responded in time; the answer may still take effect.
	ErrNoAnswer = errors.New("no worker responds")
	// ErrClosed means that the workflow has ended.
	ErrClosed = errors.New("the workflow has ended")
)

// MostFollowed bounds how often an answer is redirected to another workflow. Two workflows that redirect to each
// other would pass it back and forth until its timeout.
const MostFollowed = 4

// SendAnswer sends an answer to a workflow, and follows redirects to other workflows. at is the ID of the last receiver,
// and patience bounds each send. An answer that names its attempt, and is not a progress report, has the same effect
// however often it is sent, even after the workflow has ended. The error is an *interpreter.AnswerError, ErrNoAnswer
// or ErrClosed if one of them is the reason.
func SendAnswer(
	ctx context.Context, c client.Client, workflowID string, answer interpreter.Answer, patience time.Duration,
) (taken interpreter.AnswerReceipt, at string, err error) {
	for followed := range MostFollowed {
		taken, err = sendOnce(ctx, c, workflowID, answer, patience)
		if followed > 0 && errors.Is(err, ErrClosed) {
			err = cmp.Or(hasNotBegun(ctx, c, workflowID, answer), err)
		}
		next := interpreter.AnsweredAt(err)
		if next == "" || next == workflowID {
			return taken, workflowID, err
		}
		workflowID = next
	}
	return interpreter.AnswerReceipt{}, workflowID, &interpreter.AnswerError{Type: interpreter.AnswerUnknown, Message: "no workflow of the run accepts this answer"}
}

// hasNotBegun returns the error for an answer to an iteration whose workflow has not started yet; nil if it has.
func hasNotBegun(ctx context.Context, c client.Client, workflowID string, answer interpreter.Answer) error {
	if _, err := c.DescribeWorkflowExecution(ctx, workflowID, ""); !connect.IsNotFound(err) {
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
		UpdateID: UpdateID(answer), WorkflowID: workflowID, UpdateName: interpreter.AnswerUpdate, Args: []any{answer},
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

// answerError converts the error with which a workflow refused an answer.
func answerError(refusal *temporal.ApplicationError) error {
	refused := &interpreter.AnswerError{Type: refusal.Type(), Message: refusal.Message()}
	if refusal.HasDetails() {
		_ = refusal.Details(&refused.WorkflowID)
	}
	return refused
}

// UpdateID returns the ID of the update that delivers an answer. Equal answers to the same attempt have equal IDs, so that
// the server recognises a repetition even after the workflow has ended. It is "" if an equal answer may mean
// something else: for an answer that names no attempt, or a progress report to which its sender gave no ID.
func UpdateID(answer interpreter.Answer) string {
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
