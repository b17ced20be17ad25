package attempt

import (
	"context"
	"strings"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// countRows adds the row counts of an attempt to its result, if its tool does not report them.
func countRows(run Func) Func {
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		result, err := run(ctx, in)
		if err == nil && result.Meta.Rows == nil && result.Noted == nil && !result.Unnotable && result.PutOff == nil {
			result.Meta.Rows = attemptRows(in, result)
		}
		return result, err
	}
}

// attemptRows counts what an attempt did to data: for a statement the rows that the database reports, for a sink the rows
// that it was given. Rows read by a step are counted by its call, which knows which parts of a response are rows.
func attemptRows(in interpreter.ToolInput, result interpreter.ToolResult) *interpreter.Rows {
	affected, reported := affectedBy(in, result)
	table := in.Table()
	switch {
	case reported && affected == 0, !reported && in.Place == "":
		return &interpreter.Rows{}
	case reported && isDelete(in):
		table.Deleted = affected
	case reported:
		table.Written = affected
	default:
		return in.GivenRows()
	}
	return table.ToRows()
}

// affectedBy is how many rows a database reports that a statement has changed.
func affectedBy(in interpreter.ToolInput, result interpreter.ToolResult) (rows int64, reported bool) {
	figures, _ := result.Data.Data.(map[string]any)
	n, ok := figures["rows_affected"].(int)
	return int64(n), ok && in.Fields[playbook.FieldStatement].Data != nil
}

// isDelete reports whether the statement of an attempt is a DELETE.
func isDelete(in interpreter.ToolInput) bool {
	words := strings.Fields(expression.Text(in.Fields[playbook.FieldStatement].Data))
	return len(words) > 0 && strings.EqualFold(words[0], "delete")
}
