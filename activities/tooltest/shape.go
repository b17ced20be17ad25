package tooltest

import (
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

var shapeCases = tableCases{
	"shape": shapedRows,
}

// shapedRows: everything about a write sees the rows in their shape: key, columns that are made, the contract, the order of versions,
// rows that are rejected, and the ledger.
func shapedRows(s *TableTest) {
	fields := row{"mode": "upsert", "key": "key", "schema_contract": "evolve", "sequence_by": "version", "columns": row{"at": "text"}}
	shape := &interpreter.RowWork{
		Exclude: []string{"id", "secret"}, Scope: expression.Of(row{"region": "north"}),
		Fields: []interpreter.RowField{
			{Name: "key", Template: "{{ region }}/{{ row.id }}"}, {Name: "version", Template: "{{ row.v * 10 }}"}, {Name: "at", Value: expression.Of("fixed")},
		},
	}
	write := func(rows ...any) any {
		in := s.WriteInput(fields, rows...)
		in.Shape = shape
		planned, err := activities.PlanTable(s.Context(), s.db.Catalogue, CompleteInput(in, s.db.Name))
		require.NoError(s, err)
		require.Equal(s, len(rows), *planned.Rows)
		result, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
		again, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
		require.NotNil(s, again.Data.Data)
		return result.Data.Data
	}
	require.Equal(s, AffectedResult(2), write(row{"id": 1, "v": 1, "secret": "s"}, row{"id": 2, "v": 1, "more": true}))
	require.Equal(s, AffectedResult(1), write(row{"id": 1, "v": 2, "secret": "s"}, row{"id": 2, "v": 0}))
	require.Equal(s, []string{`{"at":"fixed","key":"north/1","v":2,"version":20}`, `{"at":"fixed","key":"north/2","v":1,"version":10}`}, s.ContentLines("key, version, at, v"))
	columns := s.Query("SELECT * FROM "+s.Table, nil).([]any)[0].(row)
	require.NotContains(s, columns, "id")
	require.NotContains(s, columns, "secret")
	require.Contains(s, columns, "more")
	in := s.WriteInput(fields, row{"id": 3, "v": 1}, row{"id": 4, "v": "x"})
	in.Shape = shape
	failure := s.db.FailingCall(s.t, in)
	require.Equal(s, interpreter.KindExpression, failure.Kind)
	require.True(s, failure.Final)
	require.Contains(s, failure.Message, "sink sink: row 2, fields.version: ")
	require.Len(s, s.ContentLines("key"), 2, "nothing of it is written")
	in = s.WriteInput(row{"mode": "insert", "rejected": row{"table": s.Table + "_aside"}}, row{"id": 5, "v": 1}, row{"id": 1, "v": 3})
	in.Shape = shape
	s.Query("CREATE UNIQUE INDEX "+s.Table+"_keys ON "+s.Table+" (key)", nil)
	_, err := s.db.MakeAttempt(s.t, in)
	require.NoError(s, err)
	require.Equal(s, []any{row{"value": `{"at":"fixed","key":"north/1","v":3,"version":30}`}}, s.Query("SELECT value FROM "+s.Table+"_aside", nil))
}
