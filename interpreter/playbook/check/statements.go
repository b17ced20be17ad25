package check

import (
	"fmt"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/statement"
)

// maxStatement is how many bytes a statement may have. It is parsed for its templates at each
// start; what is long is in values.
const maxStatement = 64 << 10

// checkStatements reads the SQL of every statement field: docs/concepts/expressions.md#values-in-sql.
func checkStatements(c *checker) {
	for _, read := range c.readStatements() {
		node := read.node
		if len(node.Raw) > maxStatement {
			c.Add(source.Error, node.Position(0), statement.CodeTooLarge, fmt.Sprintf("the statement has %d bytes, %d are allowed: "+
				"write rows with table instead of statement, and put long values into templates", len(node.Raw), maxStatement))
			continue
		}
		for _, problem := range read.problems {
			severity := source.Error
			if problem.Warning {
				severity = source.Warning
			}
			c.Add(severity, node.Position(problem.Offset), problem.Code, problem.Message)
		}
	}
}

// readStatement is a field with SQL as its parser has read it.
type readStatement struct {
	at       playbook.StepSpot
	node     *playbook.Node
	parsed   *statement.Statement
	problems []statement.Problem
}

// readStatements are the fields that are SQL of a known dialect, read once for all
// rules.
func (c *checker) readStatements() []readStatement {
	if c.sql != nil {
		return c.sql
	}
	c.sql = []readStatement{}
	for _, call := range c.pb.Actions() {
		c.addStatements(call.StepSpot, call.Action)
		if from := call.Action.Field(playbook.FieldFrom).Call(); from != nil {
			c.addStatements(call.StepSpot, from)
		}
	}
	return c.sql
}

// addStatements reads the fields of a call that are SQL.
func (c *checker) addStatements(at playbook.StepSpot, action *playbook.Action) {
	spec, ok := c.tools.Spec(c.toolOf(action))
	if !ok || spec.Dialect == "" {
		return
	}
	for _, entry := range action.Fields {
		field, known := spec.Field(entry.Key)
		if node := entry.Value; known && field.Kind == playbook.KindStatement && (node.Raw != "" || node.Value == "") {
			parsed, problems := statement.Parse(node.Raw, statement.Dialect(spec.Dialect))
			c.sql = append(c.sql, readStatement{at: at, node: node, parsed: parsed, problems: problems})
		}
	}
}

// usableStatements are the statements without a mistake.
func (c *checker) usableStatements() []readStatement {
	return slices.DeleteFunc(slices.Clone(c.readStatements()), func(read readStatement) bool { return playbook.HasErrors(read.problems) })
}

// statementRefs calls visit for every name that a statement uses.
func (c *checker) statementRefs(visit func(playbook.StepSpot, *playbook.Node, expression.Ref)) {
	for _, read := range c.usableStatements() {
		for _, ref := range read.parsed.Refs() {
			visit(read.at, read.node, ref)
		}
	}
}
