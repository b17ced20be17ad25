package oracle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// scope is what the roots of expressions hold.
type scope map[string]any

// with lays names over a scope.
func (s scope) with(names scope) scope {
	all := maps.Clone(s)
	if all == nil {
		all = scope{}
	}
	maps.Copy(all, names)
	return all
}

// expr is one expression of a playbook: how it is written, and what it gives by the
// rules of the language. These rules are written here a second time, on purpose.
type expr interface {
	text() string
	eval(s scope) (any, error)
}

// literal is a constant.
type literal struct{ value any }

func (l literal) text() string {
	switch v := l.value.(type) {
	case nil:
		return "nil"
	case string:
		return "'" + v + "'"
	case []any:
		parts := make([]string, len(v))
		for i, each := range v {
			parts[i] = literal{each}.text()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(l.value)
}

func (l literal) eval(scope) (any, error) { return l.value, nil }

// name is a root and its members.
type name string

func (n name) text() string { return string(n) }

func (n name) eval(s scope) (any, error) {
	parts := strings.Split(string(n), ".")
	value := s[parts[0]]
	for _, part := range parts[1:] {
		members, _ := value.(map[string]any)
		value = members[part]
	}
	return value, nil
}

// binary is an operator between two expressions.
type binary struct {
	op          string
	left, right expr
}

func (b binary) text() string { return "(" + b.left.text() + " " + b.op + " " + b.right.text() + ")" }

var errArithmetic = errors.New("arithmetic with something that is no number")

var errNil = errors.New("an expression of a page gives nil")

func (b binary) eval(s scope) (any, error) {
	left, err := b.left.eval(s)
	if err != nil {
		return nil, err
	}
	if b.op == "and" && !truthy(left) || b.op == "or" && truthy(left) {
		return left, nil
	}
	right, err := b.right.eval(s)
	if err != nil {
		return nil, err
	}
	switch b.op {
	case "and", "or":
		return right, nil
	case "==":
		return same(left, right), nil
	case "!=":
		return !same(left, right), nil
	case "in":
		list, _ := right.([]any)
		return slices.ContainsFunc(list, func(each any) bool { return left != nil && same(each, left) }), nil
	}
	return numbers(b.op, left, right)
}

// numbers compares and adds. With nil a comparison is false, arithmetic an error.
func numbers(op string, left, right any) (any, error) {
	x, ok := left.(int)
	y, also := right.(int)
	switch {
	case op == "+" && ok && also:
		return x + y, nil
	case op == "-" && ok && also:
		return x - y, nil
	case op == "+" || op == "-":
		return nil, errArithmetic
	case !ok || !also:
		return false, nil
	case op == "<":
		return x < y, nil
	case op == ">=":
		return x >= y, nil
	}
	panic("no operator " + op)
}

// not turns truth around.
type not struct{ of expr }

func (n not) text() string { return "not (" + n.of.text() + ")" }

func (n not) eval(s scope) (any, error) {
	value, err := n.of.eval(s)
	return !truthy(value), err
}

// defined asks whether something is there.
type defined struct {
	of     expr
	absent bool
}

func (d defined) text() string {
	if d.absent {
		return d.of.text() + " is not defined"
	}
	return d.of.text() + " is defined"
}

func (d defined) eval(s scope) (any, error) {
	value, err := d.of.eval(s)
	return (value != nil) != d.absent, err
}

// filter is a pipe: length, or default with its value.
type filter struct {
	of       expr
	fallback expr // nil is length
}

func (f filter) text() string {
	if f.fallback == nil {
		return "(" + f.of.text() + " | length)"
	}
	return "(" + f.of.text() + " | default(" + f.fallback.text() + "))"
}

func (f filter) eval(s scope) (any, error) {
	value, err := f.of.eval(s)
	if err != nil || f.fallback != nil && value != nil {
		return value, err
	}
	if f.fallback != nil {
		return f.fallback.eval(s)
	}
	switch v := value.(type) {
	case []any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	case nil:
		return 0, nil
	}
	return nil, errors.New("length of something that has none")
}

// truthy is the one truth of the language.
func truthy(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	panic(fmt.Sprintf("truth of %T", value))
}

func same(a, b any) bool { return canonical(a) == canonical(b) }

// canonical is a value as JSON with sorted keys.
func canonical(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// mixed is text with templates in it.
type mixed []any // string or expr

// render gives what a template of a playbook comes to: constants, expressions and
// mixed text at any depth.
func render(value any, s scope) (any, error) {
	switch v := value.(type) {
	case expr:
		return v.eval(s)
	case mixed:
		return v.render(s)
	case fields:
		all := map[string]any{}
		for _, field := range v {
			rendered, err := render(field.value, s)
			if err != nil {
				return nil, err
			}
			all[field.name] = rendered
		}
		return all, nil
	case []any:
		all := make([]any, len(v))
		for i, each := range v {
			rendered, err := render(each, s)
			if err != nil {
				return nil, err
			}
			all[i] = rendered
		}
		return all, nil
	}
	return value, nil
}

func (m mixed) render(s scope) (any, error) {
	var text strings.Builder
	for _, part := range m {
		e, ok := part.(expr)
		if !ok {
			text.WriteString(part.(string))
			continue
		}
		value, err := e.eval(s)
		if err != nil {
			return nil, err
		}
		text.WriteString(plain(value))
	}
	return text.String(), nil
}

// plain is a value in mixed text and in a query.
func plain(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	}
	return canonical(value)
}

// fields is a map whose order is that of the file.
type fields []field

type field struct {
	name  string
	value any
}

// add sets a field unless there is nothing to set.
func (f fields) add(name string, value any) fields {
	switch v := value.(type) {
	case nil:
		return f
	case fields:
		if v == nil {
			return f
		}
	case []any:
		if v == nil {
			return f
		}
	case string:
		if v == "" {
			return f
		}
	case bool:
		if !v {
			return f
		}
	}
	return append(f, field{name, value})
}

// yaml writes a value as block YAML.
func yaml(value any) string {
	var b strings.Builder
	writeYAML(&b, value, "")
	return b.String()
}

func writeYAML(b *strings.Builder, value any, indent string) {
	switch v := value.(type) {
	case fields:
		for i, each := range v {
			if i > 0 {
				b.WriteString(indent)
			}
			b.WriteString(each.name + ":")
			writeBelow(b, each.value, indent+"  ")
		}
	case []any:
		for i, each := range v {
			if i > 0 {
				b.WriteString(indent)
			}
			b.WriteString("- ")
			if inline(each) {
				b.WriteString(flow(each) + "\n")
				continue
			}
			writeYAML(b, each, indent+"  ")
		}
	default:
		b.WriteString(flow(value) + "\n")
	}
}

func writeBelow(b *strings.Builder, value any, indent string) {
	if inline(value) {
		b.WriteString(" " + flow(value) + "\n")
		return
	}
	b.WriteString("\n" + indent)
	writeYAML(b, value, indent)
}

// inline says that a value takes one line.
func inline(value any) bool {
	switch v := value.(type) {
	case fields:
		return len(flow(v)) < 60
	case []any:
		return len(flow(v)) < 60
	}
	return true
}

func flow(value any) string {
	switch v := value.(type) {
	case expr:
		return unescaped("{{ " + v.text() + " }}")
	case mixed:
		text := ""
		for _, part := range v {
			if e, ok := part.(expr); ok {
				text += "{{ " + e.text() + " }}"
				continue
			}
			text += part.(string)
		}
		return unescaped(text)
	case fields:
		parts := make([]string, len(v))
		for i, each := range v {
			parts[i] = each.name + ": " + flow(each.value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, each := range v {
			parts[i] = flow(each)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case bare:
		return string(v)
	}
	return unescaped(value)
}

// unescaped is JSON as people write it.
func unescaped(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// bare is written without quotes.
type bare string
