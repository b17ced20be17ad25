package sink

import (
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// FailedSinkError returns the failure of a call whose sink failed with cause.
func FailedSinkError(sink *playbook.Sink, cause *interpreter.ErrorObject) *interpreter.ErrorObject {
	failure := *cause
	if failure.Kind != interpreter.KindCancelled && failure.Kind != interpreter.KindIncremental {
		failure.Kind = interpreter.KindSink
	}
	if prefix := "sink " + sink.Place + ": "; !strings.HasPrefix(cause.Message, prefix) {
		failure.Message = prefix + cause.Message
	}
	return &failure
}

// AddWritten returns the result of a step after its sink. If the sink failed, the result keeps the data of the
// step.
func AddWritten(result interpreter.CallResult, sink *playbook.Sink, written interpreter.CallResult) interpreter.CallResult {
	result.Warnings = slices.Concat(result.Warnings, written.Warnings)
	result.Meta.Rows = result.Meta.Rows.Plus(written.Meta.Rows)
	if written.Failed() {
		result.Status, result.Error = interpreter.StatusError, FailedSinkError(sink, written.Error)
		return result
	}
	result.Meta.LeftOut = result.Meta.LeftOut.Plus(written.Meta.LeftOut)
	result.Warnings = append(result.Warnings, LeftOutWarnings(sink.Place, written.Meta.LeftOut)...)
	return result
}

// LeftOutWarnings returns warnings about values and rows that tables did not get.
func LeftOutWarnings(where string, left *interpreter.RowCounts) (warnings []string) {
	if left == nil {
		return nil
	}
	for _, some := range []struct {
		n         int
		one, many string
	}{
		{left.DiscardedValues, "1 value was discarded (schema_contract)", "%d values were discarded (schema_contract)"},
		{left.DiscardedRows, "1 row was discarded (schema_contract)", "%d rows were discarded (schema_contract)"},
		{
			left.RejectedRows, "1 row was rejected and written to the target of rejected",
			"%d rows were rejected and written to the target of rejected",
		},
		{
			left.RoundedValues, "1 value was rounded or cut to what its column keeps (as numeric(p, s), real, date and time do)",
			"%d values were rounded or cut to what their columns keep (as numeric(p, s), real, date and time do)",
		},
		{
			left.RoundedKeys, "1 of these values is in a column of the key, so that rows with different keys may have become one",
			"%d of these values are in columns of the key, so that rows with different keys may have become one",
		},
		{
			left.OlderRows, "1 row replaced a newer one with the same key: set sequence_by to the column of the cursor",
			"%d rows replaced newer ones with the same keys: set sequence_by to the column of the cursor",
		},
		{
			left.UnwrittenRows, "a trigger or rule of the table kept 1 row out of it",
			"triggers or rules of the table kept %d rows out of it",
		},
		{
			left.UndeletedRows, "a trigger of the table kept 1 row in it that should have been deleted",
			"triggers of the table kept %d rows in it that should have been deleted",
		},
	} {
		switch {
		case some.n == 1:
			warnings = append(warnings, where+": "+some.one)
		case some.n > 1:
			warnings = append(warnings, fmt.Sprintf("%s: "+some.many, where, some.n))
		}
	}
	return warnings
}
