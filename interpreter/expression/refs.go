package expression

import (
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Ref is a use of a name from the scope in an expression.
type Ref struct {
	Root   string // the name itself
	Path   []any  // the longest constant path after it: string keys and int indexes
	Offset int    // start of the name, in runes
	End    int    // end of the name, in runes

	// Bare says that the expression consists only of this reference, so that it just passes a value on.
	Bare bool
}

// noRef is the index for an operand that is not a name from the scope.
const noRef = -1

// addRef records the use of a name and returns its index in p.refs, or noRef for a name bound by let.
func (p *parser) addRef(name token) int {
	if slices.Contains(p.lets, name.text) {
		return noRef
	}
	p.refs = append(p.refs, Ref{Root: name.text, Offset: name.from, End: name.to})
	return len(p.refs) - 1
}

// extendRef appends a constant key to the path of a reference. It returns the reference that further members
// extend, which is noRef after a key that is not constant.
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

// markLoneReference sets Bare if the expression consists of a single reference.
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

// constantKey returns the key of a member if the key is a constant.
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
