package playbook

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// loop: {pagination: {continue_while, next_page, …}} is an older form of retry under loop. A loop that contains
// nothing else is not a loop.

var paginationSection = &section{name: "loop.pagination", keys: []key{
	{name: "type", doc: "`response_based`"},
	{name: "continue_while", doc: "there is another page"},
	{name: "next_page", doc: "what changes in the request"},
	{name: "max_iterations", doc: "pages at most; default 1000"},
	{name: "merge_strategy", doc: "`append` (default), `collect` or `replace`"},
	{name: "merge_path", doc: "dotted path into the page"},
	{name: "retry", doc: "how often a request is tried again, and when"},
}}

var pageRetrySection = &section{name: "loop.pagination.retry", keys: []key{
	{name: "max_attempts", doc: "attempts of each request in all; default 1"},
	{name: "backoff", doc: "`fixed` (default) or `exponential`"},
	{name: "initial_delay", doc: "the first delay; default 1s"},
	{name: "max_delay", doc: "the longest delay; default 60s"},
}}

const defaultMaxIterations = 1000

// Pagination is a loop.pagination, separated from the rest of the loop.
type Pagination struct {
	Key, Value *yaml.Node
	Loop       *yaml.Node // the loop without it, nil if it contains nothing else
}

// PaginationOf returns the loop.pagination of a loop, nil if there is none.
func PaginationOf(loop *yaml.Node) *Pagination {
	if loop == nil || loop.Kind != yaml.MappingNode {
		return nil
	}
	at := yamltree.IndexOf(loop, "pagination")
	if at < 0 {
		return nil
	}
	p := &Pagination{Key: loop.Content[at], Value: loop.Content[at+1]}
	if len(loop.Content) > 2 {
		rest := *loop
		rest.Content = slices.Delete(slices.Clone(loop.Content), at, at+2)
		p.Loop = &rest
	}
	return p
}

// stepPagination reads loop.pagination of a step as its retry, and leaves the rest of the loop to be read.
func (d *decoder) stepPagination(f *fields, step *Step) {
	p := PaginationOf(f.getValue("loop"))
	if p == nil {
		return
	}
	if p.Loop != nil {
		f.values["loop"] = p.Loop
	} else {
		delete(f.values, "loop")
		delete(f.words, "loop")
	}
	if beside, ok := f.words["retry"]; ok {
		d.Errorf(positionOf(p.Key), CodeConflict,
			"loop.pagination is an older form of retry, and the step also has retry, on line %d; write all of it as a list of policies", beside.Line)
		return
	}
	before := len(d.Found)
	list := d.pagesList(p.Value, literalTool(step.Action))
	if list == nil {
		return
	}
	step.Retry = readPolicies(d, list, step.Name+".retry")
	if !d.Found[before:].HasErrors() {
		d.Found = append(d.Found, source.Diagnostic{
			File: d.File.Name, Pos: positionOf(p.Key), Code: CodeLegacyRetry, Severity: source.Warning,
			Message: "loop.pagination is an older form of retry; write it as a list of policies, or run starter migrate",
			Note:    printRetry(list),
		})
	}
}

// pagesList converts loop.pagination to the list of policies; nil if it is not a map. It reports problems of keys
// that only pagination has; those of others are found when the list is decoded.
func (d *decoder) pagesList(n *yaml.Node, tool string) *yaml.Node {
	l := &legacy{decoder: d, node: n, tool: tool}
	fields, ok := l.readFields(n, paginationSection, "loop.pagination")
	if !ok {
		return nil
	}
	l.indexFields(n, paginationSection, fields)
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: l.pagePolicies(fields), Line: n.Line, Column: n.Column}
}

