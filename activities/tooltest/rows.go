package tooltest

import (
	"maps"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

var figureCases = tableCases{
	"figures":            figuresOfWrites,
	"figures of upserts": figuresOfUpserts,
}

// figuresOfWrites: a write says what it did to its table, in each mode, and the same where it is delivered twice.
func figuresOfWrites(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n integer CHECK (n < 100)")
	aside := row{"table": s.Table + "_aside"}
	count := func(in interpreter.ToolInput, want, again interpreter.RowTotals) {
		s.Helper()
		for _, want := range []interpreter.RowTotals{want, again} {
			result, err := s.db.MakeAttempt(s.t, in)
			require.NoError(s, err)
			require.Equal(s, want, result.Meta.Rows.Totals())
			if want != (interpreter.RowTotals{}) {
				require.Len(s, result.Meta.Rows.Tables, 1)
				require.Equal(s, s.Table, result.Meta.Rows.Tables[0].Table)
				require.Equal(s, want, result.Meta.Rows.Tables[0].RowTotals)
			}
		}
	}
	type totals = interpreter.RowTotals
	count(s.WriteInput(nil, row{"id": 1, "n": 1}, row{"id": 2, "n": 2}), totals{Written: 2, Inserted: 2}, totals{Written: 2, Inserted: 2})
	require.Len(s, s.ContentLines("id"), 2)
	count(s.WriteInput(row{"rejected": aside}, row{"id": 3, "n": 3}, row{"id": 4, "n": 400}, row{"id": 1, "n": 1}),
		totals{Written: 1, Inserted: 1, Rejected: 2}, totals{Written: 1, Inserted: 1})
	require.Len(s, s.ContentLines("id"), 3)
	count(s.WriteInput(row{"mode": "insert_or_ignore"}, row{"id": 3, "n": 9}, row{"id": 5, "n": 5}), totals{Written: 1, Inserted: 1}, totals{Written: 2, Inserted: 2})
	require.Len(s, s.ContentLines("id"), 4)
	upsert := row{"mode": "upsert", "key": "id", "hard_delete": "gone", "rejected": aside}
	written := s.splitFigures(totals{Written: 2, Inserted: 1, Updated: 1, Deleted: 1, Rejected: 1})
	again := s.splitFigures(totals{Written: 2, Updated: 2, Rejected: 1})
	count(s.WriteInput(upsert, row{"id": 3, "n": 30}, row{"id": 6, "n": 6}, row{"id": 1, "gone": true}, row{"id": 7, "n": 700}), written, again)
	require.Equal(s, []string{`{"id":2,"n":2}`, `{"id":3,"n":30}`, `{"id":5,"n":5}`, `{"id":6,"n":6}`}, s.ContentLines("id, n"))
	count(s.WriteInput(row{"schema_contract": "discard_row"}, row{"id": 8, "more": 1}, row{"id": 9, "n": 9}),
		totals{Written: 1, Inserted: 1, Discarded: 1}, totals{Written: 1, Inserted: 1, Discarded: 1})
	count(s.WriteInput(nil), totals{}, totals{})
	load := s.beginReplace(row{"key": "id", "rejected": aside})
	count(load.stagingInput("", row{"id": 2, "n": 2}, row{"id": 3, "n": 33}, row{"id": 10, "n": 10}, row{"id": 11, "n": 1100}), totals{Rejected: 1}, totals{})
	count(load.stagingInput(interpreter.StagingPublish), totals{Written: 2, Inserted: 1, Updated: 1, Deleted: 3}, totals{Written: 2, Deleted: 3})
	require.Equal(s, []string{`{"id":2,"n":2}`, `{"id":3,"n":33}`, `{"id":10,"n":10}`}, s.ContentLines("id, n"))
	load = s.beginReplace(nil)
	count(load.stagingInput("", row{"id": 12, "n": 2}), totals{}, totals{})
	count(load.stagingInput(interpreter.StagingPublish), totals{Written: 1, Inserted: 1, Deleted: 3}, totals{Written: 1, Deleted: 3})
	load = s.stagingLoad(row{"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1})
	count(load.stagingInput("", row{"id": 13, "n": 2}), s.splitFigures(totals{Written: 1, Inserted: 1}), s.splitFigures(totals{Written: 1, Updated: 1}))
	count(load.stagingInput(interpreter.StagingPublish), totals{Deleted: 1}, totals{Deleted: 1})
	require.Equal(s, []string{`{"id":13,"n":2}`}, s.ContentLines("id, n"))
}

// splitFigures is what an upsert is expected to count: SQLite does not say which of its rows are new.
func (s *TableTest) splitFigures(figures interpreter.RowTotals) interpreter.RowTotals {
	if s.db.Name == "sqlite" {
		figures.Inserted, figures.Updated = 0, 0
	}
	return figures
}

// figuresOfUpserts: an upsert says how many of its rows are new, by each way that rows take to the table.
func figuresOfUpserts(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n integer, at integer, note text DEFAULT 'none'")
	upsert := func(more row, rows ...any) interpreter.RowTotals {
		s.Helper()
		fields := row{"mode": "upsert", "key": "id"}
		maps.Copy(fields, more)
		result, err := s.db.MakeAttempt(s.t, s.WriteInput(fields, rows...))
		require.NoError(s, err)
		return result.Meta.Rows.Totals()
	}
	some := func(last int) (rows []any) {
		for id := 1; id <= last; id++ {
			rows = append(rows, row{"id": id, "n": id, "at": 1})
		}
		return rows
	}
	type totals = interpreter.RowTotals
	require.Equal(s, s.splitFigures(totals{Written: 1, Inserted: 1}), upsert(nil, some(1)...))
	require.Equal(s, s.splitFigures(totals{Written: 1, Updated: 1}), upsert(nil, some(1)...))
	require.Equal(s, s.splitFigures(totals{Written: 10, Inserted: 9, Updated: 1}), upsert(nil, some(10)...))
	require.Equal(s, s.splitFigures(totals{Written: 3000, Inserted: 2990, Updated: 10}), upsert(nil, some(3000)...), "by COPY")
	require.Equal(s, s.splitFigures(totals{Written: 3, Inserted: 1, Updated: 2}), upsert(nil, row{"id": 1, "n": 2}, row{"id": 2, "note": "x"}, row{"id": 9000, "n": 1}), "with the columns that each has")
	require.Equal(s, s.splitFigures(totals{Written: 1, Inserted: 1}), upsert(nil, row{"id": 1}, row{"id": 9001}), "nothing but keys")
	newest := row{"sequence_by": "at"}
	require.Equal(s, s.splitFigures(totals{Written: 2, Inserted: 1, Updated: 1}), upsert(newest, row{"id": 1, "at": 0, "n": 1}, row{"id": 2, "at": 2, "n": 1}, row{"id": 9002, "at": 0, "n": 1}), "one is older")
	require.Equal(s, s.splitFigures(totals{Written: 1, Inserted: 1}), upsert(nil, row{"id": 9003, "n": 1}, row{"id": 9003, "n": 2}), "of one key the last")
	require.Len(s, s.ContentLines("id"), 3004)
}
