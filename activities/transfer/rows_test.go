package transfer_test

import (
	"fmt"
	"strings"
	"testing"

	"reprise/activities/file"

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

// TestRowsWithinXML: the elements at a path are rows, one as well as many, and XML that is cut short or has no place for them is an error.
func TestRowsWithinXML(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	padding := strings.Repeat("<a x='1'>t<b><order><id>9</id></order></b></a>", 50_000)
	two := "<order><id>1</id><name>a</name></order><order><id>2</id><name>b</name></order>"
	for name, test := range map[string]struct {
		rows, content, says string
		want                int
	}{
		"two":               {"orders.order", "<orders>" + two + "</orders>", "", 2},
		"one":               {"orders.order", "<orders><order><id>1</id></order></orders>", "", 1},
		"deeper":            {"feed.orders.order", "<?xml version='1.0'?><!-- c --><feed><x/><orders>" + two + "</orders><y><order/></y></feed>", "", 2},
		"large around":      {"feed.orders.order", "<feed>" + padding + "<orders>" + padding + two + padding + "</orders>" + padding + "</feed>", "", 2},
		"none":              {"orders.order", "<orders/>", "", 0},
		"a charset":         {"orders.order", "<?xml version='1.0' encoding='iso-8859-1'?><orders><order><id>1</id><name>M\xfcller</name></order></orders>", "", 1},
		"lists":             {"orders.order", "<orders>" + two + "</orders>", "", 2},
		"not there":         {"feed.orders.order", "<feed><order/></feed>", "it has no feed.orders, where rows says that its rows are", 0},
		"another":           {"orders.order", "<feed/>", "its element is feed, and rows begins with orders", 0},
		"twice":             {"feed.orders.order", "<feed><orders/><orders/></feed>", "it has feed.orders twice", 0},
		"one name":          {"orders", "<orders/>", "must name its first element and the elements that are rows", 0},
		"empty":             {"orders.order", " ", "it has no element", 0},
		"cut in a row":      {"orders.order", "<orders><order><id>1</id>", "the element order does not end", 0},
		"cut around":        {"orders.order", "<orders><order><id>1</id></order>", "the element orders does not end", 0},
		"crossed":           {"orders.order", "<orders><a></orders></a>", "line 1: the element a is ended by </orders>", 0},
		"a second":          {"orders.order", "<orders/><orders/>", "a second element, orders, follows the first", 0},
		"text behind":       {"orders.order", "<orders/>x", "there is text outside of the element", 0},
		"a type":            {"orders.order", "<!DOCTYPE a [<!ENTITY b SYSTEM '/etc/passwd'>]><orders/>", "a document type declaration", 0},
		"an entity":         {"orders.order", "<orders><order><id>&b;</id></order></orders>", "invalid character entity", 0},
		"a row that is big": {"orders.order", "<orders><order><id>1</id><name>" + strings.Repeat("x", 1<<21) + "</name></order></orders>", "larger than the limit", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w.put("a.xml", []byte(test.content))
			from := map[string]any{"tool": "file", "path": "a.xml", "rows": test.rows}
			if name == "lists" {
				from["xml"] = map[string]any{"lists": []any{"order"}}
			}
			fields := map[string]any{"from": from, "to": w.table("sqlite"), "batch": 1}
			result, err := w.move(name, "sqlite", fields)
			if test.says != "" {
				require.ErrorContains(t, err, test.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, result.Data.Data.(map[string]any)["rows"])
			require.Len(t, w.rows("sqlite"), test.want)
			if name == "a charset" {
				require.Equal(t, "Müller", w.rows("sqlite")[0][1])
			}
		})
	}
	w.put("a.xml", []byte("<orders>\n<order><id>1</id></order>\n<order><id>x</id></order>\n</orders>"))
	_, err := w.move("line", "sqlite", map[string]any{"from": map[string]any{"tool": "file", "path": "a.xml"}, "to": w.table("sqlite")})
	require.ErrorContains(t, err, "must name its first element")
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

// TestOddRowsAreNotedOnce: a batch has one note about each kind of rows that are probably no data, with the number of its first row in the source.
func TestOddRowsAreNotedOnce(t *testing.T) {
	t.Parallel()
	const text = "id,name,note\n1,a,b\nid,name,note\n,,\n,,\nid,name,note\n2,c,d\n"
	for batch, want := range map[int][]int{100: {2, 3}, 3: {2, 3, 4, 5}} {
		w := newWorld(t)
		w.sql["file"] = file.New(w.res)
		w.put("orders.csv", []byte(text))
		result, err := w.move("k", "file", map[string]any{
			"from": map[string]any{"tool": "file", "path": "orders.csv"}, "to": map[string]any{"tool": "file", "path": "out.jsonl"}, "batch": batch,
		})
		require.NoError(t, err)
		var rows []int
		for _, note := range result.Meta.Notes {
			var row int
			_, err := fmt.Sscanf(note, "row %d of orders.csv has ", &row)
			require.NoError(t, err, note)
			rows = append(rows, row)
		}
		require.Equal(t, want, rows, result.Meta.Notes)
	}
}
