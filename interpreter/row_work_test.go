package interpreter_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

// whole makes all rows in one part.
func whole(rows int, part func(from, to int) ([]string, error)) ([]string, error) {
	return part(0, rows)
}

// BenchmarkReshape adds two fields to rows of 12 columns.
func BenchmarkReshape(b *testing.B) {
	rows := make([]any, 10_000)
	for i := range rows {
		rows[i] = map[string]any{
			"id": i, "name": fmt.Sprint("customer ", i), "email": fmt.Sprint("customer", i, "@example.com"), "amount": 123.45,
			"created": "2024-05-01T10:00:00Z", "updated": "2024-05-02T11:30:15.250Z", "active": i%2 == 0, "score": float64(i) / 7,
			"tags": "a,b", "region": "north", "quantity": i % 100, "day": "2024-05-01",
		}
	}
	in := interpreter.ToolInput{Result: &expression.Value{Data: rows}, Shape: &interpreter.RowWork{
		Fields: []interpreter.RowField{{Name: "total", Template: "{{ row.score * row.quantity }}"}, {Name: "source", Template: "{{ src }}-{{ row.region }}"}},
		Scope:  expression.Of(map[string]any{"src": "crm"}),
	}}
	b.ReportAllocs()
	for b.Loop() {
		_, err := in.ShapeRows(whole)
		require.NoError(b, err)
	}
}

// reshaped are the rows of an attempt in shape, with what was noted or went wrong. Those of an attempt that owns its rows are the same.
func reshaped(t *testing.T, rows any, shape *interpreter.RowWork) (any, []string, string) {
	t.Helper()
	owned, columns := ownRows(rows)
	in := interpreter.ToolInput{Result: &expression.Value{Data: rows}, Shape: shape}
	of, err := in.ShapeRows(whole)
	in.Result, in.OwnsRows, in.Columns = &expression.Value{Data: owned}, true, columns
	ofOwned, errOwned := in.ShapeRows(whole)
	require.Equal(t, fmt.Sprint(err), fmt.Sprint(errOwned))
	if err != nil {
		return nil, nil, err.Error()
	}
	require.Nil(t, of.Args)
	require.Equal(t, of.Result, ofOwned.Result)
	require.Equal(t, of.Notes, ofOwned.Notes)
	if list, isList := ofOwned.Result.Data.([]any); isList && ofOwned.Columns != nil {
		for _, one := range list {
			require.ElementsMatch(t, ofOwned.Columns, slices.Collect(maps.Keys(one.(row))))
		}
	}
	return of.Result.Data, of.Notes, ""
}

// ownRows copies rows, and returns the columns that all of them have, nil if some have others.
func ownRows(rows any) (owned any, columns []string) {
	list, isList := rows.([]any)
	if !isList {
		return rows, nil
	}
	copies := make([]any, len(list))
	for i, one := range list {
		fields, isMap := one.(row)
		if copies[i] = one; !isMap {
			return rows, nil
		}
		copies[i] = maps.Clone(fields)
		names := slices.Sorted(maps.Keys(fields))
		if i > 0 && !slices.Equal(names, columns) {
			columns = nil
			continue
		}
		columns = names
	}
	return copies, columns
}

type row = map[string]any

