package playbook

import (
	"strings"

	"reprise/interpreter/expression"
)

// checkNested refuses templates in the strings of expressions: docs/concepts/expressions.md#templates.
// A condition with one is always true, or never.
func checkNested(c *checker) {
	for _, at := range c.pb.values() {
		if at.field == codeField || at.field != "" && !c.understands(at.action, at.field) {
			continue
		}
		for node := range at.node.All() {
			template := node.Template
			if template == nil && (node.kind == constantNode || node.kind == templateNode) && strings.Contains(node.Raw, "{{") { // SQL, or text that is constant
				template, _ = expression.ParseTemplate(node.Raw)
			}
			if template == nil {
				continue
			}
			for _, problem := range template.Nested() {
				c.errorf(node.Position(problem.Offset), problem.Code, "%s", problem.Message)
			}
		}
	}
}
