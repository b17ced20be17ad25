package connector

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"reprise/internal/program/node"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// testClock is the time at which a run of a test begins.
var testClock = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func dayOf(text string) time.Time {
	day, _ := time.Parse(time.DateOnly, text)
	return day
}

// member is a value at a path.
type member struct {
	path  []string
	value any
}

// setInputs sets the workload keys without which an expression of the step fails, or its first run would begin too early or
// never.
func (t *tester) setInputs(s *step) {
	begin, end := dayOf(testDay), dayOf(testEnd)
	anyValue := func(any) bool { return true }
	for _, one := range []any{s.url, s.params, s.headers, s.form, s.args, s.body} {
		t.makeValid(s, one, begin, anyValue)
	}
	if s.paging != nil {
		when := node.Verbatim("{{ " + s.paging.when.text + " }}")
		t.makeValid(s, when, begin, anyValue)
		if s.paging.size == nil && strings.Contains(s.paging.when.text, ">= int(") { // a page of the test has to be full
			t.sample = answer{body: t.placeRows(s, make([]any, testRows))}
			t.makeValid(s, when, begin, expression.Truthy)
			t.sample = answer{}
		}
	}
	i := s.incremental
	if i == nil || !i.stateful {
		return
	}
	t.makeValid(s, i.initial, begin, func(value any) bool {
		at, ok := t.instantOf(i, value)
		return ok && testClock.Sub(at) < 60*24*time.Hour && at.Before(testClock)
	})
	t.makeValid(s, i.until, end, func(value any) bool {
		at, ok := t.instantOf(i, value)
		return ok && !at.Before(end)
	})
}

// instantOf parses a cursor as a time. A text or whole number that is not a time counts as an hour before the test's
// clock; false for any other value.
func (t *tester) instantOf(i *incremental, value any) (time.Time, bool) {
	layout, _ := layoutOf(i.format)
	text := expression.Text(value)
	for _, layout := range []string{layout, time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil && layout != "" {
			return at, true
		}
	}
	if n, isNumber := value.(int); isNumber && i.isNumber() > 0 {
		return time.UnixMicro(int64(n) * int64(time.Second/time.Microsecond) / int64(i.isNumber())), true
	}
	if at, ok := expression.ParseTime(text); ok {
		return at, true
	}
	return testClock.Add(-time.Hour), value != nil && (i.kind == "integer" || i.kind == "text")
}

// makeValid changes keys of the workload, one at a time, until the templates of a value can be evaluated and their value is
// accepted.
func (t *tester) makeValid(s *step, of any, day time.Time, accepts func(any) bool) {
	switch of := of.(type) {
	case map[string]any:
		for _, key := range playbook.SortedKeys(of) {
			t.makeValid(s, of[key], day, accepts)
		}
	case []any:
		for _, one := range of {
			t.makeValid(s, one, day, accepts)
		}
	case node.Verbatim:
		for _, found := range oneTemplate.FindAllStringSubmatch(string(of), -1) {
			t.makeTrue(s, found[1], day, accepts)
		}
	}
}

// oneTemplate matches a template in a text.
var oneTemplate = regexp.MustCompile(`\{\{ (.+?) \}\}`)

func (t *tester) makeTrue(s *step, text string, day time.Time, accepts func(any) bool) {
	isValid := func(text string) bool {
		value, ok := evaluateText(text, t.inputScope(s))
		return ok && accepts(value)
	}
	if isValid(text) {
		return
	}
	var layouts []string
	for _, found := range literals.FindAllString(text, -1) {
		layouts = append(layouts, strings.Trim(found, "'"))
	}
	layouts = append(layouts, layoutsOf(s)...)
	for _, key := range playbook.SortedKeys(t.workload) {
		if !regexp.MustCompile(`(^|[^.\w])` + regexp.QuoteMeta(key) + `\b`).MatchString(text) {
			continue
		}
		was := t.workload[key]
		for _, value := range valuesFor(key, was, day, layouts) {
			if t.workload[key] = value; isValid(text) {
				t.setWorkload(key, value)
				return
			}
		}
		t.workload[key] = was
	}
}

// valuesFor returns values that a key of the workload may need instead of one that it has.
func valuesFor(key string, was any, day time.Time, layouts []string) []any {
	if endOfTime.MatchString(key) {
		day = dayOf(testEnd)
	}
	times := []any{day.Format(time.RFC3339), day.Format(time.DateOnly)}
	for _, layout := range layouts {
		if text := day.Format(layout); text != layout {
			times = append(times, text)
		}
	}
	numbers := []any{int(day.Unix()), int(day.UnixMilli())}
	others := []any{testRows, fmt.Sprint(testRows), []any{"a"}, map[string]any{"a": "a"}}
	_, isNumber := was.(int)
	switch {
	case sizeOfPages.MatchString(key):
		return append(append(others, times...), numbers...)
	case isNumber:
		return append(append(numbers, times...), others...)
	}
	return append(append(times, numbers...), others...)
}

// sizeOfPages matches the key for a number of rows.
var sizeOfPages = regexp.MustCompile(`(?i)size|limit|max|count|per_page`)

