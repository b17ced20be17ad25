package connector

import (
	"fmt"
	"slices"
	"strings"

	"reprise/internal/program/connector/jinja"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// scope resolves the names of templates to expressions. The error of a resolver says what has no counterpart.
type scope map[string]func(keys []any) (code, error)

// withRoots returns the scope with additional or replaced names.
func (s scope) withRoots(roots scope) scope {
	all := scope{}
	for name, root := range s {
		all[name] = root
	}
	for name, root := range roots {
		all[name] = root
	}
	return all
}

// unsupportedError returns an error that says what has no counterpart.
func unsupportedError(format string, args ...any) (code, error) {
	return code{}, fmt.Errorf(format, args...)
}

// textParts translates a text with templates into its parts. Quotes around the whole text are removed, because
// Airbyte evaluates them as Python.
func (s scope) textParts(text string) ([]code, error) {
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
		return s.translateAll(concat.Parts)
	}
	one, err := s.translateNode(tree)
	return []code{one}, err
}

// translateValue translates any value with templates, including maps and lists.
func (s scope) translateValue(of any) (any, error) {
	switch of := of.(type) {
	case string:
		if !jinja.HasTemplate(of) {
			return of, nil
		}
		parts, err := s.textParts(of)
		if err != nil {
			return nil, err
		}
		return templateValue(parts), nil
	case map[string]any:
		out := map[string]any{}
		for _, key := range playbook.SortedKeys(of) {
			value, err := s.translateValue(of[key])
			if err != nil {
				return nil, err
			}
			name, err := s.translateValue(key)
			if err != nil {
				return nil, err
			}
			text, isText := name.(string)
			if !isText {
				return nil, fmt.Errorf("the name %s of a member is no constant", key)
			}
			out[text] = value
		}
		return out, nil
	case []any:
		out := make([]any, len(of))
		for i, one := range of {
			value, err := s.translateValue(one)
			if err != nil {
				return nil, err
			}
			out[i] = value
		}
		return out, nil
	}
	return of, nil
}

// translateExpression translates a text that is a single condition or value.
func (s scope) translateExpression(text string) (code, error) {
	parts, err := s.textParts(text)
	if err != nil {
		return code{}, err
	}
	return joinTexts(parts), nil
}

func (s scope) translateAll(nodes []jinja.Operand) ([]code, error) {
	out := make([]code, len(nodes))
	for i, one := range nodes {
		var err error
		if out[i], err = s.translateNode(one); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s scope) translateNode(tree jinja.Operand) (code, error) {
	switch n := tree.(type) {
	case *jinja.Literal:
		return constantCode(n.Value), nil
	case *jinja.Name, *jinja.Index:
		return s.pathCode(tree)
	case *jinja.Portion:
		return s.sliceCode(n)
	case *jinja.Invocation:
		return s.callCode(n)
	case *jinja.Filter:
		return s.filterCode(n)
	case *jinja.Unary:
		of, err := s.translateNode(n.Of)
		if n.Operator == "not" {
			return negate(of), err
		}
		return code{text: n.Operator + of.operandText(precAtom), prec: precMultiply}, err
	case *jinja.Binary:
		return s.binaryCode(n)
	case *jinja.Predicate:
		return s.testCode(n)
	case *jinja.Ternary:
		return s.choiceCode(n)
	case *jinja.Tuple:
		return s.listCode(n)
	case *jinja.Dict:
		return s.dictCode(n)
	case *jinja.Concat:
		parts, err := s.translateAll(n.Parts)
		if err != nil {
			return code{}, err
		}
		return joinTexts(parts), nil
	case *jinja.Let:
		value, err := s.translateNode(n.Value)
		if err != nil {
			return code{}, err
		}
		return s.withRoots(scope{n.Name: func(keys []any) (code, error) {
			c := value
			for _, key := range keys {
				c = memberCode(c, key)
			}
			return c, nil
		}}).translateNode(n.In)
	}
	return unsupportedError("%T", tree)
}

func (s scope) choiceCode(n *jinja.Ternary) (code, error) {
	test, err := s.translateNode(n.If)
	if err != nil {
		return code{}, err
	}
	if test.known { // what is not taken needs no counterpart
		if expression.Truthy(test.value) {
			return s.translateNode(n.Then)
		}
		if n.Else == nil {
			return constantCode(nil), nil
		}
		return s.translateNode(n.Else)
	}
	then, err := s.translateNode(n.Then)
	if test.sure || err != nil {
		return then, err
	}
	if n.Else == nil {
		return choiceCode(test, then, constantCode(nil)), err
	}
	otherwise, err := s.translateNode(n.Else)
	return choiceCode(test, then, otherwise), err
}

func (s scope) listCode(n *jinja.Tuple) (code, error) {
	items, err := s.translateAll(n.Items)
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
		return constantCode(values), nil
	}
	return code{text: "[" + strings.Join(texts, ", ") + "]", prec: precAtom}, nil
}

func (s scope) dictCode(n *jinja.Dict) (code, error) {
	keys, err := s.translateAll(n.Keys)
	if err != nil {
		return code{}, err
	}
	values, err := s.translateAll(n.Values)
	if err != nil {
		return code{}, err
	}
	texts := make([]string, len(keys))
	known := map[string]any{}
	for i, key := range keys {
		text, isText := key.value.(string)
		if !isText {
			return unsupportedError("a map with a key that is no text")
		}
		if values[i].known {
			known[text] = values[i].value
		}
		texts[i] = quoteText(text) + ": " + values[i].text
	}
	if len(known) == len(keys) {
		return constantCode(known), nil
	}
	return code{text: "{" + strings.Join(texts, ", ") + "}", prec: precAtom}, nil
}

