package playbook

import (
	"fmt"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
	"reprise/interpreter/statement"
)

// maxStatement is how many bytes a statement may have; what is long is in values.
const maxStatement = 64 << 10

// checkStatements reads the SQL of every statement field: docs/language.md,
// section sql.
func checkStatements(c *checker) {
	c.eachStatement(func(_ site, node *Node, dialect statement.Dialect) {
		if len(node.Raw) > maxStatement {
			c.add(source.Error, node.Position(0), statement.CodeTooLarge, fmt.Sprintf("the statement has %d bytes, %d are allowed: "+
				"write rows with table in place of statement, and put long values into templates", len(node.Raw), maxStatement))
			return
		}
		_, problems := statement.Parse(node.Raw, dialect)
		for _, problem := range problems {
			severity := source.Error
			if problem.Warning {
				severity = source.Warning
			}
			c.add(severity, node.Position(problem.Offset), problem.Code, problem.Message)
		}
	})
}

// eachStatement calls visit for every field that is SQL of a known dialect.
func (c *checker) eachStatement(visit func(site, *Node, statement.Dialect)) {
	for _, call := range c.pb.actions() {
		spec, ok := c.tools.Spec(c.toolOf(call.action))
		if !ok || spec.Dialect == "" {
			continue
		}
		for _, entry := range call.action.Fields {
			field, known := spec.Field(entry.Key)
			if known && field.Kind == KindStatement && entry.Value.Raw != "" {
				visit(call.site, entry.Value, statement.Dialect(spec.Dialect))
			}
		}
	}
}

// statementRefs calls visit for every name that a statement uses.
func (c *checker) statementRefs(visit func(site, *Node, expression.Ref)) {
	c.eachStatement(func(at site, node *Node, dialect statement.Dialect) {
		parsed, problems := statement.Parse(node.Raw, dialect)
		if hasErrors(problems) {
			return // it is not usable
		}
		for _, ref := range parsed.Refs() {
			visit(at, node, ref)
		}
	})
}
