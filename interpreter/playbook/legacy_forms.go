package playbook

import (
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// flatForm is retry: {max_attempts: 3, initial_delay: 1, …}, or the short forms true, {} and a number of attempts.
// Its defaults are those of the list, except that there is no jitter unless it is set.
var flatForm = &form{
	name:    "the form of initial_delay",
	own:     []string{"initial_delay", "max_delay", "jitter", "when", "retry_when", "stop_when"},
	section: flatSection,
	convert: convertFlat,
}

var flatSection = &section{name: "flat retry", keys: []key{
	{name: "max_attempts", doc: "attempts in all; default 3"},
	{name: "initial_delay", doc: "the first delay; default 1s"},
	{name: "max_delay", doc: "the longest delay; default 60s"},
	{name: "backoff_multiplier", doc: "the factor by which the delay grows; default 2"},
	{name: "jitter", doc: "`true` is proportional; default none"},
	{name: "when", doc: "the outcomes to try again; default `error is defined`"},
	{name: "retry_when", doc: "the same as `when`"},
	{name: "stop_when", doc: "ends the call"},
}}

// errorSection is on_error, which has the words of the flat form.
var errorSection = &section{name: "on_error", keys: []key{
	{name: "max_attempts"},
	{name: "initial_delay"},
	{name: "max_delay"},
	{name: "backoff_multiplier"},
	{name: "jitter"},
	{name: "when"},
	{name: "stop_when"},
}}

const errorDefined = "error is defined"

func convertFlat(l *legacy) []*yaml.Node {
	p := l.newPolicy()
	p.mergeConditions("when", "retry_when", errorDefined, anyOutcome)
	if !p.copyWord("max_attempts") {
		p.maxAttempts(DefaultFailureAttempts, "")
	}
	p.addDelays()
	p.addJitter("none")
	return []*yaml.Node{p.policyEntry()}
}

// addDelays copies the keys about delays that have the same name in a list of policies.
func (p *policyDraft) addDelays() {
	p.copyWord("initial_delay")
	p.copyWord("backoff_multiplier")
	p.copyWord("max_delay")
}

// addJitter adds jitter, which may be written as a boolean; fallback is its default, "" for that of the list.
func (p *policyDraft) addJitter(fallback string) {
	written := p.values["jitter"]
	switch {
	case written == nil && fallback == "":
	case written == nil:
		p.setText("jitter", fallback, "")
	case written.Kind == yaml.ScalarNode && written.ShortTag() == "!!bool":
		word := "proportional"
		if strings.EqualFold(written.Value, "false") {
			word = "none"
		}
		p.setText("jitter", word, "jitter")
	default:
		p.copyWord("jitter")
	}
}

// classForm is retry: {max_attempts: 8, initial_backoff: 60s, …}. It retries failures of the classes retryable and
// rate_limited.
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
	{name: "backoff_multiplier", doc: "the factor by which the delay grows; default 2"},
}}

const (
	defaultClassAttempts = 8
	defaultFirstBackoff  = time.Minute
	defaultLongBackoff   = time.Hour
)

func convertClass(l *legacy) []*yaml.Node {
	l.readAttempts()
	l.readMultiplier()
	l.checkDelayOrder("initial_backoff", l.readLength("initial_backoff", defaultFirstBackoff),
		"max_backoff", l.readLength("max_backoff", defaultLongBackoff))
	p := l.newPolicy()
	p.when = p.ownCondition("error.class in ['retryable', 'rate_limited']", "")
	if !p.copyWord("max_attempts") {
		p.maxAttempts(defaultClassAttempts, "")
	}
	if !p.renameWord("initial_backoff", "initial_delay") {
		p.setText("initial_delay", DurationText(defaultFirstBackoff), "")
	}
	p.copyWord("backoff_multiplier")
	if !p.renameWord("max_backoff", "max_delay") {
		p.setText("max_delay", DurationText(defaultLongBackoff), "")
	}
	p.addJitter("none")
	return []*yaml.Node{p.policyEntry()}
}

// readLength reads a duration; -1 if it is invalid and was reported.
func (l *legacy) readLength(word string, fallback time.Duration) time.Duration {
	n := l.values[word]
	if n == nil {
		return fallback
	}
	if v, ok := l.readDuration(n, word); ok {
		return v
	}
	return -1
}

func (l *legacy) readAttempts() {
	n := l.values["max_attempts"]
	if n == nil {
		return
	}
	if v, ok := l.readInteger(n, "max_attempts"); ok && v < 1 {
		l.Errorf(positionOf(n), CodeBounds, "max_attempts must be at least 1, not %d: it counts the first attempt, so 1 means no retry", v)
	}
}

// eventForm is retry: {on_error: {…}, on_success: {…}}. The policy for errors comes first, in either order of the
// file.
var eventForm = &form{
	name:    "the form of on_error and on_success",
	own:     []string{"on_error", "on_success"},
	section: eventSection,
	convert: convertEvents,
}

var eventSection = &section{name: "retry by event", keys: []key{
	{name: "on_error", doc: "a policy for failures; first delay 500ms"},
	{name: "on_success", doc: "a policy for successes: `while`, `max_attempts`, `next_call`, `collect`, `sink`"},
}}

var successSection = &section{name: "on_success", keys: []key{
	{name: "while"},
	{name: "when"},
	{name: "max_attempts"},
	{name: "next_call"},
	{name: "collect"},
	{name: "sink", older: saveWord, warned: "save"},
	{name: "per_iteration", aliases: []string{"per_page"}},
}}

func convertEvents(l *legacy) []*yaml.Node {
	var policies []*yaml.Node
	if inner := l.readEvent("on_error", errorSection); inner != nil {
		policies = append(policies, inner.onError())
	}
	if inner := l.readEvent("on_success", successSection); inner != nil && len(inner.values) > 0 {
		policies = append(policies, inner.onSuccess())
	}
	return policies
}

// readEvent reads on_error or on_success; nil if it is missing or was reported.
func (l *legacy) readEvent(name string, s *section) *legacy {
	n := l.values[name]
	if n == nil {
		return nil
	}
	inner := &legacy{decoder: l.decoder, node: n, tool: l.tool}
	if isNull(n) {
		inner.values, inner.keys = map[string]*yaml.Node{}, map[string]*yaml.Node{}
		return inner
	}
	fields, ok := l.readFields(n, s, name)
	if !ok {
		return nil
	}
	inner.indexFields(n, s, fields)
	return inner
}

func (l *legacy) onError() *yaml.Node {
	p := l.newPolicy()
	p.mergeConditions("when", "", errorDefined, afterFailure)
	if !p.copyWord("max_attempts") {
		p.maxAttempts(DefaultFailureAttempts, "")
	}
	if !p.copyWord("initial_delay") {
		p.setText("initial_delay", "500ms", "")
	}
	p.copyWord("backoff_multiplier")
	p.copyWord("max_delay")
	p.addJitter("")
	return p.policyEntry()
}

// onSuccess returns the policy for successes. It repeats only if it says how to continue: a sink alone does not.
func (l *legacy) onSuccess() *yaml.Node {
	p := l.newPolicy()
	p.mergeConditions("while", "when", "error is not defined", afterSuccess)
	repeats := l.values["while"] != nil || l.values["next_call"] != nil
	if !p.copyWord("max_attempts") && repeats {
		p.maxAttempts(DefaultPolls, "")
	}
	for _, word := range []string{"next_call", "collect", "per_iteration", "sink"} {
		p.copyWord(word)
	}
	return p.policyEntry()
}
