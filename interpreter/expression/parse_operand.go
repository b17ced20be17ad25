package expression

import (
	"fmt"
	"slices"
	"strconv"

	"reprise/interpreter/lists"

	"github.com/expr-lang/expr/ast"
)

// parseFilters parses what may follow an operand at the highest precedence: a ?? b and, if filters is set, a | f
// and a is test. They are applied from left to right.
func (p *parser) parseFilters(node ast.Node, from int, filters bool) ast.Node {
	for {
		switch t := p.peekToken(); {
		case t.isOperator("??"):
			p.nextToken()
			fallback := p.parseFallback()
			node = p.placeNode(&ast.BinaryNode{Operator: "??", Left: node, Right: fallback}, t, from)
		case filters && t.isOperator("|"):
			p.nextToken()
			if p.peekToken().isWord(rawFilter) && p.peekAt(1).kind == tokenEnd {
				p.nextToken()
				p.raw = true
				return node
			}
			node = p.parseFilter(node, from)
		case filters && t.isWord("is"):
			p.nextToken()
			node = p.parseTest(node, t, from)
		default:
			return node
		}
	}
}

// rawFilter looks like a function but is not one: `| raw` at the end of an expression inserts its value into a url
// without escaping.
const rawFilter = "raw"

// parseFallback parses the right operand of ??, which may have a sign.
func (p *parser) parseFallback() ast.Node {
	if t := p.peekToken(); t.isOperator("-") || t.isOperator("+") || t.isOperator("!") {
		return p.parseUnary(false)
	}
	return p.parsePostfix()
}

// parseFilter parses the name after a pipe and its arguments.
func (p *parser) parseFilter(piped ast.Node, from int) ast.Node {
	name := p.nextToken()
	if name.kind != tokenName {
		p.failUnexpected(name, `the name of a function was expected after "|", as in x | lower`)
	}
	var open *token
	if t := p.peekToken(); p.acceptOperator("(") {
		open = &t
	}
	return p.parseCall(name, open, []ast.Node{piped}, from)
}

// parsePostfix parses an operand with its members, indexes and slices.
func (p *parser) parsePostfix() ast.Node {
	from := p.peekToken().from
	node, ref := p.parsePrimary()
	for {
		switch t := p.peekToken(); {
		case t.isOperator("."), t.isOperator("?."):
			node, ref = p.parseMember(node, ref, from)
		case t.isOperator("["):
			node, ref = p.parseIndex(node, ref, from, false)
		case t.isOperator("("):
			failParse(t.from, t.to, codeSyntax, "only functions can be called, by their names: len(x)")
		default:
			return node
		}
	}
}

// parseMember parses .name, .0, ?.name and ?.[e], and .get(k).
func (p *parser) parseMember(node ast.Node, ref, from int) (ast.Node, int) {
	dot := p.nextToken()
	optional := dot.isOperator("?.")
	if optional && p.peekToken().isOperator("[") {
		return p.parseIndex(node, ref, from, true)
	}
	name := p.nextToken()
	if name.kind == tokenName && p.peekToken().isOperator("(") {
		return p.parseMethod(node, name, from), noRef
	}
	var key ast.Node
	switch name.kind {
	case tokenName:
		key = p.placeNode(&ast.StringNode{Value: name.text}, name, name.from)
	case tokenNumber:
		key = p.parseNumber(name)
	default:
		failParse(dot.from, max(name.to, dot.to), codeSyntax, fmt.Sprintf(
			`a name was expected after %q, not %s; other keys are written a["the key"]`, dot.text, name.describeToken()))
	}
	return p.chainMember(node, key, name, from, optional), p.extendRef(ref, key)
}

// chainMember builds a member node as expr does: one ChainNode around all members
// from the first ?. on.
func (p *parser) chainMember(node, key ast.Node, at token, from int, optional bool) ast.Node {
	around, isChain := node.(*ast.ChainNode)
	if isChain {
		node = around.Node
	}
	node = p.placeNode(&ast.MemberNode{Node: node, Property: key, Optional: optional}, at, from)
	if isChain || optional {
		node = p.placeNode(&ast.ChainNode{Node: node}, at, from)
	}
	return node
}

// parseIndex parses a[i] and the slices a[i:j], a[i:], a[:j] and a[:].
func (p *parser) parseIndex(node ast.Node, ref, from int, optional bool) (ast.Node, int) {
	open := p.nextToken()
	var low, high ast.Node
	if p.peekToken().isOperator("]") {
		failParse(open.from, p.peekToken().to, codeSyntax, `an index was expected in "[]"`)
	}
	if !p.peekToken().isOperator(":") {
		low = p.parseExpression()
	}
	if !p.acceptOperator(":") {
		p.expectClosing(open, "]")
		return p.chainMember(node, low, open, from, optional), p.extendRef(ref, low)
	}
	if !p.peekToken().isOperator("]") {
		high = p.parseExpression()
	}
	p.expectClosing(open, "]")
	return p.placeNode(&ast.SliceNode{Node: node, From: low, To: high}, open, from), noRef
}

// parseMethod parses a call after a dot. The language has only the method .get; for others the message suggests a
// function.
func (p *parser) parseMethod(node ast.Node, name token, from int) ast.Node {
	open := p.nextToken()
	if name.text == "get" {
		return p.parseCall(name, &open, []ast.Node{node}, from)
	}
	message := fmt.Sprintf("values have no method %q; functions are written f(x) or x | f", name.text)
	if hint := methodHints[name.text]; hint != "" {
		message = fmt.Sprintf("values have no method %q; %s", name.text, hint)
	} else if f := lists.First([]string{name.text, methodAliases[name.text], filterAliases[name.text]}, IsFunction); f != "" {
		message = fmt.Sprintf("values have no method %q; write it as the function %s", name.text, functions[f].signature)
	}
	failParse(name.from, name.to, codeUnsupported, message)
	return nil
}

