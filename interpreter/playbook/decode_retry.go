package playbook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
)

// Policy is one entry of retry: when it matches an outcome, Then applies.
type Policy struct {
	Number   int // from 1, in file order
	Pos      source.Position
	When     *Node // a condition
	StopWhen *Node // a condition, nil if missing
	Then     Then
	Lent     *Lent // nil for a policy written in the retry itself
}

// Backoff says how delays grow.
type Backoff string

// The strategies of backoff; the zero value means exponential.
const (
	Exponential Backoff = "exponential"
	Linear      Backoff = "linear"
	Fixed       Backoff = "fixed"
	NoBackoff   Backoff = "none"
)

// Jitter says how a delay is spread. The zero value is the default: proportional for failures, none for successes.
type Jitter string

// The kinds of jitter.
const (
	JitterNone         Jitter = "none"
	JitterProportional Jitter = "proportional"
	JitterFull         Jitter = "full"
)

// ExhaustionAction says what happens when a policy has used up its attempts.
type ExhaustionAction string

// The values of on_exhausted; the zero value means the default of the section retry.
const (
	ExhaustedFail     ExhaustionAction = "fail"
	ExhaustedSucceed  ExhaustionAction = "succeed"
	ExhaustedContinue ExhaustionAction = "continue"
	ExhaustedPause    ExhaustionAction = "pause"
)

// Then is what a matching policy does. Pointer fields are nil if the author left them out; their defaults depend on
// whether the match was a failure.
type Then struct {
	Pos          source.Position
	Words        Words             // keys that the author wrote
	Values       Words             // positions of their values
	spelt        map[string]string // by word, the word of an older form from which it was converted
	MaxAttempts  *int
	Delay        *time.Duration
	InitialDelay *time.Duration
	MaxDelay     *time.Duration
	Multiplier   *float64
	Backoff      Backoff
	Jitter       Jitter
	MaxElapsed   *time.Duration
	MaxWait      *time.Duration
	OnExhausted  ExhaustionAction
	AllowRepeat  bool
	// EndOnRepeat makes the call succeed, with the pages so far, if a page repeats; otherwise a repeated page makes
	// it fail.
	EndOnRepeat bool
	// Ignore turns a failure into an empty response.
	Ignore bool
	// Result is the data of a call that this policy ends as a success; nil if the author left it out.
	Result *Node
	// Fail is the message of a failure that replaces a success, nil to keep the success. Class and Type belong to
	// that failure.
	Fail  *Node
	Class string
	Type  *Node
	// RetryAfter is the wait that the response requests, nil to read its headers; with Fail, the wait of that
	// failure.
	RetryAfter *Node
	// Restart discards what was collected after a failure and starts the call again; RestartFull does so from the
	// initial value of incremental.
	Restart, RestartFull bool
	// PagesPerActivity bounds the pages that one activity fetches; 0 is the default, 1 means one activity per page.
	PagesPerActivity int
	NextCall         *NextCall
	Collect          *Collect
	Sinks            []*Sink // sinks of the call's result, in order
	PageSinks        []*Sink // sinks of each page, in order
	// Repeats is true if any word is present that causes another attempt.
	Repeats bool
	// Delays lists Delay, InitialDelay and MaxDelay in file order, without missing ones.
	Delays []Delay
}

// Delay is a word of then with a wait of the policy.
type Delay struct {
	Word  string
	Value time.Duration
}

// NextCall changes the request after a success.
type NextCall struct {
	Pos     source.Position
	Args    *Node
	Params  *Node
	Headers *Node
	URL     *Node
	Method  *Node
	Body    *Node
}

// Strategy says how pages are collected.
type Strategy string

// The strategies of collect.
const (
	Append  Strategy = "append"
	Replace Strategy = "replace"
	Merge   Strategy = "merge"
)

// Collect combines pages into one result.
type Collect struct {
	Pos      source.Position
	Words    Words // keys that the author wrote
	Strategy Strategy
	Path     string // dotted, with [n]; "" for the whole page
	Into     string // name of the collected value in expressions; "pages" by default
	Optional bool
	MergeBy  []string // columns by which collected rows are merged when the call ends, nil for none
	// Lists refuses pages that contribute anything but a list, because the author has not said that another value
	// is an element.
	Lists bool
}

