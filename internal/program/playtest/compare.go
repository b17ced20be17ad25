package playtest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// Failure is an expectation of a test that was not met.
type Failure struct {
	// Pos is the place of the expectation in the test file.
	Pos source.Position
	// What is expected, such as requests.fetch.
	What string
	// Message describes the difference, in one or several lines.
	Message string
	// Why describes what decided, with its line in the playbook; "" if unknown.
	Why string
	// Add is YAML to add to the test; "" if there is nothing to add.
	Add string
}

// coversValue reports whether a value matches what is wanted: a map must have the given members, a list all elements
// in order, anything else must be equal. In requests, where everything is text, numbers match texts of numbers.
func coversValue(wanted, got any) bool { return matchValues(wanted, got, false, sameScalar) }

// equalValues compares complete values. A missing member counts as nil.
func equalValues(wanted, got any) bool { return matchValues(wanted, got, true, sameScalar) }

// matchValues compares values; whole says that maps must not have additional members.
func matchValues(wanted, got any, whole bool, same func(a, b any) bool) bool {
	switch wanted := wanted.(type) {
	case string:
		if condition := conditionOf(wanted); condition != nil {
			return conditionHolds(condition, got)
		}
	case map[string]any:
		object, isMap := got.(map[string]any)
		if !isMap || whole && len(object) != len(wanted) {
			return false
		}
		for name, value := range wanted {
			inner, has := object[name]
			if value == nil && !has && !whole {
				continue
			}
			if !has || !matchValues(value, inner, whole, same) {
				return false
			}
		}
		return true
	case []any:
		list, isList := got.([]any)
		return isList && slices.EqualFunc(wanted, list, func(a, b any) bool { return matchValues(a, b, whole, same) })
	}
	return same(wanted, got)
}

// sameScalar compares scalars: 1.1 and 1.10 are the same number, 1 and "1" differ.
func sameScalar(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	name := expression.TypeName(a)
	switch {
	case name != expression.TypeName(b):
		return false
	case name == expression.TypeName(0):
		return expression.CompareNumbers(a, b) == 0
	}
	return expression.Text(a) == expression.Text(b)
}

// coversRequest compares a request: its params, headers and form are texts, and header names are case-insensitive.
func coversRequest(wanted, got map[string]any) bool {
	for name, value := range wanted {
		has, known := got[name]
		asText := name == "params" || name == "headers" || name == "form"
		if name == "headers" {
			value = lowerHeaders(value)
		}
		if asText && !matchValues(value, expression.MapOrEmpty(has), false, sameText) || !asText && (!known && value != nil || !coversValue(value, has)) {
			if name == "url" && withQuery(got) == expression.Text(value) {
				continue
			}
			return false
		}
	}
	return true
}

func sameText(a, b any) bool { return expression.Text(a) == expression.Text(b) }

func lowerHeaders(headers any) any {
	object, isMap := headers.(map[string]any)
	if !isMap {
		return headers
	}
	lower := map[string]any{}
	for name, value := range object {
		lower[strings.ToLower(name)] = value
	}
	return lower
}

// withQuery returns the URL of a request with its params sorted.
func withQuery(request map[string]any) string {
	params, _ := request["params"].(map[string]any)
	parts := lists.Map(playbook.SortedKeys(params), func(name string) string { return name + "=" + expression.Text(params[name]) })
	return expression.Text(request["url"]) + "?" + strings.Join(parts, "&")
}

// comparison compares a test's expectations with what happened.
type comparison struct {
	stage    *stage
	test     *playbook.Test
	outcome  outcome
	failures []Failure
}

func (c *comparison) failf(word, what, why, format string, args ...any) {
	pos := c.test.Expect.Pos
	if at, written := c.test.Expect.Words[word]; written {
		pos = at
	}
	c.failures = append(c.failures, Failure{Pos: pos, What: what, Message: fmt.Sprintf(format, args...), Why: why})
}

