package playbook

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// fields are the keys of one section as written by the author.
type fields struct {
	section *section
	path    string // name of the map in messages
	pos     source.Position
	words   Words
	keys    []*key // keys of values, in file order
	values  map[string]*yaml.Node
	rest    []restField // fields of an open section's tool, or labels of metadata
	unknown []string    // unknown keys, reported here or by the check of the tool's fields
	done    []string    // words that were read before the others
}

// restField is a field of a tool.
type restField struct {
	name  string
	pos   source.Position
	value *yaml.Node
	spelt string // as written, which may be an older name
}

// keyPositions adds the positions of the values to into, each under prefix and its key.
func (f *fields) keyPositions(into Words, prefix string) Words {
	for _, k := range f.keys {
		into[prefix+k.name] = positionOf(f.values[k.name])
	}
	return into
}

// getValue returns a value, nil if the key is missing.
func (f *fields) getValue(name string) *yaml.Node { return f.values[name] }

func (f *fields) setValue(k *key, pos source.Position, value *yaml.Node) {
	f.words[k.name], f.values[k.name] = pos, value
	f.keys = append(f.keys, k)
}

// readFields reads a map of known keys and reports the others. path names the map in messages.
func (d *decoder) readFields(n *yaml.Node, s *section, path string) (*fields, bool) {
	if d.broken[n] {
		return nil, false
	}
	if n.Kind != yaml.MappingNode {
		d.Errorf(positionOf(n), codeWrongType, "%s must be a map with %s, not %s", path, JoinNames(s.keyNames()), describeYAML(n))
		return nil, false
	}
	f := &fields{
		section: s, path: path, pos: positionOf(n),
		words: Words{}, keys: make([]*key, 0, len(n.Content)/2), values: map[string]*yaml.Node{},
	}
	for key, value := range yamltree.Pairs(n) {
		d.readField(f, s, path, key, value)
	}
	return f, true
}

func (d *decoder) readField(f *fields, s *section, path string, keyNode, value *yaml.Node) {
	name, pos := keyNode.Value, positionOf(keyNode)
	known, ok := s.findKey(name, d.older)
	ok = ok && (!d.older || !known.newer)
	switch {
	case ok && f.words.Has(known.name):
		d.Errorf(pos, CodeDuplicateKey, "%q is another spelling of the key on line %d; keep one of them", name, f.words[known.name].Line)
	case ok:
		if known.warned == name {
			d.Warnf(pos, codeLegacyWord, "%s is an older name of %s; write %s, or run starter migrate", name, known.name, known.name)
			d.AddFix(name, known.name)
		}
		f.setValue(known, pos, value)
	case s.open:
		d.toolField(f, s, name, pos, value)
	case d.older && s.labels && isLabel(s, name, value):
		f.rest = append(f.rest, restField{name: name, pos: pos, value: value, spelt: name})
	case d.older && s.labels:
		// noetl.io/v1 stores lists and maps there; they are not used.
	default:
		f.unknown = append(f.unknown, name)
		hint := d.unknownKeyHint(name, s)
		d.Errorf(pos, CodeUnknownKey, "unknown key %q in %s%s", ShortenText(name), path, hint.Text)
		d.AddFix(name, hint.CertainReplacement(name, s.keyNames()))
		yamltree.EachScalar(value, func(n *yaml.Node) { d.unread = append(d.unread, n.Value) })
	}
}

// unknownKeyHint completes a message about an unknown key. It distinguishes words of noetl.io/v1, of other levels and of
// other systems from misspelt ones.
func (d *decoder) unknownKeyHint(name string, s *section) Hint {
	if known, ok := s.findKey(name, true); ok {
		return writeInstead(known.name)
	}
	if s.below != nil {
		if _, ok := s.below.findKey(name, false); ok {
			hint, _ := otherLevel(name, s, d.sections, false)
			return hint
		}
	}
	if legacyWord(name) {
		switch {
		case s.below != nil:
			return PlainHint("; it belongs to an older form of retry, which is not a list; in the list, use when and then")
		case slices.Contains(legacySections, s):
			return PlainHint("; it belongs to another older form of retry, and forms cannot be mixed; write all of it as a list of policies")
		}
	}
	if hint, found := d.foreignKeyHint(name, s); found {
		return hint
	}
	return similarOrAll(name, s.keyNames())
}

// foreignKeyHint returns a hint for a word of another system or another level; false if it is neither.
func (d *decoder) foreignKeyHint(name string, s *section) (Hint, bool) {
	if found := foreignKey(name, s, nil); found.Text() != "" {
		return foreignHint(found), true
	}
	if hint, found := otherLevel(name, s, d.sections, false); found {
		return hint, true
	}
	if near := expression.Suggest(name, s.keyNames()); near != "" {
		return Hint{}, false
	}
	return otherLevel(name, s, d.sections, true)
}

