package playbook

import (
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// The files legacy_*.go read the older forms of the language that are more than another spelling. Each
// older form of retry has its own file with its keys and their conversion, and so have loop.pagination and
// the name data. These files turn YAML into YAML. They use the decoder (its file, fields and problems), the
// sections of keys, and print.go, which writes the list of policies. They use the model in only two places:
// where the pagination of a step becomes its retry, and where uses of data are found. They run no checks.
// The decoder calls legacyRetry and stepPagination; interpreter/migrate calls legacy_seam.go.
//
// An older form of retry has its own keys instead of a list of policies. It is converted to a list, as a
// YAML tree, before anything else reads it. The same tree is decoded as if the author had written it, shown
// in the warning, and written by migrate, so all three agree. Values that the author wrote stay the same
// nodes and keep their positions (docs/appendix/older-forms.md).

// form is one older form of retry.
type form struct {
	name    string   // name in messages
	section *section // all words of the form
	own     []string // the words that only this form has
	convert func(*legacy) []*yaml.Node
}

var forms = []*form{flatForm, eventForm, secondsForm, classForm, millisecondsForm}

// recognizeForm recognises a form by the words that only it has. Without any it is the flat form, which shares
// max_attempts with others.
func recognizeForm(n *yaml.Node) (found []*form, word map[*form]*yaml.Node) {
	word = map[*form]*yaml.Node{}
	for key := range yamltree.Pairs(n) {
		for _, f := range forms {
			if slices.Contains(f.own, key.Value) && word[f] == nil {
				found = append(found, f)
				word[f] = key
			}
		}
	}
	if len(found) == 0 {
		found = append(found, flatForm)
	}
	return found, word
}

// legacy is a retry section in an older form that is being converted to the list.
type legacy struct {
	*decoder

	node   *yaml.Node
	tool   string // tool of the step, "" if it is not literal
	keys   map[string]*yaml.Node
	values map[string]*yaml.Node
}

// legacyRetry converts an older form to the list of policies. It returns nil if it has reported why that is not
// possible.
func (d *decoder) legacyRetry(n *yaml.Node, tool string) *yaml.Node {
	before := len(d.Found.Errors())
	policies := d.legacyPolicies(n, tool)
	if len(d.Found.Errors()) > before {
		return nil
	}
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: policies, Line: n.Line, Column: n.Column}
}

func (d *decoder) legacyPolicies(n *yaml.Node, tool string) []*yaml.Node {
	l := &legacy{decoder: d, node: n, tool: tool}
	switch tag := n.ShortTag(); {
	case n.Kind == yaml.MappingNode:
		return l.convertMap()
	case n.Kind == yaml.ScalarNode && tag == "!!bool":
		if strings.EqualFold(n.Value, "false") {
			return nil
		}
		return flatForm.convert(l)
	case n.Kind == yaml.ScalarNode && tag == "!!int":
		if v, ok := d.readInteger(n, "retry"); ok && v < 1 {
			d.Errorf(positionOf(n), CodeBounds, "retry as a number counts attempts, so it must be at least 1, not %d; for no retries, remove retry", v)
			return nil
		}
		l.values = map[string]*yaml.Node{"max_attempts": n}
		return flatForm.convert(l)
	}
	d.Errorf(positionOf(n), codeWrongType, "retry must be a list of policies, not %s; write - {when: \"{{ error is defined }}\", then: {max_attempts: 3}}", describeYAML(n))
	return nil
}

func (l *legacy) convertMap() []*yaml.Node {
	n := l.node
	if l.reportMixed() {
		return nil
	}
	found, word := recognizeForm(n)
	if len(found) > 1 {
		first, second := word[found[0]], word[found[1]]
		l.Errorf(positionOf(second), CodeConflict, "%q and %q belong to two older forms of retry, %s and %s; use one form, or write the list",
			first.Value, second.Value, found[0].name, found[1].name)
		return nil
	}
	if !l.readForm(n, found[0]) {
		return nil
	}
	return found[0].convert(l)
}

// reportMixed reports words of the list in a map.
func (l *legacy) reportMixed() bool {
	keys := yamltree.KeyValues(l.node)
	if keys["then"] != nil {
		l.Errorf(positionOf(l.node), CodeLegacyRetry, "retry must be a list of policies, not one policy; put a - before %s", l.node.Content[0].Value)
		return true
	}
	for key := range yamltree.Pairs(l.node) {
		if _, ofList := thenSection.findKey(key.Value, false); ofList && !legacyWord(key.Value) {
			l.Errorf(positionOf(key), CodeConflict, "%q is a word of the list of policies and belongs under then, but retry is a map here, as in its older forms; write it as a list: retry: [{when: …, then: {%s: …}}]",
				key.Value, key.Value)
			return true
		}
	}
	return false
}

// legacySections have the words that may be directly under retry.
var legacySections = []*section{flatSection, eventSection, secondsSection, classSection, millisecondsSection, pageRetrySection}

