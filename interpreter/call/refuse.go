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

// Bounds of a failure that a policy makes of a response.
const (
	// maxFailMessage bounds the message, in characters: its template may render a whole response, and the message
	// appears in histories, logs and lists.
	maxFailMessage = 4 << 10
	// maxFailType bounds the type, in characters, so that its bytes fit MaxErrorType.
	maxFailType = interpreter.MaxErrorType / 4
	// maxFailBody bounds the body, in bytes of JSON, like tool.MaxErrorBody does for failed responses.
	maxFailBody = 16 << 10
)

// beforeAnswer holds the state that a response changes before the policies rule on it: a policy that refuses the
// response restores it.
type beforeAnswer struct {
	successes int
	last      lastAttempt
	counters  retry.Counters
}

// beforeAnswer saves what a success would change; nil if no policy can refuse it.
func (s *State) beforeAnswer(outcome interpreter.Outcome, policies page.Policies) *beforeAnswer {
	refuses := func(policy *playbook.Policy) bool { return policy.Then.Fail != nil }
	if outcome.Failed() || !slices.ContainsFunc(policies, refuses) {
		return nil
	}
	counters := s.Counters
	counters.Policies = slices.Clone(counters.Policies)
	return &beforeAnswer{successes: s.Successes, last: s.Last, counters: counters}
}

// restoreBefore undoes the changes of a refused response.
func (s *State) restoreBefore(before beforeAnswer) {
	s.Successes, s.Last, s.Counters = before.successes, before.last, before.counters
}

// rewordFailure replaces the message, class and type of a failure that ends the call by those of the policy that
// matched it. A failure that a policy made of a response already has them.
func (c *Call) rewordFailure(failure *interpreter.ErrorObject, d ruling) error {
	then := c.config.Policies.ThenOf(d.Policy)
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

// answerFailure builds the failure that a policy makes of a response; scope is that of its then. message is used if
// the policy has none.
func (c *Config) answerFailure(d ruling, scope *interpreter.Scope, answer interpreter.Outcome, message string) (*interpreter.ErrorObject, error) {
	then := c.Policies.ThenOf(d.Policy)
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
		Kind: interpreter.KindResponse, Class: interpreter.ClassFinal, Message: source.CutText(texts[then.Fail], maxFailMessage),
		Type: source.CutText(texts[then.Type], maxFailType), RetryAfter: answer.Meta.RetryAfter,
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

// unreadWait returns the warning that the wait requested by a response cannot be parsed.
func (c *Config) unreadWait(why string) string {
	if c.Step.Secret {
		return "the requested wait cannot be parsed"
	}
	return "the requested wait cannot be parsed: " + why
}

// answerBody returns a response as the body of an error; of a long one, the beginning and end of its text.
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

// withoutCredentials returns the headers without those that may contain credentials.
func withoutCredentials(headers map[string]string) map[string]string {
	var shown map[string]string
	for _, name := range playbook.SortedKeys(headers) {
		if credential.HeaderMayHoldSecret(name) {
			continue
		}
		if shown == nil {
			shown = map[string]string{}
		}
		shown[name] = headers[name]
	}
	return shown
}

// policySource names the shared list of `policies` that a policy comes from, for messages; "" for a policy of the step itself.
func (c *Config) policySource(policy int) string {
	if policy == 0 {
		return ""
	}
	return c.Policies[policy-1].OriginText()
}

func (c *Config) whereThen(policy int) string {
	return fmt.Sprintf("%s: retry[%d].then%s", c.CallPlace(), policy, c.policySource(policy))
}
