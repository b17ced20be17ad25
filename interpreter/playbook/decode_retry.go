package playbook

import (
	"fmt"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
)

// retry reads a list of policies, or an older form of it; place is where it
// stands, such as "fetch.retry", and tool the tool whose failures it handles.
func (d *decoder) retry(n *yaml.Node, place, tool string) []*Policy {
	if d.broken[n] {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return d.olderRetry(n, place, tool)
	}
	return d.policies(n, place)
}

// olderRetry reads an older form and warns of it, unless there is worse to say.
func (d *decoder) olderRetry(n *yaml.Node, place, tool string) []*Policy {
	list := d.legacyRetry(n, tool)
	if list == nil {
		return nil
	}
	before := len(d.found)
	policies := d.policies(list, place)
	if !d.found[before:].HasErrors() {
		d.deprecated(n, list)
	}
	return policies
}

func (d *decoder) policies(n *yaml.Node, place string) []*Policy {
	var policies []*Policy
	for i, item := range n.Content {
		if policy := d.policy(item, i+1, fmt.Sprintf("%s[%d]", place, i+1)); policy != nil {
			policies = append(policies, policy)
		}
	}
	return policies
}

func (d *decoder) policy(n *yaml.Node, number int, place string) *Policy {
	f, ok := d.fields(n, policySection, "a retry policy")
	if !ok {
		return nil
	}
	policy := &Policy{Number: number, Pos: f.pos, Then: Then{Pos: f.pos, Words: Words{}}}
	if d.require(f, "a retry policy", "when", `when: "{{ error is defined }}"`) {
		policy.When = d.condition(f.get("when"), "when")
	}
	if n := f.get("stop_when"); n != nil {
		policy.StopWhen = d.condition(n, "stop_when")
	}
	if n := f.get("then"); n != nil && !isNull(n) {
		if then, ok := d.fields(n, thenSection, "then"); ok {
			policy.Then = d.then(then, place+".then")
		}
	}
	return policy
}

// repeating are the words of then that ask for another attempt; restart: true
// does so too.
var repeating = []string{
	"max_attempts", "next_call", "delay", "initial_delay", "max_delay",
	"backoff", "backoff_multiplier", "jitter", "max_elapsed", "max_wait",
}

func (d *decoder) then(f *fields, place string) Then {
	then := Then{Pos: f.pos, Words: f.words, Values: f.places(Words{}, "")}
	for _, name := range f.names {
		if spelt, ok := d.spelt[f.values[name]]; ok {
			if then.spelt == nil {
				then.spelt = map[string]string{}
			}
			then.spelt[name] = spelt
		}
	}
	for _, word := range repeating {
		then.Repeats = then.Repeats || f.words.Has(word)
	}
	d.thenNumbers(f, &then)
	d.thenWords(f, &then)
	then.Repeats = then.Repeats || then.Restart
	if n := f.get("result"); n != nil {
		then.Result = d.value(n)
	}
	if n := f.get("next_call"); n != nil {
		then.NextCall = d.nextCall(n)
	}
	if n := f.get("collect"); n != nil {
		then.Collect = d.collect(n)
	}
	if n := f.get("sink"); n != nil {
		then.Sink = d.sink(n, place+".sink")
	}
	if n := f.get("per_iteration"); n != nil {
		then.PerIteration = d.innerSink(n, perIterationSection, "per_iteration", place+".per_iteration.sink")
	}
	return then
}

func (d *decoder) thenNumbers(f *fields, then *Then) {
	if n := f.get("max_attempts"); n != nil {
		if v, ok := d.integer(n, "max_attempts"); ok {
			then.MaxAttempts = &v
		}
	}
	if n := f.get("backoff_multiplier"); n != nil {
		if v, ok := d.number(n, "backoff_multiplier"); ok {
			then.Multiplier = &v
		}
	}
	for _, length := range []struct {
		word string
		into **time.Duration
	}{
		{"delay", &then.Delay},
		{"initial_delay", &then.InitialDelay},
		{"max_delay", &then.MaxDelay},
		{"max_elapsed", &then.MaxElapsed},
		{"max_wait", &then.MaxWait},
	} {
		if n := f.get(length.word); n != nil {
			if v, ok := d.duration(n, length.word); ok {
				*length.into = &v
			}
		}
	}
}

