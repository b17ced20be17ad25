package interpreter

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

func tableOf(name string, totals RowTotals) *Rows {
	return TableRows{Table: name, RowTotals: totals}.ToRows()
}

func TestRowsPlus(t *testing.T) {
	t.Parallel()
	read := &Rows{RowTotals: RowTotals{Read: 5}}
	for _, tt := range []struct {
		name       string
		one, other *Rows
		want       string
	}{
		{"nothing and nothing", nil, nil, `null`},
		{"nothing and rows", nil, read, `{"read":5}`},
		{"rows and nothing", read, nil, `{"read":5}`},
		{"read", read, read, `{"read":10}`},
		{
			"read and written", read, tableOf("a", RowTotals{Written: 3, Inserted: 2, Updated: 1}),
			`{"read":5,"written":3,"inserted":2,"updated":1,"tables":[{"table":"a","written":3,"inserted":2,"updated":1}]}`,
		},
		{
			"a table twice", tableOf("a", RowTotals{Written: 3, Rejected: 1}), tableOf("a", RowTotals{Written: 1, Deleted: 4, Discarded: 2}),
			`{"written":4,"deleted":4,"rejected":1,"discarded":2,"tables":[{"table":"a","written":4,"deleted":4,"rejected":1,"discarded":2}]}`,
		},
		{
			"two tables, by name", tableOf("b", RowTotals{Written: 3}), tableOf("a", RowTotals{Written: 1}),
			`{"written":4,"tables":[{"table":"a","written":1},{"table":"b","written":3}]}`,
		},
		{
			"a table of two connections", tableOf("a", RowTotals{Written: 3}), TableRows{Table: "a", Connection: "shop", RowTotals: RowTotals{Written: 1}}.ToRows(),
			`{"written":4,"tables":[{"table":"a","written":3},{"table":"a","connection":"shop","written":1}]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before, err := json.Marshal(tt.one)
			require.NoError(t, err)
			got, err := json.Marshal(tt.one.Plus(tt.other))
			require.NoError(t, err)
			require.JSONEq(t, tt.want, string(got))
			after, err := json.Marshal(tt.one)
			require.NoError(t, err)
			require.Equal(t, string(before), string(after), "a sum changes nothing that is added up")
		})
	}
}

// TestRowsAreBounded: of many tables the largest are kept by themselves, and nothing is lost of the sum.
func TestRowsAreBounded(t *testing.T) {
	t.Parallel()
	var sum *Rows
	const tables = 1000
	for i := range tables {
		sum = sum.Plus(tableOf(fmt.Sprintf("t%04d", i), RowTotals{Written: int64(i), Rejected: 1}))
	}
	require.Len(t, sum.Tables, MostTables)
	require.Equal(t, RowTotals{Written: tables * (tables - 1) / 2, Rejected: tables}, sum.Totals())
	require.Equal(t, "t0950", sum.Tables[0].Table, "the largest, in the order of their names")
	shown := RowTotals{}
	for _, table := range sum.Tables {
		shown = shown.Plus(table.RowTotals)
	}
	require.Equal(t, sum.Totals(), shown.Plus(*sum.Others))
	twice := sum.Plus(sum)
	require.Len(t, twice.Tables, MostTables)
	require.Equal(t, twice.Totals().Written, sum.Totals().Written*2)
	require.Equal(t, sum.Others.Plus(*sum.Others), *twice.Others)
	require.Less(t, EncodedSize(sum), 6_000)
}

// TestRowsOfAnAttempt: what a sink writes to is named by what it rendered.
func TestRowsOfAnAttempt(t *testing.T) {
	t.Parallel()
	result := expression.Of([]any{1, 2, 3})
	for _, tt := range []struct {
		name string
		in   ToolInput
		want TableRows
	}{
		{"a table", ToolInput{Tool: "postgres", Auth: "shop", Fields: fieldsOf("table", "sales.orders")}, TableRows{Table: "sales.orders", Connection: "shop"}},
		{"of a file of SQLite", ToolInput{Tool: "sqlite", Fields: fieldsOf("table", "orders", "path", "shop.db")}, TableRows{Table: "orders", Connection: "shop.db"}},
		{"a file", ToolInput{Tool: "file", Fields: fieldsOf("path", "out/orders.csv")}, TableRows{Table: "out/orders.csv"}},
		{"a request", ToolInput{Tool: "http", Fields: fieldsOf("url", "https://api.example.com/orders?token=x")}, TableRows{Table: "http", Connection: "api.example.com"}},
		{"of a connection", ToolInput{Tool: "http", Auth: "shop", Fields: fieldsOf("url", "/orders")}, TableRows{Table: "http", Connection: "shop"}},
		{"a statement", ToolInput{Tool: "postgres", Auth: "shop", Fields: fieldsOf("statement", "SELECT 1")}, TableRows{Table: "postgres", Connection: "shop"}},
		{"code", ToolInput{Tool: "python"}, TableRows{Table: "python"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.in.Table())
			tt.in.Result = &result
			tt.want.Written = 3
			require.Equal(t, tt.want.ToRows(), tt.in.GivenRows())
		})
	}
	staged := ToolInput{Tool: "postgres", Fields: fieldsOf("table", "t", "mode", "replace"), Result: &result, Staging: &Staging{}}
	require.True(t, staged.GivenRows().IsEmpty(), "staged rows are written when they are published")
	staged.Fields = fieldsOf("table", "t", "mode", "upsert")
	require.Equal(t, int64(3), staged.GivenRows().Written, "delete_missing writes at once")
}

func fieldsOf(pairs ...string) map[string]expression.Value {
	fields := map[string]expression.Value{}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i]] = expression.Of(pairs[i+1])
	}
	return fields
}