// compareAll finds all differences.
func (c *comparison) compareAll() {
	expect, result := &c.test.Expect, &c.outcome.result
	has := expect.Words.Has
	if has("status") && string(result.Status) != expect.Status {
		message := ""
		if result.Error != nil {
			message = ": " + result.Error.Message
		}
		c.failf("status", "status", c.whyFailed(), "expected %s, got %s%s", expect.Status, result.Status, message)
	}
	if has("result") && !equalValues(expect.Result, result.Result.Data) {
		c.failf("result", "result", "", "%s", showDifference(expect.Result, result.Result.Data))
	}
	if has("error") {
		c.compareError()
	}
	c.compareRequests()
	c.compareWaits()
	c.compareSinks()
	c.compareSteps()
	c.compareRoutes()
	c.compareEvents()
	if has("warnings") {
		c.compareWarnings()
	}
	if has("within") && c.outcome.took > expect.Within {
		c.failf("within", "within", "", "the run took %s, expected at most %s", c.outcome.took, expect.Within)
	}
}

// whyFailed returns the policy that made the run fail.
func (c *comparison) whyFailed() string {
	failure := c.outcome.result.Error
	if failure == nil {
		return ""
	}
	for _, place := range playbook.SortedKeys(c.stage.seen.verdicts) {
		for _, verdict := range c.stage.seen.verdicts[place] {
			if verdict.seen.Error != nil && !verdict.seen.Repeats && verdict.seen.Error.Message == failure.Message {
				return c.describeVerdict(place, verdict)
			}
		}
	}
	return ""
}

// describeVerdict describes the policy that decided about an outcome, with its line.
func (c *comparison) describeVerdict(place string, v verdict) string {
	what := "a success"
	if v.seen.Error != nil {
		what = v.seen.Error.ShortText()
	}
	if len(v.seen.Policies) == 0 {
		where := c.fileName()
		if step := c.stage.suite.Book.Step(stepOf(place)); step != nil {
			where += ":" + step.NamePos.String()
		}
		return fmt.Sprintf("%s: no policy of %s matched %s", where, place, what)
	}
	policy := v.seen.Policies[len(v.seen.Policies)-1]
	text := fmt.Sprintf("%s:%s: policy %d of %s handled %s", c.fileName(), policy.Pos, policy.Number, place, what)
	if v.seen.Why != "" {
		text += ": " + v.seen.Why
	}
	return text
}

func (c *comparison) fileName() string { return c.stage.suite.Book.File.Name }

func (c *comparison) compareError() {
	failure := c.outcome.result.Error
	if failure == nil {
		c.failf("error", "error", "", "expected an error, but the run is %s without one", c.outcome.result.Status)
		return
	}
	wanted := c.test.Expect.Error
	if text, isText := wanted.(string); isText {
		if !strings.Contains(failure.Message, text) {
			c.failf("error", "error", c.whyFailed(), "expected the message to contain %q, got\n%s", text, failure.Message)
		}
		return
	}
	got := failure.Value()
	if !coversValue(wanted, got) {
		c.failf("error", "error", c.whyFailed(), "%s", showDifference(wanted, expectedPart(wanted, got)))
	}
}

// expectedPart returns only the expected members of a value, so that a difference does not show others.
func expectedPart(wanted, got any) any {
	object, isMap := wanted.(map[string]any)
	has, gotMap := got.(map[string]any)
	if !isMap || !gotMap {
		return got
	}
	chosen := map[string]any{}
	for name, value := range object {
		if inner, known := has[name]; known {
			chosen[name] = expectedPart(value, inner)
		}
	}
	return chosen
}

func (c *comparison) compareRequests() {
	for _, list := range c.test.Expect.Requests {
		got := c.stage.requestsOf(list.CallName)
		for i, wanted := range list.Items {
			if i >= len(got) {
				break
			}
			wanted, _ := wanted.(map[string]any)
			if !coversRequest(wanted, got[i].what) {
				c.failures = append(c.failures, Failure{
					Pos: list.Places[i], What: fmt.Sprintf("requests.%s[%d]", list.Written, i), Why: c.whyRequest(list.Place, got, i),
					Message: differenceOfRequests(wanted, got[i].what),
				})
			}
		}
		if len(got) != len(list.Items) {
			c.failures = append(c.failures, Failure{
				Pos: list.Pos, What: "requests." + list.Written, Why: c.whyRequest(list.Place, got, min(len(got), len(list.Items))),
				Message: fmt.Sprintf("expected %s, got %d:\n%s", terminal.Count(len(list.Items), "request"), len(got), listRequests(got)),
			})
		}
	}
}

