package connector

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/internal/program/node"
	"reprise/internal/program/recording"
	"reprise/interpreter/expression"
)

// answer is a response made up for a test.
type answer struct {
	body    any
	headers map[string]any
	link    string
}

// pageAnswers returns the responses for a step, and the params of the second request.
func (t *tester) pageAnswers(s *step) (entries []*yaml.Node, next map[string]any) {
	full, fewer := testRows, 1
	if s.paging != nil {
		if n, isNumber := s.paging.size.(int); isNumber && n < testRows {
			full, fewer = n, 0
		}
	}
	last := answer{body: t.placeRows(s, t.madeRows(s, full+1, fewer))}
	var first *answer
	var asked demand
	if s.paging != nil {
		asked = t.askedOf(s)
		first = t.solveDemand(s, answer{body: t.placeRows(s, t.madeRows(s, 1, full))}, asked, true)
	}
	if first == nil {
		last.body = t.placeRows(s, t.madeRows(s, 1, full))
	}
	if s.paging != nil {
		ends := t.solveDemand(s, last, asked, false)
		if ends == nil { // the rows end with a page that has none
			ends = t.solveDemand(s, answer{body: t.placeRows(s, []any{})}, asked, false)
		}
		if ends != nil {
			last = *ends
		}
		if first != nil {
			entries = append(entries, first.entryNode())
			next = t.nextParams(s, *first)
		}
		if ends == nil {
			more, ok := t.untilEnd(s, full)
			if !ok {
				entries, next = nil, nil
			}
			for _, one := range more {
				entries = append(entries, one.entryNode())
			}
			last.body = t.placeRows(s, t.madeRows(s, (len(more)+1)*full+1, full))
		}
	}
	ending := last.entryNode()
	if s.loop != nil || s.readsSlices() {
		node.AddKey(ending, "repeat", recording.ValueNode(true, true))
	}
	return append(entries, ending), next
}

// untilEnd returns the pages between the first and the last of a step whose pages end by their number alone; ok is false
// if they do not end soon.
func (t *tester) untilEnd(s *step, rows int) (more []answer, ok bool) {
	const longest = 8
	for page := 2; page < longest; page++ {
		one := answer{body: t.placeRows(s, t.madeRows(s, (page-1)*rows+1, rows))}
		continues, ok := t.hasNextPage(s, one, page)
		if !ok || !continues {
			return more, ok
		}
		more = append(more, one)
	}
	return nil, false
}

// entryNode returns the response as an entry of a test.
func (a answer) entryNode() *yaml.Node {
	n := node.EmptyMap()
	headers := map[string]any{}
	for name, value := range a.headers {
		headers[name] = value
	}
	if a.link != "" {
		headers["link"] = "<" + a.link + `>; rel="next"`
	}
	if len(headers) > 0 {
		node.AddKey(n, "headers", recording.ValueNode(headers, true))
	}
	node.AddKey(n, "body", recording.ValueNode(a.body, true))
	n.Style = yaml.FlowStyle
	return n
}

// placeRows returns a body with rows at the step's path.
func (t *tester) placeRows(s *step, rows []any) any {
	return placeAt(s.path, rows)
}

func placeAt(path []string, rows []any) any {
	if len(path) == 0 {
		return rows
	}
	if path[0] == "*" {
		if len(path) == 1 {
			return rows
		}
		out := make([]any, len(rows))
		for i, row := range rows {
			out[i] = placedOne(path[1:], row)
		}
		return out
	}
	return map[string]any{path[0]: placeAt(path[1:], rows)}
}

// placedOne returns an element with one row at the rest of a path.
func placedOne(path []string, row any) any {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == "*" {
			row = []any{row}
		} else {
			row = map[string]any{path[i]: row}
		}
	}
	return row
}

var (
	ofResponse = regexp.MustCompile(`response((?:\.\w+|\['[^']*'\])+)`)
	ofHeaders  = regexp.MustCompile(`this\.meta\.headers(?:\.(\w+)|\['([^']*)'\])`)
	ofLinks    = regexp.MustCompile(`this\.meta\.links\.next`)
	oneKey     = regexp.MustCompile(`\.(\w+)|\['([^']*)'\]`)
)

