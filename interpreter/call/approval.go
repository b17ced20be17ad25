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

// Approval is what the attempt under way asks people, nil where it asks none.
func (c *Call) Approval() *playbook.Approval {
	if !c.traits().AsksPeople {
		return nil
	}
	approval, err := c.parseApproval()
	if err != nil {
		return nil // the attempt has failed with it
	}
	return approval
}

func (c *Call) parseApproval() (*playbook.Approval, error) {
	fields := make(map[string]any, len(c.state.Request.Fields))
	for _, name := range playbook.SortedKeys(c.state.Request.Fields) {
		fields[name] = c.state.Request.Fields[name].Data
	}
	approval, err := playbook.ParseApproval(fields)
	if err == nil {
		approval.Data = c.state.Request.Data
	}
	return approval, err
}

// checkQuestion says why people cannot be asked what the fields of an approval give.
func (c *Call) checkQuestion() error {
	if !c.traits().AsksPeople {
		return nil
	}
	if _, err := c.parseApproval(); err != nil {
		return fmt.Errorf("step %q: the approval cannot be asked: %w", c.config.Step.Name, err)
	}
	return nil
}

// checkApproval says why an answer to an approval cannot be taken.
func (c *Call) checkApproval(answer interpreter.Answer) error {
	approval := c.Approval()
	switch {
	case answer.Verb != interpreter.AnswerComplete || approval == nil:
		return nil
	case answer.Result.Data != nil:
		return interpreter.RefusedAnswer("step %s is an approval: answer it with an option, not with a result", c.config.Step.Name)
	}
	var faults []string
	if !slices.Contains(approval.Options, answer.Option) {
		faults = append(faults, fmt.Sprintf("the options of step %s are %s, not %q", c.config.Step.Name, strings.Join(approval.Options, ", "), answer.Option))
	}
	if _, err := approval.Fill(answer.Form, answer.Option == playbook.OptionReject); err != nil {
		faults = append(faults, err.Error())
	}
	if len(faults) > 0 {
		return interpreter.RefusedAnswer("%s", strings.Join(faults, "; "))
	}
	return nil
}

// approved is the result of an approval that somebody has answered.
func (c *Call) approved(answer interpreter.Answer, now time.Time) any {
	result, err := c.Approval().Fill(answer.Form, true)
	if err != nil {
		result = map[string]any{} // checkApproval has refused it
	}
	result["option"], result["at"] = answer.Option, now.UTC().Format(time.RFC3339Nano)
	result["by"], result["comment"] = orNil(answer.By), orNil(answer.Comment)
	return result
}

// unapproved is the result of an approval that nobody has answered in time, nil
// where that is a failure.
func (c *Call) unapproved(now time.Time) any {
	if option := c.lateChoice(); option != "" {
		return c.approved(interpreter.Answer{Option: option, Comment: "nobody answered in time"}, now)
	}
	return nil
}

// lateChoice is the option that counts when nobody has answered in time, "" where that
// is a failure.
func (c *Call) lateChoice() string {
	choice := c.state.Request.Fields[playbook.FieldOnTimeout].Data
	if option := expression.Text(choice); choice != nil && option != "fail" {
		return option
	}
	return ""
}

// Choice is the option with which the approval ends that is under way: that of its
// answer, or without one that of its on_timeout. It is "" where there is none.
func (c *Call) Choice() string {
	switch answer := c.state.Answer; {
	case !c.traits().AsksPeople:
		return ""
	case answer != nil:
		return answer.Option
	}
	return c.lateChoice()
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}
