package expression

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// The functions to which other forms of the grammar are converted.
const (
	textFunction = "$text" // a ~ b; an author cannot write it
	typeFunction = "type"  // x is string
)

// parseCall parses the arguments of a function and checks the call. open is the opening bracket, or nil for a
// filter without arguments. given holds the piped value or the receiver of .get.
func (p *parser) parseCall(name token, open *token, given []ast.Node, from int) ast.Node {
	f := p.resolveFunction(name, open, given)
	arguments := given
	if open != nil {
		arguments = p.parseArguments(f, *open, given)
	}
	p.builds = true
	if f == nil { // already reported; the tree is not used
		return p.placeNode(&ast.NilNode{}, name, from)
	}
	p.checkArguments(f, name, arguments, len(given) > 0)
	if f.predicate == needsPredicate || f.predicate == mayPredicate && len(arguments) > 1 {
		return p.placeNode(&ast.BuiltinNode{Name: f.name, Arguments: arguments}, name, from)
	}
	callee := p.placeNode(&ast.IdentifierNode{Value: f.name}, name, name.from)
	return p.placeNode(&ast.CallNode{Callee: callee, Arguments: arguments}, name, from)
}

// resolveFunction returns the function with this name, or reports why there is none.
func (p *parser) resolveFunction(name token, open *token, given []ast.Node) *function {
	if name.text == "count" && p.countsAll(open, len(given)) {
		p.reportProblem(name, codeAmbiguous, "count without a condition is the length in Jinja, and the number of true "+
			"elements in expr; write len(xs), or count(xs, # > 1) with a condition")
		return nil
	}
	if f := functions[name.text]; f != nil {
		return f
	}
	if f := functions[filterAliases[name.text]]; f != nil {
		return f
	}
	if hint := refused[name.text]; hint != "" {
		p.reportProblem(name, codeUnsupported, fmt.Sprintf("%q is not a function here; %s", name.text, hint))
		return nil
	}
	message := fmt.Sprintf("unknown function %q", name.text)
	known := slices.Concat(functionNames(), slices.Sorted(maps.Keys(filterAliases)))
	if near := Suggest(name.text, known); near != "" {
		message += fmt.Sprintf("; did you mean %q?", near)
	} else {
		message += "; docs/reference/expressions.md lists the functions"
	}
	p.reportProblem(name, codeUnknownFunction, message)
	if certain := SuggestCertain(name.text, known); certain != "" {
		last := &p.problems[len(p.problems)-1]
		last.Old, last.New = name.text, certain
	}
	return nil
}

// countsAll looks ahead to see whether count has no condition: there is no comma at the level of its brackets.
func (p *parser) countsAll(open *token, given int) bool {
	if given > 0 {
		return open == nil || p.peekToken().isOperator(")")
	}
	depth := 0
	for i := p.at; i < len(p.tokens); i++ {
		switch t := p.tokens[i]; {
		case t.isOperator("("), t.isOperator("["), t.isOperator("{"):
			depth++
		case t.isOperator(")"), t.isOperator("]"), t.isOperator("}"):
			if depth--; depth < 0 {
				return true
			}
		case t.isOperator(",") && depth == 0:
			return p.tokens[i+1].isOperator(")")
		}
	}
	return false
}

// parseArguments parses the arguments in the brackets and appends them to given.
func (p *parser) parseArguments(f *function, open token, given []ast.Node) []ast.Node {
	arguments := given
	for !p.acceptOperator(")") {
		if t := p.peekToken(); t.kind == tokenName && p.peekAt(1).isOperator("=") {
			refuseKeyword(f, t)
		}
		if f != nil && f.predicate != noPredicate && len(arguments) == 1 {
			arguments = append(arguments, p.parsePredicate(f))
		} else {
			arguments = append(arguments, p.parseExpression())
		}
		if !p.acceptOperator(",") {
			p.expectClosing(open, ")")
			break
		}
	}
	return arguments
}

func refuseKeyword(f *function, keyword token) {
	message := fmt.Sprintf("%s= is a keyword argument, which are not accepted; write the arguments in order", keyword.text)
	switch {
	case f != nil && keyword.text == "attribute" && f.predicate != noPredicate:
		message = fmt.Sprintf("attribute= is not accepted; write the member with a dot: %s(xs, .name)", f.name)
	case f != nil:
		message += ": " + f.signature
	}
	failParse(keyword.from, keyword.to, codeUnsupported, message)
}

// parsePredicate parses an expression that is evaluated once per element.
func (p *parser) parsePredicate(f *function) ast.Node {
	t := p.peekToken()
	if len(p.closures) == maxClosures {
		inside := slices.Clone(p.closures)
		slices.Reverse(inside)
		failParse(t.from, t.to, codeTooLarge, fmt.Sprintf("%s inside %s: predicates may be nested %d deep; "+
			"compute the inner list in vars first", f.name, strings.Join(inside, " inside "), maxClosures))
	}
	p.closures = append(p.closures, f.name)
	defer func() { p.closures = p.closures[:len(p.closures)-1] }()
	var body ast.Node
	switch {
	case t.isOperator("{") && !p.mapAhead():
		p.nextToken()
		body = p.parseExpression()
		p.expectClosing(t, "}")
	default:
		body = p.parseExpression()
	}
	if text, ok := body.(*ast.StringNode); ok {
		p.reportProblem(t, codeAmbiguous, fmt.Sprintf("%q is the same for every element; in Jinja it would be the name of a "+
			"member or filter: write %s(xs, .%s) or %s(xs, %s(#))", text.Value, f.name, text.Value, f.name, text.Value))
	}
	return p.placeNode(&ast.PredicateNode{Node: body}, t, t.from)
}

// mapAhead reports whether the { that comes next starts a map and not a block: it is followed by a key and a colon,
// or is empty.
func (p *parser) mapAhead() bool {
	key := p.peekAt(1)
	if key.isOperator("}") {
		return true
	}
	return (key.kind == tokenName || key.kind == tokenString || key.kind == tokenNumber) && p.peekAt(2).isOperator(":")
}

// checkArguments reports a problem if f does not take this number of arguments.
func (p *parser) checkArguments(f *function, name token, arguments []ast.Node, piped bool) {
	n := len(arguments)
	if n >= f.min && (f.max < 0 || n <= f.max) {
		p.checkWritten(f, arguments)
		return
	}
	got := fmt.Sprint(n)
	if piped {
		got += " with the value before it"
	}
	p.reportProblem(name, codeArguments, fmt.Sprintf("%s takes %s, not %s: %s", f.name, argumentCount(f), got, f.signature))
}

// checkWritten checks the arguments that are literal texts.
func (p *parser) checkWritten(f *function, arguments []ast.Node) {
	for i, argument := range arguments {
		text, ok := argument.(*ast.StringNode)
		if !ok || f.written[i] == nil {
			continue
		}
		if err := f.written[i](text.Value); err != nil {
			at := argument.Location()
			p.reportProblem(token{from: at.From, to: at.To}, codeArguments, f.name+": "+err.Error())
		}
	}
}

func argumentCount(f *function) string {
	plural := "arguments"
	switch {
	case f.max < 0:
		if f.min == 1 {
			plural = "argument"
		}
		return fmt.Sprintf("at least %d %s", f.min, plural)
	case f.min == f.max:
		if f.max == 1 {
			plural = "argument"
		}
		return fmt.Sprintf("%d %s", f.max, plural)
	default:
		return fmt.Sprintf("%d to %d %s", f.min, f.max, plural)
	}
}