// differenceOfRequests shows the difference between requests, limited to the expected members.
func differenceOfRequests(wanted, got map[string]any) string {
	shown, _ := expectedPart(loweredHeaders(wanted), got).(map[string]any)
	if url, isText := wanted["url"].(string); isText && strings.Contains(url, "?") {
		shown["url"] = withQuery(got)
	}
	asWritten(shown)
	return showDifference(loweredHeaders(wanted), shown)
}

// asWritten converts whole numbers in a request's params to numbers, as people write them.
func asWritten(request map[string]any) {
	params, _ := request["params"].(map[string]any)
	for name, value := range params {
		text, isText := value.(string)
		if n, err := strconv.ParseInt(text, 10, 64); isText && err == nil && strconv.FormatInt(n, 10) == text {
			params[name] = n
		}
	}
}

func loweredHeaders(wanted map[string]any) map[string]any {
	if headers, has := wanted["headers"]; has {
		wanted = maps.Clone(wanted)
		wanted["headers"] = lowerHeaders(headers)
	}
	return wanted
}

// whyRequest returns what decided that the request at a position was made, or that none was.
func (c *comparison) whyRequest(place string, got []request, at int) string {
	verdicts := c.stage.seen.verdicts[place]
	if at > 0 && at < len(got) {
		index, before := got[at].who.index, -1
		for _, request := range got[:at] {
			if positionOf(request.who.index) == positionOf(index) {
				before++
			}
		}
		verdicts = slices.DeleteFunc(slices.Clone(verdicts), func(v verdict) bool { return positionOf(v.index) != positionOf(index) })
		if before >= 0 && before < len(verdicts) {
			return c.describeVerdict(place, verdicts[before])
		}
		return ""
	}
	if at > 0 && at == len(got) && len(verdicts) > 0 {
		return c.describeVerdict(place, verdicts[len(verdicts)-1])
	}
	return ""
}

const shownEntries = 20

func listRequests(all []request) string {
	var b strings.Builder
	for _, r := range all[:min(len(all), shownEntries)] {
		fmt.Fprintf(&b, "  %s %s\n", r.who.displayName(), briefRequest(r.what))
	}
	if more := len(all) - shownEntries; more > 0 {
		fmt.Fprintf(&b, "  … %d more\n", more)
	}
	return strings.TrimRight(b.String(), "\n")
}

// requestsOf returns the requests of some calls, grouped by iteration.
func (s *stage) requestsOf(name playbook.CallName) []request {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(s.seen.requests[name.Place]), func(r request) bool { return !r.who.isNamed(name) })
	return byIteration(all, func(r request) caller { return r.who })
}

// waitsOf returns the waits of some calls.
func (s *stage) waitsOf(name playbook.CallName) []time.Duration {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	var delays []time.Duration
	for _, w := range byIteration(s.seen.paused[name.Place], func(w wait) caller { return w.who }) {
		if w.who.isNamed(name) {
			delays = append(delays, w.delay)
		}
	}
	return delays
}

// waitAccuracy is how much a wait may differ from the expected one.
const waitAccuracy = time.Millisecond

func (c *comparison) compareWaits() {
	for _, list := range c.test.Expect.Waits {
		got := c.stage.waitsOf(list.CallName)
		wanted := make([]time.Duration, len(list.Items))
		for i, item := range list.Items {
			wanted[i], _ = item.(time.Duration)
		}
		if slices.EqualFunc(wanted, got, func(a, b time.Duration) bool { return (a - b).Abs() < waitAccuracy }) {
			continue
		}
		c.failures = append(c.failures, Failure{
			Pos: list.Pos, What: "waits." + list.Written, Why: c.whyWait(list.Place, wanted, got),
			Message: fmt.Sprintf("- expected %s\n+ got      %s", listDurations(wanted), listDurations(got)),
		})
	}
}

