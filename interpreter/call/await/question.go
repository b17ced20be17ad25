package await

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Question is the question that an approval asks people.
type Question struct {
	step    string
	request *request.Request
	form    []string // names of the form's fields, in the author's order
}

// NewQuestion returns the question of an attempt whose tool asks people.
func NewQuestion(step string, action *playbook.Action, request *request.Request) *Question {
	question := &Question{step: step, request: request}
	if form := action.Field("form"); form != nil {
		for _, entry := range form.Entries {
			question.form = append(question.form, entry.Key)
		}
	}
	return question
}

// ParseApproval parses the request's fields as an approval. It returns nil for other tools, and if the fields are
// invalid (Fault has the error, with which the attempt has failed).
func (q *Question) ParseApproval() *playbook.Approval {
	if q == nil {
		return nil
	}
	approval, err := q.parseApproval()
	if err != nil {
		return nil
	}
	return approval
}

func (q *Question) parseApproval() (*playbook.Approval, error) {
	fields := make(map[string]any, len(q.request.Fields))
	for _, name := range playbook.SortedKeys(q.request.Fields) {
		fields[name] = q.request.Fields[name].Data
	}
	approval, err := playbook.ParseApproval(fields)
	if err == nil {
		approval.Data = q.request.Data
		approval.SortFields(q.form)
	}
	return approval, err
}

// ApprovalError returns why the fields are no valid approval; nil if they are, and for other tools.
func (q *Question) ApprovalError() error {
	if q == nil {
		return nil
	}
	if _, err := q.parseApproval(); err != nil {
		return fmt.Errorf("step %q: the approval cannot be requested: %w", q.step, err)
	}
	return nil
}

// checkAnswer returns why an answer to the approval is refused; nil accepts it.
func (q *Question) checkAnswer(answer interpreter.Answer) error {
	approval := q.ParseApproval()
	switch {
	case answer.Verb != interpreter.AnswerComplete || approval == nil:
		return nil
	case answer.Result.Data != nil:
		return interpreter.RefusedAnswer("step %s is an approval: answer it with an option, not with a result", q.step)
	}
	var faults []string
	if !slices.Contains(approval.Options, answer.Option) {
		faults = append(faults, fmt.Sprintf("the options of step %s are %s, not %q", q.step, strings.Join(approval.Options, ", "), answer.Option))
	}
	if _, err := approval.FillForm(answer.Form, answer.Option == playbook.OptionReject); err != nil {
		faults = append(faults, err.Error())
	}
	if len(faults) > 0 {
		return interpreter.RefusedAnswer("%s", strings.Join(faults, "; "))
	}
	return nil
}

// answeredResult returns the result of an approval that has an answer.
func (q *Question) answeredResult(answer interpreter.Answer, now time.Time) any {
	result, err := q.ParseApproval().FillForm(answer.Form, true)
	if err != nil {
		result = map[string]any{} // check has refused it
	}
	result["option"], result["at"] = answer.Option, now.UTC().Format(time.RFC3339Nano)
	result["by"], result["comment"] = textOrNil(answer.By), textOrNil(answer.Comment)
	return result
}

// overdueResult returns the result of an approval that nobody answered in time; nil if on_timeout makes that a
// failure.
func (q *Question) overdueResult(now time.Time) any {
	if option := q.lateChoice(); option != "" {
		return q.answeredResult(interpreter.Answer{Option: option, Comment: "nobody answered in time"}, now)
	}
	return nil
}

// lateChoice returns the option that on_timeout selects; "" if it makes the approval fail.
func (q *Question) lateChoice() string {
	choice := q.request.Fields[playbook.FieldOnTimeout].Data
	if option := expression.Text(choice); choice != nil && option != "fail" {
		return option
	}
	return ""
}

func textOrNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}
