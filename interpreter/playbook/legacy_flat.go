package playbook

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// flatForm is retry: {max_attempts: 3, initial_delay: 1, …}, also in short as
// true, {} or a number of attempts. It has the defaults of the list but no
// jitter unless it says so.
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
	{name: "backoff_multiplier", doc: "growth of the delay; default 2"},
	{name: "jitter", doc: "`true` is proportional; default none"},
	{name: "when", doc: "the outcomes to try again; default `error is defined`"},
	{name: "retry_when", doc: "the same as `when`"},
	{name: "stop_when", doc: "ends the call"},
}}

// errorSection is on_error; it has the words of the flat form.
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
	p := l.policy()
	p.conditions("when", "retry_when", errorDefined, anyOutcome)
	if !p.keep("max_attempts") {
		p.maxAttempts(DefaultFailureAttempts, "")
	}
	p.delays()
	p.jitter("none")
	return []*yaml.Node{p.done()}
}

// delays adds the words about delays that the list has too.
func (p *policyDraft) delays() {
	p.keep("initial_delay")
	p.keep("backoff_multiplier")
	p.keep("max_delay")
}

// jitter adds jitter, which may be written as a boolean; fallback "" leaves it
// to the list's default.
func (p *policyDraft) jitter(fallback string) {
	written := p.values["jitter"]
	switch {
	case written == nil && fallback == "":
	case written == nil:
		p.text("jitter", fallback, "")
	case written.Kind == yaml.ScalarNode && written.ShortTag() == "!!bool":
		word := "proportional"
		if strings.EqualFold(written.Value, "false") {
			word = "none"
		}
		p.text("jitter", word, "jitter")
	default:
		p.keep("jitter")
	}
}