func (d *decoder) toolField(f *fields, s *section, spelt string, pos source.Position, value *yaml.Node) {
	f.unknown = append(f.unknown, spelt)
	name := spelt
	if newer, ok := s.fields[spelt]; ok && d.older {
		name = newer
	}
	for _, earlier := range f.rest {
		if earlier.name == name {
			d.Errorf(pos, CodeDuplicateKey, "%q means the same as %q on line %d; keep one of them", spelt, earlier.spelt, earlier.pos.Line)
			return
		}
	}
	f.rest = append(f.rest, restField{name: name, pos: pos, value: value, spelt: spelt})
}

// requireKeys reports missing keys; hint shows how to write one.
func (d *decoder) requireKeys(f *fields, path, name, hint string) bool {
	if f.getValue(name) != nil {
		return true
	}
	// A misspelt key, or one of another system, is reported as unknown; that it is missing follows from that.
	for _, unknown := range f.unknown {
		if expression.Suggest(unknown, []string{name}) != "" || foreignKey(unknown, f.section, nil).namesKey(name) {
			return false
		}
	}
	d.Errorf(f.pos, CodeMissingKey, "%s needs %q, for example %s", path, name, hint)
	return false
}

// readItems reads a list.
func (d *decoder) readItems(n *yaml.Node, what string) ([]*yaml.Node, bool) {
	if d.broken[n] {
		return nil, false
	}
	if n.Kind != yaml.SequenceNode {
		d.Errorf(positionOf(n), codeWrongType, "%s must be a list, not %s", what, describeYAML(n))
		return nil, false
	}
	return n.Content, true
}

// readEach reads items, and omits invalid ones.
func readEach[T any](items []*yaml.Node, read func(*yaml.Node) *T) []*T {
	var all []*T
	for _, item := range items {
		if one := read(item); one != nil {
			all = append(all, one)
		}
	}
	return all
}

// oneOrMore returns the items of a list, or the node itself if it is not a list.
func oneOrMore(n *yaml.Node) []*yaml.Node {
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// readConstants reads a map whose values are known before the run: the workload.
func (d *decoder) readConstants(n *yaml.Node, what string) (map[string]any, Words) {
	values, places := map[string]any{}, Words{}
	if isNull(n) || d.broken[n] {
		return values, places
	}
	if n.Kind != yaml.MappingNode {
		d.Errorf(positionOf(n), codeWrongType, "%s must be a map, not %s", what, describeYAML(n))
		return values, places
	}
	for key, value := range yamltree.Pairs(n) {
		name := key.Value
		values[name] = d.constantValue(value)
		places[name] = positionOf(key)
	}
	return values, places
}

// constantValue returns the value of any YAML without templates, and warns about braces in it.
func (d *decoder) constantValue(n *yaml.Node) any {
	yamltree.EachScalar(n, func(n *yaml.Node) {
		if !d.broken[n] && n.ShortTag() == "!!str" && strings.Contains(n.Value, "{{") {
			d.Warnf(positionOf(n), codeTemplateNotAllowed, "values of workload are constants: this stays text, braces included")
		}
	})
	return d.plainValue(n)
}

// plainValue returns the value of any YAML.
func (d *decoder) plainValue(n *yaml.Node) any {
	switch {
	case d.broken[n]:
		return nil
	case n.Kind == yaml.SequenceNode:
		return lists.Map(n.Content, d.plainValue)
	case n.Kind == yaml.MappingNode:
		object := make(map[string]any, len(n.Content)/2)
		for key, value := range yamltree.Pairs(n) {
			object[key.Value] = d.plainValue(value)
		}
		return object
	}
	return d.freeValue(n)
}

// Fields of tools that the language itself knows.
const (
	FieldStatement = "statement" // SQL, whose templates become bind parameters
	FieldChildren  = "children"  // of tools that write rows to tables
	FieldNested    = "nested"    // of these too
	FieldParams    = "params"
	FieldHeaders   = "headers"
	FieldURL       = "url"
	FieldMethod    = "method"
	FieldBody      = "body"
	FieldOnStart   = "on_start"
	FieldOnCancel  = "on_cancel"
	FieldOnTimeout = "on_timeout"
	FieldMessage   = "message"
	FieldFrom      = "from"
	FieldTo        = "to"
	FieldOrderBy   = "order_by"
	FieldRows      = "rows"
	FieldTool      = "tool"
)

// SelectVerbs are the first words of statements whose rows can be ordered by the reader.
var SelectVerbs = []string{"select", "values", "with"}

// IsRequestField reports whether the value of a field is itself a request.
func IsRequestField(field string) bool { return slices.Contains(RequestFields, field) }

// Problems that the check of a playbook and the tool report in the same words: the check knows what the file says, and
// the tool what its templates give.
const (
	// RowPathProblem describes a sink that writes one file although its path contains the row.
	RowPathProblem = `path names "` + RowWord + `", but rows can go to several paths only with auth or as Parquet; add auth, or set format: parquet`
	// IgnoringNeedsKey and ReplacingNeedsKey are what children of a sink cannot be used with.
	IgnoringNeedsKey  = "mode insert_or_ignore without key; the sink needs the key to find out which rows were ignored, because their children are not written"
	ReplacingNeedsKey = "replace_where without key; the sink needs the key to replace only the children of the replaced rows"
)
