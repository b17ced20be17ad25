package await

import (
	"fmt"
	"time"

	"reprise/interpreter"
)

// Answers holds what people or other systems have sent about the current attempt. It is part of the state of a call
// and kept in workflow history.
type Answers struct {
	Answer   *interpreter.Answer           `json:"answer,omitempty"`   // to the current attempt, not applied yet
	Reported *interpreter.ReportedProgress `json:"reported,omitempty"` // the latest progress, for display
}

// CheckAnswer returns why an answer to an attempt of a step is refused; nil accepts it. question is the question of an
// approval, nil for other tools.
func CheckAnswer(answer interpreter.Answer, step string, question *Question, limits interpreter.RunLimits) error {
	if err := answer.Check(); err != nil {
		return err
	}
	if most := limits.PayloadCap(); interpreter.EncodedSize(answer) > most {
		return interpreter.OversizedAnswer(most)
	}
	if question != nil {
		return question.checkAnswer(answer)
	}
	if answer.Option != "" || len(answer.Form) > 0 {
		return interpreter.RefusedAnswer("step %s does not ask for an approval, so there is no option to choose; complete it with a result", step)
	}
	return nil
}

// Accept stores an answer that CheckAnswer has accepted. If the answer reports progress and awaited has a time limit, it
// returns the attempt with its deadline extended, otherwise nil. awaited is nil while the attempt is being sent and
// nobody awaits it yet.
func (a *Answers) Accept(answer interpreter.Answer, awaited *AnswerWait, now time.Time) (extended *AnswerWait) {
	if answer.Verb != interpreter.AnswerProgress {
		a.Answer = &answer
		return nil
	}
	a.Reported = &interpreter.ReportedProgress{Done: answer.Done, Total: answer.Total, Message: answer.Message, At: now}
	if awaited == nil || awaited.Limit == 0 {
		return nil
	}
	return awaited.extendTime(now)
}

// ConsumeAnswer consumes the answer and returns the outcome of the attempt. Without an answer, the attempt has exceeded
// its time.
func (a *Answers) ConsumeAnswer(step string, question *Question, awaited *AnswerWait, now time.Time) interpreter.Outcome {
	answer := a.Answer
	if a.Answer = nil; answer == nil {
		return a.overdueOutcome(step, question, awaited, now)
	}
	if answer.Verb == interpreter.AnswerFail {
		failure := &interpreter.ErrorObject{Kind: interpreter.KindExplicit, Class: interpreter.ClassRetryable, Message: answer.Message, Body: answer.Details}
		if answer.Retryable != nil && !*answer.Retryable {
			failure.Class = interpreter.ClassFinal
		}
		return interpreter.Outcome{Err: failure}
	}
	if question != nil {
		return interpreter.Outcome{Data: question.answeredResult(*answer, now)}
	}
	return interpreter.Outcome{Data: answer.Result.Data}
}

// overdueOutcome returns the outcome of an attempt that nobody answered in time.
func (a *Answers) overdueOutcome(step string, question *Question, awaited *AnswerWait, now time.Time) interpreter.Outcome {
	if question != nil {
		if data := question.overdueResult(now); data != nil {
			return interpreter.Outcome{Data: data}
		}
	}
	message := fmt.Sprintf("step %q: no answer within %s", step, awaited.Limit)
	if reported := a.Reported; reported != nil && reported.At.After(awaited.Since) {
		message += " of the last report: " + reported.String()
	}
	return interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable, Message: message}}
}

// DescribeAwaited describes the awaited attempt for people; nil if none is awaited, or if its answer has arrived.
func (a *Answers) DescribeAwaited(attempt int, awaited *AnswerWait, question *Question) *interpreter.AwaitedDetails {
	if awaited == nil || a.Answer != nil {
		return nil
	}
	shown := &interpreter.AwaitedDetails{Attempt: attempt, Since: awaited.Since, Until: awaited.Until, Approval: question.ParseApproval()}
	if reported := a.Reported; reported != nil {
		shown.Done, shown.Total, shown.Message, shown.Reported = reported.Done, reported.Total, reported.Message, reported.At
	}
	return shown
}

// ChosenOption returns the option with which an approval ends: the option of its answer, or of its on_timeout if nobody
// answered. It returns "" if there is none.
func (a *Answers) ChosenOption(question *Question) string {
	switch {
	case question == nil:
		return ""
	case a.Answer != nil:
		return a.Answer.Option
	}
	return question.lateChoice()
}
