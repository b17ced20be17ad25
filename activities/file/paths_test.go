package file_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities/tooltest"
	"reprise/internal/test/objectstore"
	"reprise/interpreter"
)

var soak = flag.Bool("soak", false, "kill writers of several paths at every request")

// pathLoad is a call or loop whose rows each say their path.
type pathLoad struct {
	stagedLoad

	path string // a template over row, below o
}

func (p pathLoad) write(key string, staging *interpreter.Staging, rows any) (interpreter.ToolResult, error) {
	in := lakeWrite(key, "o", p.mode, rows, map[string]any{"format": "jsonl"})
	for name, value := range p.more {
		in.Fields[name] = tooltest.Fields(map[string]any{"x": value})["x"]
	}
	in.Shape, in.Page = &interpreter.RowWork{Path: &interpreter.RowField{Name: "path", Template: p.path}}, 1
	if in.Staging = staging; staging != nil {
		staging.ID = p.id
	}
	if rows == nil {
		in.Result, in.Fingerprint = nil, ""
	}
	return tooltest.Call(p.t, p.c, "file.write", "file", in)
}

func (p pathLoad) stage(key string, rows ...any) error {
	_, err := p.write(key, &interpreter.Staging{}, rows)
	return err
}

func (p pathLoad) publish() (any, error) {
	result, err := p.write("publish", &interpreter.Staging{Do: interpreter.StagingPublish}, nil)
	return result.Data.Data, err
}

func dated(id int, day string) map[string]any { return map[string]any{"id": id, "day": day} }

// byPath are the ids of the rows that the last manifest of each path names, by the path.
func (l *lake) byPath(t *testing.T) map[string][]int {
	t.Helper()
	found := map[string][]int{}
	for key := range l.objects(t) {
		if path, name, is := strings.Cut(key, "/_manifest/"); is && name != "00000000.json" {
			if _, known := found[path]; !known {
				found[path] = l.ids(t, path)
			}
		}
	}
	return found
}

const byDay = "day={{ row.day }}/"

// TestPathsArePublished: the rows of a call go to the path of each, with a manifest of its own, once however often they are staged and published;
// overwrite replaces those of the paths that it has rows for.
func TestPathsArePublished(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		load := pathLoad{stagedLoad{t: t, c: l.worker(t), id: "a", mode: "append"}, byDay}
		for range 2 {
			require.NoError(t, load.stage("1", dated(1, "mon"), dated(2, "tue"), dated(3, "mon")))
			require.NoError(t, load.stage("2", dated(4, "a/b %")))
			require.Empty(t, l.byPath(t))
			load.c = l.worker(t)
		}
		want := map[string][]int{"o/day=mon": {1, 3}, "o/day=tue": {2}, "o/day=a%2Fb%20%25": {4}}
		for range 2 {
			done, err := load.publish()
			require.NoError(t, err)
			require.Equal(t, map[string]any{"path": "o", "rows_written": 4, "paths": 3}, done)
			require.Equal(t, want, l.byPath(t))
			require.NoError(t, load.stage("1", dated(1, "mon"), dated(2, "tue"), dated(3, "mon")))
		}
		require.Equal(t, []string{"o/_staging/a/published.json"}, l.left(t, "o/_staging/a"))
		again := pathLoad{stagedLoad{t: t, c: l.worker(t), id: "b", mode: "append"}, byDay}
		require.NoError(t, again.stage("1", dated(5, "mon")))
		_, err := again.publish()
		require.NoError(t, err)
		anew := pathLoad{stagedLoad{t: t, c: l.worker(t), id: "c", mode: "overwrite"}, byDay}
		require.NoError(t, anew.stage("1", dated(6, "tue"), dated(7, "wed")))
		_, err = anew.publish()
		require.NoError(t, err)
		want["o/day=mon"], want["o/day=tue"], want["o/day=wed"] = []int{1, 3, 5}, []int{6}, []int{7}
		require.Equal(t, want, l.byPath(t))
		empty := pathLoad{stagedLoad{t: t, c: l.worker(t), id: "d", mode: "overwrite"}, byDay}
		done, err := empty.publish()
		require.NoError(t, err)
		require.Equal(t, map[string]any{"path": "o", "rows_written": 0, "paths": 0}, done)
		require.Equal(t, want, l.byPath(t))
	})
}

