package playbook

import (
	"time"

	"reprise/interpreter/lists"

	"gopkg.in/yaml.v3"
)

// asInteger reads a whole number; one out of bounds is reported and set.
func asInteger[T any](set func(*T, int)) reader[T] {
	return as(WordInteger, func(d *decoder, w written, into *T) {
		if v, ok := d.integer(w.node, w.what); ok {
			within(d, w, v)
			set(into, v)
		}
	})
}

// asNumber reads a number; one out of bounds is reported and set.
func asNumber[T any](set func(*T, float64)) reader[T] {
	return as(WordNumber, func(d *decoder, w written, into *T) {
		if v, ok := d.number(w.node, w.what); ok {
			within(d, w, v)
			set(into, v)
		}
	})
}

// within reports a number that is out of bounds.
func within[N int | float64](d *decoder, w written, number N) {
	v := float64(number)
	least, most := w.domain.least, w.domain.most
	switch {
	case w.domain.byRule:
	case least != nil && most != nil && (v < *least || v > *most):
		d.errorf(position(w.node), codeBounds, "%s must be from %v to %v, not %v", w.what, *least, *most, number)
	case least != nil && v < *least:
		d.errorf(position(w.node), codeBounds, "%s must be at least %v, not %v", w.what, *least, number)
	case most != nil && v > *most:
		d.errorf(position(w.node), codeBounds, "%s must be at most %v, not %v", w.what, *most, number)
	}
}

func asBoolean[T any](set func(*T, bool)) reader[T] {
	return as(WordBoolean, func(d *decoder, w written, into *T) { set(into, d.boolean(w.node, w.what)) })
}

func asDuration[T any](set func(*T, time.Duration)) reader[T] {
	return as(WordDuration, func(d *decoder, w written, into *T) {
		if v, ok := d.duration(w.node, w.what); ok {
			set(into, v)
		}
	})
}

// asLimit reads a duration that must be longer than nothing and has a default; 0 where it
// could not be read.
func asLimit[T any](set func(*T, time.Duration)) reader[T] {
	return as(WordLimit, func(d *decoder, w written, into *T) {
		set(into, d.timeLimit(w.node, w.what, "; leave it out for the default"))
	})
}

// asInterval is asLimit of a duration without a default.
func asInterval[T any](set func(*T, time.Duration)) reader[T] {
	return as(WordLimit, func(d *decoder, w written, into *T) { set(into, d.timeLimit(w.node, w.what, "")) })
}

// asOneOf reads one of a few words; what is none of them is reported and not
// set.
func asOneOf[T any, E ~string](set func(*T, E), accepted ...E) reader[T] {
	texts := lists.Map(accepted, func(one E) string { return string(one) })
	return as(WordChoice, func(d *decoder, w written, into *T) {
		if one := d.oneOf(w.node, w.what, w.domain.accepted...); one != "" {
			set(into, E(one))
		}
	}).also(texts...)
}

// asText reads text; "" where it could not be read.
func asText[T any](set func(*T, string)) reader[T] {
	return as(WordText, func(d *decoder, w written, into *T) {
		text, _ := d.text(w.node, w.what)
		set(into, text)
	})
}

// asName reads text that is not empty; "" where it could not be read.
func asName[T any](set func(*T, string)) reader[T] {
	return as(WordName, func(d *decoder, w written, into *T) {
		name, _ := d.name(w.node, w.what)
		set(into, name)
	})
}

// asNode reads what may hold templates with one of the decoder's methods.
func asNode[T any](kind WordKind, read func(d *decoder, n *yaml.Node, what string) *Node, set func(*T, *Node)) reader[T] {
	return as(kind, func(d *decoder, w written, into *T) { set(into, read(d, w.node, w.what)) })
}

func asCondition[T any](set func(*T, *Node)) reader[T] {
	return asNode(WordCondition, (*decoder).condition, set)
}

func asMap[T any](set func(*T, *Node)) reader[T] {
	return asNode(WordMapValue, (*decoder).mapOrTemplate, set)
}

func asTextValue[T any](set func(*T, *Node)) reader[T] {
	return asNode(WordTextValue, (*decoder).textValue, set)
}

// asValue reads any value.
func asValue[T any](set func(*T, *Node)) reader[T] {
	return as(WordValue, func(d *decoder, w written, into *T) { set(into, d.value(w.node)) })
}
