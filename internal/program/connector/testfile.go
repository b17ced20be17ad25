package connector

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/internal/program/node"
	"reprise/internal/program/recording"
	"reprise/internal/program/scaffold"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/yamltree"
)

// testRows is the number of rows on a test page if the number of rows decides whether there is another page.
const testRows = 2

// tester writes the test of a playbook, with made-up responses.
type tester struct {
	c        *converter
	workload map[string]any // as the test has it
	changed  map[string]any // what of it the playbook has not
	secrets  string         // the file of them
	fields   map[*step]map[string]bool
	maps     map[string]bool // members of rows that are maps, by step and path
	fitted   map[*step][]member
	sample   answer // to the requests of the step whose expressions are evaluated
}

func newTester(c *converter, workload map[string]any, secrets string) *tester {
	t := &tester{c: c, workload: map[string]any{}, changed: map[string]any{}, secrets: secrets, fields: map[*step]map[string]bool{}, maps: map[string]bool{}, fitted: map[*step][]member{}}
	for key, value := range toCanonical(workload).(map[string]any) { // as it is written
		t.workload[key] = value
		instead, differs := valueForTest(value)
		if text, isText := instead.(string); isText && differs && endOfTime.MatchString(key) {
			instead = strings.Replace(text, testDay, testEnd, 1)
		}
		if differs {
			t.changed[key], t.workload[key] = instead, instead
		}
	}
	for _, one := range c.sizes {
		t.changed[one.name], t.workload[one.name] = testRows, testRows
	}
	for key, layout := range c.forms {
		if was, has := t.workload[key].(string); has {
			if _, err := time.Parse(layout, was); err == nil && was != "" {
				day := dayOf(testDay)
				if endOfTime.MatchString(key) {
					day = dayOf(testEnd)
				}
				t.setWorkload(key, day.Format(layout))
			}
		}
	}
	for _, s := range c.list {
		t.setAddress(s)
	}
	for _, s := range c.list {
		t.setInputs(s)
	}
	for _, s := range c.list {
		t.fields[s] = t.fieldsOf(s)
	}
	return t
}

func (t *tester) setWorkload(key string, value any) { t.changed[key], t.workload[key] = value, value }

// setAddress sets the workload keys that the address and loop of a step need.
func (t *tester) setAddress(s *step) {
	url := textOf(s.url)
	for i, found := range nameInBraces.FindAllStringSubmatchIndex(url, -1) {
		key := url[found[2]:found[3]]
		value, has := t.workload[key]
		switch {
		case !has || key == "api":
		case i == 0 && found[0] == 0:
			if was, isText := value.(string); (isText || value == nil) && !strings.HasPrefix(was, "http") {
				t.setWorkload(key, "https://api.example.com")
			}
		case value == nil:
			t.setWorkload(key, "a")
		}
	}
	if s.loop == nil {
		return
	}
	if found := nameInBraces.FindStringSubmatch(textOf(s.loop.collection)); found != nil {
		if value, has := t.workload[found[1]]; has && value == nil {
			t.setWorkload(found[1], []any{"a"})
		}
	}
}

// nameInBraces matches a name at the beginning of an expression.
var nameInBraces = regexp.MustCompile(`\{\{ \(?([A-Za-z_]\w*)`)

// aDate matches a text that begins with a date.
var aDate = regexp.MustCompile(`^20\d\d-\d\d-\d\d`)

// testDay and testEnd are days shortly before the clock of tests.
const testDay, testEnd = "2025-12-30", "2025-12-31"

// endOfTime matches the key for the end of what is read.
var endOfTime = regexp.MustCompile(`(?i)(^|_)(end|until|to|before)(_|$)|End`)

// valueForTest returns a workload value for a test: dates shortly before the test's clock, and nonempty values for
// empty ones.
func valueForTest(value any) (any, bool) {
	switch value := value.(type) {
	case string:
		if value == "" {
			return "a", true
		}
		if aDate.MatchString(value) {
			return testDay + value[len(testDay):], true
		}
	case []any:
		if len(value) == 0 {
			return []any{"a"}, true
		}
	case map[string]any:
		out, differs := map[string]any{}, false
		for key, one := range value {
			instead, changed := valueForTest(one)
			if out[key] = one; changed {
				out[key], differs = instead, true
			}
		}
		return out, differs
	}
	return nil, false
}

// testFile returns the text of the test file.
func (t *tester) testFile() []byte {
	top := node.EmptyMap()
	node.AddKey(top, "playbook", recording.TextNode(cmp.Or(t.c.File, scaffold.FileName(t.c.Name))))
	tests := node.ListOf(t.pagesTest())
	if refused := t.refusedTest(); refused != nil {
		tests.Content = append(tests.Content, refused)
	}
	node.AddKey(top, "tests", tests)
	return []byte(yamltree.EncodeNode(top))
}

