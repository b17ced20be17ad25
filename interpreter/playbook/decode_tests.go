package playbook

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/lists"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// testSections are the sections of a file of tests, separate from those of playbooks.
var testSections = []*section{testsSection, testSection, testBeforeSection, testAnswerSection, testActSection, testExpectSection}

// TestSections returns the sections of a file of tests, for the documentation.
func TestSections() []Section { return describeSections(testSections) }

// Bounds of a file of tests.
const (
	// maxTests bounds the tests of a file, each of which is a run. Without it, a generated file could run for
	// hours.
	maxTests = 1000
	// maxTestItems bounds each list of a test: all of it is compared with what happened.
	maxTestItems = 10_000
)

// DecodeTests decodes a file of tests and reports all problems it can find, sorted by position. The tests are nil
// if nothing usable could be decoded; they may be run only if no diagnostic is an error.
func DecodeTests(file *source.File) (*Tests, source.Diagnostics) {
	d := &decoder{Problems: Problems{File: file}, broken: map[*yaml.Node]bool{}, sections: testSections}
	var tests *Tests
	if root := d.parseYAML(); root != nil && d.inspectTree(root) {
		tests = &Tests{File: file}
		if f, ok := d.readFields(root, testsSection, "a file of tests"); ok {
			d.readWords(f, tests, at{})
		}
	}
	d.Found.Sort()
	d.Found.Limit(maxProblems, CodeTooLarge)
	return tests, d.Found
}

var testsSection = sectionOf(section{name: "tests", called: "a file of tests"}, []keyOf[Tests]{
	{
		key{name: "playbook", doc: "the file of the playbook, relative to this one", required: "playbook: users.yaml"},
		readAs(WordName, func(d *decoder, w written, t *Tests) {
			t.PlaybookPos = positionOf(w.node)
			t.Playbook, _ = d.readName(w.node, w.what)
		}),
	},
	{
		key{name: "tests", doc: "a list of tests", required: "tests: [{name: …, expect: {status: completed}}]"},
		readAs(WordSections, func(d *decoder, w written, t *Tests) { t.Tests = readTests(d, w.node, w.what) }).of(testSection),
	},
})

func readTests(d *decoder, n *yaml.Node, what string) []*Test {
	items, ok := d.readItems(n, what)
	if ok && len(items) > maxTests {
		d.Errorf(positionOf(n), CodeTooLarge, "a file may have at most %d tests, not %d; move some to another file", maxTests, len(items))
		return nil
	}
	var tests []*Test
	names := map[string]int{}
	for _, item := range items {
		test := readSection[Test](d, item, at{})
		if test == nil {
			continue
		}
		if line := names[test.Name]; line > 0 && test.Name != "" {
			d.Errorf(test.Pos, CodeDuplicateEntry, "the test on line %d is also called %q; choose another name", line, test.Name)
		}
		names[test.Name] = test.Pos.Line
		tests = append(tests, test)
	}
	return tests
}

// testWord reads any YAML value.
func testWord[T any](set func(*T, any)) reader[T] {
	return readAs(WordValue, func(d *decoder, w written, into *T) { set(into, d.plainValue(w.node)) })
}

// testMap reads a map of any values.
func testMap[T any](set func(*T, map[string]any)) reader[T] {
	return readAs(WordConstants, func(d *decoder, w written, into *T) { set(into, d.plainMap(w.node, w.what)) })
}

func (d *decoder) plainMap(n *yaml.Node, what string) map[string]any {
	value, isMap := d.plainValue(n).(map[string]any)
	if !isMap && !isNull(n) && !d.broken[n] {
		d.Errorf(positionOf(n), codeWrongType, "%s must be a map, not %s", what, describeYAML(n))
	}
	return value
}

// testTexts reads a map of texts.
func testTexts[T any](set func(*T, map[string]string)) reader[T] {
	return readAs(WordConstants, func(d *decoder, w written, into *T) {
		texts := map[string]string{}
		if w.node.Kind != yaml.MappingNode {
			d.Errorf(positionOf(w.node), codeWrongType, "%s must be a map of texts, not %s", w.what, describeYAML(w.node))
			return
		}
		for key, value := range yamltree.Pairs(w.node) {
			name := key.Value
			texts[name], _ = d.readText(value, w.what+"."+name)
		}
		set(into, texts)
	})
}