// methodAliases maps Python methods to the functions of the language that have another name.
var methodAliases = map[string]string{
	"strip": "trim", "startswith": "hasPrefix", "endswith": "hasSuffix", "items": "toPairs",
	"append": "concat", "extend": "concat", "index": "indexOf", "find": "indexOf", "rfind": "lastIndexOf",
	"size": "len", "toLowerCase": "lower", "toUpperCase": "upper", "toString": "string",
}

// methodHints are methods of other systems whose value is available here without a call.
var methodHints = map[string]string{
	"json":      "a JSON response is already parsed: write response.x",
	"text":      "a text response is response itself",
	"xcom_pull": "use the step's name for its result, as in fetch.rows",
	"xcom_push": "use the step's name for its result",
	"first":     "write first(xs)",
	"all":       "the whole result of a step is the step's name",
	"strftime":  `write format_time(t, "2006-01-02"), or unix(t) for %s`,
	"isoformat": "times are already RFC 3339 text",
}

// tests maps Jinja's tests without arguments to their comparison: of the value with a constant, or of its type with
// a type name.
var tests = map[string]struct {
	operator string
	with     ast.Node
	typed    bool
}{
	"defined":   {operator: "!=", with: &ast.NilNode{}},
	"undefined": {operator: "==", with: &ast.NilNode{}},
	"none":      {operator: "==", with: &ast.NilNode{}},
	"None":      {operator: "==", with: &ast.NilNode{}},
	"null":      {operator: "==", with: &ast.NilNode{}},
	"nil":       {operator: "==", with: &ast.NilNode{}},
	"true":      {operator: "==", with: &ast.BoolNode{Value: true}},
	"True":      {operator: "==", with: &ast.BoolNode{Value: true}},
	"false":     {operator: "==", with: &ast.BoolNode{Value: false}},
	"False":     {operator: "==", with: &ast.BoolNode{Value: false}},
	"string":    {operator: "==", with: &ast.StringNode{Value: "string"}, typed: true},
	"number":    {operator: "==", with: &ast.StringNode{Value: "number"}, typed: true},
	"boolean":   {operator: "==", with: &ast.StringNode{Value: "boolean"}, typed: true},
	"mapping":   {operator: "==", with: &ast.StringNode{Value: "map"}, typed: true},
	"sequence":  {operator: "==", with: &ast.StringNode{Value: "list"}, typed: true},
}

// testHints says what to write instead of Jinja's tests that do not exist here.
var testHints = map[string]string{
	"in": "write x in y", "eq": "write x == y", "equalto": "write x == y", "sameas": "write x == y",
	"ne": "write x != y", "lt": "write x < y", "le": "write x <= y", "gt": "write x > y", "ge": "write x >= y",
	"even": "write x % 2 == 0", "odd": "write x % 2 != 0", "divisibleby": "write x % n == 0",
	"iterable": "write x is sequence or x is mapping", "list": "write x is sequence", "dict": "write x is mapping",
	"integer": "write x is number", "float": "write x is number", "bool": "write x is boolean",
	"map": "write x is mapping", "array": "write x is sequence", "empty": "write not x", "null": "write x is none",
	"lower": "write x == lower(x)", "upper": "write x == upper(x)", "callable": "values cannot be called",
}

// parseTest parses Jinja's x is test and x is not test.
func (p *parser) parseTest(node ast.Node, is token, from int) ast.Node {
	negated := false
	if p.peekToken().isWord("not") {
		p.nextToken()
		negated = true
	}
	name := p.nextToken()
	if name.kind != tokenName {
		p.failUnexpected(name, `a test was expected after "is", such as defined or none; values are compared with ==`)
	}
	test, ok := tests[name.text]
	if !ok {
		failParse(name.from, name.to, codeUnknownFunction, fmt.Sprintf("unknown test %q; %s", name.text, testHint(name.text)))
	}
	with := p.copyConstant(test.with, name)
	if test.typed {
		callee := p.placeNode(&ast.IdentifierNode{Value: typeFunction}, is, is.from)
		node = p.placeNode(&ast.CallNode{Callee: callee, Arguments: []ast.Node{node}}, is, from)
	}
	operator := test.operator
	if negated {
		operator = map[string]string{"==": "!=", "!=": "=="}[operator]
	}
	return p.placeNode(&ast.BinaryNode{Operator: operator, Left: node, Right: with}, is, from)
}

// copyConstant copies the constant of a test, because each node has its own position.
func (p *parser) copyConstant(constant ast.Node, at token) ast.Node {
	switch c := constant.(type) {
	case *ast.BoolNode:
		return p.placeNode(&ast.BoolNode{Value: c.Value}, at, at.from)
	case *ast.StringNode:
		return p.placeNode(&ast.StringNode{Value: c.Value}, at, at.from)
	default:
		return p.placeNode(&ast.NilNode{}, at, at.from)
	}
}

func testHint(name string) string {
	if hint := testHints[name]; hint != "" {
		return hint
	}
	known := make([]string, 0, len(tests))
	for test := range tests { // any order: sorted below
		known = append(known, test)
	}
	slices.Sort(known)
	if near := Suggest(name, known); near != "" {
		return "did you mean " + strconv.Quote(near) + "?"
	}
	return "the tests are defined, none, true, false, string, number, boolean, mapping and sequence"
}
