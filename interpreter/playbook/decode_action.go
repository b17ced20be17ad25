package playbook

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// CodeFieldName is a field that is never a template: docs/concepts/expressions.md#templates. The templates in
// FieldStatement become bind parameters.
const CodeFieldName = "code"

// CallWords returns the names of callKeys.
func CallWords() []string { return lists.Map(callKeys, func(k keyOf[Action]) string { return k.name }) }

// callKeys are the words that every call of a tool accepts besides its fields.
var callKeys = []keyOf[Action]{
	argsKey,
	acceptKey(key{name: "auth", doc: "the name of a connection that the worker knows"},
		asNode(WordConnection, readAuth, func(a *Action, n *Node) { a.Auth = n })),
	acceptKey(key{name: "timeout", doc: "time limit of one attempt"},
		asLimit(func(a *Action, v time.Duration) { a.Timeout = v })),
	acceptKey(key{name: "idempotency", doc: "which key the tool sends: `operation`, `attempt` or `none`"},
		asOneOf(func(a *Action, one string) { a.Idempotency = one }, "operation", "attempt", "none")),
}

var argsKey = acceptKey(key{name: "args", doc: "values passed to the tool; a sink writes them instead of the result", nullable: true},
	asValue(func(a *Action, n *Node) { a.Args = n }))

// withCall adds the words of a call to those of a section with one.
func withCall[T any](call func(*T) *Action, words []keyOf[T]) []keyOf[T] {
	for _, word := range callKeys {
		if !slices.ContainsFunc(words, func(own keyOf[T]) bool { return own.name == word.name }) {
			words = append(words, keyOf[T]{word.key, readThrough(call, word.into)})
		}
	}
	return words
}

var toolSection = sectionOf(section{name: "tool", open: true, fields: olderFields}, withCall(sameAction, []keyOf[Action]{
	acceptKey(key{name: "kind", older: []string{"type"}, doc: "the name of the tool, if its fields are grouped under `tool`", required: "kind: http"},
		asPart[Action](WordConnection)),
}))

func sameAction(a *Action) *Action { return a }

// readAction reads the tool and the fields of an open section; path names it in messages.
func readAction(d *decoder, f *fields, path string) *Action {
	action := &Action{Pos: f.pos}
	tool := f.getValue("tool")
	if tool != nil && tool.Kind == yaml.MappingNode && !d.broken[tool] {
		tool = d.addGroupedFields(f, tool, path)
	}
	if tool != nil {
		action.Tool = readNameNode(d, tool, "tool must be the name of a tool")
	}
	for _, field := range f.rest {
		if field.name == FieldWorkflow && action.ToolTraits().Plays {
			action.Inline = readInlined(d, field)
			continue
		}
		before := len(d.Found)
		if field.name == FieldTo && action.ToolTraits().Moves {
			field.value = readMovedRows(d, field.value, action)
		}
		if entry := readToolEntry(d, field); entry != nil {
			action.Fields = append(action.Fields, entry)
		}
		if found := d.Found[before:]; len(found) > 0 {
			if action.problems == nil {
				action.problems = map[string]source.Diagnostics{}
			}
			action.problems[field.name] = slices.Clone(found)
		}
	}
	return action
}

// addGroupedFields adds the fields under tool to those of the section, and returns the node with the tool's name.
func (d *decoder) addGroupedFields(f *fields, tool *yaml.Node, path string) *yaml.Node {
	inner, ok := d.readFields(tool, toolSection, "the tool of "+path)
	if !ok {
		return nil
	}
	for _, k := range callKeys {
		value := inner.getValue(k.name)
		if value == nil {
			continue
		}
		if f.getValue(k.name) != nil {
			d.Errorf(inner.words[k.name], CodeDuplicateKey, "%q is both under tool and beside it, on line %d; keep one of them",
				k.name, f.words[k.name].Line)
			continue
		}
		known, _ := f.section.findKey(k.name, false)
		f.setValue(known, inner.words[k.name], value)
	}
	for _, field := range inner.rest {
		if known, ok := f.section.findKey(field.spelt, false); ok {
			d.Errorf(field.pos, CodeUnknownKey, "unknown key %q under tool; it belongs beside tool, in the same column", known.name)
			continue
		}
		if at := slices.IndexFunc(f.rest, func(beside restField) bool { return beside.name == field.name }); at >= 0 {
			d.Errorf(field.pos, CodeDuplicateKey, "%q is both under tool and beside it, on line %d; keep one of them", field.spelt, f.rest[at].pos.Line)
			continue
		}
		f.rest = append(f.rest, field)
	}
	if !d.needsWord(inner, "kind") {
		return nil
	}
	return inner.getValue("kind")
}

