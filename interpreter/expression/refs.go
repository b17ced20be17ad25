package expression

import (
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Ref is a name that an expression takes from its scope.
type Ref struct {
	Root   string // the name itself
	Path   []any  // longest constant path behind it: string keys and int indexes
	Offset int    // where the name starts, in runes
	End    int    // behind the name, in runes

	// Bare says that the expression is this reference and nothing else, so
	// that it only passes a value on.
	Bare bool
}

// noRef marks an operand that is not a name from the scope.
const noRef = -1

// addRef records the use of a name and returns its place in p.refs; names that
// let has bound are no references.
func (p *parser) addRef(name token) int {
	if slices.Contains(p.lets, name.text) {
		return noRef
	}
	p.refs = append(p.refs, Ref{Root: name.text, Offset: name.from, End: name.to})
	return len(p.refs) - 1
}

// extendRef appends a constant key to the path of a reference and returns the
// reference that further members extend: none once a key is not constant.
func (p *parser) extendRef(ref int, key ast.Node) int {
	if ref == noRef {
		return noRef
	}
	switch k := key.(type) {
	case *ast.StringNode:
		p.refs[ref].Path = append(p.refs[ref].Path, k.Value)
	case *ast.IntegerNode:
		p.refs[ref].Path = append(p.refs[ref].Path, k.Value)
	default:
		return noRef
	}
	return ref
}

// markLoneReference marks the reference if the expression consists of it alone.
func markLoneReference(node ast.Node, refs []Ref) {
	for {
		switch n := node.(type) {
		case *ast.ChainNode:
			node = n.Node
		case *ast.MemberNode:
			if _, ok := constantKey(n.Property); !ok {
				return
			}
			node = n.Node
		case *ast.IdentifierNode:
			if len(refs) == 1 {
				refs[0].Bare = true
			}
			return
		default:
			return
		}
	}
}

// constantKey returns the key of a member if it is written as a constant.
func constantKey(property ast.Node) (any, bool) {
	switch k := property.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode:
		return k.Value, true
	default:
		return nil, false
	}
}
