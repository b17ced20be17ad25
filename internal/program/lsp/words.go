package lsp

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
)

// completeAt proposes completions at a position.
func (s *Server) completeAt(at protocol.TextDocumentPositionParams) *protocol.CompletionList {
	list := &protocol.CompletionList{Items: []protocol.CompletionItem{}}
	doc := s.findDocument(at.TextDocument.URI)
	if doc == nil {
		return list
	}
	add := func(kind protocol.CompletionItemKind, label, detail, doc, insert string) {
		list.Items = append(list.Items, protocol.CompletionItem{Kind: kind, Label: label, Detail: detail, Documentation: doc, InsertText: insert})
	}
	line := int(at.Position.Line)
	p := placeOf(doc.text, line, byteOffset(doc.text.lineAt(line), at.Position.Character))
	switch {
	case p.expression:
		before := doc.text.lineAt(line)[:byteOffset(doc.text.lineAt(line), at.Position.Character)]
		if path := pathBefore(before); path != nil {
			completeMembers(doc, line, path, add)
			break
		}
		completeExpression(doc, add)
	case p.key == "tool":
		for _, name := range s.tools.Names() {
			spec, _ := s.tools.Spec(name)
			add(protocol.CompletionItemKindModule, name, spec.Summary, spec.Doc, name)
		}
	case p.key == "next" || p.key == "else" || p.key == "then" && slices.Contains(p.keys, "next"):
		for _, step := range stepsOf(doc.text) {
			add(protocol.CompletionItemKindReference, step.name, "step", "", step.name)
		}
	case p.key != "":
		for _, value := range s.valuesAt(p) {
			add(protocol.CompletionItemKindEnumMember, value, "", "", value)
		}
	default:
		for _, key := range s.keysAt(p) {
			add(protocol.CompletionItemKindProperty, key.Name, key.detail, key.Doc, key.Name+": ")
		}
	}
	return list
}

// keyProposal is a proposed key.
type keyProposal struct {
	playbook.Key

	detail string
}

// keysAt returns the keys that are allowed at a place: those of its section, and the fields of its tool.
func (s *Server) keysAt(p place) []keyProposal {
	var all []keyProposal
	for _, section := range playbook.Sections() {
		if section.Name != p.sectionName() {
			continue
		}
		for _, key := range section.Keys {
			all = append(all, keyProposal{key, section.Name})
		}
		if spec, found := s.tools.Spec(p.tool); found && section.Open {
			for _, field := range spec.Fields {
				all = append(all, keyProposal{playbook.Key{Name: field.Name, Doc: field.Doc}, spec.Name})
			}
		}
	}
	return all
}

// valuesAt returns the words that a tool's field accepts.
func (s *Server) valuesAt(p place) []string {
	spec, found := s.tools.Spec(p.tool)
	if !found {
		return nil
	}
	for _, field := range spec.Fields {
		if field.Name == p.key {
			return field.Enum
		}
	}
	return nil
}

// completeExpression proposes names and functions.
func completeExpression(doc *document, add func(kind protocol.CompletionItemKind, label, detail, doc, insert string)) {
	for _, function := range expression.FunctionDocs() {
		add(protocol.CompletionItemKindFunction, function.Name, function.Signature, function.Doc, function.Name)
	}
	for _, name := range check.ExpressionNames() {
		add(protocol.CompletionItemKindVariable, name.Name, "", name.Doc, name.Name)
	}
	for _, step := range stepsOf(doc.text) {
		add(protocol.CompletionItemKindVariable, step.name, "result of this step", "", step.name)
	}
	if doc.book == nil {
		return
	}
	for _, key := range playbook.SortedKeys(doc.book.Workload) {
		add(protocol.CompletionItemKindVariable, key, "workload", "", key)
	}
	for _, step := range doc.book.Steps {
		if step.Loop != nil && step.Loop.Element != "" {
			add(protocol.CompletionItemKindVariable, step.Loop.Element, "element of the loop of "+step.Name, "", step.Loop.Element)
		}
	}
}

// hoverAt explains the word at a position; nil if there is nothing to explain.
func (s *Server) hoverAt(at protocol.TextDocumentPositionParams) *protocol.Hover {
	doc := s.findDocument(at.TextDocument.URI)
	if doc == nil {
		return nil
	}
	line := int(at.Position.Line)
	name, from := wordAt(doc.text.lineAt(line), byteOffset(doc.text.lineAt(line), at.Position.Character))
	p := placeOf(doc.text, line, from)
	explained := ""
	switch {
	case name == "":
		return nil
	case p.expression:
		for _, function := range expression.FunctionDocs() {
			if function.Name == name {
				explained = "`" + function.Signature + "`\n\n" + function.Doc
			}
		}
		for _, known := range check.ExpressionNames() {
			if known.Name == name && explained == "" {
				explained = "`" + name + "`\n\n" + known.Doc
			}
		}
	case p.key == "tool":
		if spec, found := s.tools.Spec(name); found {
			explained = "tool `" + name + "`\n\n" + spec.Summary + "\n\n" + strings.TrimSpace(spec.Doc)
		}
	case p.key == "":
		for _, key := range s.keysAt(p) {
			if key.Name == name || slices.Contains(key.Aliases, name) {
				explained = fmt.Sprintf("`%s` of %s\n\n%s", key.Name, key.detail, key.Doc)
			}
		}
	}
	if explained == "" {
		return nil
	}
	within := rangeOf(doc.text, line, from, from+len(name))
	return &protocol.Hover{Contents: protocol.MarkupContent{Kind: protocol.Markdown, Value: explained}, Range: &within}
}

// use is a place where a step is named.
type use struct {
	name       string
	line, from int
	definition bool
}

