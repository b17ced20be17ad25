package playbook

import (
	"slices"
	"time"

	"gopkg.in/yaml.v3"
)

// kind is the type of what stands behind a word.
type kind string

// The kinds of values. A template may stand in a value only.
const (
	kindText      kind = "text"
	kindName      kind = "name" // text that is not empty
	kindChoice    kind = "choice"
	kindBoolean   kind = "boolean"
	kindInteger   kind = "integer"
	kindNumber    kind = "number"
	kindDuration  kind = "duration"
	kindLimit     kind = "limit" // a duration longer than nothing
	kindCondition kind = "condition"
	kindValue     kind = "value"
	kindTextValue kind = "text value" // text, or a template
	kindMapValue  kind = "map value"  // a map of values, or one template that gives it
	kindConstants kind = "constants"  // a map without templates
	kindSection   kind = "section"
	kindSections  kind = "sections" // a list of them
	kindTargets   kind = "targets"  // the name of a step, a section, or a list of both
)

// domain says what may stand behind a word: what a tool that completes or
// checks a playbook needs to know of it, beside its name and meaning.
type domain struct {
	kind        kind
	accepted    []string        // of a choice, else words that may stand in place of the kind
	least, most *int            // bounds, nil for none
	absent      any             // what counts where the word is left out; nil for nothing, or no one thing
	of          func() *section // what stands there, nil for no section
}

// reader reads what stands behind a word into a T. A word without read is read
// by its section, as it says something together with others.
type reader[T any] struct {
	domain domain
	read   func(d *decoder, w written, into *T)
}

// from sets the least number that is accepted.
func (r reader[T]) from(least int) reader[T] { r.domain.least = &least; return r }

// to sets the largest number that is accepted.
func (r reader[T]) to(most int) reader[T] { r.domain.most = &most; return r }

// or says what counts where the word is left out.
func (r reader[T]) or(absent any) reader[T] { r.domain.absent = absent; return r }

// also accepts words in place of the kind.
func (r reader[T]) also(accepted ...string) reader[T] { r.domain.accepted = accepted; return r }

// of names the section that stands there.
func (r reader[T]) of(s *section) reader[T] {
	r.domain.of = func() *section { return s }
	return r
}

// at is where a section stands, and what is known of the call around it.
type at struct {
	place string // within the playbook, such as "fetch.retry[1].then"
	tool  string // of the call, "" where it is not literal
}

// under is the place of a word's value.
func (a at) under(word string) string { return a.place + "." + word }

// written is a word as it stands in a file.
type written struct {
	*key

	node *yaml.Node
	at   at
}

// words reads the words of a section that the author wrote, in the order of the
// file, and reports those that are missing. It needs a pointer to what the
// section is read into.
func (d *decoder) words(f *fields, into any, at at) {
	for i := range f.section.keys {
		if k := &f.section.keys[i]; k.required != "" && !slices.Contains(f.done, k.name) {
			d.needs(f, k.name)
		}
	}
	for _, k := range f.keys {
		if n := f.values[k.name]; n != nil && k.read != nil && !slices.Contains(f.done, k.name) && !(k.nullable && isNull(n)) {
			k.read(d, written{key: k, node: n, at: at}, into)
		}
	}
}

// first reads a word that others need before them; false where it is missing.
func (d *decoder) first(f *fields, word string, into any) bool {
	f.done = append(f.done, word)
	if !d.needs(f, word) {
		return false
	}
	k, _ := f.section.find(word, false)
	k.read(d, written{key: k, node: f.get(word)}, into)
	return true
}

// needs reports a word that is missing.
func (d *decoder) needs(f *fields, word string) bool {
	k, _ := f.section.find(word, false)
	return d.require(f, f.path, word, k.required)
}

// inner is a type that a section becomes. That readers know the type and not
// the section lets sections stand in each other: a sink has retry, and retry
// has sinks.
type inner[U any] interface {
	*U

	section() *section
	// decode reads the section; false where nothing came of it.
	decode(d *decoder, f *fields, at at) bool
}

// asSection reads a section of its own.
func asSection[T, U any, P inner[U]](set func(*T, *U)) reader[T] {
	return reader[T]{
		domain: domain{kind: kindSection, of: func() *section { return P(nil).section() }},
		read: func(d *decoder, w written, into *T) {
			if u := readSection[U, P](d, w.node, at{place: w.at.under(w.name)}); u != nil {
				set(into, u)
			}
		},
	}
}

