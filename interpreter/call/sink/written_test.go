package sink_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/playbook"
)

// TestLeftOutWarnings: the warnings count in one form for 1 and in another for more.
func TestLeftOutWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left interpreter.RowCounts
		want []string
	}{
		{interpreter.RowCounts{}, nil},
		{interpreter.RowCounts{DiscardedValues: 1, DiscardedRows: 1, RejectedRows: 1}, []string{
			"orders: 1 value was discarded (schema_contract)",
			"orders: 1 row was discarded (schema_contract)",
			"orders: 1 row was rejected and written to the target of rejected",
		}},
		{interpreter.RowCounts{DiscardedValues: 24, DiscardedRows: 2, RejectedRows: 3}, []string{
			"orders: 24 values were discarded (schema_contract)",
			"orders: 2 rows were discarded (schema_contract)",
			"orders: 3 rows were rejected and written to the target of rejected",
		}},
	} {
		written := interpreter.CallResult{Meta: interpreter.CallMeta{LeftOut: &c.left}}
		result := sink.AddWritten(interpreter.CallResult{}, &playbook.Sink{Place: "orders"}, written)
		require.Equal(t, c.want, result.Warnings)
	}
}