// asRetry reads the retry of a section whose tool is known.
func asRetry[T any](set func(*T, []*Policy)) reader[T] {
	return readAs(WordPolicies, func(d *decoder, w written, into *T) {
		set(into, readRetry(d, w.node, w.at.under(w.name), w.at.tool))
	}).of(policySection)
}

// asSinkRetry reads the retry of a sink. There, false is not an older form: it turns off the default retry of table
// sinks.
func asSinkRetry() reader[Sink] {
	own := asRetry(func(s *Sink, policies []*Policy) { s.Action.Retry = policies })
	read := own.read
	own.read = func(d *decoder, w written, s *Sink) {
		s.Action.OwnRetry = true
		if n := w.node; n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" && strings.EqualFold(n.Value, "false") {
			return
		}
		read(d, w, s)
	}
	return own
}

// readRetry reads a list of policies, or an older form of it; place is where it is, such as "fetch.retry", and tool
// the tool whose failures it handles.
func readRetry(d *decoder, n *yaml.Node, place, tool string) []*Policy {
	if d.broken[n] {
		return nil
	}
	if name, isUse := d.useOf(n); isUse {
		if name != nil {
			d.Errorf(positionOf(n), codeWrongType, "use belongs in a list: retry: [{use: %s}]", ShortenText(name.Value))
		}
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return readOlderRetry(d, n, place, tool)
	}
	return readPolicies(d, n, place)
}

// readOlderRetry reads an older form and warns about it, unless it has errors.
func readOlderRetry(d *decoder, n *yaml.Node, place, tool string) []*Policy {
	list := d.legacyRetry(n, tool)
	if list == nil {
		return nil
	}
	before := len(d.Found)
	policies := readPolicies(d, list, place)
	if !d.Found[before:].HasErrors() {
		d.warnDeprecated(n, list)
	}
	return policies
}

func readPolicies(d *decoder, n *yaml.Node, place string) []*Policy {
	return readPoliciesFrom(d, n, place, 0)
}

// readPoliciesFrom reads policies that follow a number of others in one list.
func readPoliciesFrom(d *decoder, n *yaml.Node, place string, before int) []*Policy {
	var policies []*Policy
	for _, item := range n.Content {
		number := before + len(policies) + 1
		if name, isUse := d.useOf(item); isUse {
			if name != nil {
				policies = append(policies, readUsedPolicies(d, name, place, number-1)...)
			}
			continue
		}
		if policy := readPolicy(d, item, number, fmt.Sprintf("%s[%d]", place, number)); policy != nil {
			policies = append(policies, policy)
		}
	}
	return policies
}

var policySection = sectionOf(section{name: "retry policy", called: "a retry policy", below: thenSection}, []keyOf[Policy]{
	acceptKey(key{name: "when", doc: "the condition under which the policy decides", required: `when: "{{ error is defined }}"`},
		asCondition(func(p *Policy, n *Node) { p.When = n })),
	acceptKey(key{name: "stop_when", doc: "a condition that ends the call; it is evaluated before `when`"}, asCondition(func(p *Policy, n *Node) { p.StopWhen = n })),
	acceptKey(key{name: "then", doc: "what the policy does when it matches", nullable: true}, asSection(func(p *Policy, then *Then) { p.Then = *then })),
	acceptKey(key{name: useWord, doc: "the only key of its entry: the name of a list of `policies` to insert here"}, asName(func(*Policy, string) {})),
})

func readPolicy(d *decoder, n *yaml.Node, number int, place string) *Policy {
	f, ok := d.readFields(n, policySection, policySection.sectionTitle())
	if !ok {
		return nil
	}
	policy := &Policy{Number: number, Pos: f.pos, Then: Then{Pos: f.pos, Words: Words{}}}
	d.readWords(f, policy, at{place: place})
	return policy
}