// demand lists what a paging condition reads from a response.
type demand struct {
	members    [][]string
	fields     [][]string // paths in the last row to what other pages need not have
	headers    []string
	attributes []string // of the link
	link       bool
}

// attributeOfLink matches the reading of an attribute of a link.
var attributeOfLink = regexp.MustCompile(`'(\w+)="'\)`)

// askedOf returns what the paging condition and the token read.
func (t *tester) askedOf(s *step) (a demand) {
	text := s.paging.when.text + " " + s.paging.token.text
	for _, found := range ofResponse.FindAllStringSubmatch(text, -1) {
		path := keysOf(found[1])
		if isWithin(s.path, path) || slices.ContainsFunc(a.members, func(known []string) bool { return isWithin(known, path) }) {
			continue
		}
		a.members = slices.DeleteFunc(a.members, func(known []string) bool { return isWithin(path, known) })
		a.members = append(a.members, path)
	}
	for _, found := range ofHeaders.FindAllStringSubmatch(text, -1) {
		if name := found[1] + found[2]; !slices.Contains(a.headers, name) {
			a.headers = append(a.headers, name)
		}
	}
	for _, path := range lastFields(s) {
		if name := strings.Join(path, "/"); !slices.Contains(s.key, name) && !slices.Contains(s.needed, name) && !t.isCursor(s, name) {
			a.fields = append(a.fields, path)
		}
	}
	for _, found := range attributeOfLink.FindAllStringSubmatch(text, -1) {
		a.attributes = append(a.attributes, found[1])
	}
	a.link = ofLinks.MatchString(text)
	return a
}

// isWithin reports whether one path is a prefix of another.
func isWithin(path, part []string) bool {
	return len(part) <= len(path) && slices.Equal(path[:len(part)], part)
}

// nextPath is the path of the second page, relative to the first.
const nextPath = "/page-2"

// absent is the value of a member that is to be left out.
type absent struct{}

// solveDemand adds members to a response so that the paging condition asks for another page, or does not; nil if none
// were found that do.
func (t *tester) solveDemand(s *step, of answer, a demand, more bool) *answer {
	values := []any{absent{}, false, "next-2", true, 1, 2, 1000, "null", nil, ""}
	if strings.Contains(s.paging.when.text, "int(response") {
		values = []any{absent{}, 1, 2, 3, "next-2", false}
	}
	if more {
		values = []any{"next-2", true, 1, 2, 1000, false, absent{}}
	}
	if s.paging.url != nil {
		values[slices.Index(values, any("next-2"))] = nextPath
	}
	members := a.members
	const tries = 3 // members that are tried with all values
	members = members[:min(len(members), tries)]
	if _, isMap := of.body.(map[string]any); !isMap {
		members = nil
	}
	page := 2
	if more {
		page = 1
	}
	total := 1
	for range members {
		total *= len(values)
	}
	for _, beside := range []bool{more, !more} { // headers and links
		for n := range total {
			one := of
			rest := n
			for i := range members {
				at := members[len(members)-1-i]
				if value := values[rest%len(values)]; value != (absent{}) {
					one.body = withMember(one.body, at, value)
				}
				rest /= len(values)
			}
			if len(a.fields) > 0 {
				one.body = t.withFields(s, one.body, a.fields, beside)
			}
			if beside {
				one.headers = map[string]any{}
				for _, name := range a.headers {
					one.headers[name] = "2"
				}
				if len(a.attributes) > 0 {
					one.headers["link"] = linkWith(a.attributes)
				}
				if a.link {
					one.link = nextPath
				}
			}
			if continues, ok := t.hasNextPage(s, one, page); ok && continues == more && (!more || t.hasToken(s, one)) && !t.isRefused(s, one) {
				return &one
			}
		}
	}
	return nil
}

// linkWith returns a header Link to the next page, with attributes.
func linkWith(attributes []string) string {
	text := "<https://api.example.com/page-2>; rel=\"next\""
	for _, name := range attributes {
		value := "true"
		if name == "cursor" {
			value = "next-2"
		}
		if part := "; " + name + "=\"" + value + "\""; !strings.Contains(text, part) {
			text += part
		}
	}
	return text
}