// TestReshape: fields are laid over each row, which stays as it was for them and for others.
func TestReshape(t *testing.T) {
	t.Parallel()
	shape := func(exclude []string, fields ...string) *interpreter.RowWork {
		work := &interpreter.RowWork{
			Exclude: exclude, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), File: "x.yaml",
			Scope: expression.Of(row{"src": "crm", "steps": row{}}),
		}
		for i := 0; i < len(fields); i += 2 {
			work.Fields = append(work.Fields, interpreter.RowField{
				Name: fields[i], Template: fields[i+1], Places: interpreter.TextPlaces{{Line: 7, Column: 11}},
			})
		}
		return work
	}
	rows := []any{row{"id": 1, "name": "a", "mail": "x"}, row{"id": 2, "mail": nil}}
	for name, c := range map[string]struct {
		rows  any
		shape *interpreter.RowWork
		want  any
		fails string
	}{
		"a list": {rows, shape([]string{"mail"}, "id", "{{ row.id * 10 }}", "was", "{{ row.id }}", "from", "{{ src }}-{{ row.name }}", "n", "{{ len(result) }}", "at", "{{ now() }}"), []any{
			row{"id": 10, "was": 1, "name": "a", "from": "crm-a", "n": 2, "at": "2026-01-02T03:04:05Z"},
			row{"id": 20, "was": 2, "from": "crm-", "n": 2, "at": "2026-01-02T03:04:05Z"},
		}, ""},
		"the row itself": {
			[]any{row{"id": 1, "mail": "x"}, row{"id": 2, "mail": "y"}}, shape([]string{"mail"}, "id", "{{ row.id * 10 }}", "all", "{{ [row] }}", "twice", "{{ row.id * 2 }}"), []any{
				row{"id": 10, "all": []any{row{"id": 1, "mail": "x"}}, "twice": 2}, row{"id": 20, "all": []any{row{"id": 2, "mail": "y"}}, "twice": 4},
			}, "",
		},
		"a map":          {row{"id": 1}, shape(nil, "x", "{{ row.id + 1 }}"), row{"id": 1, "x": 2}, ""},
		"no rows":        {[]any{}, shape(nil, "x", "{{ row.id }}"), []any{}, ""},
		"nil":            {nil, shape(nil, "x", "{{ row.id }}"), nil, ""},
		"what is absent": {[]any{row{"id": 1}}, shape([]string{"none"}, "x", "{{ row.y.z }}"), []any{row{"id": 1, "x": nil}}, ""},
		"an error": {
			rows, shape(nil, "ok", "{{ row.id }}", "bad", "{{ row.name + 1 }}"), nil,
			"row 1, fields.bad: cannot add string and number (+): ~ joins text, as in a ~ b; int(x) or float(x) makes a number of a string (x.yaml:7:23)",
		},
		"an error of a later row": {rows, shape(nil, "bad", "{{ 1 + row.mail }}"), nil, "row 1, fields.bad: cannot add number and string"},
		"no map":                  {[]any{row{"id": 1}, "text"}, shape(nil, "x", "{{ row.id }}"), nil, "row 2 is a string; fields and exclude change rows that are maps of columns to values"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, fails := reshaped(t, c.rows, c.shape)
			if c.fails != "" {
				require.Contains(t, fails, c.fails)
				return
			}
			require.Empty(t, fails)
			require.Equal(t, c.want, got)
		})
	}
	require.Equal(t, []any{row{"id": 1, "name": "a", "mail": "x"}, row{"id": 2, "mail": nil}}, rows, "others have them too")
}

// TestReshapeBudget: each row has the budget of a decision, so a list may have any length and no row may run away.
func TestReshapeBudget(t *testing.T) {
	t.Parallel()
	many := make([]any, 5000)
	for i := range many {
		many[i] = row{"id": i, "words": []any{"a", "b"}}
	}
	steps := &interpreter.RowWork{Fields: []interpreter.RowField{{Name: "n", Template: "{{ len(map(1..100, {# + row.id})) }}"}}}
	got, _, fails := reshaped(t, many, steps)
	require.Empty(t, fails)
	require.Equal(t, 100, got.([]any)[4999].(row)["n"], "500,000 rounds in all")
	steps.Fields[0].Template = "{{ len(map(1..900, {map(1..900, {#})})) }}"
	_, _, fails = reshaped(t, many[:3], steps)
	require.Contains(t, fails, "row 1, fields.n: ")
	require.Contains(t, fails, "200000")
}

