package expression

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"reprise/interpreter/source"
)

// shownParts bounds the parts that are shown of one expression.
const shownParts = 20

// shownPartText is how much of the text of a part is kept, in characters.
const shownPartText = 80

// Part is a part of an expression, for people: what the author wrote, and what it gives.
type Part struct {
	Text  string
	Value any
	Err   error // why it has no value, nil where it has one
}

// Parts are the parts of an expression that say why it gives what it gives: members, and inside
// of something larger also comparisons and calls, in the order in which they are written, at most
// twenty. Each is evaluated alone, also one that the expression itself leaves out, such as what
// follows an "and" whose first operand is false. What depends on the element of a predicate is left out.
func (p *Program) Parts(scope Scope, b *Budget) []Part {
	parsed, problems := parse([]rune(p.source), true)
	if len(problems) > 0 {
		return nil // cannot be: it was compiled
	}
	finder := &partFinder{tree: parsed, text: []rune(p.source)}
	finder.visit(parsed.node)
	all := make([]Part, 0, len(finder.found))
	for _, found := range finder.found {
		part := Part{Text: source.Cut(found.text, shownPartText)}
		code, err := compileTree(p.source, new(lowering).value(found.node))
		if err == nil {
			of := Program{source: p.source, code: code, tree: found.node, refs: p.refs, roots: p.roots, builds: true}
			part.Value, err = of.Eval(scope, b)
		}
		part.Err = err
		all = append(all, part)
	}
	return all
}

// Parts are the parts of all expressions of the template; see [Program.Parts].
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

// partFinder finds the nodes that are shown.
type partFinder struct {
	tree  tree
	text  []rune
	found []foundPart
}

type foundPart struct {
	node ast.Node
	text string
}

// visit looks for parts in a node. Those of operands are before what is made of them.
func (f *partFinder) visit(node ast.Node) {
	switch n := withoutChain(node).(type) {
	case *ast.IdentifierNode:
		f.add(n)
	case *ast.MemberNode:
		f.member(n)
	case *ast.SliceNode:
		f.each(n.Node, n.From, n.To)
		f.addInside(n)
	case *ast.UnaryNode:
		f.visit(n.Node)
	case *ast.BinaryNode:
		f.each(n.Left, n.Right)
		if binaryLevels[n.Operator] == levelCompare {
			f.addInside(n)
		}
	case *ast.CallNode:
		f.each(n.Arguments...)
		f.addInside(n)
	case *ast.BuiltinNode: // its predicate has names of its own
		f.each(n.Arguments[0])
		f.addInside(n)
	case *ast.ConditionalNode:
		f.each(n.Cond, n.Exp1, n.Exp2)
	case *ast.VariableDeclaratorNode: // so has what follows
		f.visit(n.Value)
	case *ast.ArrayNode:
		f.each(n.Nodes...)
	case *ast.MapNode:
		for _, pair := range n.Pairs {
			f.visit(pair.(*ast.PairNode).Value) // a map holds pairs
		}
	}
}

func (f *partFinder) each(nodes ...ast.Node) {
	for _, node := range nodes {
		if node != nil {
			f.visit(node)
		}
	}
}

// member adds a member with its whole path as one part, and the parts of computed keys in it.
func (f *partFinder) member(n *ast.MemberNode) {
	base := ast.Node(n)
	for {
		member, ok := withoutChain(base).(*ast.MemberNode)
		if !ok {
			break
		}
		if _, constant := constantKey(member.Property); !constant {
			f.visit(member.Property)
		}
		base = member.Node
	}
	if _, isName := withoutChain(base).(*ast.IdentifierNode); !isName {
		f.visit(base)
	}
	f.add(n)
}

// addInside adds a node that is not the whole expression: that has its value shown already.
func (f *partFinder) addInside(node ast.Node) {
	if node != withoutChain(f.tree.node) {
		f.add(node)
	}
}

func (f *partFinder) add(node ast.Node) {
	span, known := f.tree.spans[node]
	if !known || len(f.found) == shownParts {
		return
	}
	text := string(f.text[span.From:span.To])
	if !slices.ContainsFunc(f.found, func(other foundPart) bool { return other.text == text }) {
		f.found = append(f.found, foundPart{node: node, text: text})
	}
}
