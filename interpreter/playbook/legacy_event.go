package playbook

import "gopkg.in/yaml.v3"

// eventForm is retry: {on_error: {…}, on_success: {…}}. The policy for errors
// comes first, wherever it is.
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
	if inner := l.event("on_error", errorSection); inner != nil {
		policies = append(policies, inner.onError())
	}
	if inner := l.event("on_success", successSection); inner != nil && len(inner.values) > 0 {
		policies = append(policies, inner.onSuccess())
	}
	return policies
}

// event reads on_error or on_success; nil if it is not there or is reported.
func (l *legacy) event(name string, s *section) *legacy {
	n := l.values[name]
	if n == nil {
		return nil
	}
	inner := &legacy{decoder: l.decoder, node: n, tool: l.tool}
	if isNull(n) {
		inner.values, inner.keys = map[string]*yaml.Node{}, map[string]*yaml.Node{}
		return inner
	}
	fields, ok := l.fields(n, s, name)
	if !ok {
		return nil
	}
	inner.index(n, s, fields)
	return inner
}

func (l *legacy) onError() *yaml.Node {
	p := l.policy()
	p.conditions("when", "", errorDefined, afterFailure)
	if !p.keep("max_attempts") {
		p.maxAttempts(DefaultFailureAttempts, "")
	}
	if !p.keep("initial_delay") {
		p.text("initial_delay", "500ms", "")
	}
	p.keep("backoff_multiplier")
	p.keep("max_delay")
	p.jitter("")
	return p.done()
}

// onSuccess repeats only where it says how to continue: a sink alone does not.
func (l *legacy) onSuccess() *yaml.Node {
	p := l.policy()
	p.conditions("while", "when", "error is not defined", afterSuccess)
	repeats := l.values["while"] != nil || l.values["next_call"] != nil
	if !p.keep("max_attempts") && repeats {
		p.maxAttempts(DefaultPolls, "")
	}
	for _, word := range []string{"next_call", "collect", "per_iteration", "sink"} {
		p.keep(word)
	}
	return p.done()
}
