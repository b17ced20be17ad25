package expression

import (
	"fmt"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// dump writes a tree with every operation in brackets, so that precedence
// shows.
func dump(node ast.Node) string {
	switch n := node.(type) {
	case nil:
		return "_"
	case *ast.UnaryNode:
		return fmt.Sprintf("(%s %s)", n.Operator, dump(n.Node))
	case *ast.BinaryNode:
		return fmt.Sprintf("(%s %s %s)", n.Operator, dump(n.Left), dump(n.Right))
	case *ast.ChainNode:
		return fmt.Sprintf("(chain %s)", dump(n.Node))
	case *ast.MemberNode:
		dot := "."
		if n.Optional {
			dot = "?."
		}
		return fmt.Sprintf("(%s %s %s)", dot, dump(n.Node), dump(n.Property))
	case *ast.SliceNode:
		return fmt.Sprintf("(slice %s %s %s)", dump(n.Node), dump(n.From), dump(n.To))
	case *ast.CallNode:
		return fmt.Sprintf("(%s)", strings.TrimSpace(dump(n.Callee)+" "+dumpAll(n.Arguments)))
	case *ast.BuiltinNode:
		return fmt.Sprintf("(%s %s)", n.Name, dumpAll(n.Arguments))
	case *ast.PredicateNode:
		return fmt.Sprintf("{%s}", dump(n.Node))
	case *ast.ConditionalNode:
		return fmt.Sprintf("(if %s %s %s)", dump(n.Cond), dump(n.Exp1), dump(n.Exp2))
	case *ast.VariableDeclaratorNode:
		return fmt.Sprintf("(let %s %s %s)", n.Name, dump(n.Value), dump(n.Expr))
	case *ast.ArrayNode:
		return fmt.Sprintf("[%s]", dumpAll(n.Nodes))
	case *ast.MapNode:
		return fmt.Sprintf("(map %s)", dumpAll(n.Pairs))
	case *ast.PairNode:
		return fmt.Sprintf("%s: %s", dump(n.Key), dump(n.Value))
	default:
		return n.String()
	}
}

func dumpAll(nodes []ast.Node) string {
	parts := make([]string, len(nodes))
	for i, node := range nodes {
		parts[i] = dump(node)
	}
	return strings.Join(parts, " ")
}