var thenSection = sectionOf(section{name: "then"}, []keyOf[Then]{
	acceptKey(key{name: "max_attempts", doc: "how often the policy may match before it is exhausted; default 3 for failures, 10,000 for pages, 100 for polls", repeats: true},
		asInteger(func(t *Then, n int) { t.MaxAttempts = &n }).from(1).byRule()),
	acceptKey(key{name: "delay", doc: "a fixed delay, between retries or pages", repeats: true},
		asDelay(func(t *Then, v time.Duration) { t.Delay = &v })),
	acceptKey(key{name: "initial_delay", doc: "the first delay; default 1s", repeats: true},
		asDelay(func(t *Then, v time.Duration) { t.InitialDelay = &v }).or(DefaultInitialDelay)),
	acceptKey(key{name: "max_delay", doc: "the longest delay; default 60s, or `initial_delay` if longer", repeats: true},
		asDelay(func(t *Then, v time.Duration) { t.MaxDelay = &v })),
	acceptKey(key{name: "backoff", doc: "`exponential` (default), `linear`, `fixed` or `none`", repeats: true},
		asOneOf(func(t *Then, b Backoff) { t.Backoff = b }, Exponential, Linear, Fixed, NoBackoff).or(Exponential)),
	acceptKey(key{name: "backoff_multiplier", doc: "the factor by which the delay grows; default 2", repeats: true},
		asNumber(func(t *Then, v float64) { t.Multiplier = &v }).from(1).byRule().or(DefaultMultiplier)),
	acceptKey(key{name: "jitter", doc: "`proportional` (default for failures), `full` or `none`", repeats: true},
		asOneOf(func(t *Then, j Jitter) { t.Jitter = j }, JitterNone, JitterProportional, JitterFull)),
	acceptKey(key{name: "max_elapsed", doc: "how long after its first match the policy is exhausted", repeats: true},
		asDuration(func(t *Then, v time.Duration) { t.MaxElapsed = &v })),
	acceptKey(key{name: "max_wait", doc: "the longest wait that the server may request, for example with `Retry-After`; default 1h", repeats: true},
		asDuration(func(t *Then, v time.Duration) { t.MaxWait = &v }).or(DefaultMaxWait)),
	acceptKey(key{name: "on_exhausted", doc: "what happens when the policy is exhausted: `fail`, `succeed`, `continue` or `pause`. By default, failures and polls fail; pages succeed with a truncated result, and the run is at best a partial success"},
		asOneOf(func(t *Then, o ExhaustionAction) { t.OnExhausted = o }, ExhaustedFail, ExhaustedSucceed, ExhaustedContinue, ExhaustedPause)),
	acceptKey(key{name: "ignore", doc: "`true`: the call succeeds with an empty result despite the failure"},
		asBoolean(func(t *Then, yes bool) { t.Ignore = yes })),
	acceptKey(key{name: "result", stepsOnly: true, doc: "the call's result, if this policy ends the call successfully"},
		asValue(func(t *Then, n *Node) { t.Result = n })),
	acceptKey(key{name: "fail", stepsOnly: true, doc: "a message that turns a response which reports success into a failure of kind `response`; of a failure, the message with which the call ends"},
		asTextValue(func(t *Then, n *Node) { t.Fail = n })),
	acceptKey(key{name: "class", doc: "the class of the failure that `fail` makes: `final` (default), `retryable` or `rate_limited`"},
		asOneOf(func(t *Then, class string) { t.Class = class }, ErrorClasses...).or(DefaultFailClass)),
	acceptKey(key{name: "type", doc: "the `error.type` of the failure that `fail` makes, a name of your choice"}, asTextValue(func(t *Then, n *Node) { t.Type = n })),
	acceptKey(key{name: "retry_after", doc: "how long the response asks to wait, if its headers do not say: seconds, a duration, a time, or seconds or milliseconds since 1970. With `fail`, it is the `retry_after` of that failure"},
		asValue(func(t *Then, n *Node) { t.RetryAfter = n })),
	acceptKey(key{name: "restart", stepsOnly: true, doc: "`true`: after a failure, drops the pages and starts the call again, with `incremental` at the same value; `full`: at its initial value. `max_attempts` counts the restarts; default 1"},
		readAs(WordBoolean, (*decoder).readRestart).also("full")),
	acceptKey(key{name: "allow_repeat", doc: "`true`: the same request or page may come again"},
		asBoolean(func(t *Then, yes bool) { t.AllowRepeat = yes })),
	acceptKey(key{name: "end_on_repeat", stepsOnly: true, doc: "`true`: a request or page that comes again is the end of the pages, not an error"},
		asBoolean(func(t *Then, yes bool) { t.EndOnRepeat = yes })),
	acceptKey(key{name: "next_call", stepsOnly: true, doc: "what changes in the next request after a success", repeats: true},
		asSection(func(t *Then, call *NextCall) { t.NextCall = call })),
	acceptKey(key{name: "collect", stepsOnly: true, doc: "how pages are combined into one result"}, asSection(func(t *Then, c *Collect) { t.Collect = c })),
	acceptKey(key{name: "sink", stepsOnly: true, older: saveWord, warned: "save", doc: "where the call's result is written, once per call: one sink, or a list of sinks that are written in order"},
		asSome(func(t *Then, sinks []*Sink) { t.Sinks = sinks })),
	acceptKey(key{name: "per_iteration", stepsOnly: true, aliases: []string{"per_page"}, doc: "a sink per page"},
		asSection(func(t *Then, p *perIteration) { t.PageSinks = p.sinks })),
	acceptKey(key{name: "pages_per_activity", doc: "the most pages that one activity fetches; default 50, or up to 500 fast ones within 2 seconds; 1 makes an activity per page"},
		asInteger(func(t *Then, n int) { t.PagesPerActivity = n }).from(1).to(maxPagesPerActivity)),
})