// testNode returns a test with its name and workload.
func (t *tester) testNode(name string) *yaml.Node {
	n := node.EmptyMap()
	node.AddKey(n, "name", recording.TextNode(name))
	if len(t.changed) > 0 {
		node.AddKey(n, "workload", node.ValueNode(t.changed))
	}
	if connections := t.connectionsNode(); len(connections.Content) > 0 {
		node.AddKey(n, "connections", connections)
	}
	if t.secrets != "" {
		values := map[string]any{}
		for _, name := range t.c.secretNames() {
			values[name] = "KEY"
		}
		node.AddKey(n, "files", node.FlowMap(t.secrets, recording.TextNode(expression.Text(values))))
	}
	return n
}

func (t *tester) connectionsNode() *yaml.Node {
	n := node.EmptyMap()
	for _, l := range t.c.logins {
		form := l.connectionText()
		if len(l.oauth)+len(l.session)+len(l.jwt) > 0 { // a test logs in nowhere
			form = (&login{bearer: "TOKEN", headers: l.headers, query: l.query, host: l.host}).connectionText()
		}
		node.AddKey(n, l.name, recording.TextNode(form))
	}
	if t.c.Sink == scaffold.SinkPostgres {
		node.AddKey(n, warehouse, recording.TextNode("postgres://test@db.example.com/test"))
	}
	return n
}

// pagesTest returns a test in which each step reads its pages, and each list of policies handles one temporary
// failure.
func (t *tester) pagesTest() *yaml.Node {
	answers, requests := node.EmptyMap(), node.EmptyMap()
	failed := map[string]bool{}
	for _, s := range t.c.list {
		list := node.ListOf()
		sent := node.FlowList()
		if policies := yamltree.EncodeNode(policyList(s.failures)); !failed[policies] && !t.ignoresStatus(s, 503) {
			failed[policies] = true
			list.Content = append(list.Content, node.FlowMap("status", recording.ValueNode(503, true)))
			sent.Content = append(sent.Content, node.FlowMap())
		}
		pages, next := t.pageAnswers(s)
		list.Content = append(list.Content, pages...)
		node.AddKey(answers, s.name, list)
		if s.loop == nil && !s.readsSlices() {
			for i := range pages {
				one := node.FlowMap()
				if i == 1 && len(next) > 0 {
					node.AddKey(one, "params", node.ValueNode(next))
				}
				sent.Content = append(sent.Content, one)
			}
			node.AddKey(requests, s.name, sent)
		}
	}
	n := t.testNode("all pages, after failures that pass")
	node.AddKey(n, "answers", answers)
	expect := node.EmptyMap()
	node.AddKey(expect, "status", recording.TextNode("completed"))
	if len(requests.Content) > 0 {
		node.AddKey(expect, "requests", requests)
	}
	node.AddKey(n, "expect", expect)
	return n
}

// ignoredStatus returns a status that the step's policies ignore; 0 if there is none.
func (t *tester) ignoredStatus(s *step) int {
	for _, status := range []int{404, 403, 401, 400, 402, 422} {
		if t.ignoresStatus(s, status) {
			return status
		}
	}
	return 0
}

func (t *tester) ignoresStatus(s *step, status int) bool {
	for _, p := range s.failures {
		named := statusOf.FindStringSubmatch(p.when)
		if named == nil || !slices.Contains(strings.Split(named[1], ", "), fmt.Sprint(status)) {
			continue
		}
		return len(p.then) == 1 && p.then[0].name == "ignore"
	}
	return false
}

// statusOf matches the statuses in the condition of a policy.
var statusOf = regexp.MustCompile(`^error\.status (?:==|in) \[?([0-9, ]+)\]?$`)

// refusedTest returns a test in which each step that ignores a status gets it; nil if no step ignores one.
func (t *tester) refusedTest() *yaml.Node {
	answers := node.EmptyMap()
	found := false
	for _, s := range t.c.list {
		if status := t.ignoredStatus(s); status != 0 && !s.read && s.writeMode() != "replace" { // no rows replace no table
			found = true
			node.AddKey(answers, s.name, node.FlowList(node.FlowMap("status", recording.ValueNode(status, true), "repeat", recording.ValueNode(true, true))))
			continue
		}
		pages, _ := t.pageAnswers(s)
		last := pages[len(pages)-1]
		if yamltree.IndexOf(last, "repeat") < 0 {
			node.AddKey(last, "repeat", recording.ValueNode(true, true))
		}
		node.AddKey(answers, s.name, node.ListOf(last))
	}
	if !found {
		return nil
	}
	n := t.testNode("refusals that are no rows")
	node.AddKey(n, "answers", answers)
	node.AddKey(n, "expect", node.FlowMap("status", recording.TextNode("completed")))
	return n
}

