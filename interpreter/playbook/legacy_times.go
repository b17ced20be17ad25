package playbook

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/lists"
)

// secondsForm is retry: {max_retries: 3, initial_delay_secs: 10, …}. It counts the attempts after the first, and
// selects failures by their cause.
var secondsForm = &form{
	name:    "the form of max_retries",
	own:     []string{"max_retries", "initial_delay_secs", "max_delay_secs", "retry_on"},
	section: secondsSection,
	convert: convertSeconds,
}

var secondsSection = &section{name: "retry in seconds", keys: []key{
	{name: "max_retries", doc: "attempts after the first"},
	{name: "initial_delay_secs", doc: "the first delay; default 5"},
	{name: "backoff_multiplier", doc: "the factor by which the delay grows; default 2"},
	{name: "max_delay_secs", doc: "the longest delay; default 300"},
	{name: "retry_on", doc: "a list of `timeout`, `webhook_failure`, `explicit`; default every failure"},
}}

const (
	defaultInitialSeconds = 5
	defaultMaxSeconds     = 300
)

func convertSeconds(l *legacy) []*yaml.Node {
	retries, ok := l.maxRetries()
	if !ok {
		return nil
	}
	initial, longest := l.secondsBetween()
	l.readMultiplier()
	p := l.newPolicy()
	p.when = p.retryOn()
	p.whenKey = l.keys["retry_on"]
	p.maxAttempts(retries+1, "max_retries")
	p.setText("initial_delay", DurationText(initial), "initial_delay_secs")
	p.copyWord("backoff_multiplier")
	p.setText("max_delay", DurationText(longest), "max_delay_secs")
	p.addJitter("none")
	return []*yaml.Node{p.policyEntry()}
}

func (l *legacy) maxRetries() (int, bool) {
	n := l.values["max_retries"]
	if n == nil {
		l.Errorf(positionOf(l.node), CodeMissingKey, "retry in the form of max_retries needs %q, for example max_retries: 3", "max_retries")
		return 0, false
	}
	v, ok := l.readInteger(n, "max_retries")
	if ok && v < 1 {
		l.Errorf(positionOf(n), CodeBounds, "max_retries must be at least 1, not %d: it counts the attempts after the first; for no retries, remove retry", v)
		return 0, false
	}
	return v, ok
}

// secondsBetween reads the delays and checks their bounds.
func (l *legacy) secondsBetween() (initial, longest time.Duration) {
	initial = l.durationInUnit("initial_delay_secs", time.Second, defaultInitialSeconds)
	longest = l.durationInUnit("max_delay_secs", time.Second, defaultMaxSeconds)
	if n := l.values["initial_delay_secs"]; n != nil && initial < time.Second && initial >= 0 {
		l.Errorf(positionOf(n), CodeBounds, "initial_delay_secs must be at least 1, not %s", n.Value)
		return initial, longest
	}
	l.checkDelayOrder("initial_delay_secs", initial, "max_delay_secs", longest)
	return initial, longest
}

// durationInUnit reads a number of seconds or milliseconds; -1 if it is invalid and was reported.
func (l *legacy) durationInUnit(word string, unit time.Duration, fallback float64) time.Duration {
	const most = 1e9 // more than 30 years of seconds
	n := l.values[word]
	if n == nil {
		return time.Duration(fallback * float64(unit))
	}
	v, ok := l.readNumber(n, word)
	switch {
	case !ok:
		return -1
	case v < 0:
		l.Errorf(positionOf(n), CodeBounds, "%s must not be negative, not %s", word, n.Value)
		return -1
	case v > most:
		l.Errorf(positionOf(n), CodeBounds, "%s must be at most %.0f, not %s", word, most, n.Value)
		return -1
	}
	return time.Duration(v * float64(unit)).Round(time.Microsecond)
}

// checkDelayOrder checks that the longest delay is not shorter than the first. Both are -1 if they are invalid.
func (l *legacy) checkDelayOrder(initialWord string, initial time.Duration, longestWord string, longest time.Duration) {
	if initial < 0 || longest < 0 || longest >= initial {
		return
	}
	written, absent := l.values[longestWord], ""
	if written == nil {
		written, absent = l.values[initialWord], " where it is absent; write "+longestWord+" too"
	}
	l.Errorf(positionOf(written), CodeBounds, "%s must be at least %s, which is %s, but it is %s%s",
		longestWord, initialWord, DurationText(initial), DurationText(longest), absent)
}

func (l *legacy) readMultiplier() {
	n := l.values["backoff_multiplier"]
	if n == nil {
		return
	}
	if v, ok := l.readNumber(n, "backoff_multiplier"); ok && !(v >= 1) {
		l.Errorf(positionOf(n), CodeBounds, "backoff_multiplier must be at least 1, not %s: with 1 every delay is the same", n.Value)
	}
}

// triggers are the causes of failure that retry_on may name.
var triggers = []string{"timeout", "webhook_failure", "explicit"}

// retryOn converts the list of causes to a condition. For tools other than webhook, a failure of the call counts as
// webhook_failure.
func (p *policyDraft) retryOn() *yaml.Node {
	n := p.values["retry_on"]
	if n == nil {
		return p.ownCondition(errorDefined, "")
	}
	items, ok := p.readItems(n, "retry_on")
	if !ok {
		return p.ownCondition(errorDefined, "")
	}
	if len(items) == 0 {
		p.Errorf(positionOf(n), codeEmpty, "retry_on is empty, so nothing would be retried; list some of %s, or remove it for every failure", strings.Join(triggers, ", "))
	}
	var kinds []string
	for _, item := range items {
		trigger := p.readChoice(item, "retry_on", triggers...)
		kinds = append(kinds, trigger)
		if trigger == "webhook_failure" && p.tool != "webhook" {
			kinds = append(kinds, "http", "connection")
		}
	}
	return p.ownCondition(equalsAnyCondition("error.kind", kinds, true), "retry_on")
}

