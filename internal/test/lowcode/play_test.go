package lowcode_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"gopkg.in/yaml.v3"
	_ "modernc.org/sqlite"

	"reprise/activities"
	"reprise/internal/base/seal"
	"reprise/internal/observe/ending"
	"reprise/internal/program/connector"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// play is one stream of a connector, read as its manifest says and by its playbook.
type play struct {
	t         *testing.T
	connector string
	stream    string
	data      []byte
	read      func(path string) ([]byte, error)
	kills     int // of workers, in its first run
}

// verdict is what came of a play.
type verdict struct {
	unplayable string // why it was not played
	gaps       []string
	problems   []string
	warnings   string // of its run
	playbook   string
	workload   string
	requests   int
	rows       int
	runs       int
}

var (
	addresses = regexp.MustCompile(`https?://`)
	sizes     = regexp.MustCompile(`(?m)^(\s*page_size:\s*)["']?\d+["']?\s*$`)
	waits     = regexp.MustCompile(`(backoff_time_in_seconds|factor):\s*["']?\d+(\.\d+)?["']?`)
)

// aimed is a manifest whose addresses lead to the API, with small pages and short waits.
func (p play) aimed(address string) []byte {
	text := addresses.ReplaceAllString(string(p.data), address+"/")
	text = sizes.ReplaceAllString(text, "${1}3")
	return []byte(waits.ReplaceAllString(text, "$1: 1"))
}

// run plays the stream.
func (p play) run() (out verdict) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case unplayable:
			out.unplayable = reason.Error()
		case error:
			out.unplayable = "an error of the reader: " + reason.Error() + placeOf(string(debug.Stack()))
		default:
			out.unplayable = fmt.Sprint(reason)
		}
	}()
	a := newAPI(p.connector + p.stream)
	server := httptest.NewServer(a)
	p.t.Cleanup(server.Close)
	a.address, a.read = server.URL, p.read
	data := p.aimed(a.address)
	manifest, err := loadManifest(data)
	if err != nil {
		panic(unplayable(err.Error()))
	}
	a.manifest = manifest
	stream := p.find(manifest)
	c := &configurer{api: a, secrets: map[string]any{}, start: startOf(stream, a.now), inAddress: map[string]bool{}, atStart: map[string]bool{}}
	c.findAddresses(stream)
	r := &reader{config: c.config(specOf(manifest, p.read), 0), now: a.now, api: a, state: map[string]time.Time{}, reached: map[string]time.Time{}, texts: map[string]any{}}
	r.config = a.aim(r.config).(map[string]any)
	c.complete(r.config, manifest, false)
	a.findLogins(r, stream)
	converted, err := connector.ConvertManifest(data, connector.Options{Name: p.stream, Connector: p.connector, Streams: []string{p.stream}, Read: p.read})
	require.NoError(p.t, err)
	for _, gap := range converted.Gaps {
		out.gaps = append(out.gaps, gap.String())
	}
	out.playbook = string(converted.Playbook)
	w := p.newWorld(converted, c, r.config)
	given, _ := json.Marshal(w.input.Workload)
	out.workload = string(given)
	var all []map[string]any
	for n := range 2 {
		if n == 1 && stream.of("incremental_sync") == nil {
			break
		}
		records := r.read(stream)
		out.requests, out.runs = len(a.exchanges), n+1
		if key := keyOf(r, stream); n == 1 && len(key) == 0 {
			break // rows that come again have no key to be told by
		}
		all = append(all, records...)
		out.problems = append(w.runOnce(p.kills*(1-n)), a.unasked()...)
		out.problems = append(out.problems, w.compare(stream, r, all)...)
		out.warnings = w.warnings
		if len(out.problems) > 0 {
			break
		}
		r.state, r.reached = r.reached, map[string]time.Time{}
		for key, at := range r.state {
			r.reached[key] = at
		}
		r.before = maps.Clone(r.texts)
		r.now = time.Now().UTC()
	}
	out.rows = len(all)
	return out
}

// placeOf is where in this package a stack came from.
func placeOf(stack string) string {
	found := regexp.MustCompile(`lowcode/(\w+_test\.go:\d+)`).FindAllStringSubmatch(stack, 6)
	var out []string
	for _, one := range found {
		out = append(out, one[1])
	}
	return " (" + strings.Join(out, " ") + ")"
}

// find is the stream of the play.
func (p play) find(manifest component) component {
	for _, one := range manifest.list("streams") {
		if one.text("name") == p.stream {
			return one
		}
	}
	panic(unplayable("no stream of that name"))
}

