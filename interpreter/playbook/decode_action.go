package playbook

import (
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
)

// codeField is never a template: docs/language.md, section templates. The
// templates of statementField become bind parameters.
const codeField = "code"

// action reads the call of an open section; path names it in messages.
func (d *decoder) action(f *fields, path string) *Action {
	action := &Action{Pos: f.pos}
	tool := f.get("tool")
	if tool != nil && tool.Kind == yaml.MappingNode && !d.broken[tool] {
		tool = d.grouped(f, tool, path)
	}
	if tool != nil {
		action.Tool = d.toolName(tool)
	}
	for _, field := range f.rest {
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
	d.callWords(f, action)
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
			d.errorf(inner.words[k.name], CodeDuplicateKey, "%q stands under tool and beside it, in line %d; keep one of them",
				k.name, f.words[k.name].Line)
			continue
		}
		f.values[k.name], f.words[k.name] = value, inner.words[k.name]
	}
	for _, field := range inner.rest {
		if d.besideTool(f, field) {
			continue
		}
		f.rest = append(f.rest, field)
	}
	if !d.require(inner, "the tool of "+path, "kind", "kind: http") {
		return nil
	}
	return inner.get("kind")
}

func (d *decoder) besideTool(f *fields, field restField) bool {
	for _, beside := range f.rest {
		if beside.name == field.name {
			d.errorf(field.pos, CodeDuplicateKey, "%q stands under tool and beside it, in line %d; keep one of them",
				field.spelt, beside.pos.Line)
			return true
		}
	}
	return false
}

// toolName reads a name, or a template over the workload.
func (d *decoder) toolName(n *yaml.Node) *Node {
	if d.broken[n] {
		return nil
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || n.Value == "" {
		d.errorf(position(n), CodeWrongType, "tool must be the name of a tool, not %s", describeYAML(n))
		return nil
	}
	node := d.value(n)
	if d.broken[n] {
		return nil
	}
	return node
}

// toolEntry reads one field of a tool; nil if it could not be read.
func (d *decoder) toolEntry(field restField) *Entry {
	entry := &Entry{Key: field.name, KeyPos: field.pos}
	if field.name == codeField || field.name == statementField {
		entry.Value = d.rawText(field.value)
	} else {
		entry.Value = d.value(field.value)
	}
	if d.broken[field.value] {
		return nil
	}
	return entry
}

// callWords reads args, auth, timeout and idempotency.
func (d *decoder) callWords(f *fields, action *Action) {
	if n := f.get("args"); n != nil && !isNull(n) {
		action.Args = d.value(n)
	}
	if n := f.get("auth"); n != nil {
		action.Auth = d.auth(n)
	}
	if n := f.get("timeout"); n != nil {
		action.Timeout = d.timeLimit(n, "timeout")
	}
	if n := f.get("idempotency"); n != nil {
		action.Idempotency = d.oneOf(n, "idempotency", "operation", "attempt", "none")
	}
}

// auth reads the name of a connection; what it stands for is the worker's.
func (d *decoder) auth(n *yaml.Node) *Node {
	if d.broken[n] {
		return nil
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || n.Value == "" {
		d.errorf(position(n), CodeWrongType, "auth must be the name of a connection that the worker knows, such as auth: pg_main, not %s", describeYAML(n))
		return nil
	}
	return d.value(n)
}

func (d *decoder) workbook(n *yaml.Node) []*Action {
	items, ok := d.items(n, "workbook")
	if !ok {
		return nil
	}
	var actions []*Action
	for _, item := range items {
		f, ok := d.fields(item, workbookSection, "an entry of workbook")
		if !ok {
			continue
		}
		name := ""
		if d.require(f, "an entry of workbook", "name", "name: score") {
			name, _ = d.name(f.get("name"), "name")
		}
		path := "the workbook entry " + quote(name)
		d.require(f, path, "tool", "tool: python")
		if n := f.get("desc"); n != nil && !isNull(n) {
			d.text(n, "desc")
		}
		action := d.action(f, path)
		action.Name = name
		d.callArgs(action, path)
		actions = append(actions, action)
	}
	return actions
}

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
	got := "text"
	switch args.kind {
	case listNode:
		got = "a list"
	case constantNode:
		got = describe(args.Value)
	case mapNode, templateNode:
	}
	d.errorf(args.Pos, CodeWrongType, "the args of %s must be a map, or one template that gives a map, not %s", path, got)
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