func (l *legacy) pagePolicies(fields *fields) []*yaml.Node {
	if n := l.values["type"]; n != nil {
		l.readChoice(n, "type", "response_based")
	}
	l.requireKeys(fields, "loop.pagination", "continue_while", `continue_while: "{{ response.more }}"`)
	l.requireKeys(fields, "loop.pagination", "next_page", `next_page: {params: {page: "{{ response.page + 1 }}"}}`)
	var policies []*yaml.Node
	if retry := l.pageRetry(); retry != nil {
		policies = append(policies, retry)
	}
	return append(policies, l.pagesPolicy())
}

// pagesPolicy returns the policy that requests the next page.
func (l *legacy) pagesPolicy() *yaml.Node {
	names := l.pageNames()
	p := l.newPolicy()
	p.when, p.whenKey = p.ownCondition("error is not defined", ""), l.keys["continue_while"]
	if n := l.values["continue_while"]; n != nil {
		p.when = p.listConditionOf(n, afterSuccess, names)
	}
	if n := l.values["max_iterations"]; n == nil {
		p.maxAttempts(defaultMaxIterations, "")
	} else if v, ok := l.readInteger(n, "max_iterations"); ok && v < 1 {
		l.Errorf(positionOf(n), CodeBounds, "max_iterations must be at least 1, not %d: it counts pages", v)
	} else if ok {
		p.renameWord("max_iterations", "max_attempts")
	}
	if n := l.values["next_page"]; n != nil {
		p.addWord("next_call", l.keys["next_page"], l.renamedTree(n, names))
	}
	p.collectPages(names)
	return p.policyEntry()
}

// collectPages adds collect. Only append selects a part of the page.
func (p *policyDraft) collectPages(names *pageNames) {
	strategy := "append"
	switch n := p.values["merge_strategy"]; {
	case n == nil:
	case n.Kind == yaml.ScalarNode && n.Value == "extend":
		p.Errorf(positionOf(n), CodeLegacyRetry,
			"merge_strategy: extend also flattens lists inside of the list, which collect does not; write append, which is the same where rows are no lists")
	default:
		strategy = p.readChoice(n, "merge_strategy", "append", "collect", "replace")
	}
	word := "append"
	if strategy == "replace" {
		word = strategy
	}
	collect := p.newMap(p.newKey("strategy", p.keys["merge_strategy"]), p.scalarFrom(word, "!!str", "merge_strategy"))
	if n := p.values["merge_path"]; n != nil {
		if path, ok := p.readText(n, "merge_path"); ok && strategy == "append" && names.newPath(path) != "" {
			collect.Content = append(collect.Content, p.newKey("path", p.keys["merge_path"]), p.scalarFrom(names.newPath(path), "!!str", "merge_path"))
		}
	}
	if plainWords(collect) {
		collect.Style = yaml.FlowStyle
	}
	p.addWord("collect", nil, collect)
}

// pageRetry returns the policy for failures, nil if each request is made once.
func (l *legacy) pageRetry() *yaml.Node {
	n := l.values["retry"]
	if n == nil {
		return nil
	}
	inner := &legacy{decoder: l.decoder, node: n, tool: l.tool}
	fields, ok := l.readFields(n, pageRetrySection, "loop.pagination.retry")
	if !ok {
		return nil
	}
	inner.indexFields(n, pageRetrySection, fields)
	inner.readAttempts()
	backoff := "fixed"
	if n := inner.values["backoff"]; n != nil {
		backoff = l.readChoice(n, "backoff", "fixed", "exponential")
	}
	if n := inner.values["max_attempts"]; n == nil || n.Value == "1" {
		return nil
	}
	p := inner.newPolicy()
	p.when = p.ownCondition(errorDefined, "")
	p.copyWord("max_attempts")
	switch {
	case backoff == "exponential":
		inner.checkDelayOrder("initial_delay", inner.readLength("initial_delay", DefaultInitialDelay), "max_delay", inner.readLength("max_delay", DefaultMaxDelay))
		p.copyWord("initial_delay")
		p.copyWord("max_delay")
	case !p.renameWord("initial_delay", "delay"):
		p.setText("delay", DurationText(time.Second), "")
	}
	p.addJitter("none")
	return p.policyEntry()
}

