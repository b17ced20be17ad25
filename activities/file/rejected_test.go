package file_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/objectstore"
	"reprise/interpreter"
)

// rejectedRows are the rejected rows that the last manifest of a folder names; nil without a manifest.
func (l *lake) rejectedRows(t *testing.T, path string) (rows []map[string]any) {
	t.Helper()
	if len(l.left(t, path+"/_manifest/00000001.json")) == 0 {
		return nil
	}
	last, contents := l.read(t, path)
	require.Equal(t, "jsonl", last.Format)
	for line := range strings.Lines(strings.Join(contents, "")) {
		var one map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		rows = append(rows, one)
	}
	return rows
}

// asideIn are the fields of a sink that rejects rows.
func asideIn(format string, limit int, more map[string]any) map[string]any {
	fields := map[string]any{"format": format, "rejected": map[string]any{"path": "aside", "max": limit}}
	for name, value := range more {
		fields[name] = value
	}
	return fields
}

// TestRejectedRows: rows that the columns of a path cannot hold go to a folder of their own with their place, once however often the write is
// made, and the others are written. More of them than max fail the write.
func TestRejectedRows(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		index := 7
		write := func(key, path, mode string, fields map[string]any, rows ...any) (interpreter.ToolResult, error) {
			in := lakeWrite(key, path, mode, rows, fields)
			in.Index, in.Page, in.ControlID, in.Step, in.Visit, in.Place = &index, 2, "run of all", "load", 1, "sink"
			return tooltest.Call(t, l.worker(t), "file.write", "file", in)
		}
		for i, test := range []struct {
			format, column, reason string
			bad                    any
			columns                any
		}{
			{"parquet", "id", `"x" is not a plain number`, map[string]any{"id": "x"}, map[string]any{"id": "bigint"}},
			{"csv", "word", "it is not one of the columns, which are id", map[string]any{"id": 2, "word": "x"}, []any{"id"}},
		} {
			path, fields := "o."+test.format, asideIn(test.format, 3, map[string]any{"columns": test.columns})
			for again := range 2 {
				done, err := write("k"+path, path, "append", fields, row(1), test.bad, row(3), "no map")
				require.NoError(t, err)
				require.Equal(t, &interpreter.RowCounts{RejectedRows: 2}, done.Meta.LeftOut)
				require.Equal(t, interpreter.RowTotals{Written: 2, Rejected: 2}, done.Meta.Rows.Totals())
				require.Equal(t, map[string]any{"path": path, "rows_written": 2 * (1 - again), "manifest": 1}, done.Data.Data)
			}
			rows := l.rejectedRows(t, "aside")[3*i:]
			require.Len(t, rows, 2)
			require.Contains(t, rows[0]["reason"], test.reason)
			require.Contains(t, rows[1]["reason"], "it is a string; a row of ")
			bad, err := json.Marshal(rows[0]["value"])
			require.NoError(t, err)
			want, err := json.Marshal(test.bad)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(bad))
			require.Equal(t, []any{test.column, nil, 2.0, 4.0, "no map"}, []any{rows[0]["column"], rows[1]["column"], rows[0]["row"], rows[1]["row"], rows[1]["value"]})
			for name, value := range map[string]any{"operation_key": "k" + path, "run": "run of all", "step": "load", "visit": 1.0, "index": 7.0, "page": 2.0} {
				require.Equal(t, value, rows[0][name], name)
			}
			_, err = write("l", path, "append", fields, 1, 2, row(4), test.bad, 5)
			object := tooltest.ErrorObject(t, err)
			require.Equal(t, []any{"rejected", interpreter.ClassFinal}, []any{object.Type, object.Class})
			require.Contains(t, object.Message, "more than 3 rows do not fit (rejected.max), so nothing is published; iteration 7, page 2, row 5: it is a")
			_, err = write("m", path, "overwrite", fields, test.bad)
			require.Equal(t, "empty_replace", tooltest.ErrorObject(t, err).Type)
			last, _ := l.read(t, path)
			require.Equal(t, []int{1, 2}, []int{last.Number, last.Rows})
			_, err = write("n", path, "append", fields, test.bad)
			require.NoError(t, err)
			last, _ = l.read(t, path)
			require.Equal(t, []int{2, 2}, []int{last.Number, last.Rows})
			require.Len(t, l.rejectedRows(t, "aside"), 3*(i+1))
		}
	})
}