func (s scope) sliceCode(n *jinja.Portion) (code, error) {
	of, err := s.translateNode(n.Of)
	bounds := [2]string{}
	for i, bound := range []jinja.Operand{n.From, n.To} {
		if bound != nil && err == nil {
			var c code
			c, err = s.translateNode(bound)
			bounds[i] = c.text
		}
	}
	return code{text: of.operandText(precAtom) + "[" + bounds[0] + ":" + bounds[1] + "]", prec: precAtom, texty: of.texty}, err
}

// splitPath splits a path into its root and members. A `get` on a map is a member, unless it has a nonempty default.
func splitPath(tree jinja.Operand) (root jinja.Operand, list []jinja.Operand) {
	switch n := tree.(type) {
	case *jinja.Index:
		root, list = splitPath(n.Of)
		return root, append(list, n.Key)
	case *jinja.Invocation:
		if method, isMethod := n.Function.(*jinja.Index); isMethod && isGet(n) {
			root, list = splitPath(method.Of)
			if name, isName := root.(*jinja.Name); isName && name.ID == "config" && len(n.Args) == 2 {
				root = &jinja.Name{ID: optionalConfig}
			}
			return root, append(list, n.Args[0])
		}
	}
	return tree, nil
}

// isGet reports whether a call is the `get` of a map, which returns nil for missing keys.
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

func (s scope) pathCode(tree jinja.Operand) (code, error) {
	root, list := splitPath(tree)
	translated := make([]any, len(list))
	for i, key := range list {
		c, err := s.translateNode(key)
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
		of, err := s.translateNode(root)
		for _, key := range translated {
			of = memberCode(of, key)
		}
		return of, err
	}
	resolve := s[name.ID]
	if resolve == nil {
		return unsupportedError("the name %s", name.ID)
	}
	return resolve(translated)
}

func (s scope) binaryCode(n *jinja.Binary) (code, error) {
	if key, isText := n.Left.(*jinja.Literal); isText && (n.Operator == "in" || n.Operator == "not in") {
		if root, isName := n.Right.(*jinja.Name); isName && root.ID == "config" {
			c, err := s.pathCode(&jinja.Index{Of: root, Key: key})
			if n.Operator == "in" {
				return definedCode(c), err
			}
			return negate(definedCode(c)), err
		}
	}
	left, err := s.translateNode(n.Left)
	if err != nil {
		return code{}, err
	}
	if n.Operator == "or" && left.known && expression.Truthy(left.value) || n.Operator == "and" && left.known && !expression.Truthy(left.value) {
		return left, nil
	}
	right, err := s.translateNode(n.Right)
	if err != nil {
		return code{}, err
	}
	switch n.Operator {
	case "or":
		return orCode(left, right), nil
	case "and":
		return andCode(left, right), nil
	case "not in":
		return negate(compareCode("in", left, right)), nil
	case "==", "!=", "<", ">", "<=", ">=", "in":
		return compareWithNil(n.Operator, left, right), nil
	}
	return arithmeticCode(n.Operator, left, right)
}

// compareWithNil returns a comparison that treats nil as Python does.
func compareWithNil(operator string, left, right code) code {
	if right.known && right.value == nil && (operator == "==" || operator == "!=") {
		if operator == "==" {
			return negate(definedCode(left))
		}
		return definedCode(left)
	}
	return compareCode(operator, left, right)
}

func arithmeticCode(operator string, left, right code) (code, error) {
	switch {
	case operator == "~", operator == "+" && (left.texty || right.texty):
		return joinTexts([]code{left, right}), nil
	case right.timed && right.prec == 0: // a duration
		amount := right.text
		if operator == "-" {
			amount = "-" + amount
		}
		moved := callCode("add_time", left, constantCode(amount))
		moved.timed = true
		return moved, nil
	case operator == "%" && left.texty:
		return formattedText(left, right)
	case operator == "//":
		return callCode("floor", code{text: left.operandText(precMultiply) + " / " + right.operandText(precPipe), prec: precMultiply}), nil
	case slices.Contains([]string{"*", "/", "%", "**"}, operator):
		return code{text: left.operandText(precMultiply) + " " + operator + " " + right.operandText(precPipe), prec: precMultiply}, nil
	}
	return code{text: left.operandText(precAdd) + " " + operator + " " + right.operandText(precMultiply), prec: precAdd}, nil
}

// formattedText returns a constant text with a value in the place of %s, as Python writes it.
func formattedText(format, of code) (code, error) {
	text, isText := format.value.(string)
	before, after, found := strings.Cut(text, "%s")
	if !isText || !found || strings.Contains(before+after, "%") || strings.HasPrefix(of.text, "[") {
		return unsupportedError("the operator %% on the text %s", format.text)
	}
	return joinTexts(slices.DeleteFunc([]code{constantCode(before), of, constantCode(after)}, func(part code) bool { return part.value == "" })), nil
}

func (s scope) testCode(n *jinja.Predicate) (code, error) {
	of, err := s.translateNode(n.Of)
	if err != nil {
		return code{}, err
	}
	var c code
	switch n.Name {
	case "defined":
		c = definedCode(of)
	case "undefined", "none", "None":
		c = negate(definedCode(of))
	case "string", "number", "mapping", "sequence", "true", "false", "boolean":
		c = code{text: of.operandText(precPipe) + " is " + n.Name, prec: precCompare, calm: of.calm, falsy: of.falsy}
	default:
		return unsupportedError("the test %s", n.Name)
	}
	if n.Not {
		c = negate(c)
	}
	return c, nil
}
