package playbook

import (
	"fmt"
	"slices"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/lists"
)

// WordKind is the type of a key's value.
type WordKind string

// The kinds of values. Only kinds named value, and those whose comments say so, allow templates.
const (
	WordText       WordKind = "text"
	WordName       WordKind = "name" // non-empty text
	WordChoice     WordKind = "choice"
	WordChoices    WordKind = "choices" // a choice, or a list of them
	WordBoolean    WordKind = "boolean"
	WordInteger    WordKind = "integer"
	WordNumber     WordKind = "number"
	WordDuration   WordKind = "duration"
	WordLimit      WordKind = "limit"  // a positive duration
	WordLength     WordKind = "length" // a duration, or a text or number that the section interprets
	WordScalar     WordKind = "scalar" // text, a number or a boolean
	WordCondition  WordKind = "condition"
	WordValue      WordKind = "value"
	WordCollection WordKind = "collection" // a list, a map, or a template that returns one
	WordTextValue  WordKind = "text value" // text, or a template
	WordTool       WordKind = "tool"       // the name of a tool, a template, or a map with kind and the tool's fields
	WordConnection WordKind = "connection" // the name of a connection, or a template
	WordMapValue   WordKind = "map value"  // a map of values, or a template that returns one
	WordMap        WordKind = "map"        // a map of values
	WordLabels     WordKind = "labels"     // a map of texts
	WordConstants  WordKind = "constants"  // a map without templates
	WordTexts      WordKind = "texts"      // a list of texts
	WordNames      WordKind = "names"      // a non-empty text, or a list of them
	WordSection    WordKind = "section"
	WordSections   WordKind = "sections"         // a list of sections
	WordSome       WordKind = "section or list"  // one section, or a list of them
	WordPolicies   WordKind = "section or forms" // a list of sections, or an older form
	WordKeyed      WordKind = "section or texts" // a section, or a list of texts
	WordLists      WordKind = "sections by name" // a map of names to lists of sections
	WordTargets    WordKind = "targets"          // the name of a step, a section, or a list of both
)

// domain describes the allowed values of a key, in addition to its kind, for tools that complete or check
// playbooks.
type domain struct {
	kind        WordKind
	accepted    []string        // the choices, or words allowed in place of the kind
	least, most *float64        // bounds, nil for none
	byRule      bool            // a rule of check reports the bounds
	absent      any             // the default; nil for none, or if it varies
	of          func() *section // the section, nil for none
}

// reader reads the value of a key into a T. Keys without read are read by their section, because their meaning
// depends on others.
type reader[T any] struct {
	domain domain
	read   func(d *decoder, w written, into *T)
}

// from sets the smallest allowed number.
func (r reader[T]) from(least float64) reader[T] {
	r.domain.least = &least
	return r
}

// to sets the largest allowed number.
func (r reader[T]) to(most float64) reader[T] {
	r.domain.most = &most
	return r
}

// byRule leaves the bounds to a rule of check, which can give a better message.
func (r reader[T]) byRule() reader[T] {
	r.domain.byRule = true
	return r
}

// or sets the default.
func (r reader[T]) or(absent any) reader[T] {
	r.domain.absent = absent
	return r
}

// also sets words that are allowed in place of the kind.
func (r reader[T]) also(accepted ...string) reader[T] {
	r.domain.accepted = accepted
	return r
}

// of sets the section of the value.
func (r reader[T]) of(s *section) reader[T] {
	r.domain.of = func() *section { return s }
	return r
}

// at is the place of a section, and what is known about the call around it.
type at struct {
	place string // in the playbook, such as "fetch.retry[1].then"
	tool  string // tool of the call, "" if it is not literal
}

// under returns the place of a word's value.
func (a at) under(word string) string { return a.place + "." + word }

// written is the value of a key in a file.
type written struct {
	*key

	node *yaml.Node
	at   at
}

// readWords reads the words of a section in file order, and reports missing ones. into is a pointer to the result.
func (d *decoder) readWords(f *fields, into any, where at) {
	for i := range f.section.keys {
		if k := &f.section.keys[i]; k.required != "" && !slices.Contains(f.done, k.name) {
			d.needsWord(f, k.name)
		}
	}
	for _, k := range f.keys {
		n := f.values[k.name]
		if n == nil || k.read == nil || k.nullable && isNull(n) || slices.Contains(f.done, k.name) {
			continue
		}
		k.read(d, written{key: k, node: n, at: where}, into)
	}
}

