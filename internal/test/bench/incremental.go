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
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	"reprise/activities/tool"
	"reprise/internal/test/testenv"
)

const (
	// incremental is the group of playbooks that keep state between runs.
	incremental = "incremental"
	// leastRate is the least speed of pages with state, against the program without durability.
	leastRate = 0.5
	// maxPayload is in bytes.
	maxPayload = 128 << 10
	// keptConnection is the name by which playbooks have the database.
	keptConnection = "bench"
)

// loads are runs that load pages into tables of one database.
type loads struct {
	*bench

	api   *rowsAPI
	db    *pgx.Conn
	count int
}

// load is one way to do that.
type load struct {
	name, mode string
	state      bool
	plain      bool
	same       bool // all rows have one cursor
	pages      int
}

// loadFigures are what came of one.
type loadFigures struct {
	figures

	payload int64 // the largest, in a history or in the store
}

// incremental prints how fast pages are loaded with state, and what long runs need.
func (b *bench) incremental(ctx context.Context, o options, stdout io.Writer) error {
	server, err := testenv.LocalPostgres(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := os.Setenv(tool.ConnectionVariable(keptConnection), server.URL); err != nil {
		return err
	}
	l := &loads{bench: b, api: newRowsAPI()}
	defer l.api.Close()
	if l.db, err = pgx.Connect(ctx, server.URL); err != nil {
		return err
	}
	defer func() { _ = l.db.Close(context.WithoutCancel(ctx)) }()
	failed := []error{}
	for _, mode := range []string{"insert", "upsert"} {
		err := l.compare(ctx, stdout, o.rounds, []load{
			{name: "plain Go", mode: mode, pages: o.loaded, plain: true},
			{name: "with state", mode: mode, pages: o.loaded, state: true},
			{name: "without state", mode: mode, pages: o.loaded},
		})
		failed = append(failed, err)
	}
	return errors.Join(append(failed, l.long(ctx, stdout, o.long))...)
}

// compare runs loads in turns; the first is what the others are measured against.
func (l *loads) compare(ctx context.Context, stdout io.Writer, rounds int, cases []load) error {
	took, ratios := make([][]float64, len(cases)), make([][]float64, len(cases))
	all := make([]figures, len(cases))
	for round := range rounds {
		order := []int{0, 1, 2}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, i := range order {
			f, err := l.run(ctx, cases[i])
			if err != nil {
				return err
			}
			took[i] = append(took[i], f.took.Seconds())
			all[i].add(f.figures)
		}
		for i := range cases {
			ratios[i] = append(ratios[i], took[0][round]/took[i][round])
		}
	}
	t := newTable(fmt.Sprintf("incremental: %d pages of 100 rows into PostgreSQL, %s, %d rounds", cases[0].pages, cases[0].mode, rounds), 2,
		"", "per second", "to "+cases[0].name, "least", "most", "bytes each", "worker CPU ms each", "server CPU ms each", "peak MB")
	for i, f := range all {
		slices.Sort(took[i])
		slices.Sort(ratios[i])
		t.AppendRow(table.Row{
			cases[i].name, fmt.Sprintf("%.0f", float64(cases[i].pages)/median(took[i])), fmt.Sprintf("%.2f", median(ratios[i])),
			fmt.Sprintf("%.2f", ratios[i][0]), fmt.Sprintf("%.2f", ratios[i][rounds-1]), fmt.Sprintf("%.0f", f.bytesEach()),
			fmt.Sprintf("%.2f", f.cpuEach()), fmt.Sprintf("%.2f", f.serverEach()), fmt.Sprintf("%.0f", float64(f.memory)/1e6),
		})
	}
	if _, err := fmt.Fprintf(stdout, "%s\n\n", t.Render()); err != nil {
		return err
	}
	if ratio := median(ratios[1]); ratio < leastRate {
		return fmt.Errorf("%s: pages with state are loaded at %.2f of the speed of the program without durability, less than %.2f", cases[0].mode, ratio, leastRate)
	}
	return nil
}

// long prints what long loads need, and fails where one needs too much.
func (l *loads) long(ctx context.Context, stdout io.Writer, pages int) error {
	t := newTable(fmt.Sprintf("incremental: %d pages of 100 rows into PostgreSQL, with state", pages), 2,
		"", "time", "per second", "events", "longest history", "largest history", "largest payload", "peak MB")
	var missed []error
	for _, c := range []load{
		{name: "insert", mode: "insert"},
		{name: "insert, one cursor", mode: "insert", same: true},
		{name: "upsert, one cursor", mode: "upsert", same: true},
	} {
		c.pages, c.state = pages, true
		f, err := l.run(ctx, c)
		if err != nil {
			return err
		}
		t.AppendRow(table.Row{
			c.name, f.took.Round(10 * time.Millisecond), fmt.Sprintf("%.0f", f.rate()), f.events, f.most, f.large, f.payload,
			fmt.Sprintf("%.0f", float64(f.memory)/1e6),
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

// run loads into a table and a state of its own.
func (l *loads) run(ctx context.Context, c load) (f loadFigures, err error) {
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
	url := l.api.url(c.pages, c.same)
	job := one{group: incremental, name: c.name, n: c.pages, source: loadBook(url, name, c)}
	if c.plain {
		f.figures, err = runPlain(ctx, job, url+" "+name+" "+c.mode)
		return f, err
	}
	before, err := filesOf(l.store)
	if err != nil {
		return f, err
	}
	if f.figures, err = l.bench.run(ctx, job); err != nil {
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

// largestPayload is the size of the largest one in the histories of a run.
func (l *loads) largestPayload(ctx context.Context, id string) (largest int64, err error) {
	runs, err := l.executions(ctx, id)
	if err != nil {
		return 0, err
	}
	for _, run := range runs {
		events := l.client.GetWorkflowHistory(ctx, run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId(), false,
			enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			if err != nil {
				return 0, fmt.Errorf("read a history of %s: %w", id, err)
			}
			if largest, err = largestIn(event, largest); err != nil {
				return 0, err
			}
		}
	}
	return largest, nil
}

// largestIn is the size of the largest payload of a message, or the least given.
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

// filesOf are the sizes of the files in a directory. One of a store of values is what a worker
// writes as it starts, to see that it can.
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

// loadBook loads pages, in one step that keeps state.
func loadBook(url, name string, c load) string {
	state := ""
	if c.state {
		state = fmt.Sprintf(`
    incremental: {cursor_path: at, initial_value: "2025-01-01T00:00:00Z", row_order: asc, state: %s}`, name)
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
`, url, since, state, keptConnection, name, c.mode, keptConnection, name)
}
