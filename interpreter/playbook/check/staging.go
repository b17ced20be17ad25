package check

import (
	pathpkg "path"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

const modeReplaceWord = playbook.FieldMode + ": " + playbook.ModeReplace

// checkStaging checks sinks whose rows are published together: mode replace and delete_missing
// (docs/concepts/written-once.md#rows-that-are-published-together).
func checkStaging(c *checker) {
	for _, call := range c.pb.AllCalls() {
		if action := c.pb.ResolveAction(call.Action); call.Spot&playbook.AtWorkbook == 0 && action.StagesRows() {
			checkStagingPlace(c, call, action)
		}
	}
	for _, step := range c.pb.Steps {
		checkStagedOnce(c, step)
	}
}

// stagingWord returns the word because of which an action stages rows, and its value.
func stagingWord(a *playbook.Action) (word string, at *playbook.Node) {
	if deletes := a.Field(playbook.FieldDeleteMissing); deletes != nil && deletes.Value != false && deletes.Value != "false" {
		return "delete_missing", deletes
	}
	return modeReplaceWord, a.Field(playbook.FieldMode)
}

// checkStagingPlace reports such a sink in a place where no call or loop publishes its rows.
func checkStagingPlace(c *checker, call playbook.CallAt, action *playbook.Action) {
	word, at := stagingWord(action)
	step, remedy := call.Step, "write mode: insert"
	if word != modeReplaceWord {
		remedy = "leave it out"
	}
	switch {
	case call.Sink == nil:
		c.Errorf(at.Pos, codeStaging, "%s is for sinks, whose rows are published when the call or loop has completed; read the rows in a step and write them with its sink", word)
	case call.Spot&playbook.AtNotices != 0:
		c.Errorf(at.Pos, codeStaging, "a notice cannot have %s: its single row would become the whole table; %s", word, remedy)
	case step.Loop != nil && call.Sink == step.Loop.DeadLetter:
		c.Errorf(at.Pos, codeStaging, "a sink for dead letters cannot have %s: dead letters are never the whole table; %s", word, remedy)
	case step.Incremental != nil:
		c.Errorf(at.Pos, codeStaging, "step %q has incremental and reads only what is new, and %s would delete everything that it has not read; remove one of the two",
			step.Name, word)
	case !slices.Contains(step.SuccessSinks(), call.Sink) && !slices.Contains(step.Sinks, call.Sink):
		c.Errorf(at.Pos, codeStaging, "the policy matches only failures, after which nothing is published, so it cannot have a sink with %s; %s", word, remedy)
	case action.PlaceNaming(step.AttemptNames()...) != nil:
		c.Errorf(action.PlaceNaming(step.AttemptNames()...).Pos, codeStaging, "a sink with %s cannot depend on what the step reads: all its rows are published together, in one table; "+
			"use values of the workload, vars or earlier steps", word)
	case step.Loop != nil && !slices.Contains(step.Sinks, call.Sink) && action.PlaceNaming(step.Loop.Element, "_loop") != nil:
		c.Errorf(action.PlaceNaming(step.Loop.Element, "_loop").Pos, codeStaging, "a sink with %s cannot depend on the element: the rows of all iterations are published together, in one table; "+
			"to publish each element separately, let the loop run tool: playbook with a step that has this sink", word)
	}
}

// checkMovedTo checks the destination of a transfer.
func checkMovedTo(c *checker, call playbook.CallAt, to *playbook.Action) {
	if statement := to.Field(playbook.FieldStatement); statement != nil {
		c.Errorf(statement.Pos, codeFieldType, "to writes rows to a table, and statement does not; replace it by table")
		return
	}
	if to.ToolTraits().IntoFile {
		checkWrittenFile(c, to)
		checkMovedToFile(c, call, to)
		return
	}
	if to.Field("table") == nil && !c.partial {
		c.Errorf(to.Pos, codeMissingField, "to needs table, the name of the table that the rows are written to")
	}
	loop := call.Step != nil && call.Step.Loop != nil
	if !loop || !to.StagesRows() || to.Field("replace_where") != nil || to.PlaceNaming(call.Step.Loop.Element, "_loop") != nil {
		return
	}
	word, at := stagingWord(to)
	c.Errorf(at.Pos, codeStaging, "each iteration would publish its own rows and delete those of the others with %s; use mode upsert without it, or add replace_where with a column that names the element", word)
}

// checkWrittenFile checks how a sink writes a file: its format, its compression, and what only applies when files are read.
func checkWrittenFile(c *checker, action *playbook.Action) {
	for _, name := range []string{"member", "encoding", "xml", playbook.FieldBatch} {
		if field := action.Field(name); field != nil {
			c.Errorf(field.Pos, codeFieldType, "%s applies only when reading, and this writes a file; remove it", name)
		}
	}
	if as := action.Field(playbook.FieldFormat); as != nil && as.Template == nil && !slices.Contains(playbook.WrittenFormats, strings.ToLower(expression.Text(as.Value))) {
		c.Errorf(as.Pos, codeFieldType, "format is %s; rows are written as %s", playbook.DescribeValue(as.Value), joinChoices(playbook.WrittenFormats))
		return
	}
	checkRejectedOfFile(c, action)
	at, path := action.Field(playbook.FieldCompression), action.Field(playbook.FieldPath)
	compression := ""
	if at != nil {
		compression = strings.ToLower(expression.Text(at.Value))
	}
	if path == nil || at != nil && at.Template != nil || strings.HasSuffix(path.Raw, "}}") {
		return
	}
	if at == nil {
		at = path
	}
	if problem := playbook.PackingProblem(path.Raw, compression, action.WritesParquet(), action.Auth != nil); problem != "" {
		c.Errorf(at.Pos, codeFieldType, "%s", problem)
	}
}

// checkReadFile reports what only applies when a file is written.
func checkReadFile(c *checker, action *playbook.Action) {
	for _, name := range []string{playbook.FieldMode, "columns", "target_size", playbook.FieldAllowEmpty, playbook.FieldRejected} {
		if field := action.Field(name); field != nil {
			c.Errorf(field.Pos, codeFieldType, "%s applies only when writing, and this reads a file; remove it", name)
		}
	}
}

// checkRejectedOfFile checks whether the rows of a file may be rejected.
func checkRejectedOfFile(c *checker, action *playbook.Action) {
	rejected, as := action.Field(playbook.FieldRejected), action.Field(playbook.FieldFormat)
	if rejected == nil || as != nil && as.Template != nil {
		return
	}
	format := action.WrittenFormat()
	switch to, path := rejected.Get(playbook.FieldPath), action.Field(playbook.FieldPath); {
	case format != playbook.FormatJSONL && !action.IntoObjects():
		c.Errorf(rejected.Pos, codeFieldType, "rejected needs a folder of files, and this writes one file; add auth, set format: parquet, or remove it")
	case playbook.RejectedProblem(format) != "":
		c.Errorf(rejected.Pos, codeFieldType, "%s", playbook.RejectedProblem(format))
	case to == nil || path == nil || to.Template != nil || path.Template != nil:
	case pathpkg.Clean(expression.Text(to.Value)) == pathpkg.Clean(path.Raw):
		c.Errorf(to.Pos, codeFieldType, "rejected rows need a separate folder, and this is where the other rows go; use another path, such as %s", pathpkg.Clean(path.Raw)+"_rejected")
	}
}

// checkMovedToFile checks the mode and the path of a transfer to files.
func checkMovedToFile(c *checker, call playbook.CallAt, to *playbook.Action) {
	mode, path := to.Field(playbook.FieldMode), to.Field(playbook.FieldPath)
	if mode == nil || !strings.EqualFold(expression.Text(mode.Value), playbook.ModeOverwrite) {
		return
	}
	switch loop := call.Step != nil && call.Step.Loop != nil; {
	case !to.IntoObjects():
		c.Errorf(mode.Pos, codeFieldType, "a transfer appends to a file, and readers would see half of the new one; remove mode: overwrite, and name a new file for each run in path, such as orders-{{ run.id }}.csv")
	case loop && path != nil && !path.UsesAny(call.Step.Loop.Element, "_loop"):
		c.Errorf(mode.Pos, codeStaging, "each iteration would publish its own rows and drop those of the others with mode: overwrite; use the element in path, or mode: append")
	}
}

// checkMovedQuery checks a statement whose rows are transferred. Without an order, each attempt starts again, which
// is possible only if rows replace existing ones.
func checkMovedQuery(c *checker, spec playbook.ToolSpec, to, from *playbook.Action) {
	for _, entry := range from.Fields {
		switch entry.Key {
		case playbook.FieldStatement, playbook.FieldPath, playbook.FieldOrderBy, playbook.FieldRows:
		default:
			if _, known := spec.Field(entry.Key); known {
				c.Errorf(entry.KeyPos, codeFieldType, "from reads rows by a statement, and %s does not apply to it; remove it", entry.Key)
				return
			}
		}
	}
	query, order := from.Field(playbook.FieldStatement), from.Field(playbook.FieldOrderBy)
	if query == nil && !c.partial {
		c.Errorf(from.Pos, codeMissingField, "from needs statement, which selects the rows")
	}
	if parsed := query.Statement(); parsed != nil && !slices.Contains(playbook.SelectVerbs, parsed.Verb()) {
		c.Errorf(query.Position(0), codeFieldType, "the statement of from must begin with %s, because it may only read rows", joinChoices(playbook.SelectVerbs))
	}
	if order != nil && order.Kind == playbook.ListNode {
		c.Errorf(order.Pos, codeFieldType, "order_by of from must be one column, not a list; select an expression over them as a column")
	}
	warnOfMovingOrder(c, query, order)
	if order != nil || to == nil || c.partial {
		return
	}
	mode := to.Field(playbook.FieldMode)
	if mode != nil && (mode.Template != nil || playbook.IsRepeatable(expression.Text(mode.Value))) {
		return
	}
	c.Errorf(from.Pos, codeMissingField, "from needs order_by, a column whose values are unique, such as id: without it an attempt reads all rows again, "+
		"which needs mode: upsert or replace of to")
}

// computedColumn matches a column that is numbered or drawn anew whenever a statement runs, with its name.
var computedColumn = regexp.MustCompile(`(?is)\b((?:row_number|rank|dense_rank|random|rand|gen_random_uuid|uuid_generate_v4)\s*\(\s*\))` +
	`(?:\s*over\s*\((?:[^()]|\([^()]*\))*\))?\s+(?:as\s+)?"?(\w+)"?`)

// warnOfMovingOrder warns about an order in which rows change their places between two batches, each of which runs the statement.
func warnOfMovingOrder(c *checker, query, order *playbook.Node) {
	if query == nil || order == nil || order.Kind == playbook.ListNode {
		return
	}
	for _, found := range computedColumn.FindAllStringSubmatch(query.Raw, -1) {
		if strings.EqualFold(found[2], nodeText(order)) {
			c.Warnf(order.Pos, codeMovingOrder, "each batch runs the statement again, and %s computes %s anew, so rows may be left out or come twice; order by a unique column of the table, such as id",
				found[1], found[2])
			return
		}
	}
}

// checkStagedOnce reports two sinks of a step if one would replace what the other publishes.
func checkStagedOnce(c *checker, step *playbook.Step) {
	staging := lists.Filter(slices.Concat(step.SuccessSinks(), step.AggregateSinks()), func(sink *playbook.Sink) bool { return c.pb.PublishesWhole(step, sink) })
	seen := map[string]*playbook.Sink{}
	for _, sink := range staging {
		action := c.pb.ResolveAction(sink.Action)
		where := expression.ShortDigest([]any{nodeText(action.Tool), nodeText(action.Auth), nodeText(action.Field("path")), nodeText(action.Field("table"))})
		if first := seen[where]; first != nil {
			_, at := stagingWord(action)
			remedy := "remove one of them"
			if step.Loop == nil {
				remedy += ": the sink of the policy that fetches pages also gets the last page"
			}
			c.Errorf(at.Pos, codeStaging, "%s also publishes to this table, and the later of the two would delete the rows of the other; %s", first.Place, remedy)
			continue
		}
		seen[where] = sink
	}
}

// nodeText returns the text of a scalar as written.
func nodeText(n *playbook.Node) string {
	if n == nil {
		return ""
	}
	return n.Raw
}
