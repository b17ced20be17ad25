package check

import (
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// checkContributed checks the keys that determine the rows of a page: docs/concepts/rows.md.
func checkContributed(c *checker) {
	for _, step := range c.pb.CallSteps() {
		checkTwoPaths(c, step)
		checkMergedRows(c, step)
		checkWhere(c, step)
	}
}

// checkTwoPaths reports a second path to the rows of a page, which would be ignored.
func checkTwoPaths(c *checker, step *playbook.Step) {
	if step.Rows == nil {
		return
	}
	for collect := range step.CollectSections() {
		if collect.Path != "" {
			c.Errorf(collect.Words.Place("path", collect.Pos), playbook.CodeConflict,
				"both path: %s of collect and rows: %s of the step lead to the rows of a page; remove one of them",
				playbook.ShortenText(collect.Path), playbook.ShortenText(step.Rows.Text))
		}
	}
}

// checkMergedRows reports rows in a step whose pages are merged as maps.
func checkMergedRows(c *checker, step *playbook.Step) {
	var word string
	var pos source.Position
	switch {
	case step.Rows != nil:
		word, pos = "rows", step.Rows.Pos
	case step.Where != nil:
		word, pos = "where", step.Where.Pos
	default:
		return
	}
	for collect := range step.CollectSections() {
		if collect.Strategy == playbook.Merge {
			c.Errorf(pos, playbook.CodeConflict, "%s yields lists of rows, but strategy: merge (line %d) combines maps; use strategy: append", word, collect.Pos.Line)
			return
		}
	}
}

// checkWhere checks the condition that filters rows.
func checkWhere(c *checker, step *playbook.Step) {
	switch {
	case step.Where == nil:
	case !step.Where.UsesAny(playbook.RowWord):
		c.Warnf(step.Where.Pos, codeNoEffect, `where does not use "row", so it keeps all rows of a page or none; write for example where: row.status == 'open'`)
	case step.Loop != nil && step.Loop.Element == playbook.RowWord:
		c.Errorf(step.Where.Pos, playbook.CodeConflict, `"row" is both the row in where and the element of the loop; rename the element, such as element: item`)
	}
}
