package playtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/yamltree"
)

// UpdatedFile returns the test file with actual values for the existing keys of expect. Comments and everything else are
// kept. changed is the number of changed tests. Tests without a result, and those whose expect is a flow map, are
// unchanged and listed in left.
func UpdatedFile(suite *Suite, reports []*Report) (text []byte, changed int, left []*Report, err error) {
	root, err := yamltree.Parse(suite.Tests.File.Bytes())
	if err != nil {
		return nil, 0, nil, fmt.Errorf("read the tests again: %w", err)
	}
	lines := strings.SplitAfter(string(suite.Tests.File.Bytes()), "\n")
	tests := yamltree.KeyValues(root.Content[0])["tests"]
	if tests == nil {
		return nil, 0, nil, nil
	}
	var edits []edit
	for _, report := range reports {
		if report.Suite != suite || report.Passed() {
			continue
		}
		if report.stage == nil || report.outcome.err != nil || report.stage.stopped.Load() != nil { // nothing that could be expected
			left = append(left, report)
			continue
		}
		at := slices.Index(suite.Tests.Tests, report.Test)
		one, ok := report.editTest(tests.Content[at], lines)
		if !ok {
			left = append(left, report)
			continue
		}
		edits = append(edits, one)
	}
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from }) // from behind, so that lines stay where they are
	for _, one := range edits {
		lines = slices.Replace(lines, one.from, one.to, one.text)
	}
	return []byte(strings.Join(lines, "")), len(edits), left, nil
}

// edit replaces lines, counted from 0, by text.
type edit struct {
	from, to int
	text     string
}

// editTest returns the edit that writes actual values into a test; false if its expect is written on one line.
func (r *Report) editTest(test *yaml.Node, lines []string) (edit, bool) {
	at := yamltree.IndexOf(test, "expect")
	if at < 0 || test.Style&yaml.FlowStyle != 0 || test.Content[at+1].Kind != yaml.MappingNode {
		return edit{}, false
	}
	key, value := test.Content[at], test.Content[at+1]
	r.rewriteExpect(value)
	from := key.Line - 1
	to := from + 1
	for to < len(lines) && isBelow(lines[to], key.Column-1) {
		to++
	}
	for to > from+1 && strings.TrimSpace(lines[to-1]) == "" {
		to--
	}
	bare := *key
	bare.HeadComment, bare.FootComment = "", ""
	text := yamltree.EncodeNode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{&bare, value}})
	prefix := string([]rune(lines[from])[:key.Column-1])
	indent := strings.Repeat(" ", key.Column-1)
	var b strings.Builder
	for i, line := range strings.SplitAfter(strings.TrimRight(text, "\n")+"\n", "\n") {
		switch {
		case line == "":
		case i == 0:
			b.WriteString(prefix + line)
		case strings.TrimSpace(line) == "":
			b.WriteString(line)
		default:
			b.WriteString(indent + line)
		}
	}
	return edit{from, to, b.String()}, true
}

// isBelow reports whether a line belongs to the value of a key at a column, counted from 0.
func isBelow(line string, column int) bool {
	text := strings.TrimLeft(line, " ")
	return strings.TrimSpace(text) == "" || len(line)-len(text) > column
}

// rewriteExpect replaces expected values by actual ones.
func (r *Report) rewriteExpect(expect *yaml.Node) {
	e, result := &r.Test.Expect, &r.outcome.result
	if expect.Kind != yaml.MappingNode {
		return
	}
	set := func(key string, v any) {
		if at := yamltree.IndexOf(expect, key); at >= 0 {
			replaceNode(expect.Content[at+1], v)
		}
	}
	if e.Words.Has("status") && string(result.Status) != e.Status {
		set("status", string(result.Status))
	}
	if e.Words.Has("result") && !equalValues(e.Result, result.Result.Data) {
		set("result", result.Result.Data)
	}
	if e.Words.Has("error") && result.Error != nil {
		if text, isText := e.Error.(string); isText && !strings.Contains(result.Error.Message, text) {
			set("error", result.Error.Message)
		} else if !isText && !coversValue(e.Error, result.Error.Value()) {
			set("error", expectedPart(e.Error, result.Error.Value()))
		}
	}
	if e.Words.Has("within") && r.outcome.took > e.Within {
		set("within", r.outcome.took.Round(time.Millisecond).String())
	}
	if e.Words.Has("warnings") {
		c := &comparison{stage: r.stage, test: r.Test, outcome: r.outcome}
		if c.compareWarnings(); len(c.failures) > 0 {
			set("warnings", lists.Map(result.Warnings, func(text string) any { return text }))
		}
	}
	r.rewriteLists(expect)
	if steps := yamltree.KeyValues(expect)["steps"]; steps != nil && steps.Kind == yaml.MappingNode {
		for key, value := range yamltree.Pairs(steps) {
			if got := statusOf(result.Steps, key.Value); got != value.Value {
				replaceNode(value, got)
			}
		}
	}
}

// rewriteLists does the same for expectations about calls.
func (r *Report) rewriteLists(expect *yaml.Node) {
	e, keys := &r.Test.Expect, yamltree.KeyValues(expect)
	for _, list := range e.Requests {
		var items []any
		for i, request := range r.stage.requestsOf(list.CallName) {
			item := map[string]any{}
			if i < len(list.Items) {
				wanted, _ := list.Items[i].(map[string]any)
				item, _ = expectedPart(loweredHeaders(wanted), request.what).(map[string]any)
				asWritten(item)
				if coversRequest(wanted, request.what) {
					item = wanted
				}
			}
			items = append(items, item)
		}
		replaceList(keys["requests"], list, items)
	}
	for _, list := range e.Waits {
		items := lists.Map(r.stage.waitsOf(list.CallName), func(wait time.Duration) any { return wait.Round(time.Millisecond).String() })
		for i, item := range list.Items {
			list.Items[i] = fmt.Sprint(item)
		}
		replaceList(keys["waits"], list, items)
	}
	for _, list := range e.Sinks {
		items := r.stage.rowsOf(list.CallName)
		for i := range items {
			if i < len(list.Items) {
				items[i] = expectedPart(list.Items[i], items[i])
			}
		}
		replaceList(keys["sinks"], list, items)
	}
}

// replaceList replaces a list of items for a call, if it differs.
func replaceList(lists *yaml.Node, list *playbook.TestList, items []any) {
	if items == nil {
		items = []any{}
	}
	if at := yamltree.IndexOf(lists, list.Written); at >= 0 && !equalValues(list.Items, items) {
		replaceNode(lists.Content[at+1], items)
	}
}

// replaceNode replaces the value of a node, and keeps its comments.
func replaceNode(n *yaml.Node, v any) {
	var made yaml.Node
	if err := made.Encode(v); err != nil {
		return // a value of JSON can always be encoded
	}
	made.HeadComment, made.LineComment, made.FootComment = n.HeadComment, n.LineComment, n.FootComment
	if n.Style&yaml.FlowStyle != 0 || len(made.Content) == 0 {
		setFlowStyle(&made)
	}
	*n = made
}