// pageNames maps the names of loop.pagination to those of the list.
type pageNames struct {
	// wrapped says that response is an envelope whose data is the page.
	wrapped bool
}

// pageNames determines what response means: in some versions the page, in later ones an envelope with the page in
// data. In the latter case every use, and the path, begins with data.
func (l *legacy) pageNames() *pageNames {
	uses, wrapped := 0, true
	for _, word := range []string{"continue_while", "next_page"} {
		if l.values[word] == nil {
			continue
		}
		yamltree.EachScalar(l.values[word], func(n *yaml.Node) {
			for _, ref := range scalarRefs(n) {
				if ref.Root == "response" {
					key, ok := MemberAt(ref.Path, 0)
					uses, wrapped = uses+1, wrapped && ok && key == "data"
				}
			}
		})
	}
	if path := l.values["merge_path"]; path != nil {
		inside := strings.HasPrefix(path.Value, "data.")
		wrapped = wrapped && (inside || uses > 0 && path.Value == "data")
		uses++
	}
	return &pageNames{wrapped: wrapped && uses > 0}
}

// scalarRefs returns the references in a scalar, which may be a condition or a value.
func scalarRefs(n *yaml.Node) []expression.Ref {
	template, problems := expression.ParseTemplate(n.Value)
	if len(problems) == 0 && !strings.Contains(n.Value, "{{") {
		template, problems = expression.ParseCondition(n.Value)
	}
	if len(problems) > 0 || template == nil {
		return nil
	}
	return template.Refs()
}

func (p *pageNames) newPath(written string) string {
	if !p.wrapped {
		return written
	}
	return strings.TrimPrefix(strings.TrimPrefix(written, "data"), ".")
}

// dataMember matches the member data after response.
var dataMember = regexp.MustCompile(`^\s*(\??\.\s*data\b|\[\s*(?:'data'|"data")\s*\])`)

// newName returns the current name for a reference and where the replaced text ends; "" if it is unchanged.
func (p *pageNames) newName(ref expression.Ref, source []rune) (string, int) {
	if p == nil { // a form without names of its own
		return "", 0
	}
	switch ref.Root {
	case "iteration":
		return "(_retry.page - 1)", ref.End
	case "accumulated":
		return DefaultInto, ref.End
	case "response":
		if member := dataMember.FindString(string(source[ref.End:])); p.wrapped && member != "" {
			return "response", ref.End + len([]rune(member))
		}
	}
	return "", 0
}

// renamedTree returns a tree whose templates use the names of the list. Unchanged nodes are reused.
func (d *decoder) renamedTree(n *yaml.Node, names *pageNames) *yaml.Node {
	switch {
	case d.broken[n]:
		return n
	case n.Kind == yaml.ScalarNode:
		return d.renamedScalar(n, names)
	}
	copied := *n
	copied.Content = make([]*yaml.Node, len(n.Content))
	for i, inner := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			copied.Content[i] = inner
		} else {
			copied.Content[i] = d.renamedTree(inner, names)
		}
	}
	return &copied
}

func (d *decoder) renamedScalar(n *yaml.Node, names *pageNames) *yaml.Node {
	template, problems := expression.ParseTemplate(n.Value)
	if n.ShortTag() != "!!str" || len(problems) > 0 || template == nil {
		return n
	}
	w := &rewriter{source: []rune(n.Value)}
	at := 0
	for _, ref := range template.Refs() {
		newer, end := names.newName(ref, w.source)
		if newer == "" || ref.Offset < at {
			continue
		}
		w.copyText(at, ref.Offset)
		w.addText(newer, ref.Offset)
		at = end
	}
	if at == 0 {
		return n
	}
	w.copyText(at, len(w.source))
	return d.rewriteNode(n, w)
}