// testTime reads a time.
func testTime[T any](set func(*T, time.Time)) reader[T] {
	return readAs(WordText, func(d *decoder, w written, into *T) {
		text, ok := d.readText(w.node, w.what)
		if !ok {
			return
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			at, err = time.Parse(time.DateOnly, text)
		}
		if err != nil {
			d.Errorf(positionOf(w.node), CodeWrongValue, "%s must be a time such as 2026-01-01T00:00:00Z, not %q", w.what, ShortenText(text))
			return
		}
		set(into, at.UTC())
	})
}

// testRunWords are the words of a test that configure its run; those of an earlier run are the same.
var testRunWords = []keyOf[Test]{
	{key{name: "workload", doc: "overrides the workload of the playbook"}, testMap(func(t *Test, v map[string]any) { t.Workload = v })},
	{
		key{name: "connections", doc: "fictitious connections by name: a URL, a form such as `bearer:TOKEN`, or a map such as `{query: {api_key: KEY}}`"},
		testMap(func(t *Test, v map[string]any) { t.Connections = v }),
	},
	{key{name: "strict", doc: "a run with a failed iteration is not completed, as with `starter run --strict`"}, asBoolean(func(t *Test, v bool) { t.Strict = v })},
	{key{name: "partition", doc: "the key of the partition that the run handles"}, asName(func(t *Test, v string) { t.Partition = v })},
	{
		key{name: "clock", doc: "when the run starts; default 2026-01-01T00:00:00Z, or the end of the previous run"},
		testTime(func(t *Test, at time.Time) { t.Clock = at }),
	},
	{key{name: "scheduled_at", doc: "the scheduled time of the run: `run.scheduled_at`"}, testTime(func(t *Test, at time.Time) { t.ScheduledAt = at })},
	{key{name: "files", doc: "files to create in the folder of the test before the run: texts by path"}, testTexts(func(t *Test, v map[string]string) { t.Files = v })},
	{
		key{name: "states", doc: "watermarks that earlier runs have left, by the names of states that are not in a table"},
		testMap(func(t *Test, v map[string]any) { t.States = v }),
	},
	{
		key{name: "answers", doc: "the answers that attempts get, by step: a list that is used in order"},
		readAs(WordLists, func(d *decoder, w written, t *Test) { t.Answers = readTestAnswers(d, w.node, w.what) }).of(testAnswerSection),
	},
}

// testBeforeSection is the section of an entry of before.
var testBeforeSection = sectionOf(section{name: "before", called: "an entry of before"}, testRunWords)

// earlierRun is an entry of before.
type earlierRun struct{ Test }

func (*earlierRun) section() *section { return testBeforeSection }

func (e *earlierRun) decode(d *decoder, f *fields, where at) bool {
	e.Pos = f.pos
	d.readWords(f, &e.Test, where)
	return true
}

var testSection = sectionOf(section{name: "test", called: "a test"}, slices.Concat([]keyOf[Test]{
	{key{name: "name", doc: "the name of the test: what it shows", required: "name: a page that fails twice"}, asName(func(t *Test, name string) { t.Name = name })},
}, testRunWords, []keyOf[Test]{
	{
		key{name: "before", doc: "runs before this one, in the same folder and with the same states; they have the keys of a test except `name`"},
		readAs(WordSections, func(d *decoder, w written, t *Test) {
			for _, run := range readSections[earlierRun](d, w) {
				t.Before = append(t.Before, &run.Test)
			}
		}).of(testBeforeSection),
	},
	{
		key{name: "at", doc: "what people do, and what else happens, at given times of the run"},
		readAs(WordSections, func(d *decoder, w written, t *Test) { t.At = readSections[TestAct](d, w) }).of(testActSection),
	},
	{
		key{name: "expect", doc: "the expected outcome of the run; what is left out is not compared", required: "expect: {status: completed}"},
		readAs(WordSection, func(d *decoder, w written, t *Test) {
			if expect := readSection[TestExpect](d, w.node, at{}); expect != nil {
				t.Expect = *expect
			}
		}).of(testExpectSection),
	},
}))

func (*Test) section() *section { return testSection }

func (t *Test) decode(d *decoder, f *fields, where at) bool {
	t.Pos = f.pos
	d.readWords(f, t, where)
	return true
}

// namedList is an entry of a map from names of calls to lists.
type namedList struct {
	CallName

	items []*yaml.Node
}

