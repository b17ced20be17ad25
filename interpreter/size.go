package interpreter

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"reprise/interpreter/expression"
)

// What crosses a boundary is bounded, so its size has to be known before. It is
// counted and not written: most of it is rows, and they are written soon anyway.

// EncodedSize gives how many bytes of JSON a value takes, exactly as encoding/json
// and so Temporal's data converter write it. It is 0 for what cannot be written:
// who writes it reports that.
func EncodedSize(v any) int {
	size, err := CountEncoded(v)
	if err != nil {
		return 0
	}
	return size
}

// CountEncoded is EncodedSize with the error of what cannot be written.
func CountEncoded(v any) (bytes int, err error) {
	if size, ok := expression.Size(v); ok {
		return size, nil
	}
	return countValue(reflect.ValueOf(v))
}

// countValue gives the size of a value that is valid.
func countValue(v reflect.Value) (int, error) {
	s := layoutOf(v.Type())
	switch s.form {
	case formStruct:
		return s.count(v)
	case formFree:
		if size, ok := expression.Size(v.Field(0).Interface()); ok {
			return size, nil
		}
	case formOutcome:
		return CountEncoded(v.Interface().(Outcome).kept()) // the form says so
	case formBytes:
		if v.IsNil() {
			return len("null"), nil
		}
		return base64.StdEncoding.EncodedLen(v.Len()) + len(`""`), nil
	case formPlain:
		return countPlain(v)
	}
	return writtenSize(v)
}

// writtenSize is that of a value which only encoding/json knows how to write.
func writtenSize(v reflect.Value) (int, error) {
	if v.CanAddr() {
		v = v.Addr()
	}
	encoded, err := json.Marshal(v.Interface())
	return len(encoded), err
}

// countPlain gives the size of a value whose kind says how it is written.
func countPlain(v reflect.Value) (int, error) {
	switch v.Kind() {
	case reflect.String:
		return countText(v.String()), nil
	case reflect.Bool:
		return len(strconv.FormatBool(v.Bool())), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var digits [20]byte
		return len(strconv.AppendInt(digits[:0], v.Int(), 10)), nil
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return len("null"), nil
		}
		return countValue(v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return len("null"), nil
		}
		return countList(v)
	case reflect.Map:
		if v.IsNil() {
			return len("null"), nil
		}
		return countMap(v)
	}
	return writtenSize(v)
}

func countList(list reflect.Value) (int, error) {
	total := max(len("[]"), list.Len()+1) // brackets and commas
	for i := range list.Len() {
		size, err := countValue(list.Index(i))
		if err != nil {
			return 0, err
		}
		total += size
	}
	return total, nil
}

func countMap(m reflect.Value) (int, error) {
	total := max(len("{}"), 2*m.Len()+1)           // braces, colons and commas
	for entries := m.MapRange(); entries.Next(); { // any order: only the sum is kept
		size, err := countValue(entries.Value())
		if err != nil {
			return 0, err
		}
		total += countText(entries.Key().String()) + size
	}
	return total, nil
}

func countText(text string) int {
	size, _ := expression.Size(text) // a text has a size
	return size
}

// form is how values of a type are written.
type form int

const (
	formOther   form = iota // only encoding/json knows
	formPlain               // by the kind of the type
	formBytes               // in base64
	formStruct              // by its fields
	formFree                // an expression.Value
	formOutcome             // an Outcome
)

// layout is what is known of a type. There are few that cross boundaries, and each
// is looked at once.
type layout struct {
	form   form
	fields []fieldLayout
}

type fieldLayout struct {
	name  string
	size  int // of the name with its quotes and the colon
	index []int
	// leftOut says which values are not written; nil is none.
	leftOut func(reflect.Value) bool
}

// count gives the size of a struct.
func (s *layout) count(v reflect.Value) (int, error) {
	total, written := len("{}"), 0
	for i := range s.fields {
		field := &s.fields[i]
		value := v.FieldByIndex(field.index)
		if field.leftOut != nil && field.leftOut(value) {
			continue
		}
		size, err := countValue(value)
		if err != nil {
			return 0, err
		}
		total, written = total+field.size+size, written+1
	}
	return total + max(written-1, 0), nil // commas
}

var layouts sync.Map // from reflect.Type to *layout

func layoutOf(t reflect.Type) *layout {
	if known, ok := layouts.Load(t); ok {
		return known.(*layout) // nothing else is stored
	}
	s := newLayout(t)
	layouts.Store(t, s)
	return s
}

func newLayout(t reflect.Type) *layout {
	switch {
	case t == reflect.TypeFor[expression.Value]():
		return &layout{form: formFree}
	case t == reflect.TypeFor[Outcome]():
		return &layout{form: formOutcome}
	case t == reflect.TypeFor[json.Number](), writesItself(t):
		return &layout{form: formOther}
	case t.Kind() == reflect.Struct:
		return structLayout(t)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &layout{form: formBytes}
	case t.Kind() == reflect.Map && t.Key().Kind() != reflect.String:
		return &layout{form: formOther}
	}
	return &layout{form: formPlain}
}

// writesItself reports whether values of a type, or of the keys or elements of it,
// have a say in how they are written. What a pointer points to is asked by itself.
func writesItself(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		return false
	case reflect.Map:
		if writesItself(t.Key()) {
			return true
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && writesItself(t.Elem()) {
			return true
		}
	}
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Marshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// structLayout leaves to encoding/json what no struct of a boundary has: rare
// options of tags, two fields of one name, and an embedded pointer.
func structLayout(t reflect.Type) *layout {
	s := &layout{form: formStruct}
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-", !field.IsExported() && !field.Anonymous:
		case field.Anonymous && name == "":
			inner := newLayout(field.Type)
			if inner.form != formStruct {
				return &layout{form: formOther}
			}
			for _, embedded := range inner.fields {
				embedded.index = slices.Concat([]int{i}, embedded.index)
				s.fields = append(s.fields, embedded)
			}
		default:
			if name == "" {
				name = field.Name
			}
			leftOut, known := leftOut(field.Type, options)
			if !known {
				return &layout{form: formOther}
			}
			s.fields = append(s.fields, fieldLayout{
				name: name, size: countText(name) + len(":"), index: []int{i}, leftOut: leftOut,
			})
		}
	}
	names := make(map[string]bool, len(s.fields))
	for _, field := range s.fields {
		names[field.name] = true
	}
	if len(names) < len(s.fields) {
		return &layout{form: formOther}
	}
	return s
}

// leftOut says which values of a field are not written, by the options of its
// tag. known is false for other options.
func leftOut(t reflect.Type, options string) (which func(reflect.Value) bool, known bool) {
	switch options {
	case "":
		return nil, true
	case "omitempty":
		switch t.Kind() {
		case reflect.Struct:
			return nil, true
		case reflect.Map, reflect.Slice, reflect.String, reflect.Array:
			return func(v reflect.Value) bool { return v.Len() == 0 }, true
		}
		return reflect.Value.IsZero, true
	case "omitzero":
		asked := reflect.TypeFor[interface{ IsZero() bool }]()
		switch {
		case t == reflect.TypeFor[expression.Value]():
			return func(v reflect.Value) bool { return v.Field(0).IsNil() }, true
		case t.Kind() == reflect.Struct && t.Implements(asked):
			return func(v reflect.Value) bool { return v.Interface().(interface{ IsZero() bool }).IsZero() }, true
		case reflect.PointerTo(t).Implements(asked) || t.Implements(asked):
			return nil, false
		}
		return reflect.Value.IsZero, true
	}
	return nil, false
}
