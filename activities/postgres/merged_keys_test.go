package postgres_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestPostgresCountsRoundedKeys: a key that its column rounds or cuts is counted in modes where rows with one key become one.
func TestPostgresCountsRoundedKeys(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	for at, one := range []struct {
		typed             string
		exact, cut, other any
	}{
		{"numeric(10, 2)", 1.25, 1.251, 1.254},
		{"numeric(10, 2)", "1.25", "1.251", "1.254"},
		{"real", 0.5, 16777217, 16777216},
		{"timestamp(0)", "2024-01-01T10:00:00", "2024-01-01T10:00:00.2", "2024-01-01T10:00:00.4"},
		{"timestamptz", "2024-01-01T10:00:00.000001Z", "2024-01-01T10:00:00.0000001Z", "2024-01-01T10:00:00.0000002Z"},
		{"date", "2024-01-01", "2024-01-01T10:00:00Z", "2024-01-01T11:00:00Z"},
		{"char(4)", "ab", "ab ", "ab"},
		{"varchar(2)", "ab", "ab ", "ab"},
	} {
		table := fmt.Sprint("merged", at)
		db.Exec(t, "CREATE TABLE "+table+" (k "+one.typed+" PRIMARY KEY, v int)")
		write := func(mode string, k any) *interpreter.RowCounts {
			in := pg.TableInput(fields{"table": table, "key": "k", "mode": mode}, []any{fields{"k": k, "v": 1}})
			in.OperationKey = fmt.Sprint(at, mode, k)
			result, err := pg.MakeAttempt(t, in)
			require.NoError(t, err, one.typed)
			return result.Meta.LeftOut
		}
		for _, mode := range []string{"upsert", "insert_or_ignore"} {
			require.Nil(t, write(mode, one.exact), one.typed)
			require.Equal(t, &interpreter.RowCounts{RoundedValues: 1, RoundedKeys: 1}, write(mode, one.cut), one.typed)
		}
		db.Exec(t, "DELETE FROM "+table)
		if left := write("insert", one.cut); left != nil {
			require.Equal(t, &interpreter.RowCounts{RoundedValues: 1}, left, one.typed)
		}
	}
}