// startOf is when reading starts: some slices before now.
func startOf(stream component, now time.Time) time.Time {
	at := now.AddDate(0, 0, -40)
	if text := stream.of("incremental_sync").text("step"); periods.MatchString(text) {
		step := parsePeriod(text)
		at = step.addTo(step.addTo(step.addTo(now, -1), -1), -1)
		if step.rest < time.Hour && step.days+step.months+step.years == 0 {
			at = now.Add(-3 * step.rest)
		}
	}
	return at.Truncate(24 * time.Hour)
}

// aim is a configuration whose addresses lead to the API.
func (a *api) aim(of any) any {
	switch of := of.(type) {
	case string:
		if !strings.HasPrefix(of, a.address) {
			return addresses.ReplaceAllString(of, a.address+"/")
		}
	case map[string]any:
		for key, value := range of {
			of[key] = a.aim(value)
		}
	case []any:
		for i, value := range of {
			of[i] = a.aim(value)
		}
	}
	return of
}

// findLogins finds the addresses that give tokens.
func (a *api) findLogins(r *reader, of any) {
	switch of := of.(type) {
	case component:
		a.findLogins(r, map[string]any(of))
	case map[string]any:
		if text := component(of).text("token_refresh_endpoint"); text != "" {
			if at, err := url.Parse(textOf(interpolate(text, r.in(of, nil)))); err == nil {
				a.logins[strings.TrimRight(at.Path, "/")] = true
			}
		}
		for _, value := range of {
			a.findLogins(r, value)
		}
	case []any:
		for _, value := range of {
			a.findLogins(r, value)
		}
	}
}

// world is what a playbook runs in.
type world struct {
	play
	env      *testenv.Env
	queue    string
	dir      string
	input    protocol.Input
	runs     int
	resource activities.Resources
	warnings string
}

func (p play) newWorld(converted *connector.Result, c *configurer, config map[string]any) *world {
	w := &world{play: p, env: testenv.Temporal(p.t), dir: p.t.TempDir()}
	w.queue = w.env.NewTaskQueue()
	connections := activities.Connections{}
	for _, one := range converted.Connections {
		connections[one.Name] = one.Form
	}
	w.resource = activities.Resources{Connections: connections, AllowPython: true, Directory: w.dir}
	if converted.Secrets != "" {
		keys, err := seal.Parse(seal.NewKey())
		require.NoError(p.t, err)
		w.resource.SecretKeys = keys
		addLeaves(config, c.secrets)
		data, err := json.Marshal(c.secrets)
		require.NoError(p.t, err)
		writeFile(p.t, filepath.Join(w.dir, converted.Secrets), data)
	}
	var head struct{ Workload map[string]any }
	require.NoError(p.t, yaml.Unmarshal(converted.Playbook, &head))
	workload := map[string]any{}
	for key, value := range head.Workload {
		if given, has := config[key]; has {
			workload[key] = given
		} else if slices.Contains(c.keys, key) || value == "" {
			workload[key] = nil
		}
	}
	canonical, err := expression.Canonical(workload)
	require.NoError(p.t, err)
	w.input = protocol.Input{Name: p.stream + ".yaml", Source: string(converted.Playbook), Workload: expression.Of(canonical)}
	return w
}

// addLeaves adds the texts of a configuration to its secrets, by their names: a converter may take any of them for one.
func addLeaves(config, into map[string]any) {
	for key, value := range config {
		if below, is := value.(map[string]any); is {
			addLeaves(below, into)
		} else if into[key] == nil {
			into[key] = value
		}
	}
}

// quiet is a log of workers that says nothing.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// runOnce runs the playbook to its end, with workers that are killed if there are to be kills.
func (w *world) runOnce(kills int) (problems []string) {
	if kills > 0 {
		w.killing(kills)
	} else {
		catalogue := activities.NewCatalogue(w.resource)
		c := w.env.Dial(w.t, client.Options{Logger: quiet{}})
		worker := host.NewWorker(c, catalogue, host.Options{TaskQueue: w.queue, StopTimeout: time.Second})
		require.NoError(w.t, worker.Start())
		defer func() {
			worker.Stop()
			require.NoError(w.t, catalogue.Close())
		}()
	}
	w.runs++
	ctx, cancel := context.WithTimeout(w.t.Context(), testenv.Within(longest))
	defer cancel()
	run, err := w.env.Client().ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: w.queue + strconv.Itoa(w.runs), TaskQueue: w.queue},
		protocol.PlaybookWorkflowName, w.input)
	require.NoError(w.t, err)
	result, err := ending.WaitForResult(ctx, run)
	switch {
	case errors.Is(err, ending.ErrRefused):
		return []string{"refused: " + err.Error()}
	case err != nil:
		return []string{"the run: " + err.Error()}
	case result.Status != "completed":
		encoded, _ := json.Marshal(result.Error)
		return []string{fmt.Sprintf("the run is %s: %s", result.Status, encoded)}
	}
	if len(result.Warnings) > 0 {
		w.warnings = fmt.Sprint(result.Warnings)
	}
	return nil
}