// readFirst reads a word before the others, which depend on it.
func (d *decoder) readFirst(f *fields, word string, into any) {
	f.done = append(f.done, word)
	if d.needsWord(f, word) {
		k, _ := f.section.findKey(word, false)
		k.read(d, written{key: k, node: f.getValue(word)}, into)
	}
}

// needsWord reports a missing word, and returns whether it is present.
func (d *decoder) needsWord(f *fields, word string) bool {
	k, _ := f.section.findKey(word, false)
	return d.requireKeys(f, f.path, word, k.required)
}

// inner is a type that a section is read into. Readers depend on the type and not on the section, so that sections
// can contain each other: a sink has retry, and retry has sinks.
type inner[U any] interface {
	*U

	section() *section
	// decode reads the section; it returns false if that gives no result.
	decode(d *decoder, f *fields, where at) bool
}

// asSection reads a value that is a section.
func asSection[T, U any, P inner[U]](set func(*T, *U)) reader[T] {
	return reader[T]{
		domain: domain{kind: WordSection, of: func() *section { return P(nil).section() }},
		read: func(d *decoder, w written, into *T) {
			if u := readSection[U, P](d, w.node, at{place: w.at.under(w.name)}); u != nil {
				set(into, u)
			}
		},
	}
}

// readSection reads a section; nil if that gives no result.
func readSection[U any, P inner[U]](d *decoder, n *yaml.Node, where at) *U {
	u := new(U)
	s := P(u).section()
	f, ok := d.readFields(n, s, s.sectionTitle())
	if !ok || !P(u).decode(d, f, where) {
		return nil
	}
	return u
}

// readSections reads a list of sections, and omits invalid ones.
func readSections[U any, P inner[U]](d *decoder, w written) []*U {
	items, _ := d.readItems(w.node, w.what)
	return readEach(items, func(item *yaml.Node) *U { return readSection[U, P](d, item, at{}) })
}

// asSome reads one section or a list of them. The place of a section in a list ends with a dot and its number, from
// 1.
func asSome[T, U any, P inner[U]](set func(*T, []*U)) reader[T] {
	return reader[T]{
		domain: domain{kind: WordSome, of: func() *section { return P(nil).section() }},
		read: func(d *decoder, w written, into *T) {
			set(into, readSome(d, w, func(item *yaml.Node, place string) *U { return readSection[U, P](d, item, at{place: place}) }))
		},
	}
}

// readSome reads one value or a list of them, and omits invalid ones.
func readSome[U any](d *decoder, w written, read func(item *yaml.Node, place string) *U) []*U {
	place, numbered := w.at.under(w.name), w.node.Kind == yaml.SequenceNode
	items := oneOrMore(w.node)
	if numbered && len(items) == 0 && !d.broken[w.node] {
		d.Errorf(positionOf(w.node), codeEmpty, "%s is an empty list; add an entry or remove the key", w.what)
	}
	var all []*U
	for i, item := range items {
		at := place
		if numbered {
			at = fmt.Sprintf("%s.%d", place, i+1)
		}
		if one := read(item, at); one != nil {
			all = append(all, one)
		}
	}
	return all
}

// readAs returns a reader with a function of its own.
func readAs[T any](kind WordKind, read func(d *decoder, w written, into *T)) reader[T] {
	return reader[T]{domain: domain{kind: kind}, read: read}
}

// asPart returns the reader of a key that its section reads.
func asPart[T any](kind WordKind) reader[T] { return reader[T]{domain: domain{kind: kind}} }

// readThrough reads a key into a part of a T; part returns nil if the T does not have it, in which case another
// check reports the key.
func readThrough[T, U any](part func(*T) *U, r reader[U]) reader[T] {
	return reader[T]{domain: r.domain, read: func(d *decoder, w written, into *T) {
		if inner := part(into); inner != nil {
			r.read(d, w, inner)
		}
	}}
}

