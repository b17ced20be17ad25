package airbyte

import (
	"fmt"
	"slices"
	"strings"

	"reprise/internal/program/airbyte/jinja"
	"reprise/interpreter/expression"
)

// scope says what the names of a template are in a playbook. The error of a root says what has no counterpart.
type scope map[string]func(keys []any) (code, error)

// with is the scope with other roots.
func (s scope) with(roots scope) scope {
	all := scope{}
	for name, root := range s {
		all[name] = root
	}
	for name, root := range roots {
		all[name] = root
	}
	return all
}

// unsupported says what of a template has no counterpart.
func unsupported(format string, args ...any) (code, error) {
	return code{}, fmt.Errorf(format, args...)
}

// parts translates a text with templates into its parts. Quotes around a whole text are those of Python, whose value
// Airbyte takes.
func (s scope) parts(text string) ([]code, error) {
	if n := len(text); n > 1 && (text[0] == '\'' || text[0] == '"') && text[n-1] == text[0] && jinja.HasTemplate(text) {
		if inner := text[1 : n-1]; !strings.HasPrefix(inner, "]") && strings.Count(inner, text[:1])%2 == 0 {
			text = inner
		}
	}
	tree, err := jinja.Parse(text)
	if err != nil {
		return nil, err
	}
	if concat, isConcat := tree.(*jinja.Concat); isConcat {
		for _, part := range concat.Parts {
			if ternary, isTernary := part.(*jinja.Ternary); isTernary && ternary.Else == nil {
				ternary.Else = &jinja.Literal{Value: ""}
			}
		}
		return s.all(concat.Parts)
	}
	one, err := s.of(tree)
	return []code{one}, err
}

// value translates any value with templates into one for a playbook: maps and lists too.
func (s scope) value(of any) (any, error) {
	switch of := of.(type) {
	case string:
		if !jinja.HasTemplate(of) {
			return of, nil
		}
		parts, err := s.parts(of)
		if err != nil {
			return nil, err
		}
		return template(parts), nil
	case map[string]any:
		out := map[string]any{}
		for key, one := range of {
			value, err := s.value(one)
			if err != nil {
				return nil, err
			}
			out[key] = value
		}
		return out, nil
	case []any:
		out := make([]any, len(of))
		for i, one := range of {
			value, err := s.value(one)
			if err != nil {
				return nil, err
			}
			out[i] = value
		}
		return out, nil
	}
	return of, nil
}

// expression translates a text that is one condition or value.
func (s scope) expression(text string) (code, error) {
	parts, err := s.parts(text)
	if err != nil {
		return code{}, err
	}
	return join(parts), nil
}

