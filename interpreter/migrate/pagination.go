package migrate

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// migratePaginations rewrites every loop.pagination as the retry of its step.
func (m *migrator) migratePaginations() {
	e := newExtent(m.file)
	for i, site := range stepsOf(m.root) {
		step := site.node
		at := yamltree.IndexOf(step, "loop")
		if at < 0 {
			continue
		}
		p := playbook.PaginationOf(resolveAlias(step.Content[at+1]))
		if p == nil {
			continue
		}
		end := e.endOffset(p.Value)
		switch {
		case end < 0 || step.Content[at+1].Kind == yaml.AliasNode:
			m.notMigrated(yamltree.PositionOf(p.Key))
		case m.isBroken(yamltree.PositionOf(p.Key), source.Position{Line: e.lineAt(end), Column: 1 << 20}):
			// The problem is reported, and the section is unchanged.
		case m.rewritePagination(i, false), m.rewritePagination(i, true):
			m.addChange(yamltree.PositionOf(p.Key), "loop.pagination becomes retry, the list of policies")
		default:
			m.notMigrated(yamltree.PositionOf(p.Key))
		}
	}
}

// stepsOf returns the steps of a file as written, including those of inline playbooks.
func stepsOf(root *yaml.Node) []stepSite { return sitesOf(root).steps }

// rewritePagination rewrites the loop.pagination of the step with a number. Comments stay next to their words; with
// plain, all of them go above the list.
func (m *migrator) rewritePagination(number int, plain bool) bool {
	return m.rewriteText(func(e extent, root *yaml.Node) (edits []edit, ok bool) {
		site := stepsOf(root)[number]
		step := site.node
		at := yamltree.IndexOf(step, "loop")
		loopKey, loop := step.Content[at], step.Content[at+1]
		p := playbook.PaginationOf(loop)
		written := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{p.Key, p.Value}}
		written = yamltree.WithoutAliases(written, true)
		list := playbook.OlderPages(e.file, written.Content[1], literalTool(yamltree.KeyValues(step)))
		switch {
		case list == nil:
			return nil, false
		case site.flow:
			edits, ok = e.pagesInBrackets(loopKey, loop, p, list)
		case p.Loop == nil:
			edits, ok = e.pagesForLoop(loopKey, loop, list, plain)
		default:
			edits, ok = e.pagesBehindLoop(loopKey, loop, p, written, list, plain)
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "retry"}
		if p.Loop == nil {
			step.Content[at], step.Content[at+1] = key, list
		} else {
			step.Content[at+1] = p.Loop
			step.Content = slices.Insert(step.Content, at+2, key, list)
		}
		return edits, ok
	})
}

// pagesInBrackets writes the list into a step that is in brackets.
func (e extent) pagesInBrackets(loopKey, loop *yaml.Node, p *playbook.Pagination, list *yaml.Node) ([]edit, bool) {
	start, end := e.startOffset(loopKey), e.endOffset(loop)
	if start < 0 || end < 0 {
		return nil, false
	}
	flowList(list)
	dropComments(list)
	text := "retry: " + strings.TrimSpace(yamltree.EncodeNode(list))
	if p.Loop != nil {
		rest := yamltree.WithoutAliases(p.Loop, false)
		rest.Style = yaml.FlowStyle
		text = "loop: " + strings.TrimSpace(yamltree.EncodeNode(rest)) + ", " + text
	}
	return []edit{{start, end, text}}, true
}

// pagesForLoop replaces a loop that contains nothing else by the list.
func (e extent) pagesForLoop(loopKey, loop, list *yaml.Node, plain bool) ([]edit, bool) {
	start, end := e.startOffset(loopKey), e.endOffset(loopKey)
	if start < 0 || end < 0 {
		return nil, false
	}
	site := retrySite{key: loopKey, value: loop}
	value, ok := e.retryEdit(site, yamltree.WithoutAliases(loop, true), list, plain)
	return []edit{{start, end, "retry"}, value}, ok
}

// pagesBehindLoop writes the list after the loop that it was part of.
func (e extent) pagesBehindLoop(loopKey, loop *yaml.Node, p *playbook.Pagination, written, list *yaml.Node, plain bool) ([]edit, bool) {
	loopEnd := e.endOffset(loop)
	if loopEnd < 0 {
		return nil, false
	}
	breaks := lineBreak([]byte(e.text))
	behind := e.lineEnd(e.lineAt(loopEnd))
	if inBrackets(loop) {
		rest := yamltree.WithoutAliases(p.Loop, false)
		rest.Style = yaml.FlowStyle
		text, ok := e.retryBlock(loopKey, written, list, e.text[e.startOffset(loop):loopEnd], plain)
		return []edit{
			{e.startOffset(loop), loopEnd, strings.TrimSpace(yamltree.EncodeNode(rest))},
			{behind, behind, breaks + text},
		}, ok
	}
	first, last, ok := e.wholeLines(p.Key, p.Value)
	if !ok {
		return nil, false
	}
	text, ok := e.retryBlock(loopKey, written, list, e.text[e.lineStart(first):e.lineEnd(last)], plain)
	if last == e.lineAt(loopEnd) { // the last key of the loop
		return []edit{{e.lineStart(first), e.lineEnd(last), text}}, ok
	}
	return []edit{e.removeLines(first, last), {behind, behind, breaks + text}}, ok
}

// retryBlock returns the list under its key, in separate lines, with the indentation of another key of the step.
func (e extent) retryBlock(beside, written, list *yaml.Node, inside string, plain bool) (string, bool) {
	lines := separateComments(list, written, inside, plain)
	playbook.StyleList(list)
	text := yamltree.EncodeNode(list)
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