// longest is how long a run may take on an idle machine.
const longest = time.Minute

// killing has workers that are killed, each after some time, until one is left.
func (w *world) killing(kills int) {
	start := func() *testworker.Process {
		return testworker.Start(w.t, testworker.Options{
			Address: w.env.Address, Namespace: w.env.Namespace, TaskQueue: w.queue, Directory: w.dir,
			Connections: w.resource.Connections.(activities.Connections),
		})
	}
	process := start()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range kills {
			time.Sleep(700 * time.Millisecond)
			process.Kill()
			process = start()
		}
	}()
	w.t.Cleanup(func() { <-done })
}

// compare says how the rows of the table differ from the records that there should be.
func (w *world) compare(stream component, r *reader, records []map[string]any) (problems []string) {
	key := keyOf(r, stream)
	want := map[string]int{}
	seen := map[string]string{}
	for _, record := range records {
		text := rowText(record)
		if len(key) > 0 {
			var parts []string
			for _, name := range key {
				parts = append(parts, textOf(record[name]))
			}
			id := strings.Join(parts, "\x00")
			if before, has := seen[id]; has {
				want[before]--
			}
			seen[id] = text
		}
		want[text]++
	}
	for _, row := range w.table() {
		want[rowText(row)]--
	}
	texts := make([]string, 0, len(want))
	for text := range want {
		texts = append(texts, text)
	}
	sort.Strings(texts)
	for _, text := range texts {
		switch n := want[text]; {
		case n > 0:
			problems = append(problems, fmt.Sprintf("%d missing: %s", n, text))
		case n < 0:
			problems = append(problems, fmt.Sprintf("%d too many: %s", -n, text))
		}
	}
	return problems
}

// table are the rows that the playbook has written.
func (w *world) table() (rows []map[string]any) {
	paths, err := filepath.Glob(filepath.Join(w.dir, "*.db"))
	require.NoError(w.t, err)
	if len(paths) == 0 {
		return nil
	}
	db, err := sql.Open("sqlite", paths[0])
	require.NoError(w.t, err)
	defer db.Close()
	var table string
	err = db.QueryRowContext(w.t.Context(), `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'reprise_%' AND name NOT LIKE 'sqlite_%'`).Scan(&table)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	require.NoError(w.t, err)
	found, err := db.QueryContext(w.t.Context(), `SELECT * FROM "`+table+`"`)
	require.NoError(w.t, err)
	defer found.Close()
	columns, err := found.Columns()
	require.NoError(w.t, err)
	for found.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(w.t, found.Scan(into...))
		row := map[string]any{}
		for i, name := range columns {
			row[name] = values[i]
		}
		rows = append(rows, row)
	}
	require.NoError(w.t, found.Err())
	return rows
}

// rowText is a row without its nulls, in which values that databases hold for equal are equal.
func rowText(row map[string]any) string {
	var parts []string
	for _, name := range sortedKeys(row) {
		if value := row[name]; value != nil {
			parts = append(parts, name+"="+valueText(value))
		}
	}
	return strings.Join(parts, " ")
}

func valueText(of any) string {
	switch of := of.(type) {
	case bool:
		return map[bool]string{true: "1", false: "0"}[of]
	case []byte:
		return valueText(string(of))
	case time.Time:
		return instantText(of)
	case string:
		if of == "true" || of == "false" {
			return map[string]string{"true": "1", "false": "0"}[of]
		}
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999Z0700"} {
			if at, err := time.Parse(layout, of); err == nil {
				return instantText(at)
			}
		}
		if strings.HasPrefix(of, "{") || strings.HasPrefix(of, "[") {
			if decoded := decode([]byte(of)); decoded != nil {
				return valueText(decoded)
			}
		}
		return of
	case map[string]any, []any:
		encoded, _ := json.Marshal(of)
		return string(encoded)
	case float64:
		return strconv.FormatFloat(of, 'g', -1, 64)
	}
	return fmt.Sprint(of)
}

// instantText is a time; that of a day alone is the day.
func instantText(at time.Time) string {
	return strings.TrimSuffix(at.UTC().Format(time.RFC3339Nano), "T00:00:00Z")
}
