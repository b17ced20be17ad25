package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	"reprise/activities/tool"
	"reprise/internal/test/testenv"
	"reprise/interpreter/lists"
)

const (
	// incremental is the group of playbooks that keep state between runs.
	incremental = "incremental"
	// leastRate is the least rate at which pages with state are loaded, as a fraction of the rate of the program
	// without durability.
	leastRate = 0.5
	// mostForState is the largest fraction by which a state may increase the time of pages; mostForLag is the same if
	// all rows are within the lag.
	mostForState, mostForLag = 0.1, 0.6
	// maxPayload bounds the largest payload, in bytes.
	maxPayload = 128 << 10
	// benchConnection is the name of the database connection in playbooks.
	benchConnection = "bench"
)

// loads are runs that load pages into tables of one database.
type loads struct {
	*bench

	api      *rowsAPI
	db       *pgx.Conn
	postgres serverProcess
	count    int
}

// load is a way to load the pages.
type load struct {
	name, mode string
	state      bool
	lag        bool    // all rows are within the lag
	slowest    float64 // of its time for a page to that without state
	plain      bool
	same       bool // all rows have one cursor
	pages      int
}

// loadFigures are the measurements of a load.
type loadFigures struct {
	figures

	payload  int64         // the largest, in a history or in the store
	database time.Duration // processor time of PostgreSQL
	page     time.Duration // from one page to the next: what a run costs once, such as its claim of the state, is not in it
}

// databaseEach returns the processor time that PostgreSQL needs per page, in ms.
func (f loadFigures) databaseEach() float64 { return f.database.Seconds() * 1e3 / float64(f.n) }