// TestPathsOfOneWrite: a write that is not staged makes a file and a manifest for each path, and one that is made again none.
func TestPathsOfOneWrite(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		load := pathLoad{stagedLoad{t: t, c: l.worker(t), mode: "append"}, byDay}
		for _, count := range []int{3, 0} {
			done, err := load.write("k", nil, []any{dated(1, "mon"), dated(2, "tue"), dated(3, "mon")})
			require.NoError(t, err)
			require.Equal(t, map[string]any{"path": "o", "rows_written": count, "paths": 2}, done.Data.Data)
			load.c = l.worker(t)
		}
		require.Equal(t, map[string][]int{"o/day=mon": {1, 3}, "o/day=tue": {2}}, l.byPath(t))
		_, err := load.write("k", nil, []any{dated(9, "mon")})
		require.ErrorContains(t, err, "was given other rows before with the same operation key")
	})
}

// TestPathsOfRefusedRows: a row whose path is nothing, leads elsewhere or is the worker's own is a final error that names the row; so are rows that do not
// fit, and more paths than mostPaths. Nothing is published.
func TestPathsOfRefusedRows(t *testing.T) {
	t.Parallel()
	l := lakes(t)["store"]
	for says, day := range map[string]any{
		"row 2, path: {{ row.day }} is a name in a path, and it is nil":                   nil,
		"row 2, path: {{ row.day }} is a name in a path, and it is empty":                 "",
		`row 2, path: the path is "..", in which ".." leads elsewhere`:                    "..",
		"row 2, path: {{ row.day }} is a name in a path, and it is a list":                []any{1},
		`row 2 has the path "_manifest", but the worker keeps its own files in _manifest`: "_manifest",
		`row 2 has the path ".reprise", but the worker keeps its own files in .reprise`:   ".reprise",
		"a name has 300 bytes; it may have 255":                                           strings.Repeat("x", 300),
	} {
		for _, staging := range []*interpreter.Staging{nil, {}} {
			load := pathLoad{stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append"}, "{{ row.day }}"}
			_, err := load.write("k", staging, []any{dated(1, "mon"), map[string]any{"id": 2, "day": day}})
			require.ErrorContains(t, err, says)
			require.Equal(t, interpreter.ClassFinal, tooltest.ErrorObject(t, err).Class, says)
		}
	}
	load := pathLoad{stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append"}, "{{ row.dya }}"}
	require.ErrorContains(t, load.stage("k", dated(1, "mon")), "and it is nil: the row has no row.dya; did you mean row.day?")
	var many []any
	for i := range 1001 {
		many = append(many, dated(i, fmt.Sprint(i)))
	}
	load.path = byDay
	require.ErrorContains(t, load.stage("k", many...), "the rows of one write go to more than 1000 paths")
	require.NoError(t, load.stage("1", many[:1000]...))
	require.NoError(t, load.stage("2", many[1000]))
	_, err := load.publish()
	require.ErrorContains(t, err, "the rows go to 1001 paths; a call or loop may write to 1000")
	require.Empty(t, l.byPath(t))
	typed := pathLoad{stagedLoad{t: t, c: l.worker(t), id: "y", mode: "append", more: map[string]any{"format": "parquet"}}, byDay}
	require.NoError(t, typed.stage("1", dated(1, "mon"), dated(2, "tue")))
	_, err = typed.publish()
	require.NoError(t, err)
	typed.id = "z"
	require.NoError(t, typed.stage("1", dated(3, "mon"), map[string]any{"id": "text", "day": "tue"}))
	_, err = typed.publish()
	require.ErrorContains(t, err, `write o/day=tue as parquet: page 1, its rows with this path: row 0, column "id"`)
	for _, day := range []string{"mon", "tue"} {
		last, _ := l.read(t, "o/day="+day)
		require.Equal(t, 1, last.Number, "nothing of it is published")
	}
}

// TestPathsOutliveKills: at whatever request a worker is killed, the load that is made again has each row once, and a reader of a path sees its old
// rows or the new.
func TestPathsOutliveKills(t *testing.T) {
	t.Parallel()
	for _, staged := range []bool{true, false} {
		requests := 0
		step := 4 // each request is too many for every day
		if *soak {
			step = 1
		}
		for at := 0; at == 0 || at <= requests; at += step {
			for _, status := range []int{http.StatusBadRequest, objectstore.CutAfter} {
				counted := killedPaths(t, staged, at, status)
				if at == 0 {
					requests = counted
					break
				}
			}
		}
		require.Greater(t, requests, 20)
	}
}

// workerDeath answers the requests of a worker to a store: from one of them on it refuses all, as if the worker had died there.
type workerDeath struct {
	lock        sync.Mutex
	counted, at int
	status      int // what the request is answered with
	dead        bool
}

// killAt kills the worker of a store at its request with a number, which begin at 1.
func killAt(store *objectstore.Store, at, status int) *workerDeath {
	d := &workerDeath{at: at, status: status}
	store.Fail(objectstore.Faults{Answer: d.answer})
	return d
}

func (d *workerDeath) answer(string, string) int {
	d.lock.Lock()
	defer d.lock.Unlock()
	switch d.counted++; {
	case d.dead:
		return http.StatusBadRequest
	case d.counted == d.at:
		d.dead = true // and all that the same worker wants afterwards
		return d.status
	}
	return 0
}

// requests returns how many requests there were.
func (d *workerDeath) requests() int {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.counted
}

// restart begins a worker that does not die, and reports whether the one before did.
func (d *workerDeath) restart() (wasDead bool) {
	d.lock.Lock()
	defer d.lock.Unlock()
	wasDead, d.dead, d.at = d.dead, false, -1
	return wasDead
}

// killedPaths makes a load whose worker dies at a request, as often as it needs, and returns how many requests there were.
func killedPaths(t *testing.T, staged bool, at, status int) int {
	t.Helper()
	l := lakes(t)["store"]
	first := pathLoad{stagedLoad{t: t, c: l.worker(t), mode: "append"}, byDay}
	_, err := first.write("before", nil, []any{dated(0, "mon"), dated(0, "tue")})
	require.NoError(t, err)
	death := killAt(l.store, at, status)
	want := map[string][]int{"o/day=mon": {1, 3}, "o/day=tue": {2}, "o/day=wed": {4}}
	for range 3 {
		load := pathLoad{stagedLoad{t: t, c: l.worker(t), id: "load", mode: "overwrite"}, byDay}
		if !staged {
			_, err = load.write("k", nil, []any{dated(1, "mon"), dated(2, "tue"), dated(3, "mon"), dated(4, "wed")})
		} else if err = load.stage("1", dated(1, "mon"), dated(2, "tue")); err == nil {
			if err = load.stage("2", dated(3, "mon"), dated(4, "wed")); err == nil {
				_, err = load.publish()
			}
		}
		wasDead := death.restart()
		for path, ids := range l.byPath(t) {
			if err == nil || ids[0] != 0 {
				require.Equal(t, want[path], ids, path)
			} else {
				require.Equal(t, []int{0}, ids, path)
			}
		}
		if err == nil && !wasDead {
			break
		}
	}
	require.NoError(t, err)
	require.Equal(t, want, l.byPath(t))
	return death.requests()
}

// TestPathsOfManyBytes: paths with few bytes are read together, and one with many is read a page at a time.
func TestPathsOfManyBytes(t *testing.T) {
	t.Parallel()
	l := lakes(t)["store"]
	load := pathLoad{stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append"}, byDay}
	text, want := strings.Repeat("x", 60<<10), map[string][]int{}
	for page := range 75 {
		var rows []any
		for i, day := range []string{"big", "f", "big", "a", "big", "big"} {
			id := 10*page + i
			rows = append(rows, map[string]any{"id": id, "day": day, "text": text})
			want["o/day="+day] = append(want["o/day="+day], id)
		}
		require.NoError(t, load.stage(fmt.Sprint(page), rows...))
	}
	done, err := load.publish()
	require.NoError(t, err)
	require.Equal(t, map[string]any{"path": "o", "rows_written": 450, "paths": 3}, done)
	require.Equal(t, want, l.byPath(t))
	require.Equal(t, []string{"o/day=a", "o/day=big", "o/day=f"}, slices.Sorted(maps.Keys(want)))
}

// TestPathsAgreeOnColumns: the files of all paths have the columns of all rows, with the same types.
func TestPathsAgreeOnColumns(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"csv", "parquet"} {
		for _, staged := range []bool{true, false} {
			l := lakes(t)["folder"]
			load := pathLoad{stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append", more: map[string]any{"format": format}}, byDay}
			rows := []any{map[string]any{"day": "mon", "n": 1}, map[string]any{"day": "tue", "n": 1.5, "b": true}}
			if staged {
				require.NoError(t, load.stage("1", rows...))
				_, err := load.publish()
				require.NoError(t, err)
			} else {
				_, err := load.write("1", nil, rows)
				require.NoError(t, err)
			}
			mon, _ := l.read(t, "o/day=mon")
			tue, _ := l.read(t, "o/day=tue")
			require.Equal(t, []string{"b", "day", "n"}, mon.Columns)
			require.Equal(t, mon.Columns, tue.Columns)
			require.Equal(t, mon.Types, tue.Types)
		}
	}
}