// readNamedLists reads a map from names of calls to lists.
func readNamedLists(d *decoder, n *yaml.Node, what string) []namedList {
	if d.broken[n] || isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.Errorf(positionOf(n), codeWrongType, "%s must be a map of lists by step, such as {fetch: […]}, not %s", what, describeYAML(n))
		return nil
	}
	var lists []namedList
	for key, value := range yamltree.Pairs(n) {
		name, ok := readCallName(d, key)
		items, isList := d.readItems(value, what+"."+key.Value)
		if len(items) > maxTestItems {
			d.Errorf(positionOf(value), CodeTooLarge, "%s has %d entries; at most %d are read", key.Value, len(items), maxTestItems)
			continue
		}
		if ok && isList {
			lists = append(lists, namedList{CallName: name, items: items})
		}
	}
	return lists
}

// callPart matches a part of the name of a call: a step, a selection of iterations, and the place of a sink.
var callPart = regexp.MustCompile(`^([A-Za-z_]\w*)(?:\[(\d+)\]|\{([^{}]*)\})?((?:\.[\w\[\].]+)?)$`)

// callParts matches the parts of a name, which are separated by slashes outside of braces.
var callParts = regexp.MustCompile(`(?:[^/{]|\{[^{}]*\}?)+`)

func readCallName(d *decoder, n *yaml.Node) (CallName, bool) {
	name := CallName{Pos: positionOf(n), Written: n.Value}
	parts := callParts.FindAllString(n.Value, -1)
	places := make([]string, len(parts))
	for i, part := range parts {
		match := callPart.FindStringSubmatch(part)
		if match == nil || match[4] != "" && i < len(parts)-1 {
			parts = nil
			break
		}
		chosen, ok := readIterations(d, name.Pos, part, match[2], match[3])
		if !ok {
			return name, false
		}
		if places[i] = match[1] + match[4]; i < len(parts)-1 {
			name.Outer = append(name.Outer, chosen)
		} else {
			name.TestIterations = chosen
		}
	}
	if len(parts) == 0 || strings.Count(n.Value, "/") < len(parts)-1 {
		d.Errorf(name.Pos, CodeBadName, `%q is not a call; write a step, fetch[2] or "fetch{id: p03}" for an iteration, or fetch.sink for a sink`, ShortenText(n.Value))
		return name, false
	}
	name.Place = strings.Join(places, "/")
	return name, true
}

// readIterations reads a selection of iterations: an index, or members of an element.
func readIterations(d *decoder, pos source.Position, part, index, members string) (chosen TestIterations, ok bool) {
	if index != "" {
		number, err := strconv.Atoi(index)
		if err != nil {
			d.Errorf(pos, codeBadNumber, "%q is not the index of an iteration", ShortenText(index))
			return chosen, false
		}
		chosen.Index = &number
	}
	if members == "" {
		return chosen, true
	}
	chosen.Element = map[string]string{}
	for member := range strings.SplitSeq(members, ",") {
		at := strings.IndexAny(member, ":=")
		if at < 1 {
			d.Errorf(pos, CodeBadName, `%q does not select an element; write members with their values, such as "fetch{id: p03}"`, ShortenText(part))
			return chosen, false
		}
		chosen.Element[strings.TrimSpace(member[:at])] = strings.Trim(strings.TrimSpace(member[at+1:]), `"'`)
	}
	return chosen, true
}

func readTestAnswers(d *decoder, n *yaml.Node, what string) []*TestAnswers {
	var all []*TestAnswers
	for _, list := range readNamedLists(d, n, what) {
		answers := readEach(list.items, func(item *yaml.Node) *TestAnswer { return readSection[TestAnswer](d, item, at{}) })
		all = append(all, &TestAnswers{CallName: list.CallName, Answers: answers})
	}
	return all
}

// answerKey returns a key of a test's answers for what a person or another system sends to an awaited attempt.
func answerKey(name, doc string) keyOf[TestAnswer] {
	return keyOf[TestAnswer]{key{name: name, doc: doc}, readAs(WordConstants, func(d *decoder, w written, a *TestAnswer) {
		if name == "complete" {
			a.Complete = d.plainValue(w.node)
			return
		}
		a.Says = d.plainMap(w.node, w.what)
		for _, word := range SortedKeys(a.Says) {
			if accepted := saidWords[name]; !slices.Contains(accepted, word) {
				d.Errorf(positionOf(w.node), CodeUnknownKey, "unknown key %q in %s%s", ShortenText(word), w.what, similarOrAll(word, accepted).Text)
			}
		}
	})}
}