// withFields returns a body whose rows have the fields that lead to another page, or lack them.
func (t *tester) withFields(s *step, body any, fields [][]string, has bool) any {
	list, _ := t.placedRows(s, answer{body: body}).([]any)
	if slices.Contains(s.path, "*") {
		return body
	}
	rows := make([]any, len(list))
	for i, row := range list {
		members := maps.Clone(expression.MapOf(row))
		for _, path := range fields {
			delete(members, path[0])
			if has {
				value := "next-2"
				if s.paging.url != nil {
					value = nextPath
				}
				members = withMember(members, path, value).(map[string]any) // as it makes
			}
		}
		if rows[i] = row; members != nil {
			rows[i] = members
		}
	}
	if len(s.path) == 0 {
		return rows
	}
	return withMember(body, s.path, rows)
}

// withMember returns a body with a member at a path.
func withMember(body any, path []string, value any) any {
	members, _ := body.(map[string]any)
	out := map[string]any{}
	for key, one := range members {
		out[key] = one
	}
	if len(path) == 1 {
		out[path[0]] = value
	} else {
		out[path[0]] = withMember(out[path[0]], path[1:], value)
	}
	return out
}

// answerScope returns the scope of conditions over a response.
func (t *tester) answerScope(s *step, of answer) expression.MapScope {
	links := map[string]any{}
	if of.link != "" {
		links["next"] = of.link
	}
	headers := map[string]any{}
	for name, value := range of.headers {
		headers[name] = value
	}
	rows := t.placedRows(s, of)
	scope := expression.MapScope{
		"response": of.body, "pages": rows, "_retry": map[string]any{"page": 1}, "error": nil, "workload": t.workload,
		"this":        map[string]any{"meta": map[string]any{"links": links, "headers": headers}},
		"incremental": map[string]any{"value": testDay, "from": testDay, "to": testDay, "watermark": testDay},
	}
	for key, value := range t.workload {
		scope[key] = value
	}
	return scope
}

func (t *tester) placedRows(s *step, of answer) any {
	at := of.body
	for _, key := range s.path {
		if list, isList := at.([]any); isList {
			return list
		}
		at = expression.MapMember(at, key)
	}
	return at
}

// evaluateText evaluates an expression; ok is false if it fails.
func evaluateText(text string, scope expression.MapScope) (value any, ok bool) {
	program, problems := expression.Compile(text)
	if len(problems) > 0 {
		return nil, false
	}
	value, err := program.Eval(scope, expression.DecisionBudget(testClock))
	return value, err == nil
}

// hasNextPage reports whether the paging condition is true for a response that is that page; ok is false if it fails.
func (t *tester) hasNextPage(s *step, of answer, page int) (more, ok bool) {
	scope := t.answerScope(s, of)
	scope["_retry"] = map[string]any{"page": page}
	value, ok := evaluateText(s.paging.when.text, scope)
	return expression.Truthy(value), ok
}

// isRefused reports whether a policy of the step fails because of what a response says.
func (t *tester) isRefused(s *step, of answer) bool {
	for _, p := range s.failures {
		if hasPair(p.then, "fail") {
			if value, ok := evaluateText(p.when, t.answerScope(s, of)); ok && expression.Truthy(value) {
				return true
			}
		}
	}
	return false
}

// hasToken reports whether the token of the next page is a value that can be sent.
func (t *tester) hasToken(s *step, of answer) bool {
	value, ok := evaluateText(s.paging.token.text, t.answerScope(s, of))
	if !ok || value == nil || value == "" {
		return false
	}
	if s.paging.url != nil {
		return value == nextPath
	}
	_, isBool := value.(bool)
	return !isBool
}

// nextParams returns the params that differ in the second request.
func (t *tester) nextParams(s *step, of answer) map[string]any {
	out := map[string]any{}
	for name, value := range s.paging.changes.params {
		text, isTemplate := value.(node.Verbatim)
		if !isTemplate || strings.Count(string(text), "{{") != 1 || !strings.HasPrefix(string(text), "{{") || !strings.HasSuffix(string(text), "}}") {
			continue
		}
		inner := strings.TrimSuffix(strings.TrimPrefix(string(text), "{{"), "}}")
		if value, ok := evaluateText(strings.TrimSpace(inner), t.answerScope(s, of)); ok {
			out[name] = value
		}
	}
	return out
}
