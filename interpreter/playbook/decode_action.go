package playbook

import (
	"slices"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
)

// codeField is never a template: docs/concepts/expressions.md#templates. The
// templates of statementField become bind parameters.
const codeField = "code"

// callKeys are the words that every call of a tool accepts beside its fields.
var callKeys = []keyOf[Action]{
	argsKey,
	accept(key{name: "auth", doc: "name of a connection that the worker knows"},
		asNode(WordConnection, (*decoder).auth, func(a *Action, n *Node) { a.Auth = n })),
	accept(key{name: "timeout", doc: "time limit of one attempt"},
		asLimit(func(a *Action, v time.Duration) { a.Timeout = v })),
	accept(key{name: "idempotency", doc: "`operation`, `attempt` or `none`: which key the tool sends"},
		asOneOf(func(a *Action, one string) { a.Idempotency = one }, "operation", "attempt", "none")),
}

var argsKey = accept(key{name: "args", doc: "values that are passed to the tool; a sink writes them in place of the result", nullable: true},
	asValue(func(a *Action, n *Node) { a.Args = n }))

// withCall adds the words of a call to those of a section that has one.
func withCall[T any](call func(*T) *Action, words []keyOf[T]) []keyOf[T] {
	for _, word := range callKeys {
		if !slices.ContainsFunc(words, func(own keyOf[T]) bool { return own.name == word.name }) {
			words = append(words, keyOf[T]{word.key, through(call, word.into)})
		}
	}
	return words
}

var toolSection = sectionOf(section{name: "tool", open: true, fields: olderFields}, withCall(sameAction, []keyOf[Action]{
	accept(key{name: "kind", older: []string{"type"}, doc: "the tool's name, where its fields are grouped under `tool`", required: "kind: http"},
		asPart[Action](WordConnection)),
}))

func sameAction(a *Action) *Action { return a }

// action reads the tool and the fields of an open section; path names it in
// messages.
func (d *decoder) action(f *fields, path string) *Action {
	action := &Action{Pos: f.pos}
	tool := f.get("tool")
	if tool != nil && tool.Kind == yaml.MappingNode && !d.broken[tool] {
		tool = d.grouped(f, tool, path)
	}
	if tool != nil {
		action.Tool = d.nameNode(tool, "tool must be the name of a tool")
	}
	for _, field := range f.rest {
		if field.name == FieldWorkflow && action.Traits().Plays {
			action.Inline = d.inlined(field)
			continue
		}
		before := len(d.found)
		if entry := d.toolEntry(field); entry != nil {
			action.Fields = append(action.Fields, entry)
		}
		if found := d.found[before:]; len(found) > 0 {
			if action.problems == nil {
				action.problems = map[string]source.Diagnostics{}
			}
			action.problems[field.name] = slices.Clone(found)
		}
	}
	return action
}

// grouped lays the fields under tool beside those of the section and returns
// the tool's name.
func (d *decoder) grouped(f *fields, tool *yaml.Node, path string) *yaml.Node {
	inner, ok := d.fields(tool, toolSection, "the tool of "+path)
	if !ok {
		return nil
	}
	for _, k := range callKeys {
		value := inner.get(k.name)
		if value == nil {
			continue
		}
		if f.get(k.name) != nil {
			d.errorf(inner.words[k.name], codeDuplicateKey, "%q is under tool and beside it, in line %d; keep one of them",
				k.name, f.words[k.name].Line)
			continue
		}
		known, _ := f.section.find(k.name, false)
		f.set(known, inner.words[k.name], value)
	}
	for _, field := range inner.rest {
		if known, ok := f.section.find(field.spelt, false); ok {
			d.errorf(field.pos, codeUnknownKey, "unknown key %q under tool; it belongs beside tool, in the same column, not under it", known.name)
			continue
		}
		if at := slices.IndexFunc(f.rest, func(beside restField) bool { return beside.name == field.name }); at >= 0 {
			d.errorf(field.pos, codeDuplicateKey, "%q is under tool and beside it, in line %d; keep one of them", field.spelt, f.rest[at].pos.Line)
			continue
		}
		f.rest = append(f.rest, field)
	}
	if !d.needs(inner, "kind") {
		return nil
	}
	return inner.get("kind")
}

