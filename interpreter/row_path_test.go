package interpreter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// TestRowPaths: each row has the path of its values as it is written, escaped so that every store and reader takes them for one name; a value that is
// none is an error with row and place.
func TestRowPaths(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		row   any
		want  string
		fails string
	}{
		"day={{ row.at[:10] }}/":           {row{"at": "2026-03-01T12:00:00Z"}, "day=2026-03-01", ""},
		"{{ row.at }}":                     {row{"at": "2026-03-01T12:00:00+02:00"}, "2026-03-01T12%3A00%3A00%2B02%3A00", ""},
		"a/{{ row.x }}/b":                  {row{"x": "../é %=,\n_-.~"}, "a/..%2F%C3%A9%20%25%3D%2C%0A_-.~/b", ""},
		"{{ row.n }}-{{ row.b }}":          {row{"n": 12, "b": true}, "12-true", ""},
		"{{ src }}/{{ row.made }}":         {row{"id": 1}, "crm/1x", ""},
		"{{ row }}":                        {"text", "text", ""},
		"{{ row.x }}.{{ row.y }}":          {row{"x": ".", "y": "."}, "...", ""},
		"a/{{ row.x }}{{ row.y }}":         {row{"x": ".", "y": "."}, "", `row 1, path: the path is "a/..", in which ".." leads elsewhere (x.yaml:7:13)`},
		"a//{{ row.x }}":                   {row{"x": "b"}, "", `the path is "a//b", in which a name is empty`},
		"a/{{ row.idd }}":                  {row{"id": 1}, "", "row 1, path: {{ row.idd }} is a name in a path, and it is nil: the row has no row.idd; did you mean row.id? (x.yaml:7:13)"},
		"a/{{ row.id }}/{{ row.none[1] }}": {row{"id": 1, "none": nil}, "", "{{ row.none[1] }} is a name in a path, and it is nil (x.yaml:7:26)"},
		"a/{{ row.id + 'x' }}":             {row{"id": 1}, "", "row 1, path: cannot add number and string"},
	} {
		in := interpreter.ToolInput{Result: &expression.Value{Data: []any{c.row}}, Shape: &interpreter.RowWork{
			File: "x.yaml", Scope: expression.Of(row{"src": "crm"}), Path: &interpreter.RowField{Name: "path", Template: path, Places: interpreter.TextPlaces{{Line: 7, Column: 11}}},
		}}
		if path == "{{ src }}/{{ row.made }}" {
			in.Shape.Fields = []interpreter.RowField{{Name: "made", Template: "{{ row.id ~ 'x' }}"}}
		}
		of, err := in.ShapeRows(whole)
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, path)
			continue
		}
		require.NoError(t, err, path)
		require.Equal(t, []string{c.want}, of.Paths, path)
		require.Equal(t, of.Paths, in.WithRows(of).RowPaths)
	}
	none := interpreter.ToolInput{Shape: &interpreter.RowWork{Path: &interpreter.RowField{Template: "{{ row.x }}"}}}
	of, err := none.ShapeRows(whole)
	require.NoError(t, err)
	require.NotNil(t, of.Paths, "without rows, as when they are published, it is known that rows have paths")
}
