package transfer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRowsWithinJSON: the list of rows may be within maps, with values of any size around it, and JSON that is cut short or has no such
// list is an error.
func TestRowsWithinJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	padding := `"before": [` + strings.Repeat(`{"a": [1, "items", {"items": []}]},`, 100_000) + `0], `
	list := `[{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]`
	for name, test := range map[string]struct{ rows, content, says string }{
		"one name":         {"items", `{"items": ` + list + `}`, ""},
		"two names":        {"data.items", `{"items": 1, "data": {"x": {"items": 2}, "items": ` + list + `, "y": []}, "next": null}`, ""},
		"large around":     {"data.items", `{` + padding + `"data": {` + padding + `"items": ` + list + `}, ` + padding + `"z": 1}`, ""},
		"no rows":          {"items", `{"items": []}`, "none"},
		"empty":            {"items", ``, "none"},
		"not there":        {"data.items", `{"data": {"item": []}}`, "it has no data.items, where rows says that its rows are"},
		"no map":           {"data.items", `{"data": []}`, "data is a list, and rows names members of maps"},
		"a list":           {"data.items", `[]`, "it is a list, and rows names members of maps"},
		"no list":          {"items", `{"items": null}`, "items is nil, and only a list is read row by row"},
		"a map":            {"items", `{"items": {}}`, "items is a map, and only a list is read row by row"},
		"twice":            {"items", `{"items": [], "items": ` + list + `}`, "it has items twice"},
		"cut in the list":  {"items", `{"items": [{"id": 1},`, "ends too soon"},
		"cut behind it":    {"data.items", `{"data": {"items": []}`, "ends too soon"},
		"cut before it":    {"items", `{"before": [1,`, "ends too soon"},
		"something behind": {"items", `{"items": []} []`, "something follows the map"},
		"no name":          {"data..items", `{}`, "must be names with dots between them"},
	} {
		t.Run(name, func(t *testing.T) {
			w.put("a.json", []byte(test.content))
			fields := map[string]any{"from": map[string]any{"tool": "file", "path": "a.json", "rows": test.rows}, "to": w.table("sqlite"), "batch": 1}
			result, err := w.move(name, "sqlite", fields)
			switch test.says {
			case "", "none":
				require.NoError(t, err)
				require.Equal(t, map[string]int{"": 2}[test.says], result.Data.Data.(map[string]any)["rows"])
			default:
				require.ErrorContains(t, err, test.says)
			}
		})
	}
	w.put("a.csv", []byte("id\n1\n"))
	_, err := w.move("csv", "sqlite", map[string]any{"from": map[string]any{"tool": "file", "path": "a.csv", "rows": "items"}, "to": w.table("sqlite")})
	require.ErrorContains(t, err, "the format of a.csv is csv; remove rows")
}

// TestRowsWithinJSONArriveOnce: a worker that dies continues within the list.
func TestRowsWithinJSONArriveOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.json", []byte(`{"data": {"items": [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}, {"id": 5}]}, "more": {}}`))
	for at := range 4 {
		for _, before := range []bool{true, false} {
			key := fmt.Sprint(at, before)
			fields := map[string]any{"from": map[string]any{"tool": "file", "path": "a.json", "rows": "data.items"}, "to": w.table("sqlite"), "batch": 2}
			_, _ = w.attempt(key, &mortal{Ledger: w.sql["sqlite"], at: at, before: before}, "sqlite", fields)
			_, err := w.move(key, "sqlite", fields)
			require.NoError(t, err)
			require.Len(t, w.rows("sqlite"), 5, key)
		}
	}
}
