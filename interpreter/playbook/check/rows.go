package check

import (
	"slices"

	"reprise/interpreter/playbook"
)

// checkRows checks what sinks change in their rows: docs/concepts/written-once.md#the-shape-of-rows.
func checkRows(c *checker) {
	for _, call := range c.pb.Actions() {
		if call.Action.Rows == nil {
			continue
		}
		checkHasRows(c, call)
		checkExcluded(c, call)
		if step := call.Step; step != nil && step.Loop != nil && step.Loop.Element == playbook.RowWord {
			checkRowElement(c, call)
		}
	}
}

// checkHasRows refuses to change rows where a sink sends none.
func checkHasRows(c *checker, call playbook.CallAt) {
	own := []string{playbook.StatementField}
	if playbook.TraitsOf(c.toolOf(call.Action)).Requests {
		own = []string{playbook.FieldBody, "form"}
	}
	for _, entry := range call.Action.Fields {
		if slices.Contains(own, entry.Key) {
			c.Errorf(entry.KeyPos, codeRowShape, "fields and exclude change the rows that a sink writes, and %s says what this one sends; remove one of them", entry.Key)
		}
	}
}

// checkExcluded refuses to leave out what the sink itself needs of its rows.
func checkExcluded(c *checker, call playbook.CallAt) {
	writes := call.Action
	if to := writes.Field(playbook.FieldTo).Call(); to != nil && writes.Traits().Moves {
		writes = to
	}
	needed := neededColumns(writes)
	for _, excluded := range call.Action.Rows.Exclude {
		hasItsName := func(entry *playbook.Entry) bool { return entry.Key == excluded.Name }
		if slices.ContainsFunc(call.Action.Rows.Fields, hasItsName) {
			c.Errorf(excluded.Pos, codeRowShape, "%q is in fields and in exclude; fields alone replaces it", playbook.Shorten(excluded.Name))
			continue
		}
		for _, column := range needed {
			if column.name == excluded.Name {
				c.Errorf(excluded.Pos, codeRowShape, "the column %q cannot be left out, because %s of the sink names it", playbook.Shorten(excluded.Name), column.word)
				break
			}
		}
	}
}

// neededColumn is a column that a word of a sink names.
type neededColumn struct{ word, name string }

// neededColumns are the columns that the words of a sink name, as far as they are written out.
func neededColumns(action *playbook.Action) (needed []neededColumn) {
	add := func(word string, node *playbook.Node) {
		for scalar := range node.All() {
			if name, isText := scalar.Value.(string); isText && scalar.Template == nil && scalar.Kind == playbook.ConstantNode {
				needed = append(needed, neededColumn{word: word, name: name})
			}
		}
	}
	for _, word := range []string{"key", "sequence_by", "hard_delete"} {
		add(word, action.Field(word))
	}
	add("replace_where", action.Field("replace_where").Get("column"))
	columns := action.Field("columns")
	if columns == nil {
		return needed
	}
	for _, entry := range columns.Entries {
		needed = append(needed, neededColumn{word: "columns", name: entry.Key})
	}
	if columns.Entries == nil {
		add("columns", columns)
	}
	return needed
}

// checkRowElement refuses an element with the name of the row, in fields that would read the one for the other.
func checkRowElement(c *checker, call playbook.CallAt) {
	for _, node := range call.Action.Rows.Nodes() {
		if node.Names(playbook.RowWord) {
			c.Errorf(node.Pos, codeRowShape, "%q is both the row that the sink writes and the element of the loop; rename the element, such as element: item", playbook.RowWord)
			return
		}
	}
}