// asDelay reads a wait of a policy, which the operator limits.
func asDelay(set func(*Then, time.Duration)) reader[Then] {
	return readAs(WordDuration, func(d *decoder, w written, then *Then) {
		if w.node.Kind == yaml.ScalarNode && strings.Contains(w.node.Value, "{{") && !d.broken[w.node] {
			d.Errorf(positionOf(w.node), codeTemplateNotAllowed,
				"%s must not be a template; for a wait that the response asks for, use retry_after, which may be one", w.what)
			return
		}
		if v, ok := d.readDuration(w.node, w.what); ok {
			set(then, v)
			then.Delays = append(then.Delays, Delay{Word: w.name, Value: v})
		}
	})
}

// maxPagesPerActivity bounds then.pages_per_activity: that many pages are fetched again if a worker is lost.
const maxPagesPerActivity = 1000

// RepeatingWords are the words of then that cause another attempt; restart: true does too.
var RepeatingWords = thenSection.matchingNames(func(k key) bool { return k.repeats })

// StepsOnlyWords are the words of then that are not allowed in the retry of sinks and notices.
var StepsOnlyWords = thenSection.matchingNames(func(k key) bool { return k.stepsOnly })

func (*Then) section() *section { return thenSection }

func (t *Then) decode(d *decoder, f *fields, where at) bool {
	*t = Then{Pos: f.pos, Words: f.words, Values: f.keyPositions(Words{}, "")}
	for _, k := range f.keys {
		if spelt, ok := d.spelt[f.values[k.name]]; ok {
			if t.spelt == nil {
				t.spelt = map[string]string{}
			}
			t.spelt[k.name] = spelt
		}
		t.Repeats = t.Repeats || k.repeats
	}
	d.readWords(f, t, where)
	t.Repeats = t.Repeats || t.Restart
	return true
}

// readRestart reads true, false, or full, which also discards the state of the call.
func (d *decoder) readRestart(w written, then *Then) {
	n := w.node
	switch text := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && !d.broken[n]; {
	case text && slices.Contains(w.domain.accepted, n.Value):
		then.Restart, then.RestartFull = true, true
	case text && d.isLiteral(n, w.what):
		d.Errorf(positionOf(n), codeWrongType, "%s must be true, false or full, not %s", w.what, describeYAML(n))
	case !text:
		then.Restart = d.readBoolean(n, w.what)
	}
}

// perIteration is the section per_iteration.
type perIteration struct{ sinks []*Sink }

var perIterationSection = sectionOf(section{name: "per_iteration"}, []keyOf[perIteration]{
	acceptKey(key{name: "sink", older: saveWord, warned: "save", doc: "where each page is written: one sink, or a list of sinks that are written in order", required: innerSink},
		asSome(func(p *perIteration, sinks []*Sink) { p.sinks = sinks })),
})