// layoutsOf returns the layout of the step's cursors.
func layoutsOf(s *step) (layouts []string) {
	if s.incremental != nil {
		if layout, ok := layoutOf(s.incremental.format); ok && layout != "" {
			layouts = append(layouts, layout)
		}
	}
	return layouts
}

// inputScope returns the scope of what a step sends.
func (t *tester) inputScope(s *step) expression.MapScope {
	scope := t.answerScope(s, t.sample)
	day := dayOf(testDay)
	at := any(day.Format(time.RFC3339))
	if i := s.incremental; i != nil {
		switch layout, ok := layoutOf(i.format); {
		case i.isNumber() > 0:
			at = int(day.Unix()) * i.isNumber()
		case i.kind == "integer":
			at = 1
		case i.format != "" && ok:
			at = day.Format(layout)
		}
	}
	scope["incremental"] = map[string]any{"value": at, "from": at, "to": at, "watermark": at}
	scope["run"] = map[string]any{"started_at": testClock.Format(time.RFC3339), "id": "a"}
	names := map[string]any{}
	for _, name := range t.c.secretNames() {
		names[name] = "KEY"
	}
	scope[secretsStep] = names
	if s.loop != nil && s.loop.element != "" {
		element := any("a")
		if s.loop.nested || s.loop.whole {
			fields := map[string]any{}
			for _, field := range s.loop.fields {
				fields[field] = "a"
			}
			element = fields
		} else if strings.HasPrefix(s.loop.list, "time_range(") {
			element = at
		}
		scope[s.loop.element] = element
	}
	return scope
}

// literals matches the constants of a condition.
var literals = regexp.MustCompile(`'[^']*'|\b\d+\b|\btrue\b|\bfalse\b`)

// fitRow returns a row for which the step's condition on rows is true and its fields can be computed, as far as a few values
// of its members make it so.
func (t *tester) fitRow(s *step, row map[string]any) map[string]any {
	fit := func(row map[string]any) bool { return t.selectsRow(s, row) && t.hasFields(s, row) }
	if fit(row) {
		return row
	}
	for _, one := range t.fitted[s] {
		row = expression.MapOf(withMember(row, one.path, one.value))
	}
	if fit(row) {
		return row
	}
	var text strings.Builder
	if s.where != nil {
		text.WriteString(s.where.text)
	}
	for _, field := range s.fields {
		text.WriteString(" " + textOf(field.value))
	}
	var paths [][]string
	for _, found := range ofRow.FindAllStringSubmatch(text.String(), -1) {
		path := keysOf(found[1])
		if !slices.Contains(s.key, path[0]) && !slices.ContainsFunc(paths, func(known []string) bool { return slices.Equal(known, path) }) {
			paths = append(paths, path)
		}
	}
	values := t.valuesIn(text.String())
	const together = 3 // members that are changed for one condition
	for depth := 1; depth <= min(together, len(paths)); depth++ {
		if found, ok := fitMembers(row, paths, values, depth, fit); ok {
			t.fitted[s] = found
			for _, one := range found {
				row = expression.MapOf(withMember(row, one.path, one.value))
			}
			return row
		}
	}
	return row
}

// valuesIn returns values that members of a condition or a field may have: its constants, and those of the workload.
func (t *tester) valuesIn(text string) (values []any) {
	for _, literal := range literals.FindAllString(text, -1) {
		if value, ok := evaluateText(literal, nil); ok && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	for _, key := range playbook.SortedKeys(t.workload) {
		if list, isList := t.workload[key].([]any); isList && len(list) > 0 && strings.Contains(text, key) {
			if one, isText := list[0].(string); isText {
				values = append(values, one)
			}
		}
	}
	return append(values, 1, true, testDay)
}

// fitMembers finds values for as many of the paths as depth says, so that a row fits.
func fitMembers(row map[string]any, paths [][]string, values []any, depth int, fit func(map[string]any) bool) ([]member, bool) {
	if depth == 0 {
		return nil, fit(row)
	}
	for i, path := range paths {
		for _, value := range values {
			one := expression.MapOf(withMember(row, path, value))
			if rest, ok := fitMembers(one, paths[i+1:], values, depth-1, fit); ok {
				return append([]member{{path, value}}, rest...), true
			}
		}
	}
	return nil, false
}

// selectsRow reports whether the step's condition on rows is true for a row.
func (t *tester) selectsRow(s *step, row map[string]any) bool {
	if s.where == nil {
		return true
	}
	scope := t.inputScope(s)
	scope["row"] = row
	value, ok := evaluateText(s.where.text, scope)
	return ok && expression.Truthy(value)
}

// hasFields reports whether the fields that are laid over a row can be computed.
func (t *tester) hasFields(s *step, row map[string]any) bool {
	scope := t.inputScope(s)
	scope["row"] = row
	for _, field := range s.fields {
		for _, found := range oneTemplate.FindAllStringSubmatch(textOf(field.value), -1) {
			if _, ok := evaluateText(found[1], scope); !ok {
				return false
			}
		}
	}
	return true
}
