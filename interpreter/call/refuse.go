package call

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter"
	"reprise/interpreter/call/page"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
	"reprise/interpreter/source"
)

// Bounds of a failure that a policy makes of an answer, in characters; the bound of its body
// in bytes of JSON.
const (
	// maxFailMessage bounds the message that a policy gives a failure, in characters: its
	// template may render a whole answer, and the message is in histories, logs and lists.
	maxFailMessage = 4 << 10
	// maxFailType bounds the type that a policy gives a failure, in characters, so that its
	// bytes fit MaxErrorType.
	maxFailType = interpreter.MaxErrorType / 4
	// maxFailBody bounds the body of such a failure, in bytes of JSON, as tool.MaxErrorBody
	// does for answers that failed.
	maxFailBody = 16 << 10
)

// beforeAnswer is what an answer changes in a call before the policies rule on it: a
// policy that refuses the answer undoes the change.
type beforeAnswer struct {
	successes int
	last      lastAttempt
	counters  retry.Counters
}

// beforeAnswer keeps what a success would change, where a policy may refuse it.
func (s *State) beforeAnswer(outcome interpreter.Outcome, policies page.Policies) *beforeAnswer {
	refuses := func(policy *playbook.Policy) bool { return policy.Then.Fail != nil }
	if outcome.Failed() || !slices.ContainsFunc(policies, refuses) {
		return nil
	}
	counters := s.Counters
	counters.Policies = slices.Clone(counters.Policies)
	return &beforeAnswer{successes: s.Successes, last: s.Last, counters: counters}
}

// restoreBefore undoes what the answer has changed.
func (s *State) restoreBefore(before beforeAnswer) {
	s.Successes, s.Last, s.Counters = before.successes, before.last, before.counters
}

// rewordFailure gives a failure that ends the call the message of the policy that matched it, with its class and type. A failure that a
// policy has made of an answer has them.
func (c *Call) rewordFailure(failure *interpreter.ErrorObject, d decided) error {
	then := c.config.Policies.Then(d.Policy)
	if then.Fail == nil || c.refused != nil || d.Ruling != retry.RulingStands {
		return nil
	}
	own, err := c.config.answerFailure(d, c.newReader().policyScope(), interpreter.Outcome{}, failure.Message)
	if err != nil {
		return err
	}
	failure.Message = own.Message
	if then.Class != "" {
		failure.Class = own.Class
	}
	if own.Type != "" {
		failure.Type = own.Type
	}
	return nil
}

// answerFailure is the failure that a policy makes of an answer, in the scope of its then. Its message is message where the policy has
// none.
func (c *Config) answerFailure(d decided, scope *interpreter.Scope, answer interpreter.Outcome, message string) (*interpreter.ErrorObject, error) {
	then := c.Policies.Then(d.Policy)
	texts := map[*playbook.Node]string{}
	for _, node := range []*playbook.Node{then.Fail, then.Type} {
		if node == nil {
			continue
		}
		value, err := node.Render(scope, d.budget)
		if err != nil {
			return nil, err
		}
		if value != nil {
			texts[node] = strings.TrimSpace(expression.Text(value))
		}
	}
	failure := &interpreter.ErrorObject{
		Kind: interpreter.KindResponse, Class: interpreter.ClassFinal, Message: source.Cut(texts[then.Fail], maxFailMessage),
		Type: source.Cut(texts[then.Type], maxFailType), RetryAfter: answer.Meta.RetryAfter,
		Headers: withoutCredentials(answer.Meta.Headers), Body: c.answerBody(answer), Answer: &answer.Meta,
	}
	if then.Class != "" {
		failure.Class = interpreter.Class(then.Class)
	}
	failure.Message = cmp.Or(failure.Message, message)
	if then.RetryAfter == nil {
		return failure, nil
	}
	value, err := then.RetryAfter.Render(scope, d.budget)
	if err != nil {
		return nil, err
	}
	wait, unread := interpreter.ReadWait(value, answer.Meta.Headers, d.now)
	if unread != "" {
		failure.Message += " (" + c.unreadWait(unread) + ")"
	}
	if failure.RetryAfter = nil; wait > 0 {
		seconds := wait.Seconds()
		failure.RetryAfter = &seconds
	}
	return failure, nil
}

// unreadWait says that the wait which an answer requests cannot be read, and why.
func (c *Config) unreadWait(why string) string {
	if c.Step.Secret {
		return "the requested wait cannot be parsed"
	}
	return "the requested wait cannot be parsed: " + why
}

// answerBody is an answer as the error has it: the beginning and the end of its text where it is long.
func (c *Config) answerBody(answer interpreter.Outcome) expression.Value {
	if c.Step.Secret {
		return expression.Of(playbook.Hidden)
	}
	encoded, err := expression.Encode(answer.Data)
	if err == nil && len(encoded) <= maxFailBody {
		return expression.Of(answer.Data)
	}
	return expression.Of(source.CutEnds(expression.Text(answer.Data), maxFailBody))
}

// withoutCredentials are headers as errors have them.
func withoutCredentials(headers map[string]string) map[string]string {
	var kept map[string]string
	for _, name := range playbook.SortedKeys(headers) {
		if credential.InHeader(name) {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[name] = headers[name]
	}
	return kept
}

// policySource names the shared list of `policies` that a policy comes from, for messages; "" for a policy of the step itself.
func (c *Config) policySource(policy int) string {
	if policy == 0 {
		return ""
	}
	return c.Policies[policy-1].From()
}

func (c *Config) whereThen(policy int) string {
	return fmt.Sprintf("%s: retry[%d].then%s", c.Where(), policy, c.policySource(policy))
}
