package playbook

import (
	"strings"

	"reprise/interpreter/expression"
)

// checkNested refuses templates in the strings of expressions: docs/concepts/expressions.md#templates.
// A condition with one is always true, or never.
func checkNested(c *checker) {
	c.pb.eachValue(func(at site, node *Node) {
		if at.field == codeField || at.field != "" && !c.understands(at.action, at.field) {
			return
		}
		node.eachScalar(func(scalar *Node) {
			template := scalar.Template
			if template == nil && strings.Contains(scalar.Raw, "{{") { // SQL, or text that is constant
				template, _ = expression.ParseTemplate(scalar.Raw)
			}
			if template == nil {
				return
			}
			for _, problem := range template.Nested() {
				c.errorf(scalar.Position(problem.Offset), problem.Code, "%s", problem.Message)
			}
		})
	})
}

// eachScalar calls visit for every scalar below the node.
func (n *Node) eachScalar(visit func(*Node)) {
	if n.kind == constantNode || n.kind == templateNode {
		visit(n)
	}
	for _, item := range n.Items {
		item.eachScalar(visit)
	}
	for _, entry := range n.Entries {
		entry.Value.eachScalar(visit)
	}
}