var (
	definitions = regexp.MustCompile(`^ *(?:- +)?\{?\s*step: *["']?([A-Za-z_]\w*)`)
	routes      = regexp.MustCompile(`\b(?:next|then|else|step): *["'\[{]?\s*["']?([A-Za-z_]\w*)`)
	templates   = regexp.MustCompile(`\{\{.*?\}\}`)
	identifier  = regexp.MustCompile(`(^|[^\w.'"])([A-Za-z_]\w*)`)
	listed      = regexp.MustCompile(`^ *- *["']?([A-Za-z_]\w*)["']? *(?:#.*)?$`)
	inList      = regexp.MustCompile(`\bnext: *\[([^\]]*)\]`)
)

// stepsOf returns the steps of a document, in order.
func stepsOf(t text) []use {
	var all []use
	for n, line := range t {
		if match := definitions.FindStringSubmatchIndex(line); match != nil {
			p := placeOf(t, n, match[2])
			if len(p.keys) > 0 && (p.keys[len(p.keys)-1] == "workflow" || p.keys[len(p.keys)-1] == "steps") {
				all = append(all, use{name: line[match[2]:match[3]], line: n, from: match[2], definition: true})
			}
		}
	}
	return all
}

// usesOf returns all places that name a step.
func usesOf(t text, name string) []use {
	found := map[use]bool{}
	add := func(n, from, to int) {
		if t[n][from:to] == name {
			found[use{name: name, line: n, from: from}] = true
		}
	}
	for n, line := range t {
		for _, match := range routes.FindAllStringSubmatchIndex(line, -1) {
			add(n, match[2], match[3])
		}
		if match := inList.FindStringSubmatchIndex(line); match != nil {
			for _, one := range identifier.FindAllStringSubmatchIndex(line[match[2]:match[3]], -1) {
				add(n, match[2]+one[4], match[2]+one[5])
			}
		}
		if match := listed.FindStringSubmatchIndex(line); match != nil {
			if p := placeOf(t, n, match[2]); len(p.keys) > 0 && p.keys[len(p.keys)-1] == "next" {
				add(n, match[2], match[3])
			}
		}
		for _, template := range templates.FindAllStringIndex(line, -1) {
			for _, one := range identifier.FindAllStringSubmatchIndex(line[template[0]:template[1]], -1) {
				add(n, template[0]+one[4], template[0]+one[5])
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(x, y use) int { return cmp.Or(x.line-y.line, x.from-y.from) })
}

// stepAt returns the step whose name is at a position.
func (s *Server) stepAt(at protocol.TextDocumentPositionParams) (*document, use, bool) {
	doc := s.findDocument(at.TextDocument.URI)
	if doc == nil {
		return nil, use{}, false
	}
	line := int(at.Position.Line)
	name, from := wordAt(doc.text.lineAt(line), byteOffset(doc.text.lineAt(line), at.Position.Character))
	here := slices.ContainsFunc(usesOf(doc.text, name), func(one use) bool { return one.line == line && one.from == from })
	for _, step := range stepsOf(doc.text) {
		if step.name == name && here {
			return doc, step, true
		}
	}
	return nil, use{}, false
}

func locationOf(at uri.URI, t text, one use) protocol.Location {
	return protocol.Location{URI: at, Range: rangeOf(t, one.line, one.from, one.from+len(one.name))}
}

// definitionOf returns the place where a step is defined.
func (s *Server) definitionOf(at protocol.TextDocumentPositionParams) []protocol.Location {
	doc, step, found := s.stepAt(at)
	if !found {
		return []protocol.Location{}
	}
	return []protocol.Location{locationOf(at.TextDocument.URI, doc.text, step)}
}

// referencesOf returns all places that name a step.
func (s *Server) referencesOf(at protocol.TextDocumentPositionParams) []protocol.Location {
	all := []protocol.Location{}
	if doc, step, found := s.stepAt(at); found {
		for _, one := range usesOf(doc.text, step.name) {
			all = append(all, locationOf(at.TextDocument.URI, doc.text, one))
		}
	}
	return all
}

// stepName matches valid names of steps.
var stepName = regexp.MustCompile(`^[A-Za-z_]\w{0,63}$`)

// renameStep renames a step everywhere.
func (s *Server) renameStep(p protocol.RenameParams) (any, error) {
	doc, step, found := s.stepAt(p.TextDocumentPositionParams)
	switch {
	case !found:
		return nil, fmt.Errorf("no step name here")
	case !stepName.MatchString(p.NewName):
		return nil, fmt.Errorf("%q is not a valid step name: use at most 64 letters, digits and _, not starting with a digit", p.NewName)
	case slices.ContainsFunc(stepsOf(doc.text), func(one use) bool { return one.name == p.NewName }):
		return nil, fmt.Errorf("a step named %s already exists", p.NewName)
	}
	edits := lists.Map(usesOf(doc.text, step.name), func(one use) protocol.TextEdit {
		return protocol.TextEdit{Range: rangeOf(doc.text, one.line, one.from, one.from+len(one.name)), NewText: p.NewName}
	})
	return &protocol.WorkspaceEdit{Changes: map[uri.URI][]protocol.TextEdit{p.TextDocument.URI: edits}}, nil
}

// stepSymbols returns the steps of a document.
func (s *Server) stepSymbols(at uri.URI) []protocol.DocumentSymbol {
	all := []protocol.DocumentSymbol{}
	if doc := s.findDocument(at); doc != nil {
		for _, step := range stepsOf(doc.text) {
			within := rangeOf(doc.text, step.line, step.from, step.from+len(step.name))
			all = append(all, protocol.DocumentSymbol{Name: step.name, Kind: protocol.SymbolKindFunction, Range: within, SelectionRange: within})
		}
	}
	return all
}
