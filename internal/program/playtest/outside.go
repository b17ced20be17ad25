package playtest

import (
	"fmt"
	"strconv"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// answerFromOutside answers an awaiting attempt as the test says: with progress reports, then with its end.
func (s *stage) answerFromOutside(workflowID string, seen call.Observation) {
	place := s.seen.loopPlace(workflowID) + seen.Step
	who := caller{place: place, visit: seen.Visit, attempt: seen.Attempt}
	who.iteration, who.outer = s.seen.iterationAt(workflowID, seen.Index)
	said := false
	for {
		answer := s.script.nextAnswer(who, (*playbook.TestAnswer).IsForAwaited)
		if answer == nil {
			break
		}
		said = true
		s.env.RegisterDelayedCallback(func() { s.sendAnswer(workflowID, *seen.Awaits, answer) }, answer.After)
		if answer.Verb() != string(interpreter.AnswerProgress) {
			break
		}
	}
	if !said && seen.Limit == 0 && len(s.test.At) == 0 {
		needs := "{complete: {}, after: 10m}"
		if playbook.TraitsOf(seen.Tool).AsksPeople {
			needs = "{approve: {}, after: 10m}"
		}
		s.script.addMiss(unansweredRequest{who: who, request: nil, needs: needs})
		s.stopRun("an attempt waits for an answer from outside, and the test has none")
	}
}

// sendAnswer sends one answer.
func (s *stage) sendAnswer(workflowID string, to interpreter.AnswerTo, answer *playbook.TestAnswer) {
	id := fmt.Sprintf("%s/%d.%d/%d", to.Key, answer.Pos.Line, answer.Pos.Column, s.now().UnixNano())
	refused := func(err error) {
		s.script.addComplaint(answer.Pos, fmt.Sprintf("%s was refused: %v", answer.Verb(), err))
	}
	if err := s.env.UpdateWorkflowByID(workflowID, protocol.AnswerUpdate, id, ignoredUpdate(refused), toAnswer(to, answer)); err != nil {
		refused(err)
	}
}

// toAnswer converts an answer in a test to the answer to send.
func toAnswer(to interpreter.AnswerTo, answer *playbook.TestAnswer) interpreter.Answer {
	said := func(word string) string {
		if answer.Says[word] == nil {
			return ""
		}
		return expression.Text(answer.Says[word])
	}
	number := func(word string) int64 {
		n, _ := strconv.ParseInt(said(word), 10, 64) // what is no number is refused as 0 of it
		return n
	}
	form, _ := answer.Says["form"].(map[string]any)
	a := interpreter.Answer{
		AnswerTo: to, Verb: interpreter.AnswerComplete, Message: said("message"), Form: form, By: said("by"), Comment: said("comment"),
	}
	switch answer.Verb() {
	case "complete":
		a.Result = expression.Of(answer.Complete)
	case "fail":
		a.Verb = interpreter.AnswerFail
		if details := answer.Says["details"]; details != nil {
			a.Details = expression.Of(details)
		}
		if retryable, isBool := answer.Says["retryable"].(bool); isBool {
			a.Retryable = &retryable
		}
	case "progress":
		a.Verb, a.Done, a.Total = interpreter.AnswerProgress, number("done"), number("total")
	case "approve":
		if a.Option = said("option"); a.Option == "" {
			a.Option = playbook.OptionApprove
		}
	case "reject":
		a.Option = playbook.OptionReject
	}
	return a
}
