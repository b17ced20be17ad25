package playbook

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
)

// paginations rewrites every loop.pagination as the retry of its step.
func (m *migrator) paginations() {
	original, err := parseYAML(m.file.Bytes())
	if err != nil {
		return
	}
	e := newExtent(m.file)
	for i, step := range stepsOf(original) {
		at := indexOf(step, "loop")
		if at < 0 {
			continue
		}
		p := paginationOf(target(step.Content[at+1]))
		if p == nil {
			continue
		}
		end := e.end(p.value)
		switch {
		case end < 0 || step.Content[at+1].Kind == yaml.AliasNode:
			m.notMigrated(position(p.key))
		case m.broken(position(p.key), source.Position{Line: e.lineAt(end), Column: 1 << 20}):
			// The problem is reported; the section stays.
		case m.rewritePagination(i, false), m.rewritePagination(i, true):
			m.changed(position(p.key), "loop.pagination becomes retry, the list of policies")
		default:
			m.notMigrated(position(p.key))
		}
	}
}

// stepsOf are the steps of a file, as they are written.
func stepsOf(root *yaml.Node) []*yaml.Node {
	if len(root.Content) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(itemsOf(keysOf(root.Content[0])["workflow"])), func(step *yaml.Node) bool {
		return step.Kind != yaml.MappingNode
	})
}

// rewritePagination rewrites the one of a step, told by its number. Comments
// stay beside the words that they stand at; with plain they all stand above
// the list.
func (m *migrator) rewritePagination(number int, plain bool) bool {
	file, root := m.current()
	if root == nil {
		return false
	}
	comments := commentLines(root)
	step := stepsOf(root)[number]
	at := indexOf(step, "loop")
	loopKey, loop := step.Content[at], step.Content[at+1]
	p := paginationOf(loop)
	d := &decoder{file: file, broken: map[*yaml.Node]bool{}, older: true}
	written := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{p.key, p.value}}
	written = resolved(written, true)
	list := d.pagesList(written.Content[1], toolOf(keysOf(step)))
	if list == nil || d.found.HasErrors() {
		return false
	}
	e := newExtent(file)
	flow := inBrackets(step) || inBrackets(keysOf(root.Content[0])["workflow"])
	var (
		edits []edit
		ok    bool
	)
	switch {
	case flow:
		edits, ok = e.pagesInBrackets(loopKey, loop, p, list)
	case p.loop == nil:
		edits, ok = e.pagesForLoop(loopKey, loop, list, plain)
	default:
		edits, ok = e.pagesBehindLoop(loopKey, loop, p, written, list, plain)
	}
	if !ok {
		return false
	}
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "retry"}
	if p.loop == nil {
		step.Content[at], step.Content[at+1] = key, list
	} else {
		step.Content[at+1] = p.loop
		step.Content = slices.Insert(step.Content, at+2, key, list)
	}
	return m.accept(applyAll(e.text, edits), root, comments)
}

// pagesInBrackets writes the list into a step that is in brackets.
func (e extent) pagesInBrackets(loopKey, loop *yaml.Node, p *pagination, list *yaml.Node) ([]edit, bool) {
	start, end := e.start(loopKey), e.end(loop)
	if start < 0 || end < 0 {
		return nil, false
	}
	flowList(list)
	dropComments(list)
	text := "retry: " + strings.TrimSpace(encode(list))
	if p.loop != nil {
		rest := resolved(p.loop, false)
		rest.Style = yaml.FlowStyle
		text = "loop: " + strings.TrimSpace(encode(rest)) + ", " + text
	}
	return []edit{{start, end, text}}, true
}

// pagesForLoop replaces a loop that holds nothing else by the list.
func (e extent) pagesForLoop(loopKey, loop, list *yaml.Node, plain bool) ([]edit, bool) {
	start, end := e.start(loopKey), e.end(loopKey)
	if start < 0 || end < 0 {
		return nil, false
	}
	site := retrySite{key: loopKey, value: loop}
	value, ok := e.retryEdit(site, resolved(loop, true), list, plain)
	return []edit{{start, end, "retry"}, value}, ok
}

// pagesBehindLoop writes the list behind the loop that it was part of.
func (e extent) pagesBehindLoop(loopKey, loop *yaml.Node, p *pagination, written, list *yaml.Node, plain bool) ([]edit, bool) {
	loopEnd := e.end(loop)
	if loopEnd < 0 {
		return nil, false
	}
	breaks := lineBreak([]byte(e.text))
	behind := e.lineEnd(e.lineAt(loopEnd))
	if inBrackets(loop) {
		rest := resolved(p.loop, false)
		rest.Style = yaml.FlowStyle
		text, ok := e.retryBlock(loopKey, written, list, e.text[e.start(loop):loopEnd], plain)
		return []edit{
			{e.start(loop), loopEnd, strings.TrimSpace(encode(rest))},
			{behind, behind, breaks + text},
		}, ok
	}
	first, last, ok := e.lines(p.key, p.value)
	if !ok {
		return nil, false
	}
	text, ok := e.retryBlock(loopKey, written, list, e.text[e.lineStart(first):e.lineEnd(last)], plain)
	if last == e.lineAt(loopEnd) { // the last of the loop
		return []edit{{e.lineStart(first), e.lineEnd(last), text}}, ok
	}
	return []edit{e.removal(first, last), {behind, behind, breaks + text}}, ok
}

// retryBlock is the list below its key, in lines of their own, at the margin
// of another key of the step.
func (e extent) retryBlock(beside, written, list *yaml.Node, inside string, plain bool) (string, bool) {
	lines := keepComments(list, written, inside, plain)
	styleList(list)
	text := encode(list)
	if text == "" {
		return "", false
	}
	if len(lines) > 0 {
		text = strings.Join(lines, "\n") + "\n" + text
	}
	breaks := lineBreak([]byte(e.text))
	margin := beside.Column - 1
	return strings.Repeat(" ", margin) + "retry:" + breaks + indentBlock(text, margin+2, breaks), true
}