// readSection gives nil where nothing came of it.
func readSection[U any, P inner[U]](d *decoder, n *yaml.Node, at at) *U {
	u := new(U)
	s := P(u).section()
	f, ok := d.fields(n, s, s.title())
	if !ok || !P(u).decode(d, f, at) {
		return nil
	}
	return u
}

// as reads a word in a way of its own.
func as[T any](kind kind, read func(d *decoder, w written, into *T)) reader[T] {
	return reader[T]{domain: domain{kind: kind}, read: read}
}

// asPart is a word that its section reads.
func asPart[T any](kind kind) reader[T] { return reader[T]{domain: domain{kind: kind}} }

// through reads a word into something that belongs to a T; nil for a T that has
// none of it, where the word is refused elsewhere.
func through[T, U any](part func(*T) *U, r reader[U]) reader[T] {
	return reader[T]{domain: r.domain, read: func(d *decoder, w written, into *T) {
		if inner := part(into); inner != nil {
			r.read(d, w, inner)
		}
	}}
}

// asInteger reads a whole number; one out of bounds is reported and set.
func asInteger[T any](set func(*T, int)) reader[T] {
	return as(kindInteger, func(d *decoder, w written, into *T) {
		if v, ok := d.integer(w.node, w.what); ok {
			d.within(w, v)
			set(into, v)
		}
	})
}

// within reports a number that is out of bounds.
func (d *decoder) within(w written, v int) {
	least, most := w.domain.least, w.domain.most
	switch {
	case least != nil && most != nil && (v < *least || v > *most):
		d.errorf(position(w.node), CodeBounds, "%s must be from %d to %d, not %d", w.what, *least, *most, v)
	case least != nil && v < *least:
		d.errorf(position(w.node), CodeBounds, "%s must be at least %d, not %d", w.what, *least, v)
	}
}

func asNumber[T any](set func(*T, float64)) reader[T] {
	return as(kindNumber, func(d *decoder, w written, into *T) {
		if v, ok := d.number(w.node, w.what); ok {
			set(into, v)
		}
	})
}

func asBoolean[T any](set func(*T, bool)) reader[T] {
	return as(kindBoolean, func(d *decoder, w written, into *T) { set(into, d.boolean(w.node, w.what)) })
}

func asDuration[T any](set func(*T, time.Duration)) reader[T] {
	return as(kindDuration, func(d *decoder, w written, into *T) {
		if v, ok := d.duration(w.node, w.what); ok {
			set(into, v)
		}
	})
}

// asLimit reads a duration that must be longer than nothing; 0 where it could
// not be read.
func asLimit[T any](set func(*T, time.Duration)) reader[T] {
	return as(kindLimit, func(d *decoder, w written, into *T) { set(into, d.timeLimit(w.node, w.what)) })
}

// asOneOf reads one of a few words; what is none of them is reported and not
// set.
func asOneOf[T any, E ~string](set func(*T, E), accepted ...E) reader[T] {
	texts := make([]string, len(accepted))
	for i, one := range accepted {
		texts[i] = string(one)
	}
	return as(kindChoice, func(d *decoder, w written, into *T) {
		if one := d.oneOf(w.node, w.what, w.domain.accepted...); one != "" {
			set(into, E(one))
		}
	}).also(texts...)
}

// asText reads text; "" where it could not be read.
func asText[T any](set func(*T, string)) reader[T] {
	return as(kindText, func(d *decoder, w written, into *T) {
		text, _ := d.text(w.node, w.what)
		set(into, text)
	})
}

// asName reads text that is not empty; "" where it could not be read.
func asName[T any](set func(*T, string)) reader[T] {
	return as(kindName, func(d *decoder, w written, into *T) {
		name, _ := d.name(w.node, w.what)
		set(into, name)
	})
}

// asNode reads what may hold templates with one of the decoder's methods.
func asNode[T any](kind kind, read func(d *decoder, n *yaml.Node, what string) *Node, set func(*T, *Node)) reader[T] {
	return as(kind, func(d *decoder, w written, into *T) { set(into, read(d, w.node, w.what)) })
}

func asCondition[T any](set func(*T, *Node)) reader[T] {
	return asNode(kindCondition, (*decoder).condition, set)
}

func asMap[T any](set func(*T, *Node)) reader[T] {
	return asNode(kindMapValue, (*decoder).mapOrTemplate, set)
}

func asTextValue[T any](set func(*T, *Node)) reader[T] {
	return asNode(kindTextValue, (*decoder).textValue, set)
}

// asValue reads any value.
func asValue[T any](set func(*T, *Node)) reader[T] {
	return as(kindValue, func(d *decoder, w written, into *T) { set(into, d.value(w.node)) })
}