// fieldsOf returns the row fields that a step, or a child step, uses.
func (t *tester) fieldsOf(s *step) map[string]bool {
	fields := map[string]bool{}
	for _, key := range s.key {
		fields[key] = true
	}
	if i := s.incremental; i != nil {
		fields[cmp.Or(strings.Join(i.source, "/"), i.cursor)] = true
	}
	for _, name := range s.needed {
		fields[name] = true
	}
	said := ""
	for _, one := range s.fields {
		said += " " + textOf(one.value)
		delete(fields, one.name) // which is computed
	}
	for _, found := range mapOfRow.FindAllStringSubmatch(said, -1) {
		t.maps[s.name+strings.ReplaceAll(found[1], ".", "/")] = true
	}
	for _, found := range ofRow.FindAllStringSubmatch(said, -1) {
		fields[strings.Join(keysOf(found[1]), "/")] = true
	}
	if s.paging != nil {
		for _, path := range lastFields(s) {
			fields[strings.Join(path, "/")] = true
		}
	}
	return fields
}

// ofRow matches a member of the row.
var ofRow = regexp.MustCompile(`row((?:\.\w+|\['[^']*'\])+)`)

// mapOfRow matches a member of the row that must be a map.
var mapOfRow = regexp.MustCompile(`(?:merge|omit)\(row((?:\.\w+)+)`)

// lastField matches a member of the last row.
var lastField = regexp.MustCompile(`last\([^()]*(?:\([^()]*\))?[^()]*\)((?:\.\w+|\['[^']*'\])+)`)

// lastFields returns the paths to what the paging reads from the last row.
func lastFields(s *step) (paths [][]string) {
	for _, found := range lastField.FindAllStringSubmatch(s.paging.when.text+" "+s.paging.token.text, -1) {
		paths = append(paths, keysOf(found[1]))
	}
	return paths
}

// isCursor reports whether a field of the rows is the step's cursor.
func (t *tester) isCursor(s *step, name string) bool {
	i := s.incremental
	return i != nil && (name == i.cursor || i.source != nil && name == strings.Join(i.source, "/"))
}

// madeRow returns a made-up row.
func (t *tester) madeRow(s *step, n int) map[string]any {
	row := map[string]any{}
	schema := t.c.schemaDocument(s)
	for _, name := range playbook.SortedKeys(t.fields[s]) {
		at := row
		keys := strings.Split(name, "/")
		for _, key := range keys[:len(keys)-1] {
			below, isMap := at[key].(map[string]any)
			if !isMap {
				below = map[string]any{}
			}
			at[key], at = below, below
		}
		if _, has := at[keys[len(keys)-1]]; has {
			continue
		}
		at[keys[len(keys)-1]] = t.madeValue(s, name, schema.childAt("properties").childAt(name), n)
	}
	if len(row) == 0 {
		row["id"] = n
	}
	return t.fitRow(s, row)
}

func (t *tester) madeValue(s *step, name string, schema component, n int) any {
	if t.maps[s.name+"/"+name] {
		return map[string]any{"a": n}
	}
	at := time.Date(2025, time.December, 30, 12, n, 0, 0, time.UTC)
	if i := s.incremental; t.isCursor(s, name) {
		switch layout, ok := layoutOf(i.format); {
		case i.kind == "integer":
			return n
		case i.isNumber() > 0:
			return int(at.Unix()) * i.isNumber()
		case i.format != "" && ok:
			return at.Format(layout)
		}
		return at.Format(time.RFC3339)
	}
	if kinds := kindsOf(schema); slices.Contains(kinds, "string") {
		switch schema.text("format") {
		case "date":
			return testDay
		case "date-time":
			return at.Format(time.RFC3339)
		}
		return fmt.Sprintf("%s-%d", name, n)
	}
	if slices.Contains(s.needed, name) && addressName.MatchString(name) {
		return fmt.Sprintf("%s/%s-%d", cmp.Or(s.base, "https://api.example.com"), name, n)
	}
	return n
}

// madeRows returns made-up rows, numbered from `from`.
func (t *tester) madeRows(s *step, from, count int) []any {
	out := make([]any, count)
	for i := range out {
		out[i] = t.madeRow(s, from+i)
	}
	return out
}
