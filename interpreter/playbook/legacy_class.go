package playbook

import (
	"time"

	"gopkg.in/yaml.v3"
)

// classForm is retry: {max_attempts: 8, initial_backoff: 60s, …}. It tries
// again what may pass by itself: classes retryable and rate_limited.
var classForm = &form{
	name:    "the form of initial_backoff",
	own:     []string{"initial_backoff", "max_backoff"},
	section: classSection,
	convert: convertClass,
}

var classSection = &section{name: "retry by class", keys: []key{
	{name: "max_attempts", doc: "attempts in all; default 8"},
	{name: "initial_backoff", doc: "the first delay; default 60s"},
	{name: "max_backoff", doc: "the longest delay; default 1h"},
	{name: "backoff_multiplier", doc: "growth of the delay; default 2"},
}}

const (
	defaultClassAttempts = 8
	defaultFirstBackoff  = time.Minute
	defaultLongBackoff   = time.Hour
)

func convertClass(l *legacy) []*yaml.Node {
	l.attempts()
	l.multiplier()
	l.inOrder("initial_backoff", l.length("initial_backoff", defaultFirstBackoff),
		"max_backoff", l.length("max_backoff", defaultLongBackoff))
	p := l.policy()
	p.when = p.condition("error.class in ['retryable', 'rate_limited']", "")
	if !p.keep("max_attempts") {
		p.maxAttempts(defaultClassAttempts, "")
	}
	if !p.rename("initial_backoff", "initial_delay") {
		p.text("initial_delay", DurationText(defaultFirstBackoff), "")
	}
	p.keep("backoff_multiplier")
	if !p.rename("max_backoff", "max_delay") {
		p.text("max_delay", DurationText(defaultLongBackoff), "")
	}
	p.jitter("none")
	return []*yaml.Node{p.done()}
}

// length reads a duration; -1 if it has reported why it cannot.
func (l *legacy) length(word string, fallback time.Duration) time.Duration {
	n := l.values[word]
	if n == nil {
		return fallback
	}
	if v, ok := l.duration(n, word); ok {
		return v
	}
	return -1
}

func (l *legacy) attempts() {
	n := l.values["max_attempts"]
	if n == nil {
		return
	}
	if v, ok := l.integer(n, "max_attempts"); ok && v < 1 {
		l.errorf(position(n), codeBounds, "max_attempts must be at least 1, not %d: it counts the first attempt, so 1 means no retry", v)
	}
}