// nameNode reads a name, or a template that gives one; it is what a word must be.
func (d *decoder) nameNode(n *yaml.Node, it string) *Node {
	if d.broken[n] {
		return nil
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || n.Value == "" {
		d.errorf(position(n), codeWrongType, "%s, not %s", it, describeYAML(n))
		return nil
	}
	if node := d.value(n); !d.broken[n] {
		return node
	}
	return nil
}

// toolEntry reads one field of a tool; nil if it could not be read.
func (d *decoder) toolEntry(field restField) *Entry {
	entry, value := &Entry{Key: field.name, KeyPos: field.pos}, field.value
	switch {
	case field.name == codeField || field.name == statementField:
		entry.Value = d.rawText(value)
	case slices.Contains(RequestFields, field.name):
		value = d.olderNotice(value)
		fallthrough
	default:
		entry.Value = d.value(value)
	}
	if d.broken[value] {
		return nil
	}
	return entry
}

// auth reads the name of a connection; what it stands for is the worker's.
func (d *decoder) auth(n *yaml.Node, _ string) *Node {
	return d.nameNode(n, "auth must be the name of a connection that the worker knows, such as auth: pg_main")
}

var workbookSection = sectionOf(section{name: "workbook entry", called: "an entry of workbook", open: true, fields: olderFields}, withCall(sameAction, []keyOf[Action]{
	accept(key{name: "name", doc: "the name that steps use", required: "name: score"},
		asName(func(a *Action, name string) { a.Name = name })),
	accept(key{name: "desc", doc: "a note for readers", nullable: true}, asText(func(*Action, string) {})),
	accept(key{name: "tool", older: []string{"type"}, doc: "the tool to call", required: "tool: python"},
		asPart[Action](WordTool)),
	accept(key{name: "retry", doc: "the policies of steps that use the entry and have no `retry` of their own"},
		as(WordPolicies, func(d *decoder, w written, a *Action) { d.entryRetry(w, a) }).of(policySection)),
}))

func (d *decoder) workbook(n *yaml.Node) []*Action {
	items, ok := d.items(n, "workbook")
	if !ok {
		return nil
	}
	var actions []*Action
	for _, item := range items {
		f, ok := d.fields(item, workbookSection, workbookSection.title())
		if !ok {
			continue
		}
		named := &Action{}
		d.first(f, "name", named)
		f.path = "the workbook entry " + quote(named.Name)
		action := d.action(f, f.path)
		action.Name = named.Name
		d.words(f, action, at{})
		d.callArgs(action, f.path)
		actions = append(actions, action)
	}
	return actions
}

// ListArgs says what takes a list as args.
const ListArgs = "; a sink writes a list, a row for each element: sink: {tool: …, table: …, args: …}"

// callArgs refuses args that cannot be laid over by name. A sink's args may be
// a list of rows, those of a call are a map.
func (d *decoder) callArgs(action *Action, path string) {
	args := action.Args
	if args == nil || args.kind == mapNode {
		return
	}
	if args.Template != nil {
		if _, single := args.Template.Single(); single {
			return
		}
	}
	if args.kind == constantNode && args.Value == nil {
		return // reported
	}
	got, hint := "text", ""
	switch args.kind {
	case listNode:
		got, hint = "a list", ListArgs
	case constantNode:
		got = describe(args.Value)
	case mapNode, templateNode:
	}
	d.errorf(args.Pos, codeWrongType, "the args of %s must be a map, or one template that gives a map, not %s%s", path, got, hint)
	action.Args = nil
}

// literalTool is the tool of a call where it is written out, else "".
func literalTool(action *Action) string {
	if action == nil {
		return ""
	}
	name, _ := action.ToolName()
	return name
}

func quote(text string) string { return strconv.Quote(text) }

var sinkSection = sectionOf(section{name: "sink", called: "a sink", open: true, fields: olderFields}, withCall((*Sink).action, []keyOf[Sink]{
	accept(key{name: "tool", older: []string{"type", "storage"}, doc: "the tool that writes", required: "tool: postgres"},
		asPart[Sink](WordTool)),
	accept(key{name: "retry", doc: "policies for the sink's own failures"}, asRetry(func(s *Sink, policies []*Policy) { s.Action.Retry = policies })),
	accept(key{name: "args", older: []string{"data"}, doc: argsKey.doc, nullable: true}, through((*Sink).action, argsKey.into)),
}))

func (s *Sink) action() *Action { return s.Action }

// innerSink is how to write the one word of a section that holds a sink.
const innerSink = "sink: {tool: postgres, …}"

func (*Sink) section() *section { return sinkSection }

// decode reads a sink; the place names it within the playbook.
func (s *Sink) decode(d *decoder, f *fields, where at) bool {
	*s = Sink{Pos: f.pos, Place: where.place, Action: d.action(f, f.path)}
	where.tool = literalTool(s.Action)
	d.words(f, s, where)
	return true
}