func (s scope) all(nodes []jinja.Operand) ([]code, error) {
	out := make([]code, len(nodes))
	for i, one := range nodes {
		var err error
		if out[i], err = s.of(one); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s scope) of(tree jinja.Operand) (code, error) {
	switch n := tree.(type) {
	case *jinja.Literal:
		return constant(n.Value), nil
	case *jinja.Name, *jinja.Index:
		return s.path(tree)
	case *jinja.Portion:
		return s.slice(n)
	case *jinja.Invocation:
		return s.call(n)
	case *jinja.Filter:
		return s.filter(n)
	case *jinja.Unary:
		of, err := s.of(n.Of)
		if n.Operator == "not" {
			return not(of), err
		}
		return code{text: n.Operator + of.in(precAtom), prec: precMultiply}, err
	case *jinja.Binary:
		return s.binary(n)
	case *jinja.Predicate:
		return s.test(n)
	case *jinja.Ternary:
		return s.choice(n)
	case *jinja.Tuple:
		return s.list(n)
	case *jinja.Dict:
		return s.dict(n)
	case *jinja.Concat:
		parts, err := s.all(n.Parts)
		if err != nil {
			return code{}, err
		}
		return join(parts), nil
	case *jinja.Let:
		value, err := s.of(n.Value)
		if err != nil {
			return code{}, err
		}
		return s.with(scope{n.Name: func(keys []any) (code, error) {
			c := value
			for _, key := range keys {
				c = member(c, key)
			}
			return c, nil
		}}).of(n.In)
	}
	return unsupported("%T", tree)
}

func (s scope) choice(n *jinja.Ternary) (code, error) {
	test, err := s.of(n.If)
	if err != nil {
		return code{}, err
	}
	if test.known { // what is not taken needs no counterpart
		if expression.Truthy(test.value) {
			return s.of(n.Then)
		}
		if n.Else == nil {
			return constant(nil), nil
		}
		return s.of(n.Else)
	}
	then, err := s.of(n.Then)
	if err != nil || n.Else == nil {
		return choice(test, then, constant(nil)), err
	}
	otherwise, err := s.of(n.Else)
	return choice(test, then, otherwise), err
}

func (s scope) list(n *jinja.Tuple) (code, error) {
	items, err := s.all(n.Items)
	if err != nil {
		return code{}, err
	}
	texts := make([]string, len(items))
	values := make([]any, len(items))
	known := true
	for i, item := range items {
		texts[i], values[i] = item.text, item.value
		known = known && item.known
	}
	if known {
		return constant(values), nil
	}
	return code{text: "[" + strings.Join(texts, ", ") + "]", prec: precAtom}, nil
}

func (s scope) dict(n *jinja.Dict) (code, error) {
	keys, err := s.all(n.Keys)
	if err != nil {
		return code{}, err
	}
	values, err := s.all(n.Values)
	if err != nil {
		return code{}, err
	}
	texts := make([]string, len(keys))
	known := map[string]any{}
	for i, key := range keys {
		text, isText := key.value.(string)
		if !isText {
			return unsupported("a map with a key that is no text")
		}
		if values[i].known {
			known[text] = values[i].value
		}
		texts[i] = quote(text) + ": " + values[i].text
	}
	if len(known) == len(keys) {
		return constant(known), nil
	}
	return code{text: "{" + strings.Join(texts, ", ") + "}", prec: precAtom}, nil
}

func (s scope) slice(n *jinja.Portion) (code, error) {
	of, err := s.of(n.Of)
	bounds := [2]string{}
	for i, bound := range []jinja.Operand{n.From, n.To} {
		if bound != nil && err == nil {
			var c code
			c, err = s.of(bound)
			bounds[i] = c.text
		}
	}
	return code{text: of.in(precAtom) + "[" + bounds[0] + ":" + bounds[1] + "]", prec: precAtom, texty: of.texty}, err
}

// keys splits a path into its root and what is behind it; `get` of a map is a member, unless it has a value in its
// place that is not empty.
func keys(tree jinja.Operand) (root jinja.Operand, list []jinja.Operand) {
	switch n := tree.(type) {
	case *jinja.Index:
		root, list = keys(n.Of)
		return root, append(list, n.Key)
	case *jinja.Invocation:
		if method, isMethod := n.Function.(*jinja.Index); isMethod && isGet(n) {
			root, list = keys(method.Of)
			return root, append(list, n.Args[0])
		}
	}
	return tree, nil
}

// isGet reports whether a call is the `get` of a map that gives nothing where there is none.
func isGet(n *jinja.Invocation) bool {
	method, isMethod := n.Function.(*jinja.Index)
	if !isMethod {
		return false
	}
	name, _ := method.Key.(*jinja.Literal)
	if name == nil || name.Value != "get" || !method.Dotted || len(n.Args) == 0 || len(n.Args) > 2 {
		return false
	}
	if len(n.Args) == 1 {
		return true
	}
	switch d := n.Args[1].(type) {
	case *jinja.Literal:
		return d.Value == nil
	case *jinja.Dict:
		return len(d.Keys) == 0
	case *jinja.Tuple:
		return len(d.Items) == 0
	}
	return false
}

func (s scope) path(tree jinja.Operand) (code, error) {
	root, list := keys(tree)
	translated := make([]any, len(list))
	for i, key := range list {
		c, err := s.of(key)
		switch {
		case err != nil:
			return code{}, err
		case c.known:
			translated[i] = c.value
		default:
			translated[i] = c
		}
	}
	name, isName := root.(*jinja.Name)
	if !isName {
		of, err := s.of(root)
		for _, key := range translated {
			of = member(of, key)
		}
		return of, err
	}
	resolve := s[name.ID]
	if resolve == nil {
		return unsupported("the name %s", name.ID)
	}
	return resolve(translated)
}

func (s scope) binary(n *jinja.Binary) (code, error) {
	if key, isText := n.Left.(*jinja.Literal); isText && (n.Operator == "in" || n.Operator == "not in") {
		if root, isName := n.Right.(*jinja.Name); isName && root.ID == "config" {
			c, err := s.path(&jinja.Index{Of: root, Key: key})
			if n.Operator == "in" {
				return defined(c), err
			}
			return not(defined(c)), err
		}
	}
	left, err := s.of(n.Left)
	if err != nil {
		return code{}, err
	}
	if n.Operator == "or" && left.known && expression.Truthy(left.value) || n.Operator == "and" && left.known && !expression.Truthy(left.value) {
		return left, nil
	}
	right, err := s.of(n.Right)
	if err != nil {
		return code{}, err
	}
	switch n.Operator {
	case "or":
		return or(left, right), nil
	case "and":
		return and(left, right), nil
	case "not in":
		return not(compare("in", left, right)), nil
	case "==", "!=", "<", ">", "<=", ">=", "in":
		return comparison(n.Operator, left, right), nil
	}
	return arithmetic(n.Operator, left, right)
}

// comparison is one with what is usual for nil.
func comparison(operator string, left, right code) code {
	if right.known && right.value == nil && (operator == "==" || operator == "!=") {
		if operator == "==" {
			return not(defined(left))
		}
		return defined(left)
	}
	return compare(operator, left, right)
}

func arithmetic(operator string, left, right code) (code, error) {
	switch {
	case operator == "~", operator == "+" && (left.texty || right.texty):
		return join([]code{left, right}), nil
	case right.timed && right.prec == 0: // a duration
		amount := right.text
		if operator == "-" {
			amount = "-" + amount
		}
		moved := call("add_time", left, constant(amount))
		moved.timed = true
		return moved, nil
	case operator == "//":
		return call("floor", code{text: left.in(precMultiply) + " / " + right.in(precPipe), prec: precMultiply}), nil
	case slices.Contains([]string{"*", "/", "%", "**"}, operator):
		return code{text: left.in(precMultiply) + " " + operator + " " + right.in(precPipe), prec: precMultiply}, nil
	}
	return code{text: left.in(precAdd) + " " + operator + " " + right.in(precMultiply), prec: precAdd}, nil
}

func (s scope) test(n *jinja.Predicate) (code, error) {
	of, err := s.of(n.Of)
	if err != nil {
		return code{}, err
	}
	var c code
	switch n.Name {
	case "defined":
		c = defined(of)
	case "undefined", "none", "None":
		c = not(defined(of))
	case "string", "number", "mapping", "sequence", "true", "false", "boolean":
		c = code{text: of.in(precPipe) + " is " + n.Name, prec: precCompare, calm: of.calm, falsy: of.falsy}
	default:
		return unsupported("the test %s", n.Name)
	}
	if n.Not {
		c = not(c)
	}
	return c, nil
}
