package check

import (
	"fmt"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/statement"
)

// maxStatement bounds the length of a statement, in bytes. It is parsed at each start; long data belongs in values.
const maxStatement = 64 << 10

// checkStatements checks the SQL of every statement field: docs/concepts/expressions.md#values-in-sql.
func checkStatements(c *checker) {
	for _, read := range c.readStatements() {
		node := read.node
		if len(node.Raw) > maxStatement {
			c.AddProblem(source.Error, node.Position(0), statement.CodeTooLarge, fmt.Sprintf("the statement has %d bytes, %d are allowed: "+
				"write rows with table instead of statement, and put long values into templates", len(node.Raw), maxStatement))
			continue
		}
		for _, problem := range read.problems {
			severity := source.Error
			if problem.Warning {
				severity = source.Warning
			}
			c.AddProblem(severity, node.Position(problem.Offset), problem.Code, problem.Message)
		}
	}
}

// readStatement is a parsed field with SQL.
type readStatement struct {
	at       playbook.StepSpot
	node     *playbook.Node
	parsed   *statement.Statement
	problems []statement.Problem
}

// readStatements returns the fields with SQL of a known dialect, parsed once for all rules.
func (c *checker) readStatements() []readStatement {
	if c.sql != nil {
		return c.sql
	}
	c.sql = []readStatement{}
	for _, call := range c.pb.AllCalls() {
		c.addStatements(call.StepSpot, call.Action)
		if from := call.Action.Field(playbook.FieldFrom).AsCall(); from != nil {
			c.addStatements(call.StepSpot, from)
		}
	}
	return c.sql
}

// addStatements parses the SQL fields of a call.
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

// usableStatements returns the statements without errors.
func (c *checker) usableStatements() []readStatement {
	return slices.DeleteFunc(slices.Clone(c.readStatements()), func(read readStatement) bool { return playbook.HasErrors(read.problems) })
}

// statementRefs calls visit for every reference in a statement.
func (c *checker) statementRefs(visit func(playbook.StepSpot, *playbook.Node, expression.Ref)) {
	for _, read := range c.usableStatements() {
		for _, ref := range read.parsed.Refs() {
			visit(read.at, read.node, ref)
		}
	}
}
