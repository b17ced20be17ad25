package playbook

import (
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// secondsForm is retry: {max_retries: 3, initial_delay_secs: 10, …}. It counts
// the attempts after the first, and picks failures by what set them off.
var secondsForm = &form{
	name:    "the form of max_retries",
	own:     []string{"max_retries", "initial_delay_secs", "max_delay_secs", "retry_on"},
	section: secondsSection,
	convert: convertSeconds,
}

var secondsSection = &section{name: "retry in seconds", keys: []key{
	{name: "max_retries", doc: "attempts after the first"},
	{name: "initial_delay_secs", doc: "the first delay; default 5"},
	{name: "backoff_multiplier", doc: "growth of the delay; default 2"},
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
	l.multiplier()
	p := l.policy()
	p.when = p.retryOn()
	p.whenKey = l.keys["retry_on"]
	p.maxAttempts(retries+1, "max_retries")
	p.text("initial_delay", DurationText(initial), "initial_delay_secs")
	p.keep("backoff_multiplier")
	p.text("max_delay", DurationText(longest), "max_delay_secs")
	p.jitter("none")
	return []*yaml.Node{p.done()}
}

func (l *legacy) maxRetries() (int, bool) {
	n := l.values["max_retries"]
	if n == nil {
		l.errorf(position(l.node), codeMissingKey, "retry in the form of max_retries needs %q, for example max_retries: 3", "max_retries")
		return 0, false
	}
	v, ok := l.integer(n, "max_retries")
	if ok && v < 1 {
		l.errorf(position(n), codeBounds, "max_retries must be at least 1, not %d: it counts the attempts after the first; leave retry out for no retries", v)
		return 0, false
	}
	return v, ok
}

// secondsBetween reads the delays and checks their bounds.
func (l *legacy) secondsBetween() (initial, longest time.Duration) {
	initial = l.inUnit("initial_delay_secs", time.Second, defaultInitialSeconds)
	longest = l.inUnit("max_delay_secs", time.Second, defaultMaxSeconds)
	if n := l.values["initial_delay_secs"]; n != nil && initial < time.Second && initial >= 0 {
		l.errorf(position(n), codeBounds, "initial_delay_secs must be at least 1, not %s", n.Value)
		return initial, longest
	}
	l.inOrder("initial_delay_secs", initial, "max_delay_secs", longest)
	return initial, longest
}

// inUnit reads a number of seconds or milliseconds; -1 if it has reported why
// it cannot.
func (l *legacy) inUnit(word string, unit time.Duration, fallback float64) time.Duration {
	const most = 1e9 // more than 30 years of seconds
	n := l.values[word]
	if n == nil {
		return time.Duration(fallback * float64(unit))
	}
	v, ok := l.number(n, word)
	switch {
	case !ok:
		return -1
	case v < 0:
		l.errorf(position(n), codeBounds, "%s must not be negative, not %s", word, n.Value)
		return -1
	case v > most:
		l.errorf(position(n), codeBounds, "%s must be at most %.0f, not %s", word, most, n.Value)
		return -1
	}
	return time.Duration(v * float64(unit)).Round(time.Microsecond)
}

// inOrder checks that the longest delay is not shorter than the first. Both
// are -1 where they could not be read.
func (l *legacy) inOrder(initialWord string, initial time.Duration, longestWord string, longest time.Duration) {
	if initial < 0 || longest < 0 || longest >= initial {
		return
	}
	written, absent := l.values[longestWord], ""
	if written == nil {
		written, absent = l.values[initialWord], " where it is absent; write "+longestWord+" too"
	}
	l.errorf(position(written), codeBounds, "%s must be at least %s, which is %s, but it is %s%s",
		longestWord, initialWord, DurationText(initial), DurationText(longest), absent)
}

func (l *legacy) multiplier() {
	n := l.values["backoff_multiplier"]
	if n == nil {
		return
	}
	if v, ok := l.number(n, "backoff_multiplier"); ok && !(v >= 1) {
		l.errorf(position(n), codeBounds, "backoff_multiplier must be at least 1, not %s: with 1 every delay is the same", n.Value)
	}
}

// triggers are the kinds of failure that retry_on may name.
var triggers = []string{"timeout", "webhook_failure", "explicit"}

// retryOn turns the list of triggers into a condition. On tools other than
// webhook a failure of the call stands for one of the webhook.
func (p *policyDraft) retryOn() *yaml.Node {
	n := p.values["retry_on"]
	if n == nil {
		return p.condition(errorDefined, "")
	}
	items, ok := p.items(n, "retry_on")
	if !ok {
		return p.condition(errorDefined, "")
	}
	if len(items) == 0 {
		p.errorf(position(n), codeEmpty, "retry_on is empty, so that nothing would be tried again; name some of %s, or leave it out for every failure", strings.Join(triggers, ", "))
	}
	var kinds []string
	for _, item := range items {
		trigger := p.oneOf(item, "retry_on", triggers...)
		kinds = append(kinds, trigger)
		if trigger == "webhook_failure" && p.tool != "webhook" {
			kinds = append(kinds, "http", "connection")
		}
	}
	return p.condition(among("error.kind", kinds, true), "retry_on")
}