// printIncremental measures how fast pages are loaded with state, and what long runs need, and prints tables.
func (b *bench) printIncremental(ctx context.Context, o options, stdout io.Writer) error {
	server, err := testenv.LocalPostgres(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := os.Setenv(tool.ConnectionVariable(benchConnection), server.URL); err != nil {
		return err
	}
	l := &loads{bench: b, api: newRowsAPI(), postgres: serverProcess(server.PID)}
	defer l.api.Close()
	if l.db, err = pgx.Connect(ctx, server.URL); err != nil {
		return err
	}
	defer func() { _ = l.db.Close(context.WithoutCancel(ctx)) }()
	failed := []error{}
	for _, mode := range []string{"insert", "upsert"} {
		failed = append(failed, l.compareLoads(ctx, stdout, o.rounds, loadCases(mode, o.loaded)))
	}
	return errors.Join(append(failed, l.measureLongLoads(ctx, stdout, o.long))...)
}

// loadCases returns the loads of a mode to compare. The last is measured against the first, for the price of
// durability, and against the second, for the price of a state.
func loadCases(mode string, pages int) []load {
	cases := []load{
		{name: "plain Go", mode: mode, pages: pages, plain: true},
		{name: "without state", mode: mode, pages: pages},
		{name: "with state", mode: mode, pages: pages, state: true, slowest: 1 + mostForState},
	}
	if mode == "insert" { // an upsert knows rows by their keys
		cases = append(cases, load{name: "all within the lag", mode: mode, pages: pages, state: true, lag: true, slowest: 1 + mostForLag})
	}
	return cases
}

// compareLoads runs the loads in turns and prints a table.
func (l *loads) compareLoads(ctx context.Context, stdout io.Writer, rounds int, cases []load) error {
	all := make([][]loadFigures, len(cases)) // of each case, its rounds
	order := make([]int, len(cases))
	for i := range order {
		order[i] = i
	}
	for range rounds {
		for _, i := range order {
			f, err := l.runLoad(ctx, cases[i])
			if err != nil {
				return err
			}
			all[i] = append(all[i], f)
		}
		slices.Reverse(order)
	}
	t := newTable(fmt.Sprintf("incremental: %d pages of 100 rows into PostgreSQL, %s, %d rounds", cases[0].pages, cases[0].mode, rounds), 2,
		"", "per second", "to "+cases[0].name, "least", "most", "page to "+cases[1].name, "least", "most", "bytes each",
		"worker CPU ms each", "PostgreSQL CPU ms each", "server CPU ms each", "peak MB")
	var missed []error
	for i, c := range cases {
		speed, slower := sortedRatios(all[i], all[0], loadFigures.pagesPerSecond), sortedRatios(all[i], all[1], loadFigures.perPage)
		t.AppendRow(loadRow(c, all[i], speed, slower))
		missed = append(missed, c.missedLimits(medianOf(speed), medianOf(slower)))
	}
	if _, err := fmt.Fprintf(stdout, "%s\n\n", t.Render()); err != nil {
		return err
	}
	return errors.Join(missed...)
}

// missedLimits returns an error if a load with state is too slow: speed is its rate relative to the program without
// durability, slower its time relative to the load without state.
func (c *load) missedLimits(speed, slower float64) error {
	var missed []error
	if c.state && !c.lag && speed < leastRate {
		missed = append(missed, fmt.Errorf("%s, %s: pages are loaded at %.2f of the speed of the program without durability, less than %.2f",
			c.mode, c.name, speed, leastRate))
	}
	if c.state && slower > c.slowest {
		missed = append(missed, fmt.Errorf("%s, %s: pages take %.2f of the time that they take without state, more than %.2f", c.mode, c.name, slower, c.slowest))
	}
	return errors.Join(missed...)
}

func (f loadFigures) pagesPerSecond() float64 { return f.rate() }

func (f loadFigures) perPage() float64 { return f.page.Seconds() }

// sortedRatios returns the ratio of a case's figure to another case's for each round, sorted.
func sortedRatios(rounds, to []loadFigures, figure func(loadFigures) float64) []float64 {
	all := make([]float64, len(rounds))
	for i := range rounds {
		all[i] = figure(rounds[i]) / figure(to[i])
	}
	slices.Sort(all)
	return all
}

// loadRow returns the table row of a load: medians over its rounds, and means of the resources used.
func loadRow(c load, rounds []loadFigures, speed, slower []float64) table.Row {
	rates := lists.Map(rounds, func(f loadFigures) float64 { return f.rate() })
	var sum loadFigures
	for _, f := range rounds {
		sum.addFigures(f.figures)
		sum.database += f.database
	}
	slices.Sort(rates)
	last := len(rounds) - 1
	return table.Row{
		c.name, fmt.Sprintf("%.0f", medianOf(rates)),
		fmt.Sprintf("%.2f", medianOf(speed)), fmt.Sprintf("%.2f", speed[0]), fmt.Sprintf("%.2f", speed[last]),
		fmt.Sprintf("%.2f", medianOf(slower)), fmt.Sprintf("%.2f", slower[0]), fmt.Sprintf("%.2f", slower[last]),
		fmt.Sprintf("%.0f", sum.bytesEach()), fmt.Sprintf("%.2f", sum.cpuEach()), fmt.Sprintf("%.2f", sum.databaseEach()),
		fmt.Sprintf("%.2f", sum.serverEach()), fmt.Sprintf("%.0f", float64(sum.memory)/1e6),
	}
}

// measureLongLoads measures what long loads need, prints a table, and returns an error if one needs too much.
func (l *loads) measureLongLoads(ctx context.Context, stdout io.Writer, pages int) error {
	t := newTable(fmt.Sprintf("incremental: %d pages of 100 rows into PostgreSQL, with state", pages), 2,
		"", "time", "per second", "events", "longest history", "largest history", "largest payload",
		"worker CPU ms each", "PostgreSQL CPU ms each", "peak MB")
	var missed []error
	for _, c := range []load{
		{name: "insert", mode: "insert"},
		{name: "insert, one cursor", mode: "insert", same: true},
		{name: "upsert, one cursor", mode: "upsert", same: true},
	} {
		c.pages, c.state = pages, true
		f, err := l.runLoad(ctx, c)
		if err != nil {
			return err
		}
		t.AppendRow(table.Row{
			c.name, f.took.Round(10 * time.Millisecond), fmt.Sprintf("%.0f", f.rate()), f.events, f.most, f.large, f.payload,
			fmt.Sprintf("%.2f", f.cpuEach()), fmt.Sprintf("%.2f", f.databaseEach()), fmt.Sprintf("%.0f", float64(f.memory)/1e6),
		})
		if f.payload > maxPayload {
			missed = append(missed, fmt.Errorf("%s: the largest payload has %d bytes, more than %d", c.name, f.payload, maxPayload))
		}
		if f.memory > maxMemory {
			missed = append(missed, fmt.Errorf("%s: the peak memory of the worker is %d bytes, more than %d", c.name, f.memory, maxMemory))
		}
	}
	if _, err := fmt.Fprintf(stdout, "%s\n\n", t.Render()); err != nil {
		return err
	}
	return errors.Join(missed...)
}

// runLoad executes a load with a new table and a new state.
func (l *loads) runLoad(ctx context.Context, c load) (f loadFigures, err error) {
	l.count++
	name := fmt.Sprintf("rows_%d", l.count)
	if _, err := l.db.Exec(ctx, "CREATE TABLE "+name+" (id bigint PRIMARY KEY, at timestamptz, name text, score float8)"); err != nil {
		return f, err
	}
	defer func() {
		if _, dropped := l.db.Exec(context.WithoutCancel(ctx), "DROP TABLE "+name); err == nil {
			err = dropped
		}
	}()
	began, err := l.postgres.familyCPU()
	if err != nil {
		return f, err
	}
	defer func() {
		ended, read := l.postgres.familyCPU()
		f.database, err = ended-began, errors.Join(err, read)
		f.page = l.api.perPage()
	}()
	url := l.api.rowsURL(c.pages, c.same)
	job := one{group: incremental, name: c.name, n: c.pages, source: loadBook(url, name, c)}
	if c.plain {
		f.figures, err = runPlain(ctx, job, url+" "+name+" "+c.mode)
		return f, err
	}
	before, err := filesOf(l.store)
	if err != nil {
		return f, err
	}
	if f.figures, err = l.runCase(ctx, job); err != nil {
		return f, err
	}
	if f.payload, err = l.largestPayload(ctx, fmt.Sprintf("run-bench-%d-%d", os.Getpid(), l.bench.count)); err != nil {
		return f, err
	}
	after, err := filesOf(l.store)
	for path, size := range after {
		if _, known := before[path]; !known {
			f.payload = max(f.payload, size)
		}
	}
	return f, err
}

// largestPayload returns the size of the largest payload in the histories of a run, in bytes.
func (l *loads) largestPayload(ctx context.Context, id string) (largest int64, err error) {
	runs, err := l.listExecutions(ctx, "= '"+id+"'")
	if err != nil {
		return 0, err
	}
	for _, run := range runs {
		events, err := l.readEvents(ctx, run)
		if err != nil {
			return 0, err
		}
		for _, event := range events {
			if largest, err = largestIn(event, largest); err != nil {
				return 0, err
			}
		}
	}
	return largest, nil
}

// largestIn returns the size of the largest payload in a message, or least if that is more.
func largestIn(message proto.Message, least int64) (int64, error) {
	err := protorange.Range(message.ProtoReflect(), func(at protopath.Values) error {
		value, is := at.Index(-1).Value.Interface().(protoreflect.Message)
		if !is {
			return nil
		}
		if payload, is := value.Interface().(*commonpb.Payload); is {
			least = max(least, int64(proto.Size(payload)))
		}
		return nil
	})
	return least, err
}

// filesOf returns the sizes of the files in a directory. In a payload store, one of them is the file that a worker
// writes at its start to test the store.
func filesOf(dir string) (map[string]int64, error) {
	sizes := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sizes[path] = info.Size()
		}
		return err
	})
	return sizes, err
}

// loadBook returns a playbook that loads pages in one step, with state if the load asks for it.
func loadBook(url, name string, c load) string {
	state, lag := "", ""
	if c.lag {
		lag = ", lag: 7200h"
	}
	if c.state {
		state = fmt.Sprintf(`
    incremental: {cursor_path: at, initial_value: "2025-01-01T00:00:00Z", row_order: asc, state: %s%s}`, name, lag)
	}
	since := "2025-01-01T00:00:00Z"
	if c.state {
		since = "{{ incremental.value }}"
	}
	return head + fmt.Sprintf(`  - step: fetch
    tool: http
    url: %s
    params: {since: "%s", page: 1}%s
    retry:
      - when: "{{ response.next }}"
        then:
          max_attempts: 10001
          next_call: {params: {page: "{{ response.next }}"}}
          collect: {path: rows, strategy: replace}
          per_iteration: {sink: {tool: postgres, auth: %s, table: %s, mode: %s, key: id}}
    next: count
  - step: count
    tool: postgres
    auth: %s
    statement: SELECT count(*) AS n FROM %s
output: "{{ count[0].n }}"
`, url, since, state, benchConnection, name, c.mode, benchConnection, name)
}