// TestRejectedIsRefused: a sink that cannot reject rows says so.
func TestRejectedIsRefused(t *testing.T) {
	t.Parallel()
	l := lakes(t)["folder"]
	for says, fields := range map[string]map[string]any{
		"every row fits JSON Lines":                            asideIn("jsonl", 1, nil),
		"max of rejected must be a whole number, not -1":       asideIn("csv", -1, nil),
		"path is empty":                                        {"format": "csv", "rejected": map[string]any{"max": 1}},
		"rejected rows need a separate folder":                 {"format": "csv", "rejected": map[string]any{"path": "./o/aside"}},
		"its existing files are csv":                           {"format": "csv", "columns": []any{"id"}, "rejected": map[string]any{"path": "others"}},
		"rejected must be a map":                               {"format": "csv", "rejected": true},
		`path is "../x"; it must be a file under the worker's`: {"format": "csv", "rejected": map[string]any{"path": "../x"}},
	} {
		_, err := tooltest.Call(t, l.worker(t), "file.write", "file", lakeWrite("a", "others", "append", row(1), map[string]any{"format": "csv"}))
		require.NoError(t, err)
		_, err = tooltest.Call(t, l.worker(t), "file.write", "file", lakeWrite("b", "o", "append", map[string]any{"n": 1}, fields))
		require.ErrorContains(t, err, says)
		require.Empty(t, l.left(t, "o/"))
	}
	in := lakeWrite("a", "o.csv", "append", row(1), asideIn("csv", 1, nil))
	in.Auth = ""
	_, err := tooltest.Call(t, activities.NewCatalogue(activities.Resources{Directory: t.TempDir(), MaxResponseBytes: 1 << 20}), "file.write", "file", in)
	require.ErrorContains(t, err, "rejected applies to files below a connection and to Parquet")
}

// TestRejectedOfPages: rows of pages that do not fit what the first row group says are published with those that fit, with page and iteration; the
// rows of other paths too, where a path without a row that fits keeps its files.
func TestRejectedOfPages(t *testing.T) {
	t.Parallel()
	l := lakes(t)["folder"]
	many := make([]any, 50_000)
	for i := range many {
		many[i] = row(i)
	}
	load := stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append", more: asideIn("parquet", 3, nil)}
	require.NoError(t, load.stage("1", many))
	part := 4
	_, err := tooltest.Call(t, load.c, "file.write", "file", load.input("2", interpreter.Staging{Part: &part}, []any{row(50_000), map[string]any{"id": 1.5}, "x"}))
	require.NoError(t, err)
	for range 2 {
		done, err := load.publish()
		require.NoError(t, err)
		require.Equal(t, map[string]any{"path": "o.jsonl", "rows_written": 50_001, "manifest": 1}, done)
	}
	found := l.rejectedRows(t, "aside")
	require.Len(t, found, 2)
	require.Equal(t, []any{"2", 4.0, 2.0, map[string]any{"id": 1.5}}, []any{found[0]["operation_key"], found[0]["index"], found[0]["row"], found[0]["value"]})
	load.id = "y"
	require.NoError(t, load.stage("3", []any{row(1), "a", "b", "c", "d"}))
	_, err = load.publish()
	require.Equal(t, "rejected", tooltest.ErrorObject(t, err).Type)

	typed := map[string]any{"columns": map[string]any{"id": "bigint", "day": "text"}}
	days := pathLoad{stagedLoad{t: t, c: l.worker(t), id: "z", mode: "overwrite", more: asideIn("parquet", 9, typed)}, byDay}
	for i, rows := range [][]any{{dated(1, "mon"), dated(2, "tue")}, {dated(3, "mon"), map[string]any{"id": "x", "day": "tue"}, map[string]any{"id": "y", "day": "wed"}}} {
		days.id = fmt.Sprint("z", i)
		require.NoError(t, days.stage("1", rows...))
		_, err = days.publish()
		require.NoError(t, err)
	}
	for day, want := range map[string]int{"mon": 3, "tue": 2} {
		rows, _ := l.tableRows(t, "o/day="+day)
		require.Equal(t, []map[string]any{{"id": want, "day": day}}, rows)
	}
	found = l.rejectedRows(t, "aside")[2:]
	require.Len(t, found, 2)
	require.Equal(t, []any{"day=tue", "day=wed"}, []any{found[0]["path"], found[1]["path"]})
}

// TestRejectedOutlivesKills: at whatever request a worker is killed, the load that is made again has each row once: in its path, or where rejected rows
// go.
func TestRejectedOutlivesKills(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct{ staged, byRow bool }{{}, {true, false}, {false, true}, {true, true}} {
		step := 5 // each request is too many for every day
		if *soak {
			step = 1
		}
		for at, requests := 0, 0; at == 0 || at <= requests; at += step {
			for _, status := range []int{http.StatusBadRequest, objectstore.CutAfter} {
				if counted := killedRejecting(t, kind.staged, kind.byRow, at, status); at == 0 {
					require.Greater(t, counted, 10)
					requests = counted
					break
				}
			}
		}
	}
}