// saidWords are the keys of such answers, by verb.
var saidWords = map[string][]string{
	"fail": {"message", "details", "retryable"}, "progress": {"message", "done", "total"},
	"approve": {"option", "form", "by", "comment"}, "reject": {"form", "by", "comment"},
}

var testAnswerSection = sectionOf(section{name: "answer", called: "an answer"}, []keyOf[TestAnswer]{
	{key{name: "status", doc: "the HTTP status; default 200"}, asInteger(func(a *TestAnswer, v int) { a.Status = v }).from(100).to(599).or(200)},
	{key{name: "headers", doc: "of HTTP"}, testMap(func(a *TestAnswer, v map[string]any) { a.Headers = v })},
	{key{name: "body", doc: "the HTTP body, sent as JSON"}, testWord(func(a *TestAnswer, v any) { a.Body = v })},
	{key{name: "body_text", doc: "the HTTP body, sent as it is"}, asText(func(a *TestAnswer, v string) { a.BodyText = v })},
	{
		key{name: "error", doc: "the attempt fails without a response"},
		asOneOf(func(a *TestAnswer, v string) { a.Error = v }, TestErrorConnection, TestErrorTimeout),
	},
	{key{name: "result", doc: "the result of a tool other than http, which does not run: the rows of a query, or what Python returns"}, testWord(func(a *TestAnswer, v any) { a.Result = v })},
	{key{name: "lost", doc: "the worker is lost during the attempt, and another worker repeats it"}, asBoolean(func(a *TestAnswer, v bool) { a.Lost = v })},
	answerKey("complete", "the attempt of webhook is complete, with this result"),
	answerKey("fail", "the attempt of webhook failed: `message`, `details`, `retryable`"),
	answerKey("progress", "the attempt of webhook reports progress: `done`, `total`, `message`"),
	answerKey("approve", "a person approves: `option`, `form`, `by`, `comment`"),
	answerKey("reject", "a person rejects: `by`, `comment`"),
	{key{name: "after", doc: "how long after the attempt started to wait the answer comes"}, asDuration(func(a *TestAnswer, v time.Duration) { a.After = v })},
	{key{name: "recorded", doc: "a file of recorded answers, relative to this one; those of the step are inserted here"}, asName(func(a *TestAnswer, v string) { a.Recorded = v })},
	{key{name: "repeat", doc: "the answer is also used for all attempts that follow"}, asBoolean(func(a *TestAnswer, v bool) { a.Repeat = v })},
	{key{name: "element", doc: "in a loop: the element that the answer is for, or some of its members"}, testWord(func(a *TestAnswer, v any) { a.Element = v })},
	{key{name: "request", doc: "the recorded request; it is not compared"}, testWord(func(a *TestAnswer, v any) { a.Request = v })},
})

func (*TestAnswer) section() *section { return testAnswerSection }

// kindsOfAnswers are groups of words, of which an answer has exactly one.
var kindsOfAnswers = [][]string{
	{"status", "headers", "body", "body_text"},
	{"error"},
	{"result"},
	{"lost"},
	{"recorded"},
	{"complete"},
	{"fail"},
	{"progress"},
	{"approve"},
	{"reject"},
}

func (a *TestAnswer) decode(d *decoder, f *fields, where at) bool {
	a.Pos, a.Words = f.pos, f.words
	d.readWords(f, a, where)
	kinds := lists.Pick(kindsOfAnswers, func(words []string) (string, bool) {
		word := f.words.firstOf(words)
		return word, word != ""
	})
	switch {
	case len(kinds) == 0 && len(f.unknown) == 0:
		d.Errorf(a.Pos, CodeMissingKey, `an answer needs one of status, body, error, result, complete, fail, approve, reject, progress, lost or recorded, for example {status: 503}`)
	case len(kinds) > 1:
		d.Errorf(f.words[kinds[1]], CodeConflict, "an answer has either %s or %s, not both", kinds[0], kinds[1])
	case f.words.Has("body") && f.words.Has("body_text"):
		d.Errorf(f.words["body_text"], CodeConflict, "an answer has either body or body_text, not both")
	case f.words.Has("after") && !a.IsForAwaited():
		d.Errorf(f.words["after"], CodeConflict, "after applies only to complete, fail, progress, approve and reject: other answers come immediately")
	}
	return true
}

// verbsFromOutside are the words for answers to awaited attempts.
var verbsFromOutside = []string{"complete", "fail", "progress", "approve", "reject"}

// Verb returns how an awaited attempt is answered, "" for other answers.
func (a *TestAnswer) Verb() string {
	return a.Words.firstOf(verbsFromOutside)
}