// TestReshapeNotes: what is said of data is said once, with its place.
func TestReshapeNotes(t *testing.T) {
	t.Parallel()
	work := &interpreter.RowWork{Fields: []interpreter.RowField{
		{Name: "open", Template: "{{ row.n == 1 }}", Places: interpreter.TextPlaces{{Line: 3, Column: 5}}},
	}}
	_, notes, _ := reshaped(t, []any{row{"n": "1"}, row{"n": "1"}, row{"n": 1}}, work)
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], "(line 3, column ")
}

// TestReshapeNotesAbsentMembers: a member that no row has is noted, with its place, where the field is empty in all rows.
func TestReshapeNotesAbsentMembers(t *testing.T) {
	t.Parallel()
	rows := []any{row{"id": 1, "name": "a", "n": 0}, row{"id": 2, "n": nil}}
	for template, note := range map[string]string{
		"{{ row.namee }}":                  "fields.x: no row has row.namee; did you mean row.name? (line 3, column 8)",
		"{{ lower(row.customer) }}":        "fields.x: no row has row.customer (line 3, column 14)",
		"{{ row.nam == 'a' }}":             "fields.x: no row has row.nam; did you mean row.name? (line 3, column 8)",
		"crm-{{ row.nam }}":                "fields.x: no row has row.nam; did you mean row.name? (line 3, column 12)",
		"{{ row.name }}":                   "",                                                                        // a row has it
		"{{ row.n }}":                      "",                                                                        // it is empty, and there
		"{{ row.nam == 'none' }}":          "fields.x: no row has row.nam; did you mean row.name? (line 3, column 8)", // a text is no test
		"{{ row.nick ?? 0 }}":              "",
		"{{ row.nick or row.id }}":         "",
		"{{ row.nick ?? 'none' }}":         "",
		"{{ row.deleted_at is defined }}":  "",
		"{{ row.name if row.id else '' }}": "",
		"{{ src }}":                        "",
	} {
		work := &interpreter.RowWork{
			Fields: []interpreter.RowField{{Name: "x", Template: template, Places: interpreter.TextPlaces{{Line: 3, Column: 5}}}},
			Scope:  expression.Of(row{"src": "crm"}),
		}
		_, notes, fails := reshaped(t, rows, work)
		require.Empty(t, fails, template)
		if note == "" {
			require.Empty(t, notes, template)
			continue
		}
		require.Equal(t, []string{note}, notes, template)
	}
	args := "{{ map(result, {id: .id, full: .nam, nick: .nick ?? ''}) }}"
	mapped := &interpreter.RowWork{Map: &interpreter.RowField{Name: "args", Template: args, Places: interpreter.TextPlaces{{Line: 1, Column: 1}}}}
	_, notes, _ := reshaped(t, rows, mapped)
	require.Equal(t, []string{"args: no row has #.nam; did you mean #.name? (line 1, column 33)"}, notes)
	for exclude, note := range map[string]string{
		"nmae": `exclude: no row has "nmae"; did you mean "name"?`, "name": "", "email": "", "n1": "",
	} {
		_, notes, _ := reshaped(t, rows, &interpreter.RowWork{Exclude: []string{exclude}})
		require.Equal(t, note, strings.Join(notes, ""), exclude)
	}
}

// TestReshapePreservesRowsOfThePage: where a state recognizes rows, those of the page stay beside those that are written.
func TestReshapePreservesRowsOfThePage(t *testing.T) {
	t.Parallel()
	rows := []any{row{"id": 1}}
	in := interpreter.ToolInput{
		Result: &expression.Value{Data: rows}, State: &incremental.StateWrite{Rows: &incremental.RowIdentity{}},
		Shape: &interpreter.RowWork{Fields: []interpreter.RowField{{Name: "id", Template: "{{ 'x' ~ row.id }}"}}},
	}
	of, err := in.ShapeRows(whole)
	require.NoError(t, err)
	in = in.WithRows(of)
	require.Equal(t, []any{row{"id": "x1"}}, in.SinkRows())
	require.Equal(t, rows, in.ContributedRows())
}