// millisecondsForm is retry: {max_attempts: 3, backoff: jittered_exponential, base_delay_ms: 1000, …}. It selects
// errors by status, kind or type.
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
	l.readAttempts()
	backoff := l.readBackoff()
	base := l.durationInUnit("base_delay_ms", time.Millisecond, defaultBaseMilliseconds)
	longest := l.durationInUnit("max_delay_ms", time.Millisecond, defaultMaxMilliseconds)
	// A fixed delay was never capped.
	if backoff != "fixed" || l.values["max_delay_ms"] != nil {
		l.checkDelayOrder("base_delay_ms", base, "max_delay_ms", longest)
	}
	p := l.newPolicy()
	condition, some := p.retriableCondition()
	if !some {
		return nil
	}
	p.when, p.whenKey = condition, l.keys["retriable_errors"]
	if !p.copyWord("max_attempts") {
		p.maxAttempts(DefaultFailureAttempts, "")
	}
	switch backoff {
	case "fixed":
		p.setText("delay", DurationText(base), "base_delay_ms")
		p.setText("jitter", "none", "")
	case "linear":
		p.setText("backoff", "linear", "backoff")
		p.setText("initial_delay", DurationText(base), "base_delay_ms")
		p.setText("max_delay", DurationText(longest), "max_delay_ms")
		p.setText("jitter", "none", "")
	default:
		p.setText("initial_delay", DurationText(base), "base_delay_ms")
		p.setText("max_delay", DurationText(longest), "max_delay_ms")
		p.setText("jitter", "proportional", "backoff")
	}
	return []*yaml.Node{p.policyEntry()}
}

func (l *legacy) readBackoff() string {
	n := l.values["backoff"]
	switch {
	case n == nil:
		return "jittered_exponential"
	case n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float"):
		l.Errorf(positionOf(n), CodeLegacyRetry,
			"backoff is the way delays grow, not a number; write the factor as backoff_multiplier: %s, or the first delay as initial_delay: %s, and remove backoff",
			n.Value, n.Value)
		return ""
	}
	return l.readChoice(n, "backoff", "jittered_exponential", "fixed", "linear")
}

// ErrorKinds are the names in retriable_errors that are kinds of errors; every other name is a type, such as
// econnrefused or ValueError.
var ErrorKinds = []string{
	"http", "timeout", "connection", "tool", "explicit", "webhook_failure", "worker_lost", "exhausted", "loop", "playbook", "payload_store",
}

// ErrorClasses are the classes of failures.
var ErrorClasses = []string{DefaultFailClass, "retryable", "rate_limited"}

// allOrNone are words allowed instead of the list of errors.
var allOrNone = []string{"all", "none"}

var errorName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]*$`)

// retriableCondition converts the list of errors to a condition; it returns false if no error is retried.
func (p *policyDraft) retriableCondition() (condition *yaml.Node, some bool) {
	n := p.values["retriable_errors"]
	if n == nil {
		return p.ownCondition(errorDefined, ""), true
	}
	if n.Kind == yaml.ScalarNode {
		if !slices.Contains(allOrNone, n.Value) {
			p.Errorf(positionOf(n), CodeWrongValue, "retriable_errors must be all, none or a list, such as [429, timeout], not %s", describeYAML(n))
		}
		return p.ownCondition(errorDefined, "retriable_errors"), n.Value == "all"
	}
	items, ok := p.readItems(n, "retriable_errors")
	if !ok {
		return nil, false
	}
	if len(items) == 0 {
		p.Errorf(positionOf(n), codeEmpty, "retriable_errors is empty; write none for no retries, or name errors such as 429 or timeout")
		return nil, false
	}
	var statuses, kinds, types []string
	for _, item := range items {
		switch {
		case item.Kind == yaml.ScalarNode && item.ShortTag() == "!!int":
			statuses = append(statuses, p.statusText(item))
		case item.Kind == yaml.ScalarNode && slices.Contains(allOrNone, item.Value):
			p.Errorf(positionOf(item), CodeWrongValue, "%s is not the name of an error; write it without the list: retriable_errors: %s", item.Value, item.Value)
		case item.Kind == yaml.ScalarNode && item.ShortTag() == "!!str" && errorName.MatchString(item.Value):
			if slices.Contains(ErrorKinds, item.Value) {
				kinds = append(kinds, item.Value)
			} else {
				types = append(types, item.Value)
			}
		default:
			p.Errorf(positionOf(item), CodeWrongValue, "retriable_errors must name statuses such as 429, kinds such as timeout, or types such as econnrefused, not %s", describeYAML(item))
		}
	}
	parts := slices.DeleteFunc([]string{
		equalsAnyCondition("error.status", statuses, false), equalsAnyCondition("error.kind", kinds, true), equalsAnyCondition("error.type", types, true),
	}, func(part string) bool { return part == "" })
	return p.ownCondition(strings.Join(parts, " or "), "retriable_errors"), true
}

func (p *policyDraft) statusText(n *yaml.Node) string {
	v, ok := p.readInteger(n, "retriable_errors")
	if ok && (v < 100 || v > 599) {
		p.Errorf(positionOf(n), CodeBounds, "a status in retriable_errors must be from 100 to 599, not %d", v)
	}
	return n.Value
}

// equalsAnyCondition returns the condition that a name has one of the values.
func equalsAnyCondition(name string, values []string, text bool) string {
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