// readNameNode reads a name, or a template that returns one; it describes what is expected.
func readNameNode(d *decoder, n *yaml.Node, it string) *Node {
	if d.broken[n] {
		return nil
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || n.Value == "" {
		d.Errorf(positionOf(n), codeWrongType, "%s, not %s", it, describeYAML(n))
		return nil
	}
	if node := d.valueNode(n); !d.broken[n] {
		return node
	}
	return nil
}

// readToolEntry reads one field of a tool; nil if it could not be read.
func readToolEntry(d *decoder, field restField) *Entry {
	entry, value := &Entry{Key: field.name, KeyPos: field.pos}, field.value
	switch {
	case field.name == CodeFieldName || field.name == FieldStatement:
		entry.Value = d.rawText(value)
	case field.name == FieldFrom && value.Kind == yaml.MappingNode && !d.broken[value]:
		entry.Value = d.nestedCall(value)
	case slices.Contains(RequestFields, field.name):
		value = readOlderNotice(d, value)
		fallthrough
	default:
		entry.Value = d.valueNode(value)
	}
	if d.broken[value] {
		return nil
	}
	return entry
}

// readAuth reads the name of a connection, which only the worker can resolve.
func readAuth(d *decoder, n *yaml.Node, _ string) *Node {
	return readNameNode(d, n, "auth must be the name of a connection that the worker knows, such as auth: pg_main")
}

var workbookSection = sectionOf(section{name: "workbook entry", called: "an entry of workbook", open: true, fields: olderFields}, withCall(sameAction, []keyOf[Action]{
	acceptKey(key{name: "name", doc: "the name that steps use", required: "name: score"},
		asName(func(a *Action, name string) { a.Name = name })),
	acceptKey(key{name: "desc", doc: "a note for readers", nullable: true}, asText(func(*Action, string) {})),
	acceptKey(key{name: "tool", older: []string{"type"}, doc: "the tool to call", required: "tool: python"},
		asPart[Action](WordTool)),
	acceptKey(key{name: "retry", doc: "the policies of steps that use the entry and have no `retry` of their own"},
		readAs(WordPolicies, func(d *decoder, w written, a *Action) { readEntryRetry(d, w, a) }).of(policySection)),
}))

func readWorkbook(d *decoder, n *yaml.Node) []*Action {
	items, ok := d.readItems(n, "workbook")
	if !ok {
		return nil
	}
	var actions []*Action
	for _, item := range items {
		f, ok := d.readFields(item, workbookSection, workbookSection.sectionTitle())
		if !ok {
			continue
		}
		named := &Action{}
		d.readFirst(f, "name", named)
		f.path = "the workbook entry " + QuoteWord(named.Name)
		action := readAction(d, f, f.path)
		action.Name = named.Name
		d.readWords(f, action, at{})
		readCallArgs(d, action, f.path)
		actions = append(actions, action)
	}
	return actions
}

// ListArgs is the end of a message: what accepts a list as args.
const ListArgs = "; a sink writes a list, a row for each element: sink: {tool: …, table: …, args: …}"

// readCallArgs reports args of a call that are not a map: a call merges its args by name. Only those of a sink may
// be a list of rows.
func readCallArgs(d *decoder, action *Action, path string) {
	args := action.Args
	if args == nil || args.Kind == MapNode {
		return
	}
	if args.Template != nil {
		if _, single := args.Template.SingleProgram(); single {
			return
		}
	}
	if args.Kind == ConstantNode && args.Value == nil {
		return // already reported
	}
	got, hint := "text", ""
	switch args.Kind {
	case ListNode:
		got, hint = "a list", ListArgs
	case ConstantNode:
		got = DescribeValue(args.Value)
	case MapNode, TemplateNode:
	}
	d.Errorf(args.Pos, codeWrongType, "the args of %s must be a map, or one template that gives a map, not %s%s", path, got, hint)
	action.Args = nil
}

// literalTool returns the tool of a call if it is literal, otherwise "".
func literalTool(action *Action) string {
	if action == nil {
		return ""
	}
	name, _ := action.ToolName()
	return name
}

// QuoteWord quotes a word for messages.
func QuoteWord(text string) string { return strconv.Quote(text) }

var sinkSection = sectionOf(section{name: "sink", called: "a sink", open: true, fields: olderFields}, withCall((*Sink).action, []keyOf[Sink]{
	acceptKey(key{name: "tool", older: []string{"type", "storage"}, doc: "the tool that writes", required: "tool: postgres"},
		asPart[Sink](WordTool)),
	acceptKey(key{name: "retry", doc: "policies for failures of the sink itself. Without them, a table sink retries failures of class `retryable`, up to 5 attempts within 2 minutes; `false` turns that off"},
		asSinkRetry()),
	acceptKey(key{name: "args", older: []string{"data"}, doc: argsKey.doc, nullable: true}, readThrough((*Sink).action, argsKey.into)),
	acceptKey(key{name: "fields", newer: true, doc: "columns to add to each row, or to replace in it: a map of names to expressions, in which `row` is the row"},
		readAs(WordMap, func(d *decoder, w written, s *Sink) { readRowFields(d, w, s.Action.rowShape()) })),
	acceptKey(key{name: "exclude", newer: true, doc: "the columns to leave out of each row: a list of names"},
		readAs(WordNames, func(d *decoder, w written, s *Sink) { readExcluded(d, w, s.Action.rowShape()) })),
}))

func (s *Sink) action() *Action { return s.Action }

// innerSink is an example of a section whose only word is a sink.
const innerSink = "sink: {tool: postgres, …}"

func (*Sink) section() *section { return sinkSection }

// decode reads a sink; where.place is its place in the playbook.
func (s *Sink) decode(d *decoder, f *fields, where at) bool {
	*s = Sink{Pos: f.pos, Place: where.place, Action: readAction(d, f, f.path)}
	where.tool = literalTool(s.Action)
	d.readWords(f, s, where)
	return true
}

// rowShape returns the action's RowShape, which it creates if necessary.
func (a *Action) rowShape() *RowShape {
	if a.Rows == nil {
		a.Rows = &RowShape{}
	}
	return a.Rows
}

// FieldNodes returns the values that are evaluated for each row: those of the fields, and the path. It returns none for nil.
func (s *RowShape) FieldNodes() []*Node {
	switch {
	case s == nil:
		return nil
	case s.Path != nil:
		return append(entryValues(s.Fields), s.Path)
	}
	return entryValues(s.Fields)
}

// isExcluded reports whether a field of rows is excluded.
func (s *RowShape) isExcluded(name string) bool {
	return s != nil && slices.ContainsFunc(s.Exclude, func(one *ExcludedField) bool { return one.Name == name })
}

// ExcludedNames returns the names of the excluded fields, in file order.
func (s *RowShape) ExcludedNames() []string {
	return lists.Map(s.Exclude, func(one *ExcludedField) string { return one.Name })
}

// readRowFields reads the fields that are added to rows. Values with nested templates are reported: each field is
// one expression.
func readRowFields(d *decoder, w written, shape *RowShape) {
	if d.broken[w.node] {
		return
	}
	if w.node.Kind != yaml.MappingNode {
		d.Errorf(positionOf(w.node), codeWrongType, "%s must be a map of names to expressions, such as fields: {loaded_at: \"{{ now() }}\"}, not %s", w.what, describeYAML(w.node))
		return
	}
	node := d.valueNode(w.node)
	for i, entry := range node.Entries {
		value := w.node.Content[2*i+1]
		if d.broken[value] {
			continue
		}
		if entry.Value.Template == nil && !entry.Value.IsConstant() {
			d.Errorf(entry.Value.Pos, codeWrongType, "%s.%s must be one expression, such as \"{{ {'id': row.id} }}\", not %s with templates in it",
				w.what, ShortenText(entry.Key), describeYAML(value))
			continue
		}
		shape.Fields = append(shape.Fields, entry)
	}
}

// readMovedRows reads how the rows of a transfer are changed, with the words of a sink, and returns the rest of the
// destination.
func readMovedRows(d *decoder, to *yaml.Node, action *Action) *yaml.Node {
	if to.Kind != yaml.MappingNode || d.broken[to] {
		return to
	}
	rest, words := *to, map[string]*yaml.Node{}
	rest.Content = nil
	for name, value := range yamltree.Pairs(to) {
		if slices.Contains(RowWords, name.Value) {
			words[name.Value] = value
			continue
		}
		rest.Content = append(rest.Content, name, value)
	}
	for _, word := range RowWords {
		value := words[word]
		if value == nil {
			continue
		}
		w, shape := written{key: &key{name: word, what: FieldTo + "." + word}, node: value}, action.rowShape()
		if word == excludeWord {
			readExcluded(d, w, shape)
			continue
		}
		shape.Only = shape.Only || word == ArgsWord
		readRowFields(d, w, shape)
	}
	return &rest
}

const excludeWord = "exclude"

// RowWords are the words of a sink, and of the field to of a transfer, that change each row. They apply in this
// order.
var RowWords = []string{ArgsWord, "fields", excludeWord}

// readExcluded reads the names of excluded fields.
func readExcluded(d *decoder, w written, shape *RowShape) {
	for _, item := range oneOrMore(w.node) {
		name, ok := d.readName(item, w.what)
		if !ok {
			continue
		}
		if shape.isExcluded(name) {
			d.Errorf(positionOf(item), CodeConflict, "%s has %q twice; remove one of them", w.what, ShortenText(name))
			continue
		}
		shape.Exclude = append(shape.Exclude, &ExcludedField{Name: name, Pos: positionOf(item)})
	}
}

// splitRowPaths divides the paths of sinks and transfers that name the row (docs/how-to/data-lake.md#a-path-for-each-row):
// the field keeps the folder before the first value of a row, and RowShape.Path gets the rest, which each row has its own value of. Where
// RowWord is the element of a loop, it means that element, as it did before rows could be named.
func splitRowPaths(pb *Playbook) {
	for _, call := range pb.AllCalls() {
		action := call.Action
		if call.Step != nil && call.Step.Loop != nil && call.Step.Loop.Element == RowWord {
			continue
		}
		switch to := action.Field(FieldTo).AsCall(); {
		case call.Sink != nil && action.ToolTraits().IntoFile:
			action.splitRowPath(action.Fields)
		case action.ToolTraits().Moves && to != nil && to.ToolTraits().IntoFile:
			action.splitRowPath(to.Fields)
		}
	}
}

// splitRowPath divides the path among fields if it names the row.
func (a *Action) splitRowPath(fields []*Entry) {
	for _, field := range fields {
		path := field.Value
		if field.Key != FieldPath || path.Template == nil || !path.Template.UsesNames(RowWord) {
			continue
		}
		folder, rest := 0, 0 // the ends of the folder, and of the separator behind it, in runes
		for _, segment := range path.Template.Segments() {
			if segment.Program != nil && slices.ContainsFunc(segment.Program.Refs(), func(ref expression.Ref) bool { return ref.Root == RowWord }) {
				break
			}
			text := []rune(segment.Text)
			for i := len(text) - 1; i >= 0 && segment.Program == nil; i-- {
				if text[i] == '/' {
					folder, rest = segment.Start+i, segment.Start+i+1
					break
				}
			}
		}
		a.rowShape().Path = path.textPart(rest, len([]rune(path.Raw)))
		field.Value = path.textPart(0, folder)
	}
}

// textPart returns a part of a scalar as a node of its own, whose runes keep their positions. From and to are offsets in runes, between
// which no template begins or ends in part.
func (n *Node) textPart(from, to int) *Node {
	part := &Node{Pos: n.Pos, Raw: string([]rune(n.Raw)[from:to]), file: n.file, style: n.style, origin: &origin{raw: n.Raw}}
	if n.origin != nil {
		part.origin.raw = n.origin.raw
	}
	for at := from; at <= to; at++ {
		if n.origin == nil {
			part.origin.offsets = append(part.origin.offsets, at)
		} else {
			part.origin.offsets = append(part.origin.offsets, n.origin.offsets[at])
		}
	}
	template, _ := expression.ParseTemplate(part.Raw) // which the whole had no problems with
	if text, isLiteral := template.LiteralText(); isLiteral {
		part.constant, part.Value = true, text
		return part
	}
	part.Kind, part.Template = TemplateNode, template
	return part
}

// FolderOfRows returns the text of the path of a sink as the author wrote it, "" if it does not name the row.
func (a *Action) FolderOfRows() string {
	if a.Rows == nil || a.Rows.Path == nil {
		return ""
	}
	fields := a.Fields
	if to := a.Field(FieldTo).AsCall(); to != nil {
		fields = to.Fields
	}
	for _, field := range fields {
		if field.Key == FieldPath {
			return strings.TrimPrefix(field.Value.Raw+"/"+a.Rows.Path.Raw, "/")
		}
	}
	return ""
}