// TestRejectedBeforeMoreRows: a run that continues publishes further rows, and those that were rejected before its worker died too, once.
func TestRejectedBeforeMoreRows(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "{{ row.day }}"} {
		l := lakes(t)["store"]
		load := stagedLoad{t: t, c: l.worker(t), id: "load", mode: "append", more: asideIn("csv", 3, map[string]any{"columns": []any{"id", "day"}})}
		stage, publish := load.stage, func() error { _, err := load.publish(); return err }
		if path != "" {
			paths := pathLoad{load, path}
			stage = func(key string, rows any) error { return paths.stage(key, rows.([]any)...) }
			publish = func() error { _, err := paths.publish(); return err }
		}
		bad := func(id int) any { return map[string]any{"id": id, "day": "mon", "more": 1} }
		require.NoError(t, stage("1", []any{dated(1, "mon"), bad(2)}))
		l.store.Fail(objectstore.Faults{Answer: func(method, path string) int {
			if method == http.MethodPut && strings.HasPrefix(path, "/lake/raw/aside/_manifest/0000000") && !strings.HasSuffix(path, "0.json") {
				return http.StatusBadRequest
			}
			return 0
		}})
		require.Error(t, publish())
		l.store.Fail(objectstore.Faults{})
		require.Empty(t, l.rejectedRows(t, "aside"))
		require.NoError(t, stage("2", []any{dated(3, "mon"), bad(4)}))
		require.NoError(t, publish())
		found := l.rejectedRows(t, "aside")
		require.Len(t, found, 2)
		require.Equal(t, []any{"1", "2"}, []any{found[0]["operation_key"], found[1]["operation_key"]})
	}
}

// killedRejecting makes a load with rows that do not fit, whose worker dies at a request, as often as it needs, and returns how many requests there
// were.
func killedRejecting(t *testing.T, staged, byRow bool, at, status int) int {
	t.Helper()
	l := lakes(t)["store"]
	death := killAt(l.store, at, status)
	bad := func(id int, day string) map[string]any { return map[string]any{"id": id, "day": day, "more": true} }
	pages := [][]any{{dated(1, "mon"), bad(2, "mon"), bad(3, "tue")}, {dated(4, "tue"), bad(5, "tue"), dated(6, "mon")}}
	fields := asideIn("csv", 3, map[string]any{"columns": []any{"id", "day"}})
	var err error
	written := 0 // steps of the load, which are not made again
	for range 3 {
		load := stagedLoad{t: t, c: l.worker(t), id: "load", mode: "append", more: fields}
		write := func(key string, staging *interpreter.Staging, rows []any) error {
			if byRow {
				_, err := pathLoad{load, byDay}.write(key, staging, rows)
				return err
			}
			if staging != nil {
				return load.stage(key, rows)
			}
			_, err := tooltest.Call(t, load.c, "file.write", "file", lakeWrite(key, "o", "append", rows, fields))
			return err
		}
		steps := []func() error{func() error { return write("k", nil, slices.Concat(pages...)) }}
		if staged {
			steps = []func() error{
				func() error { return write("1", &interpreter.Staging{}, pages[0]) },
				func() error { return write("2", &interpreter.Staging{}, pages[1]) },
				func() (err error) {
					if byRow {
						_, err = pathLoad{load, byDay}.publish()
					} else {
						_, err = load.publish()
					}
					return err
				},
			}
		}
		for err = nil; written < len(steps) && err == nil; {
			if err = steps[written](); err == nil {
				written++
			}
		}
		wasDead := death.restart()
		if err == nil && !wasDead {
			break
		}
	}
	require.NoError(t, err)
	var good, rejected []int
	paths := map[[2]bool][]string{{false, false}: {"o"}, {true, false}: {"o.jsonl"}, {false, true}: {"o/day=mon", "o/day=tue"}, {true, true}: {"o/day=mon", "o/day=tue"}}
	for _, path := range paths[[2]bool{staged, byRow}] {
		_, contents := l.read(t, path)
		for _, content := range contents {
			for line := range strings.Lines(strings.TrimPrefix(content, "id,day\n")) {
				var id int
				_, err := fmt.Sscanf(line, "%d,", &id)
				require.NoError(t, err)
				good = append(good, id)
			}
		}
	}
	for _, one := range l.rejectedRows(t, "aside") {
		rejected = append(rejected, int(one["value"].(map[string]any)["id"].(float64)))
	}
	slices.Sort(good)
	slices.Sort(rejected)
	require.Equal(t, []int{1, 4, 6}, good)
	require.Equal(t, []int{2, 3, 5}, rejected)
	return death.requests()
}
