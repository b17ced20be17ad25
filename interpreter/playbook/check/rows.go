package check

import (
	pathpkg "path"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// checkRows checks how sinks change their rows: docs/concepts/written-once.md#the-shape-of-rows.
func checkRows(c *checker) {
	for _, call := range c.pb.AllCalls() {
		if call.Action.Rows == nil {
			continue
		}
		checkHasRows(c, call)
		checkExcluded(c, call)
		if path := call.Action.Rows.Path; path != nil {
			checkRowPath(c, writesOf(call), path)
		}
		if step := call.Step; step != nil && step.Loop != nil && step.Loop.Element == playbook.RowWord {
			checkRowElement(c, call)
		}
	}
}

// checkHasRows reports changes of rows in a sink that sends none.
func checkHasRows(c *checker, call playbook.CallAt) {
	own := []string{playbook.FieldStatement}
	if playbook.TraitsOf(c.toolOf(call.Action)).Requests {
		own = []string{playbook.FieldBody, "form"}
	}
	for _, entry := range call.Action.Fields {
		if slices.Contains(own, entry.Key) {
			c.Errorf(entry.KeyPos, codeRowShape, "fields and exclude change the rows that a sink writes, but %s already determines what this one sends; remove one of them", entry.Key)
		}
	}
}

// writesOf returns the action that writes the rows of a sink or transfer.
func writesOf(call playbook.CallAt) *playbook.Action {
	if to := call.Action.Field(playbook.FieldTo).AsCall(); to != nil && call.Action.ToolTraits().Moves {
		return to
	}
	return call.Action
}

// checkRowPath checks a path that names the row; writes has the folder before it.
func checkRowPath(c *checker, writes *playbook.Action, path *playbook.Node) {
	folder, as := writes.Field(playbook.FieldPath), writes.Field(playbook.FieldFormat)
	rest, _ := playbook.CutPacking(folder.Raw)
	switch {
	case folder.Raw == "":
		c.Errorf(folder.Pos, codeRowShape, "path must begin with a folder before the first value of a row, such as %s: the files are prepared there", "orders/"+path.Raw)
	case !writes.IntoObjects():
		c.Errorf(folder.Pos, codeRowShape, playbook.RowPathProblem)
	case as == nil && !slices.Contains(playbook.WrittenFormats, strings.TrimPrefix(strings.ToLower(pathpkg.Ext(rest)), ".")):
		c.Errorf(folder.Pos, codeMissingField, "path is a folder for each value of the row, and does not say the format; set format to %s", joinChoices(playbook.WrittenFormats))
	}
	if empty := writes.Field(playbook.FieldAllowEmpty); empty != nil {
		c.Errorf(empty.Pos, codeRowShape, "allow_empty has no path to empty, because the path of each row depends on the rows that were read; remove it")
	}
	for _, segment := range path.Template.Segments() {
		if segment.Program != nil && segment.Program.IsRaw() {
			c.Errorf(path.Position(segment.Start), codeRowShape, "a value in a path that names %q is a single name and always escaped; remove \"| raw\"", playbook.RowWord)
		}
	}
}

// checkExcluded reports excluded fields that the sink itself needs.
func checkExcluded(c *checker, call playbook.CallAt) {
	writes := writesOf(call)
	needed := neededColumns(writes)
	for _, excluded := range call.Action.Rows.Exclude {
		hasItsName := func(entry *playbook.Entry) bool { return entry.Key == excluded.Name }
		if slices.ContainsFunc(call.Action.Rows.Fields, hasItsName) {
			c.Errorf(excluded.Pos, codeRowShape, "%q is in both fields and exclude; to replace the column, keep it only in fields", playbook.ShortenText(excluded.Name))
			continue
		}
		for _, column := range needed {
			if column.name == excluded.Name {
				c.Errorf(excluded.Pos, codeRowShape, "exclude cannot drop the column %q, because the sink uses it in %s", playbook.ShortenText(excluded.Name), column.word)
				break
			}
		}
	}
}

// neededColumn is a column named by a word of a sink.
type neededColumn struct{ word, name string }

// neededColumns returns the columns that the keys of a sink name literally.
func neededColumns(action *playbook.Action) (needed []neededColumn) {
	add := func(word string, node *playbook.Node) {
		for scalar := range node.AllNodes() {
			if name, isText := scalar.Value.(string); isText && scalar.Template == nil && scalar.Kind == playbook.ConstantNode {
				needed = append(needed, neededColumn{word: word, name: name})
			}
		}
	}
	for _, word := range []string{"key", "sequence_by", "hard_delete"} {
		add(word, action.Field(word))
	}
	add("replace_where", action.Field("replace_where").Get("column"))
	if children := action.Field(playbook.FieldChildren); children != nil {
		for _, entry := range children.Entries {
			needed = append(needed, neededColumn{word: playbook.FieldChildren, name: entry.Key})
			add(playbook.FieldChildren, entry.Value.Get("with"))
		}
	}
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

// checkRowElement reports a loop element called row in fields where the name means the row.
func checkRowElement(c *checker, call playbook.CallAt) {
	for _, node := range call.Action.Rows.FieldNodes() {
		if node.UsesAny(playbook.RowWord) {
			c.Errorf(node.Pos, codeRowShape, "%q is both the row that the sink writes and the element of the loop; rename the element, such as element: item", playbook.RowWord)
			return
		}
	}
}

// checkChildren checks the tables for lists in rows (docs/how-to/load-nested-lists.md).
func checkChildren(c *checker) {
	for _, call := range c.pb.AllCalls() {
		writes := c.pb.ResolveAction(call.Action)
		if to := writes.Field(playbook.FieldTo).AsCall(); to != nil && writes.ToolTraits().Moves {
			writes = to
		}
		checkNestedLists(c, writes)
		children := writes.Field(playbook.FieldChildren)
		if children == nil || children.Kind != playbook.MapNode || !writes.ToolTraits().KeepsStates {
			continue
		}
		if checkChildrenFit(c, writes, children) {
			mode, _ := writes.WriteMode()
			parent := &parentTable{key: literalTexts(writes.Field("key")), upserts: mode == "upsert", replaces: mode == playbook.ModeReplace, ignores: mode == modeIgnore, tables: literalTexts(writes.Field("table"))}
			checkChildTables(c, parent, playbook.FieldChildren, children)
		}
	}
}

// checkNestedLists checks nested: tables, whose tables find rows by the key of those that they were in.
func checkNestedLists(c *checker, writes *playbook.Action) {
	nested := writes.Field(playbook.FieldNested)
	if nested == nil || nested.Value != "tables" || !writes.ToolTraits().KeepsStates {
		return
	}
	if writes.Field(playbook.FieldStatement) != nil {
		c.Errorf(nested.Pos, codeChildTables, "nested: tables cannot be used with a statement, which writes no rows; use table")
	} else if writes.Field("key") == nil {
		c.Errorf(nested.Pos, codeChildTables, "nested: tables needs \"key\", the columns that link the rows of a list to the row that the list was in")
	}
	if children := writes.Field(playbook.FieldChildren); children != nil {
		checkNestedBelow(c, playbook.FieldChildren, children)
	}
}

// checkNestedBelow reports described tables without a key, in whose elements lists may be.
func checkNestedBelow(c *checker, path string, children *playbook.Node) {
	for _, entry := range children.Entries {
		own := path + "." + entry.Key
		if entry.Value.Kind == playbook.MapNode && entry.Value.Get("key") == nil {
			c.Errorf(entry.Value.Pos, codeChildTables, "%s needs \"key\" because of nested: tables: its columns link the rows of a list to the element that the list was in", own)
		}
		if below := entry.Value.Get(playbook.FieldChildren); below != nil {
			checkNestedBelow(c, own+"."+playbook.FieldChildren, below)
		}
	}
}

// modeIgnore is the mode of sinks that skip existing rows.
const modeIgnore = "insert_or_ignore"

// checkChildrenFit reports children together with fields that make it unknown which parent rows were written.
func checkChildrenFit(c *checker, writes *playbook.Action, children *playbook.Node) bool {
	why := ""
	mode, _ := writes.WriteMode()
	switch {
	case writes.Field(playbook.FieldStatement) != nil:
		why = "a statement, which writes no rows; use table"
	case mode == modeIgnore && writes.Field("key") == nil:
		why = playbook.IgnoringNeedsKey
	case mode == playbook.ModeReplace && writes.Field("replace_where") != nil && writes.Field("key") == nil:
		why = playbook.ReplacingNeedsKey
	default:
		return true
	}
	c.Errorf(children.Pos, codeChildTables, "children cannot be used with %s", why)
	return false
}

// parentTable is the table whose rows contain the lists.
type parentTable struct {
	key      []string
	upserts  bool
	replaces bool
	ignores  bool
	tables   []string // tables that the sink writes so far
}

// checkChildTables checks the tables in a map from fields with lists; path is the place of the map.
func checkChildTables(c *checker, parent *parentTable, path string, written *playbook.Node) {
	for _, entry := range written.Entries {
		own, table := path+"."+entry.Key, entry.Value
		if table.Kind != playbook.MapNode {
			continue // reported as an error elsewhere
		}
		if slices.Contains(parent.key, entry.Key) {
			c.Errorf(entry.KeyPos, codeChildTables, "%s is in the key of the sink, but lists with a table of their own are not written to the table of their parents; use another field", entry.Key)
		}
		for _, name := range literalTexts(table.Get("table")) {
			if slices.Contains(parent.tables, name) {
				c.Errorf(table.Get("table").Pos, codeChildTables, "the sink writes other rows to the table %q; use a separate table for %s", name, own)
			}
			parent.tables = append(parent.tables, name)
		}
		with, key := table.Get("with"), literalTexts(table.Get("key"))
		linked := checkWith(c, parent, own, with)
		below := table.Get(playbook.FieldChildren)
		if parent.upserts && len(key) == 0 {
			c.Errorf(table.Pos, codeChildTables, "%s needs \"key\", because mode upsert identifies rows by it, for example %s", own, exampleKey(linked))
		}
		if below == nil || below.Kind != playbook.MapNode {
			continue
		}
		if parent.replaces && len(key) == 0 {
			c.Errorf(table.Pos, codeChildTables, "%s needs \"key\", by which mode replace finds its own children", own)
		}
		if parent.ignores && len(key) == 0 {
			c.Errorf(table.Pos, codeChildTables, "%s needs \"key\": the sink uses it to identify rows that were ignored, whose children are not written", own)
		}
		for _, column := range linked {
			if parent.upserts && len(key) > 0 && !slices.Contains(key, column) {
				c.Errorf(table.Get("key").Pos, codeChildTables, "the key of %s must include %q: with it, the sink finds the children of a parent that is gone", own, column)
			}
		}
		nested := &parentTable{key: key, upserts: parent.upserts, replaces: parent.replaces, ignores: parent.ignores, tables: parent.tables}
		checkChildTables(c, nested, own+"."+playbook.FieldChildren, below)
		parent.tables = nested.tables
	}
}

// checkWith checks what rows get from their parents, and returns the columns that get the parent's key.
func checkWith(c *checker, parent *parentTable, path string, with *playbook.Node) (linked []string) {
	if with == nil || with.Kind != playbook.MapNode {
		return nil // which is an error by itself
	}
	if len(with.Entries) == 0 {
		c.Errorf(with.Pos, codeChildTables, "with of %s is empty; name the columns that link a row to its parent, such as {order_id: id}", path)
		return nil
	}
	var given []string
	for _, entry := range with.Entries {
		field, isText := entry.Value.Value.(string)
		if !isText || entry.Value.Template != nil || entry.Value.Kind != playbook.ConstantNode {
			c.Errorf(entry.Value.Pos, codeChildTables, "with.%s of %s must be the name of a field of the parent, as a text without templates", entry.Key, path)
			continue
		}
		given = append(given, field)
		if slices.Contains(parent.key, field) {
			linked = append(linked, entry.Key)
		}
	}
	for _, key := range parent.key {
		if (parent.upserts || parent.replaces) && !slices.Contains(given, key) {
			hint := ""
			if near := expression.Suggest(key, given); near != "" {
				hint = `; did you mean "` + key + `" instead of "` + near + `"?`
			}
			c.Errorf(with.Pos, codeChildTables, "with of %s must include %q, which is part of the parent's key: without it, rows of other parents would be deleted%s", path, key, hint)
		}
	}
	return linked
}

// exampleKey returns an example of a key.
func exampleKey(linked []string) string {
	return "key: [" + strings.Join(append(slices.Clone(linked), "line"), ", ") + "]"
}

// literalTexts returns the texts of a literal: one, or those of a list.
func literalTexts(node *playbook.Node) (texts []string) {
	if node == nil {
		return nil
	}
	for scalar := range node.AllNodes() {
		switch value := scalar.Value.(type) {
		case string:
			texts = append(texts, value)
		case []any:
			for _, item := range value {
				if text, isText := item.(string); isText {
					texts = append(texts, text)
				}
			}
		}
	}
	return texts
}
