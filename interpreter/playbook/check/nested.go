package check

import (
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// checkNested reports templates inside strings of expressions: docs/concepts/expressions.md#templates. A condition
// with one is always true, or never.
func checkNested(c *checker) {
	for _, at := range c.pb.AllValues() {
		if at.Field == playbook.CodeFieldName || at.Field != "" && !c.isUnderstood(at.Action, at.Field) {
			continue
		}
		for node := range at.Node.AllNodes() {
			template := node.Template
			if template == nil && (node.Kind == playbook.ConstantNode || node.Kind == playbook.TemplateNode) && strings.Contains(node.Raw, "{{") { // SQL, or constant text
				template, _ = expression.ParseTemplate(node.Raw)
			}
			if template == nil {
				continue
			}
			for _, problem := range template.NestedProblems() {
				c.Errorf(node.Position(problem.Offset), problem.Code, "%s", problem.Message)
			}
		}
	}
}