// IsForAwaited reports whether the answer is for an awaited attempt.
func (a *TestAnswer) IsForAwaited() bool { return a.Verb() != "" }

// actKey returns a key for an action of people on the run or a step.
func actKey(name, doc string) keyOf[TestAct] {
	return keyOf[TestAct]{key{name: name, doc: doc}, readAs(WordConstants, func(d *decoder, w written, a *TestAct) {
		for word, value := range d.plainMap(w.node, w.what) {
			text, isText := value.(string)
			switch {
			case word == "step" && isText:
				a.Step = text
			case word == "reason" && isText:
				a.Reason = text
			case word == "step", word == "reason":
				d.Errorf(positionOf(w.node), codeWrongType, "%s.%s must be text", w.what, word)
			default:
				d.Errorf(positionOf(w.node), CodeUnknownKey, "unknown key %q in %s%s", ShortenText(word), w.what, similarOrAll(word, []string{"step", "reason"}).Text)
			}
		}
	})}
}

// The actions of people in tests, and events of the run.
const (
	ActPause      = "pause"
	ActResume     = "resume"
	ActRetryNow   = "retry_now"
	ActSkip       = "skip"
	ActCancel     = "cancel"
	ActLoseWorker = "lose_worker"
)

var actWords = []string{ActPause, ActResume, ActRetryNow, ActSkip, ActCancel, ActLoseWorker}

var testActSection = sectionOf(section{name: "at", called: "an entry of at"}, []keyOf[TestAct]{
	{key{name: "after", doc: "how long after the start of the run", required: "after: 10m"}, asDuration(func(a *TestAct, v time.Duration) { a.After = v })},
	actKey(ActPause, "pauses the run, or the `step`"),
	actKey(ActResume, "resumes the run, or the `step`"),
	actKey(ActRetryNow, "retries what is waiting now"),
	actKey(ActSkip, "gives up on what is waiting in the `step`"),
	actKey(ActCancel, "cancels the run"),
	{key{name: ActLoseWorker, doc: "the step whose next attempt loses its worker"}, asName(func(a *TestAct, v string) { a.LoseWorker = v })},
})

func (*TestAct) section() *section { return testActSection }

// Verb returns the action.
func (a *TestAct) Verb() string {
	return a.Words.firstOf(actWords)
}

func (a *TestAct) decode(d *decoder, f *fields, where at) bool {
	a.Pos, a.Words = f.pos, f.words
	d.readWords(f, a, where)
	verbs := slices.DeleteFunc(slices.Clone(actWords), func(word string) bool { return !f.words.Has(word) })
	if len(verbs) != 1 && len(f.unknown) == 0 {
		d.Errorf(a.Pos, CodeMissingKey, "an entry of at has after and one of %s, for example {after: 10m, pause: {reason: lunch}}", strings.Join(actWords, ", "))
	}
	return true
}

// testList reads a map from names of calls to lists.
func testList(set func(*TestExpect, []*TestList), read func(d *decoder, n *yaml.Node, what string) any) reader[TestExpect] {
	return readAs(WordLists, func(d *decoder, w written, e *TestExpect) {
		var lists []*TestList
		for _, list := range readNamedLists(d, w.node, w.what) {
			one := &TestList{CallName: list.CallName}
			for _, item := range list.items {
				one.Items = append(one.Items, read(d, item, w.what))
				one.Places = append(one.Places, positionOf(item))
			}
			lists = append(lists, one)
		}
		set(e, lists)
	})
}

func readPlain(d *decoder, n *yaml.Node, _ string) any { return d.plainValue(n) }

// readRequest reads the parts of a request that are compared.
func readRequest(d *decoder, n *yaml.Node, what string) any {
	if d.broken[n] {
		return nil
	}
	value, isMap := d.plainValue(n).(map[string]any)
	if !isMap {
		d.Errorf(positionOf(n), codeWrongType, "%s: a request must be a map such as {params: {page: 1}}, or {} for any, not %s", what, describeYAML(n))
	}
	return value
}

func readWait(d *decoder, n *yaml.Node, what string) any {
	wait, _ := d.readDuration(n, what)
	return wait
}

// EndStatuses are the statuses with which a run may end, as in the table of statuses.
var EndStatuses = []string{"completed", "partial_success", "failed", "cancelled", "skipped"}