// legacyWord reports whether a word belongs to any older form.
func legacyWord(word string) bool {
	return slices.ContainsFunc(legacySections, func(s *section) bool {
		_, ok := s.findKey(word, false)
		return ok
	})
}

// readForm reads the words of a form; it returns false if there are others.
func (l *legacy) readForm(n *yaml.Node, f *form) bool {
	before := len(l.Found)
	fields, ok := l.readFields(n, f.section, "retry in "+f.name)
	if !ok || len(l.Found) > before {
		return false
	}
	l.indexFields(n, f.section, fields)
	return true
}

func (l *legacy) indexFields(n *yaml.Node, s *section, fields *fields) {
	l.values, l.keys = fields.values, map[string]*yaml.Node{}
	for key := range yamltree.Pairs(n) {
		if known, ok := s.findKey(key.Value, l.older); ok {
			l.keys[known.name] = key
		}
	}
}

// policyDraft is a policy of the list under construction.
type policyDraft struct {
	*legacy

	when, stop *yaml.Node // conditions
	whenKey    *yaml.Node // nil if the condition is a default
	then       []*yaml.Node
}

func (l *legacy) newPolicy() *policyDraft { return &policyDraft{legacy: l} }

// addWord adds a word of then.
func (p *policyDraft) addWord(name string, key, value *yaml.Node) {
	p.then = append(p.then, p.newKey(name, key), value)
}

// copyWord adds a word as it was written; it returns false if it is missing.
func (p *policyDraft) copyWord(name string) bool { return p.renameWord(name, name) }

// renameWord adds a word under its name in the list.
func (p *policyDraft) renameWord(from, to string) bool {
	value := p.values[from]
	if value != nil {
		p.addWord(to, p.keys[from], value)
		p.recordWord(value, from, to)
	}
	return value != nil
}

// setWord adds a key with a derived value. Its position is that of the key from which the value was derived,
// otherwise that of the whole form.
func (p *policyDraft) setWord(name, value, tag, from string) {
	scalar := p.scalarFrom(value, tag, from)
	p.addWord(name, p.keys[from], scalar)
	if p.values[from] != nil {
		p.recordWord(scalar, from, name)
	}
}

// recordWord records the author's word for a value, for messages about it.
func (l *legacy) recordWord(value *yaml.Node, from, to string) {
	if from == to {
		return
	}
	if l.spelt == nil {
		l.spelt = map[*yaml.Node]string{}
	}
	l.spelt[value] = from
}

// maxAttempts adds max_attempts with a derived number.
func (p *policyDraft) maxAttempts(value int, from string) {
	p.setWord("max_attempts", strconv.Itoa(value), "!!int", from)
}

// setText adds a word with a text that needs no quotes.
func (p *policyDraft) setText(name, value, from string) { p.setWord(name, value, "!!str", from) }

func (p *policyDraft) scalarFrom(value, tag, from string) *yaml.Node {
	at := p.node
	scalar := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	if written := p.values[from]; written != nil {
		at = written
		copyComments(scalar, written)
	}
	scalar.Line, scalar.Column = at.Line, at.Column
	return scalar
}

// newKey returns a key with the position and the comments of the one from which it was derived.
func (l *legacy) newKey(name string, from *yaml.Node) *yaml.Node {
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: l.node.Line, Column: l.node.Column}
	if from != nil {
		key.Line, key.Column = from.Line, from.Column
		copyComments(key, from)
	}
	return key
}

func copyComments(to, from *yaml.Node) {
	to.HeadComment, to.LineComment, to.FootComment = from.HeadComment, from.LineComment, from.FootComment
}

// policyEntry returns the policy as an entry of the list.
func (p *policyDraft) policyEntry() *yaml.Node {
	entry := p.newMap(p.newKey("when", p.whenKey), p.when)
	if p.stop != nil {
		entry.Content = append(entry.Content, p.newKey("stop_when", p.keys["stop_when"]), p.stop)
	}
	if len(p.then) > 0 {
		entry.Content = append(entry.Content, p.newKey("then", nil), p.newMap(p.then...))
	}
	return entry
}

func (l *legacy) newMap(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: content, Line: l.node.Line, Column: l.node.Column}
}

// warnDeprecated warns about an older form and shows the equivalent list.
func (d *decoder) warnDeprecated(n, list *yaml.Node) {
	d.Found = append(d.Found, source.Diagnostic{
		File: d.File.Name, Pos: positionOf(n), Code: CodeLegacyRetry, Severity: source.Warning,
		Message: legacyMessage(n, list), Note: printRetry(list),
	})
}

func legacyMessage(n, list *yaml.Node) string {
	if len(list.Content) == 0 && n.Kind == yaml.ScalarNode {
		return "retry: false is an older form; for no retries, remove retry"
	}
	return "this is an older form of retry; write it as a list of policies, or run starter migrate"
}