func (*perIteration) section() *section { return perIterationSection }

func (p *perIteration) decode(d *decoder, f *fields, where at) bool {
	d.readWords(f, p, where)
	return true
}

var nextCallSection = sectionOf(section{name: "next_call", prefix: "next_call."}, []keyOf[NextCall]{
	acceptKey(key{name: "args", doc: "merged into the `args`; fields that use `args` are rendered again"},
		asMap(func(c *NextCall, n *Node) { c.Args = n })),
	acceptKey(key{name: "params", doc: "merged key by key; null removes a key"}, asMap(func(c *NextCall, n *Node) { c.Params = n })),
	acceptKey(key{name: "headers", doc: "merged key by key; null removes a key"}, asMap(func(c *NextCall, n *Node) { c.Headers = n })),
	acceptKey(key{name: "url", older: []string{"endpoint"}, doc: "the next URL, absolute or relative to the previous one"},
		asTextValue(func(c *NextCall, n *Node) { c.URL = n })),
	acceptKey(key{name: "method", doc: "replaces the method"}, asTextValue(func(c *NextCall, n *Node) { c.Method = n })),
	acceptKey(key{name: "body", older: []string{"payload"}, doc: "a map is merged into the body at every depth, and null removes a key; any other value replaces the body"}, asValue(func(c *NextCall, n *Node) { c.Body = n })),
})

func (*NextCall) section() *section { return nextCallSection }

func (c *NextCall) decode(d *decoder, f *fields, where at) bool {
	c.Pos = f.pos
	d.readWords(f, c, where)
	return true
}

// textValue reads text that may be a template.
func (d *decoder) textValue(n *yaml.Node, what string) *Node {
	if !d.broken[n] && (n.Kind != yaml.ScalarNode || isNull(n)) {
		d.Errorf(positionOf(n), codeWrongType, "%s must be text, not %s", what, describeYAML(n))
		return nil
	}
	return d.valueNode(n)
}

var collectSection = sectionOf(section{name: "collect"}, []keyOf[Collect]{
	acceptKey(key{name: "strategy", doc: "`append` (default), `replace` or `merge`"},
		asOneOf(func(c *Collect, s Strategy) { c.Strategy = s }, Append, Replace, Merge).or(Append)),
	acceptKey(key{name: "path", doc: "dotted path into the page, with `[n]` for elements of lists; default: the whole page", nullable: true},
		readAs(WordText, func(d *decoder, w written, c *Collect) { c.Path = d.readPath(w.node) })),
	acceptKey(key{name: "into", doc: "the name of the collected value; default `pages`"},
		asName(func(c *Collect, name string) { c.Into = name }).or(DefaultInto)),
	acceptKey(key{name: "optional", doc: "`true`: a page without the path adds nothing; if no page has it, the result is an empty list, or an empty map with `merge`"},
		asBoolean(func(c *Collect, yes bool) { c.Optional = yes })),
	acceptKey(key{name: "merge_by", doc: "the columns that identify a row, one name or a list: at the end of the call, rows with the same values become one that has the fields of all, of which the last stays"},
		readAs(WordNames, func(d *decoder, w written, c *Collect) { c.MergeBy = readRowKey(d, w.node, w.what) })),
})

func (*Collect) section() *section { return collectSection }

func (c *Collect) decode(d *decoder, f *fields, where at) bool {
	*c = Collect{Pos: f.pos, Words: f.words, Strategy: Append, Into: DefaultInto}
	d.readWords(f, c, where)
	return true
}

// readPath reads a dotted path into a page.
func (d *decoder) readPath(n *yaml.Node) string {
	text, ok := d.readText(n, "path")
	if !ok {
		return ""
	}
	if text == "" {
		return text
	}
	if plain, ok := plainPath(text); ok {
		d.Errorf(positionOf(n), codePath, "%s is JSONPath; a path is dotted, and a list is collected with all its elements: write path: %s", ShortenText(text), plain)
	} else if _, err := expression.ParsePath(text); err != nil {
		d.Errorf(positionOf(n), codePath, "the path of collect is invalid: %s", err)
	}
	return text
}

// plainPath converts a JSONPath that leads to one value, or to all elements of a list, to a dotted path.
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