var testExpectSection = sectionOf(section{name: "expect", called: "expect"}, []keyOf[TestExpect]{
	{
		key{name: "status", doc: "the status of the run"},
		asOneOf(func(e *TestExpect, v string) { e.Status = v }, EndStatuses...),
	},
	{key{name: "result", doc: "the complete result of the run"}, testWord(func(e *TestExpect, v any) { e.Result = v })},
	{key{name: "error", doc: "the error of the run: text in its message, or members of the error"}, testWord(func(e *TestExpect, v any) { e.Error = v })},
	{
		key{name: "requests", doc: "the requests of each step, one for each attempt; only the given keys are compared"},
		testList(func(e *TestExpect, l []*TestList) { e.Requests = l }, readRequest),
	},
	{
		key{name: "waits", doc: "how long each step waited before its attempts, without jitter"},
		testList(func(e *TestExpect, l []*TestList) { e.Waits = l }, readWait),
	},
	{
		key{name: "sinks", doc: "the rows that were written, by the place of the sink; only the given keys are compared"},
		testList(func(e *TestExpect, l []*TestList) { e.Sinks = l }, readPlain),
	},
	{key{name: "steps", doc: "the status of steps, by name"}, testTexts(func(e *TestExpect, v map[string]string) { e.Steps = v })},
	{
		key{name: "routes", doc: "the steps that each step led to, in the order of its visits; `[]` for none"},
		readAs(WordConstants, readTestRoutes),
	},
	{
		key{name: "events", doc: "the events of the run, in order: names, or maps with `event` and the fields to compare. All events of the named kinds must be listed"},
		readAs(WordValue, readTestEvents),
	},
	{
		key{name: "warnings", doc: "the warnings of the run: a text that each of them contains; `[]` for none"},
		readAs(WordTexts, func(d *decoder, w written, e *TestExpect) {
			items, _ := d.readItems(w.node, w.what)
			for _, item := range items {
				text, _ := d.readText(item, w.what)
				e.Warnings = append(e.Warnings, text)
			}
		}),
	},
	{key{name: "within", doc: "the longest time that the run may take, by the test's clock"}, asDuration(func(e *TestExpect, v time.Duration) { e.Within = v })},
})

// readTestRoutes reads, for each step, the steps that it led to: a name, or a list of names.
func readTestRoutes(d *decoder, w written, e *TestExpect) {
	if w.node.Kind != yaml.MappingNode {
		d.Errorf(positionOf(w.node), codeWrongType, "%s must be a map of steps to the steps that they led to, not %s", w.what, describeYAML(w.node))
		return
	}
	e.Routes = map[string][]string{}
	for step, targets := range yamltree.Pairs(w.node) {
		names := []string{}
		items := []*yaml.Node{targets}
		if targets.Kind == yaml.SequenceNode {
			items = targets.Content
		}
		for _, item := range items {
			if name, ok := d.readText(item, w.what+"."+step.Value); ok {
				names = append(names, name)
			}
		}
		e.Routes[step.Value] = names
	}
}

// readTestEvents reads a list of events: names, or maps with event and some fields.
func readTestEvents(d *decoder, w written, e *TestExpect) {
	items, _ := d.readItems(w.node, w.what)
	for _, item := range items {
		event := &TestEvent{Pos: positionOf(item)}
		if item.Kind == yaml.MappingNode {
			event.Fields = d.plainMap(item, w.what)
			event.Name, _ = event.Fields["event"].(string)
			delete(event.Fields, "event")
		} else {
			event.Name, _ = d.readText(item, w.what)
		}
		if event.Name == "" && !d.broken[item] {
			d.Errorf(event.Pos, CodeMissingKey, "an event of events is a name, or a map with event, for example {event: step_retry, step: fetch, delay: 2}")
			continue
		}
		e.Events = append(e.Events, event)
	}
	if ok := len(items) == 0 && !d.broken[w.node]; ok && w.node.Kind == yaml.SequenceNode {
		d.Errorf(positionOf(w.node), CodeMissingKey, "events compares the kinds that it lists, so it needs at least one")
	}
}

func (*TestExpect) section() *section { return testExpectSection }

func (e *TestExpect) decode(d *decoder, f *fields, where at) bool {
	e.Pos, e.Words, e.Values = f.pos, f.words, f.keyPositions(Words{}, "")
	d.readWords(f, e, where)
	if len(f.words) == 0 && len(f.unknown) == 0 {
		d.Errorf(e.Pos, CodeMissingKey, "expect needs something to compare, for example {status: completed}")
	}
	return true
}
