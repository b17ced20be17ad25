package playbook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
)

// asRetry reads the retry of the section whose tool is known.
func asRetry[T any](set func(*T, []*Policy)) reader[T] {
	return as(WordPolicies, func(d *decoder, w written, into *T) {
		set(into, d.retry(w.node, w.at.under(w.name), w.at.tool))
	}).of(policySection)
}

// retry reads a list of policies, or an older form of it; place is where it
// is, such as "fetch.retry", and tool the tool whose failures it handles.
func (d *decoder) retry(n *yaml.Node, place, tool string) []*Policy {
	if d.broken[n] {
		return nil
	}
	if name, isUse := d.useOf(n); isUse {
		if name != nil {
			d.errorf(position(n), codeWrongType, "use belongs in a list: retry: [{use: %s}]", shorten(name.Value))
		}
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

func (d *decoder) policies(n *yaml.Node, place string) []*Policy { return d.policiesFrom(n, place, 0) }

// policiesFrom reads policies that are behind others, so many of them.
func (d *decoder) policiesFrom(n *yaml.Node, place string, before int) []*Policy {
	var policies []*Policy
	for _, item := range n.Content {
		number := before + len(policies) + 1
		if name, isUse := d.useOf(item); isUse {
			if name != nil {
				policies = append(policies, d.usedPolicies(name, place, number-1)...)
			}
			continue
		}
		if policy := d.policy(item, number, fmt.Sprintf("%s[%d]", place, number)); policy != nil {
			policies = append(policies, policy)
		}
	}
	return policies
}

var policySection = sectionOf(section{name: "retry policy", called: "a retry policy", below: thenSection}, []keyOf[Policy]{
	accept(key{name: "when", doc: "the outcomes that the policy matches", required: `when: "{{ error is defined }}"`},
		asCondition(func(p *Policy, n *Node) { p.When = n })),
	accept(key{name: "stop_when", doc: "ends the call; it is evaluated before `when`"}, asCondition(func(p *Policy, n *Node) { p.StopWhen = n })),
	accept(key{name: "then", doc: "what a match does", nullable: true}, asSection(func(p *Policy, then *Then) { p.Then = *then })),
	accept(key{name: useWord, doc: "alone in its entry: the name of the list of `policies` that is used here"}, asName(func(*Policy, string) {})),
})

func (d *decoder) policy(n *yaml.Node, number int, place string) *Policy {
	f, ok := d.fields(n, policySection, policySection.title())
	if !ok {
		return nil
	}
	policy := &Policy{Number: number, Pos: f.pos, Then: Then{Pos: f.pos, Words: Words{}}}
	d.words(f, policy, at{place: place})
	return policy
}

var thenSection = sectionOf(section{name: "then"}, []keyOf[Then]{
	accept(key{name: "max_attempts", doc: "matches until the policy is exhausted; default 3 for failures, 10,000 for pages, 100 for polls", repeats: true},
		asInteger(func(t *Then, n int) { t.MaxAttempts = &n }).from(1).byRule()),
	accept(key{name: "delay", doc: "a fixed delay, also between pages", repeats: true},
		asDelay(func(t *Then, v time.Duration) { t.Delay = &v })),
	accept(key{name: "initial_delay", doc: "the first delay; default 1s", repeats: true},
		asDelay(func(t *Then, v time.Duration) { t.InitialDelay = &v }).or(DefaultInitialDelay)),
	accept(key{name: "max_delay", doc: "the longest delay; default 60s, or `initial_delay` if longer", repeats: true},
		asDelay(func(t *Then, v time.Duration) { t.MaxDelay = &v })),
	accept(key{name: "backoff", doc: "`exponential` (default), `linear`, `fixed` or `none`", repeats: true},
		asOneOf(func(t *Then, b Backoff) { t.Backoff = b }, Exponential, Linear, Fixed, NoBackoff).or(Exponential)),
	accept(key{name: "backoff_multiplier", doc: "growth of the delay; default 2", repeats: true},
		asNumber(func(t *Then, v float64) { t.Multiplier = &v }).from(1).byRule().or(DefaultMultiplier)),
	accept(key{name: "jitter", doc: "`proportional` (default for failures), `full` or `none`", repeats: true},
		asOneOf(func(t *Then, j Jitter) { t.Jitter = j }, JitterNone, JitterProportional, JitterFull)),
	accept(key{name: "max_elapsed", doc: "time from the first match after which the policy is exhausted", repeats: true},
		asDuration(func(t *Then, v time.Duration) { t.MaxElapsed = &v })),
	accept(key{name: "max_wait", doc: "longest wait that the other side may request, such as with `Retry-After`; default 1h", repeats: true},
		asDuration(func(t *Then, v time.Duration) { t.MaxWait = &v }).or(DefaultMaxWait)),
	accept(key{name: "on_exhausted", doc: "what follows once the policy is exhausted: `fail`, `succeed`, `continue` or `pause`; left out, failures and polls fail, and pages succeed truncated, which makes the run at best a partial success"},
		asOneOf(func(t *Then, o OnExhausted) { t.OnExhausted = o }, ExhaustedFail, ExhaustedSucceed, ExhaustedContinue, ExhaustedPause)),
	accept(key{name: "ignore", doc: "`true`: a failure is an empty answer, and the call succeeds"},
		asBoolean(func(t *Then, yes bool) { t.Ignore = yes })),
	accept(key{name: "result", stepsOnly: true, doc: "the data of the call where this policy ends it as a success"},
		asValue(func(t *Then, n *Node) { t.Result = n })),
	accept(key{name: "fail", stepsOnly: true, doc: "the message with which an answer that says it worked becomes a failure of kind `response`"},
		asTextValue(func(t *Then, n *Node) { t.Fail = n })),
	accept(key{name: "class", doc: "of that failure: `final` (default), `retryable` or `rate_limited`"},
		asOneOf(func(t *Then, class string) { t.Class = class }, errorClasses...).or(DefaultFailClass)),
	accept(key{name: "type", doc: "of that failure: a name of your own, for `error.type`"}, asTextValue(func(t *Then, n *Node) { t.Type = n })),
	accept(key{name: "retry_after", doc: "how long the answer requests to wait, where its headers do not say it: seconds, a duration, a time, or seconds or milliseconds since 1970; beside `fail` that of the failure"},
		asValue(func(t *Then, n *Node) { t.RetryAfter = n })),
	accept(key{name: "restart", stepsOnly: true, doc: "`true`: after a failure the pages are dropped and the call begins again, with `incremental` at the same value; `full`: at its initial value; `max_attempts` counts the restarts, default 1"},
		as(WordBoolean, (*decoder).restart).also("full")),
	accept(key{name: "allow_repeat", doc: "allow a request or a page to come again"},
		asBoolean(func(t *Then, yes bool) { t.AllowRepeat = yes })),
	accept(key{name: "end_on_repeat", stepsOnly: true, doc: "`true`: a request or a page that comes again ends the pages, and nothing is wrong"},
		asBoolean(func(t *Then, yes bool) { t.EndOnRepeat = yes })),
	accept(key{name: "next_call", stepsOnly: true, doc: "changes to the request after a success", repeats: true},
		asSection(func(t *Then, call *NextCall) { t.NextCall = call })),
	accept(key{name: "collect", stepsOnly: true, doc: "how pages become one result"}, asSection(func(t *Then, c *Collect) { t.Collect = c })),
	accept(key{name: "sink", stepsOnly: true, older: saveWord, warned: "save", doc: "where the call's result is written, once per call"},
		asSection(func(t *Then, s *Sink) { t.Sink = s })),
	accept(key{name: "per_iteration", stepsOnly: true, aliases: []string{"per_page"}, doc: "a sink per page"},
		asSection(func(t *Then, p *perIteration) { t.PerIteration = p.sink })),
	accept(key{name: "pages_per_activity", doc: "pages that one activity fetches at most; default 50, or up to 500 within 2 seconds; 1 for an activity per page"},
		asInteger(func(t *Then, n int) { t.PagesPerActivity = n }).from(1).to(maxPagesPerActivity)),
})

// asDelay reads how long a policy waits at one point, which the operator bounds.
func asDelay(set func(*Then, time.Duration)) reader[Then] {
	return as(WordDuration, func(d *decoder, w written, then *Then) {
		if w.node.Kind == yaml.ScalarNode && strings.Contains(w.node.Value, "{{") && !d.broken[w.node] {
			d.errorf(position(w.node), codeTemplateNotAllowed,
				"%s must be written out: no template is allowed here; retry_after takes one, for a wait that the answer says", w.what)
			return
		}
		if v, ok := d.duration(w.node, w.what); ok {
			set(then, v)
			then.Delays = append(then.Delays, Delay{Word: w.name, Value: v})
		}
	})
}

// maxPagesPerActivity keeps what a lost worker costs within reason.
const maxPagesPerActivity = 1000

// repeating are the words of then that ask for another attempt; restart: true
// does so too.
var repeating = thenSection.namesOf(func(k key) bool { return k.repeats })

func (*Then) section() *section { return thenSection }

func (t *Then) decode(d *decoder, f *fields, where at) bool {
	*t = Then{Pos: f.pos, Words: f.words, Values: f.positions(Words{}, "")}
	for _, k := range f.keys {
		if spelt, ok := d.spelt[f.values[k.name]]; ok {
			if t.spelt == nil {
				t.spelt = map[string]string{}
			}
			t.spelt[k.name] = spelt
		}
		t.Repeats = t.Repeats || k.repeats
	}
	d.words(f, t, where)
	t.Repeats = t.Repeats || t.Restart
	return true
}

// restart reads true, false, or full, which is true of a call that forgets its state.
func (d *decoder) restart(w written, then *Then) {
	n := w.node
	switch text := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && !d.broken[n]; {
	case text && slices.Contains(w.domain.accepted, n.Value):
		then.Restart, then.RestartFull = true, true
	case text && d.literal(n, w.what):
		d.errorf(position(n), codeWrongType, "%s must be true, false or full, not %s", w.what, describeYAML(n))
	case !text:
		then.Restart = d.boolean(n, w.what)
	}
}

// perIteration is the section of that name.
type perIteration struct{ sink *Sink }

var perIterationSection = sectionOf(section{name: "per_iteration"}, []keyOf[perIteration]{
	accept(key{name: "sink", older: saveWord, warned: "save", doc: "where each page is written", required: innerSink},
		asSection(func(p *perIteration, s *Sink) { p.sink = s })),
})

func (*perIteration) section() *section { return perIterationSection }

func (p *perIteration) decode(d *decoder, f *fields, where at) bool {
	d.words(f, p, where)
	return true
}

var nextCallSection = sectionOf(section{name: "next_call", prefix: "next_call."}, []keyOf[NextCall]{
	accept(key{name: "args", doc: "merged into the args; fields that name args are rendered again"},
		asMap(func(c *NextCall, n *Node) { c.Args = n })),
	accept(key{name: "params", doc: "merged per key; null removes one"}, asMap(func(c *NextCall, n *Node) { c.Params = n })),
	accept(key{name: "headers", doc: "merged per key; null removes one"}, asMap(func(c *NextCall, n *Node) { c.Headers = n })),
	accept(key{name: "url", older: []string{"endpoint"}, doc: "the next URL, relative to the one before"},
		asTextValue(func(c *NextCall, n *Node) { c.URL = n })),
	accept(key{name: "method", doc: "replaces the method"}, asTextValue(func(c *NextCall, n *Node) { c.Method = n })),
	accept(key{name: "body", older: []string{"payload"}, doc: "a map is merged into a map at every depth, null removes a key; anything else replaces the body"}, asValue(func(c *NextCall, n *Node) { c.Body = n })),
})

func (*NextCall) section() *section { return nextCallSection }

func (c *NextCall) decode(d *decoder, f *fields, where at) bool {
	c.Pos = f.pos
	d.words(f, c, where)
	return true
}

// textValue reads text that may be a template.
func (d *decoder) textValue(n *yaml.Node, what string) *Node {
	if !d.broken[n] && (n.Kind != yaml.ScalarNode || isNull(n)) {
		d.errorf(position(n), codeWrongType, "%s must be text, not %s", what, describeYAML(n))
		return nil
	}
	return d.value(n)
}

var collectSection = sectionOf(section{name: "collect"}, []keyOf[Collect]{
	accept(key{name: "strategy", doc: "`append` (default), `replace` or `merge`"},
		asOneOf(func(c *Collect, s Strategy) { c.Strategy = s }, Append, Replace, Merge).or(Append)),
	accept(key{name: "path", doc: "dotted path into the page, with [n]; default the whole page", nullable: true},
		as(WordText, func(d *decoder, w written, c *Collect) { c.Path = d.path(w.node) })),
	accept(key{name: "into", doc: "name of what is collected; default `pages`"},
		asName(func(c *Collect, name string) { c.Into = name }).or(DefaultInto)),
	accept(key{name: "optional", doc: "a missing path adds nothing; where no page has it the result is an empty list, or map with `merge`"},
		asBoolean(func(c *Collect, yes bool) { c.Optional = yes })),
})

func (*Collect) section() *section { return collectSection }

func (c *Collect) decode(d *decoder, f *fields, where at) bool {
	*c = Collect{Pos: f.pos, Words: f.words, Strategy: Append, Into: DefaultInto}
	d.words(f, c, where)
	return true
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
	if plain, ok := plainPath(text); ok {
		d.errorf(position(n), codePath, "%s is JSONPath; a path here is dotted, and a list is collected with all its elements: write path: %s", shorten(text), plain)
	} else if _, err := expression.ParsePath(text); err != nil {
		d.errorf(position(n), codePath, "the path of collect cannot be read: %s", err)
	}
	return text
}

// plainPath is the dotted path of a JSONPath that leads to one value or to all
// elements of a list.
func plainPath(text string) (string, bool) {
	plain, ok := strings.CutPrefix(text, "$")
	if !ok {
		return "", false
	}
	plain = strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(plain, "[*]"), ".*"), ".")
	if _, err := expression.ParsePath(plain); err != nil || plain == "" {
		return "", false
	}
	return plain, true
}