func (d *decoder) thenWords(f *fields, then *Then) {
	if n := f.get("backoff"); n != nil {
		then.Backoff = Backoff(d.oneOf(n, "backoff", "exponential", "linear", "fixed", "none"))
	}
	if n := f.get("jitter"); n != nil {
		then.Jitter = Jitter(d.oneOf(n, "jitter", "none", "proportional", "full"))
	}
	if n := f.get("on_exhausted"); n != nil {
		then.OnExhausted = OnExhausted(d.oneOf(n, "on_exhausted", "fail", "succeed", "continue"))
	}
	if n := f.get("pages_per_activity"); n != nil {
		if v, ok := d.integer(n, "pages_per_activity"); ok {
			then.PagesPerActivity = d.within(n, "pages_per_activity", v, 1, maxPagesPerActivity)
		}
	}
	if n := f.get("allow_repeat"); n != nil {
		then.AllowRepeat = d.boolean(n, "allow_repeat")
	}
	if n := f.get("end_on_repeat"); n != nil {
		then.EndOnRepeat = d.boolean(n, "end_on_repeat")
	}
	if n := f.get("ignore"); n != nil {
		then.Ignore = d.boolean(n, "ignore")
	}
	if n := f.get("restart"); n != nil {
		then.Restart = d.boolean(n, "restart")
	}
}

func (d *decoder) nextCall(n *yaml.Node) *NextCall {
	f, ok := d.fields(n, nextCallSection, "next_call")
	if !ok {
		return nil
	}
	call := &NextCall{Pos: f.pos}
	if n := f.get("args"); n != nil {
		call.Args = d.mapOrTemplate(n, "next_call.args")
	}
	if n := f.get("params"); n != nil {
		call.Params = d.mapOrTemplate(n, "next_call.params")
	}
	if n := f.get("headers"); n != nil {
		call.Headers = d.mapOrTemplate(n, "next_call.headers")
	}
	if n := f.get("url"); n != nil {
		call.URL = d.textValue(n, "next_call.url")
	}
	if n := f.get("method"); n != nil {
		call.Method = d.textValue(n, "next_call.method")
	}
	if n := f.get("body"); n != nil {
		call.Body = d.value(n)
	}
	return call
}

// textValue reads text that may be a template.
func (d *decoder) textValue(n *yaml.Node, what string) *Node {
	if !d.broken[n] && (n.Kind != yaml.ScalarNode || isNull(n)) {
		d.errorf(position(n), CodeWrongType, "%s must be text, not %s", what, describeYAML(n))
		return nil
	}
	return d.value(n)
}

func (d *decoder) collect(n *yaml.Node) *Collect {
	f, ok := d.fields(n, collectSection, "collect")
	if !ok {
		return nil
	}
	collect := &Collect{Pos: f.pos, Words: f.words, Strategy: Append, Into: DefaultInto}
	if n := f.get("strategy"); n != nil {
		if strategy := d.oneOf(n, "strategy", "append", "replace", "merge"); strategy != "" {
			collect.Strategy = Strategy(strategy)
		}
	}
	if n := f.get("path"); n != nil && !isNull(n) {
		collect.Path = d.path(n)
	}
	if n := f.get("into"); n != nil {
		collect.Into, _ = d.name(n, "into")
	}
	if n := f.get("optional"); n != nil {
		collect.Optional = d.boolean(n, "optional")
	}
	return collect
}

// path reads a dotted path into a page.
func (d *decoder) path(n *yaml.Node) string {
	text, ok := d.text(n, "path")
	if !ok {
		return ""
	}
	if text == "" {
		return text
	}
	if _, err := expression.ParsePath(text); err != nil {
		d.errorf(position(n), CodePath, "the path of collect cannot be read: %s", err)
	}
	return text
}

// maxPagesPerActivity keeps what a lost worker costs within reason.
const maxPagesPerActivity = 1000

// within reports a number that is out of bounds and gives it all the same.
func (d *decoder) within(n *yaml.Node, what string, v, least, most int) int {
	if v < least || v > most {
		d.errorf(position(n), CodeBounds, "%s must be from %d to %d, not %d", what, least, most, v)
	}
	return v
}
