package expression

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"reprise/interpreter/source"
)

// shownParts is the most parts that are shown for one expression.
const shownParts = 20

// shownPartText is the most characters that are kept of the text of a part.
const shownPartText = 80

// Part is a part of an expression as the author wrote it, with its value, to be shown to people.
type Part struct {
	Text  string
	Value any
	Err   error // why it has no value, or nil
}

// Parts evaluates the parts of an expression that explain its value: members and, within larger expressions,
// comparisons and calls, in written order, at most twenty. Each part is evaluated separately, even if the
// expression does not evaluate it, such as the second operand of "and" when the first one is false. Parts that
// depend on the element of a predicate are left out.
func (p *Program) Parts(scope Scope, b *Budget) []Part {
	parsed, problems := parseExpression([]rune(p.source), true)
	if len(problems) > 0 {
		return nil // cannot be: it was compiled
	}
	finder := &partFinder{tree: parsed, text: []rune(p.source)}
	finder.visitNode(parsed.node)
	all := make([]Part, 0, len(finder.found))
	for _, found := range finder.found {
		part := Part{Text: source.CutText(found.text, shownPartText)}
		part.Value, part.Err = p.evalNode(found.node, scope, b)
		all = append(all, part)
	}
	return all
}

// evalNode evaluates one node of the program's tree separately.
func (p *Program) evalNode(node ast.Node, scope Scope, b *Budget) (any, error) {
	code, err := compileTree(p.source, new(lowering).lowerValue(node))
	if err != nil {
		return nil, err
	}
	alone := Program{source: p.source, code: code, tree: node, refs: p.refs, roots: p.roots, builds: true}
	return alone.Eval(scope, b)
}

// Parts returns the parts of all expressions of the template; see [Program.Parts].
func (t *Template) Parts(scope Scope, b *Budget) []Part {
	var all []Part
	for _, s := range t.segments {
		if s.Program == nil {
			continue
		}
		for _, part := range s.Program.Parts(scope, b) {
			if len(all) < shownParts && !slices.ContainsFunc(all, func(other Part) bool { return other.Text == part.Text }) {
				all = append(all, part)
			}
		}
	}
	return all
}

// partFinder collects the nodes that are shown.
type partFinder struct {
	tree  tree
	text  []rune
	found []foundPart
}

type foundPart struct {
	node ast.Node
	text string
}

// visitNode collects parts in a node. The parts of operands come before the part that uses them.
func (f *partFinder) visitNode(node ast.Node) {
	switch n := withoutChain(node).(type) {
	case *ast.IdentifierNode:
		f.addPart(n)
	case *ast.MemberNode:
		f.addMember(n)
	case *ast.SliceNode:
		f.visitEach(n.Node, n.From, n.To)
		f.addInside(n)
	case *ast.UnaryNode:
		f.visitNode(n.Node)
	case *ast.BinaryNode:
		f.visitEach(n.Left, n.Right)
		if binaryLevels[n.Operator] == levelCompare {
			f.addInside(n)
		}
	case *ast.CallNode:
		f.visitEach(n.Arguments...)
		f.addInside(n)
	case *ast.BuiltinNode: // its predicate binds names
		f.visitEach(n.Arguments[0])
		f.addInside(n)
	case *ast.ConditionalNode:
		f.visitEach(n.Cond, n.Exp1, n.Exp2)
	case *ast.VariableDeclaratorNode: // and so does let
		f.visitNode(n.Value)
	case *ast.ArrayNode:
		f.visitEach(n.Nodes...)
	case *ast.MapNode:
		for _, pair := range n.Pairs {
			f.visitNode(pair.(*ast.PairNode).Value) // a map holds pairs
		}
	}
}

func (f *partFinder) visitEach(nodes ...ast.Node) {
	for _, node := range nodes {
		if node != nil {
			f.visitNode(node)
		}
	}
}

// addMember adds a member with its whole path as one part, and the parts of computed keys in the path.
func (f *partFinder) addMember(n *ast.MemberNode) {
	base := ast.Node(n)
	for {
		member, ok := withoutChain(base).(*ast.MemberNode)
		if !ok {
			break
		}
		if _, constant := constantKey(member.Property); !constant {
			f.visitNode(member.Property)
		}
		base = member.Node
	}
	if _, isName := withoutChain(base).(*ast.IdentifierNode); !isName {
		f.visitNode(base)
	}
	f.addPart(n)
}

// addInside adds a node unless it is the whole expression, whose value is already shown.
func (f *partFinder) addInside(node ast.Node) {
	if node != withoutChain(f.tree.node) {
		f.addPart(node)
	}
}

func (f *partFinder) addPart(node ast.Node) {
	span, known := f.tree.spans[node]
	if !known || len(f.found) == shownParts {
		return
	}
	text := string(f.text[span.From:span.To])
	if !slices.ContainsFunc(f.found, func(other foundPart) bool { return other.text == text }) {
		f.found = append(f.found, foundPart{node: node, text: text})
	}
}

// LengthComparison is a comparison that requires a minimum length, such as len(page) == 100 or len(page) > 0.
type LengthComparison struct {
	Text   string // the operand that is a length, as written
	Length int
	Wanted int // the smallest length for which the comparison is true
}

// Lengths evaluates the comparisons of the template that require a minimum length. It leaves out comparisons whose
// operands are not whole numbers in the scope.
func (t *Template) Lengths(scope Scope, b *Budget) (all []LengthComparison) {
	for _, s := range t.segments {
		if s.Program == nil {
			continue
		}
		parsed, problems := parseExpression([]rune(s.Program.source), true)
		if len(problems) > 0 {
			continue // impossible: the source was compiled
		}
		finder := lengthFinder{program: s.Program, tree: parsed, scope: scope, budget: b}
		node := parsed.node
		ast.Walk(&node, &finder)
		all = append(all, finder.found...)
	}
	return all
}

// lengthFinder collects the length comparisons of one expression.
type lengthFinder struct {
	program *Program
	tree    tree
	scope   Scope
	budget  *Budget
	found   []LengthComparison
}

// Visit implements ast.Visitor.
func (f *lengthFinder) Visit(node *ast.Node) {
	comparison, isBinary := (*node).(*ast.BinaryNode)
	if !isBinary || len(f.found) == shownParts {
		return
	}
	length, number := comparison.Left, comparison.Right
	if comparison.Operator == "<" || comparison.Operator == "<=" || comparison.Operator == "==" && !isLength(length) {
		length, number = number, length
	}
	if !slices.Contains([]string{"==", ">=", "<=", ">", "<"}, comparison.Operator) || !isLength(length) {
		return
	}
	reached, hasLength := f.wholeNumber(length)
	wanted, hasNumber := f.wholeNumber(number)
	if comparison.Operator == ">" || comparison.Operator == "<" {
		wanted++
	}
	if hasLength && hasNumber {
		span := f.tree.spans[length]
		text := string([]rune(f.program.source)[span.From:span.To])
		f.found = append(f.found, LengthComparison{Text: text, Length: reached, Wanted: wanted})
	}
}

func isLength(node ast.Node) bool {
	call, isCall := withoutChain(node).(*ast.CallNode)
	if !isCall {
		return false
	}
	name, isName := call.Callee.(*ast.IdentifierNode)
	return isName && (name.Value == "len" || name.Value == "count") && len(call.Arguments) == 1
}

// wholeNumber evaluates an operand separately. ok is false if its value is not a whole number.
func (f *lengthFinder) wholeNumber(node ast.Node) (n int, ok bool) {
	value, err := f.program.evalNode(node, f.scope, f.budget)
	n, ok = value.(int)
	return n, err == nil && ok
}
