package call

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// question is the question of an approval that is due.
type question struct {
	step    string
	request *Request
	form    []string // names of its fields, as the author has ordered them
}

// question is that of the current attempt, nil where that is no approval.
func (c *Call) question() *question {
	if !c.traits().AsksPeople {
		return nil
	}
	asked := &question{step: c.config.Step.Name, request: &c.state.Request}
	if form := c.action.Field("form"); form != nil {
		for _, entry := range form.Entries {
			asked.form = append(asked.form, entry.Key)
		}
	}
	return asked
}

// Approval is the approval that the current attempt requests, nil for none.
func (c *Call) Approval() *playbook.Approval {
	if asked := c.question(); asked != nil {
		return asked.approval()
	}
	return nil
}

// approval is nil where the fields make no approval: the attempt has failed with that.
func (q *question) approval() *playbook.Approval {
	approval, err := q.parse()
	if err != nil {
		return nil
	}
	return approval
}

func (q *question) parse() (*playbook.Approval, error) {
	fields := make(map[string]any, len(q.request.Fields))
	for _, name := range playbook.SortedKeys(q.request.Fields) {
		fields[name] = q.request.Fields[name].Data
	}
	approval, err := playbook.ParseApproval(fields)
	if err == nil {
		approval.Data = q.request.Data
		approval.Arrange(q.form)
	}
	return approval, err
}

// fault says why the fields make no approval; nil also for other tools.
func (q *question) fault() error {
	if q == nil {
		return nil
	}
	if _, err := q.parse(); err != nil {
		return fmt.Errorf("step %q: the approval cannot be requested: %w", q.step, err)
	}
	return nil
}

// check says why an answer is refused.
func (q *question) check(answer interpreter.Answer) error {
	approval := q.approval()
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
	if _, err := approval.Fill(answer.Form, answer.Option == playbook.OptionReject); err != nil {
		faults = append(faults, err.Error())
	}
	if len(faults) > 0 {
		return interpreter.RefusedAnswer("%s", strings.Join(faults, "; "))
	}
	return nil
}

// answered is the result of an approval that somebody has answered.
func (q *question) answered(answer interpreter.Answer, now time.Time) any {
	result, err := q.approval().Fill(answer.Form, true)
	if err != nil {
		result = map[string]any{} // check has refused it
	}
	result["option"], result["at"] = answer.Option, now.UTC().Format(time.RFC3339Nano)
	result["by"], result["comment"] = orNil(answer.By), orNil(answer.Comment)
	return result
}

// overdue is the result of an approval that nobody has answered in time, nil where
// that is a failure.
func (q *question) overdue(now time.Time) any {
	if option := q.lateChoice(); option != "" {
		return q.answered(interpreter.Answer{Option: option, Comment: "nobody answered in time"}, now)
	}
	return nil
}

// lateChoice is the option that counts when nobody has answered in time, "" where that
// is a failure.
func (q *question) lateChoice() string {
	choice := q.request.Fields[playbook.FieldOnTimeout].Data
	if option := expression.Text(choice); choice != nil && option != "fail" {
		return option
	}
	return ""
}

// Choice is the option with which the current approval ends: that of its
// answer, or without one that of its on_timeout. It is "" where there is none.
func (c *Call) Choice() string {
	asked := c.question()
	switch answer := c.state.Answer; {
	case asked == nil:
		return ""
	case answer != nil:
		return answer.Option
	}
	return asked.lateChoice()
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}
