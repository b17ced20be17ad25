package playbook

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/lists"
)

// millisecondsForm is retry: {max_attempts: 3, backoff: jittered_exponential,
// base_delay_ms: 1000, …}. It picks errors by status, kind or type.
var millisecondsForm = &form{
	name:    "the form of base_delay_ms",
	own:     []string{"backoff", "base_delay_ms", "max_delay_ms", "retriable_errors"},
	section: millisecondsSection,
	convert: convertMilliseconds,
}

var millisecondsSection = &section{name: "retry in milliseconds", keys: []key{
	{name: "max_attempts", doc: "attempts in all; default 3"},
	{name: "backoff", doc: "`jittered_exponential` (default), `fixed` or `linear`"},
	{name: "base_delay_ms", doc: "the first delay; default 1000"},
	{name: "max_delay_ms", doc: "the longest delay; default 60000"},
	{name: "retriable_errors", doc: "`all` (default), `none`, or a list of statuses, kinds and types of errors"},
}}

const (
	defaultBaseMilliseconds = 1000
	defaultMaxMilliseconds  = 60_000
)

func convertMilliseconds(l *legacy) []*yaml.Node {
	l.attempts()
	backoff := l.backoff()
	base := l.inUnit("base_delay_ms", time.Millisecond, defaultBaseMilliseconds)
	longest := l.inUnit("max_delay_ms", time.Millisecond, defaultMaxMilliseconds)
	// A fixed delay was never capped.
	if backoff != "fixed" || l.values["max_delay_ms"] != nil {
		l.inOrder("base_delay_ms", base, "max_delay_ms", longest)
	}
	p := l.policy()
	condition, some := p.retriable()
	if !some {
		return nil
	}
	p.when, p.whenKey = condition, l.keys["retriable_errors"]
	if !p.keep("max_attempts") {
		p.maxAttempts(DefaultFailureAttempts, "")
	}
	switch backoff {
	case "fixed":
		p.text("delay", DurationText(base), "base_delay_ms")
		p.text("jitter", "none", "")
	case "linear":
		p.text("backoff", "linear", "backoff")
		p.text("initial_delay", DurationText(base), "base_delay_ms")
		p.text("max_delay", DurationText(longest), "max_delay_ms")
		p.text("jitter", "none", "")
	default:
		p.text("initial_delay", DurationText(base), "base_delay_ms")
		p.text("max_delay", DurationText(longest), "max_delay_ms")
		p.text("jitter", "proportional", "backoff")
	}
	return []*yaml.Node{p.done()}
}

func (l *legacy) backoff() string {
	n := l.values["backoff"]
	switch {
	case n == nil:
		return "jittered_exponential"
	case n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float"):
		l.errorf(position(n), CodeLegacyRetry,
			"backoff names how delays grow, and no version ever read a number there; write the growth as backoff_multiplier: %s, or the first delay as initial_delay: %s, and leave backoff out",
			n.Value, n.Value)
		return ""
	}
	return l.oneOf(n, "backoff", "jittered_exponential", "fixed", "linear")
}

// errorKinds are the names in retriable_errors that are kinds of errors; every
// other name is a type, such as econnrefused or ValueError.
var errorKinds = []string{
	"http", "timeout", "connection", "tool", "explicit", "webhook_failure", "worker_lost", "exhausted", "loop", "playbook", "payload_store",
}

// errorClasses are the classes of failures.
var errorClasses = []string{DefaultFailClass, "retryable", "rate_limited"}

// allOrNone may be in place of the list of errors.
var allOrNone = []string{"all", "none"}

var errorName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]*$`)

// retriable turns the list of errors into a condition; false means that no
// error is tried again.
func (p *policyDraft) retriable() (condition *yaml.Node, some bool) {
	n := p.values["retriable_errors"]
	if n == nil {
		return p.condition(errorDefined, ""), true
	}
	if n.Kind == yaml.ScalarNode {
		if !slices.Contains(allOrNone, n.Value) {
			p.errorf(position(n), codeWrongValue, "retriable_errors must be all, none or a list, such as [429, timeout], not %s", describeYAML(n))
		}
		return p.condition(errorDefined, "retriable_errors"), n.Value == "all"
	}
	items, ok := p.items(n, "retriable_errors")
	if !ok {
		return nil, false
	}
	if len(items) == 0 {
		p.errorf(position(n), codeEmpty, "retriable_errors is empty; write none for no retries, or name errors such as 429 or timeout")
		return nil, false
	}
	var statuses, kinds, types []string
	for _, item := range items {
		switch {
		case item.Kind == yaml.ScalarNode && item.ShortTag() == "!!int":
			statuses = append(statuses, p.statusText(item))
		case item.Kind == yaml.ScalarNode && slices.Contains(allOrNone, item.Value):
			p.errorf(position(item), codeWrongValue, "%s is no name of an error; write it without the list: retriable_errors: %s", item.Value, item.Value)
		case item.Kind == yaml.ScalarNode && item.ShortTag() == "!!str" && errorName.MatchString(item.Value):
			if slices.Contains(errorKinds, item.Value) {
				kinds = append(kinds, item.Value)
			} else {
				types = append(types, item.Value)
			}
		default:
			p.errorf(position(item), codeWrongValue, "retriable_errors must name statuses such as 429, kinds such as timeout, or types such as econnrefused, not %s", describeYAML(item))
		}
	}
	parts := slices.DeleteFunc([]string{
		among("error.status", statuses, false), among("error.kind", kinds, true), among("error.type", types, true),
	}, func(part string) bool { return part == "" })
	return p.condition(strings.Join(parts, " or "), "retriable_errors"), true
}

func (p *policyDraft) statusText(n *yaml.Node) string {
	v, ok := p.integer(n, "retriable_errors")
	if ok && (v < 100 || v > 599) {
		p.errorf(position(n), codeBounds, "a status in retriable_errors must be from 100 to 599, not %d", v)
	}
	return n.Value
}

// among writes the condition that a name has one of the values.
func among(name string, values []string, text bool) string {
	if text {
		values = lists.Map(values, func(value string) string { return "'" + value + "'" })
	}
	switch len(values) {
	case 0:
		return ""
	case 1:
		return name + " == " + values[0]
	}
	return name + " in [" + strings.Join(values, ", ") + "]"
}