// whyWait returns what decided about the first wait that differs.
func (c *comparison) whyWait(place string, wanted, got []time.Duration) string {
	at := 0
	for at < len(wanted) && at < len(got) && (wanted[at]-got[at]).Abs() < waitAccuracy {
		at++
	}
	repeats := 0
	for _, v := range c.stage.seen.verdicts[place] {
		if at >= len(got) && !v.seen.Repeats || v.seen.Repeats && repeats == at {
			return c.describeVerdict(place, v)
		}
		if v.seen.Repeats && v.seen.Error != nil {
			repeats++
		}
	}
	return ""
}

func listDurations(all []time.Duration) string {
	texts := lists.Map(all, func(d time.Duration) string { return d.Round(time.Millisecond).String() })
	return "[" + strings.Join(texts, ", ") + "]"
}

// rowsOf returns the rows that some sinks wrote.
func (s *stage) rowsOf(name playbook.CallName) []any {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	rows := []any{}
	for _, w := range byIteration(s.seen.written[name.Place], func(w write) caller { return w.who }) {
		if w.who.isNamed(name) {
			rows = append(rows, w.rows...)
		}
	}
	return rows
}

func (c *comparison) compareSinks() {
	for _, list := range c.test.Expect.Sinks {
		got := c.stage.rowsOf(list.CallName)
		if coversValue(list.Items, got) || len(list.Items) == 0 && len(got) == 0 {
			continue
		}
		shown := make([]any, len(got))
		for i := range got {
			shown[i] = got[i]
			if i < len(list.Items) {
				shown[i] = expectedPart(list.Items[i], got[i])
			}
		}
		c.failures = append(c.failures, Failure{Pos: list.Pos, What: "sinks." + list.Written, Message: showDifference(list.Items, shown)})
	}
}

func (c *comparison) compareSteps() {
	for _, name := range playbook.SortedKeys(c.test.Expect.Steps) {
		wanted, got := c.test.Expect.Steps[name], statusOf(c.outcome.result.Steps, name)
		if wanted != got {
			c.failf("steps", "steps."+name, "", "expected %s, got %s", wanted, got)
		}
	}
}

func (c *comparison) compareRoutes() {
	for _, step := range playbook.SortedKeys(c.test.Expect.Routes) {
		if c.stage.suite.Book.Step(step) == nil {
			c.failf("routes", "routes."+step, "", "the playbook has no step %q", step)
			continue
		}
		c.stage.seen.mu.Lock()
		got := slices.Clone(c.stage.seen.routes[step])
		c.stage.seen.mu.Unlock()
		if wanted := c.test.Expect.Routes[step]; !slices.Equal(wanted, got) {
			c.failf("routes", "routes."+step, "", "- expected [%s]\n+ got      [%s]", strings.Join(wanted, ", "), strings.Join(got, ", "))
		}
	}
}

// statusOf returns the status of a step's last visit; skipped if no branch reached the step.
func statusOf(records []interpreter.StepRecord, step string) string {
	status := string(interpreter.Skipped)
	for _, record := range records {
		if record.Step == step {
			status = string(record.Status)
		}
	}
	return status
}

func (c *comparison) compareWarnings() {
	left := slices.Clone(c.outcome.result.Warnings)
	for _, wanted := range c.test.Expect.Warnings {
		at := slices.IndexFunc(left, func(warning string) bool { return strings.Contains(warning, wanted) })
		if at < 0 {
			c.failf("warnings", "warnings", "", "no warning contains %q; the run has\n%s", wanted, listTexts(c.outcome.result.Warnings))
			continue
		}
		left = slices.Delete(left, at, at+1)
	}
	if len(left) > 0 {
		c.failf("warnings", "warnings", "", "unexpected:\n%s", listTexts(left))
	}
}

func listTexts(texts []string) string {
	if len(texts) == 0 {
		return "  none"
	}
	return "  " + strings.Join(texts, "\n  ")
}

// briefRequest returns a request on one line: method and URL with params, or else its fields.
func briefRequest(request map[string]any) string {
	if request["url"] != nil && request["method"] != nil {
		line := expression.Text(request["method"]) + " " + expression.Text(request["url"])
		if request["params"] != nil {
			line = expression.Text(request["method"]) + " " + withQuery(request)
		}
		return line
	}
	if request == nil {
		return "an answer from outside"
	}
	return source.CutText(flowOf(request), shownBrief)
}

const shownBrief = 200