// asInteger reads a whole number; one out of bounds is reported but still set.
func asInteger[T any](set func(*T, int)) reader[T] {
	return readAs(WordInteger, func(d *decoder, w written, into *T) {
		if v, ok := d.readInteger(w.node, w.what); ok {
			checkBounds(d, w, v)
			set(into, v)
		}
	})
}

// asNumber reads a number; one out of bounds is reported but still set.
func asNumber[T any](set func(*T, float64)) reader[T] {
	return readAs(WordNumber, func(d *decoder, w written, into *T) {
		if v, ok := d.readNumber(w.node, w.what); ok {
			checkBounds(d, w, v)
			set(into, v)
		}
	})
}

// checkBounds reports a number that is out of bounds.
func checkBounds[N int | float64](d *decoder, w written, number N) {
	v := float64(number)
	least, most := w.domain.least, w.domain.most
	switch {
	case w.domain.byRule:
	case least != nil && most != nil && (v < *least || v > *most):
		d.Errorf(positionOf(w.node), CodeBounds, "%s must be from %v to %v, not %v", w.what, *least, *most, number)
	case least != nil && v < *least:
		d.Errorf(positionOf(w.node), CodeBounds, "%s must be at least %v, not %v", w.what, *least, number)
	case most != nil && v > *most:
		d.Errorf(positionOf(w.node), CodeBounds, "%s must be at most %v, not %v", w.what, *most, number)
	}
}

func asBoolean[T any](set func(*T, bool)) reader[T] {
	return readAs(WordBoolean, func(d *decoder, w written, into *T) { set(into, d.readBoolean(w.node, w.what)) })
}

func asDuration[T any](set func(*T, time.Duration)) reader[T] {
	return readAs(WordDuration, func(d *decoder, w written, into *T) {
		if v, ok := d.readDuration(w.node, w.what); ok {
			set(into, v)
		}
	})
}

// asLimit reads a positive duration with a default; it sets 0 if the value is invalid.
func asLimit[T any](set func(*T, time.Duration)) reader[T] {
	return readAs(WordLimit, func(d *decoder, w written, into *T) {
		set(into, d.timeLimit(w.node, w.what, "; remove it for the default"))
	})
}

// asInterval is asLimit for a duration without a default.
func asInterval[T any](set func(*T, time.Duration)) reader[T] {
	return readAs(WordLimit, func(d *decoder, w written, into *T) { set(into, d.timeLimit(w.node, w.what, "")) })
}

// asOneOf reads one of a few words. It reports other words and does not set them.
func asOneOf[T any, E ~string](set func(*T, E), accepted ...E) reader[T] {
	texts := lists.Map(accepted, func(one E) string { return string(one) })
	return readAs(WordChoice, func(d *decoder, w written, into *T) {
		if one := d.readChoice(w.node, w.what, w.domain.accepted...); one != "" {
			set(into, E(one))
		}
	}).also(texts...)
}

// asText reads text; it sets "" if the value is invalid.
func asText[T any](set func(*T, string)) reader[T] {
	return readAs(WordText, func(d *decoder, w written, into *T) {
		text, _ := d.readText(w.node, w.what)
		set(into, text)
	})
}

// asName reads non-empty text; it sets "" if the value is invalid.
func asName[T any](set func(*T, string)) reader[T] {
	return readAs(WordName, func(d *decoder, w written, into *T) {
		name, _ := d.readName(w.node, w.what)
		set(into, name)
	})
}

// asNode reads a value that may contain templates, with one of the decoder's methods.
func asNode[T any](kind WordKind, read func(d *decoder, n *yaml.Node, what string) *Node, set func(*T, *Node)) reader[T] {
	return readAs(kind, func(d *decoder, w written, into *T) { set(into, read(d, w.node, w.what)) })
}

func asCondition[T any](set func(*T, *Node)) reader[T] {
	return asNode(WordCondition, (*decoder).conditionNode, set)
}

func asMap[T any](set func(*T, *Node)) reader[T] {
	return asNode(WordMapValue, (*decoder).mapOrTemplate, set)
}

func asTextValue[T any](set func(*T, *Node)) reader[T] {
	return asNode(WordTextValue, (*decoder).textValue, set)
}

// asValue reads any value.
func asValue[T any](set func(*T, *Node)) reader[T] {
	return readAs(WordValue, func(d *decoder, w written, into *T) { set(into, d.valueNode(w.node)) })
}
