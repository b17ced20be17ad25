package chaos_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/ending"
	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// outcome waits for the end of the run and has every element account for what it
// gave and wrote.
func (r *movingRound) outcome() time.Duration {
	r.t.Helper()
	r.await("the run ends", r.ended)
	result, err := ending.WaitForResult(r.t.Context(), r.run)
	require.NoError(r.t, err)
	histories := testenv.Histories(r.t, r.env.Client(), r.run.GetID(), r.run.GetRunID())
	outcomes := r.outcomes(result)
	sinks := r.written()
	var problems []string
	for i, e := range r.movement.elements {
		a := &account{name: fmt.Sprintf("%s (element %d)", e.name, i), requests: r.movement.paging, outcome: outcomes[i]}
		a.answers = r.api.MovingAnswers("", e.name)
		for _, s := range r.movement.sinks {
			a.sinks = append(a.sinks, sinks[s][e.name])
		}
		if problem := a.check(); problem != "" {
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		require.Fail(r.t, fmt.Sprintf("%d of %d elements do not account for what they did", len(problems), len(outcomes)),
			"%s\n%s", r.movement, strings.Join(problems, "\n"))
	}
	if r.movement.loop {
		r.checkLoop(result, outcomes)
	}
	r.checkHistories(histories)
	return r.took(histories)
}

// outcomes are how the elements ended, by their places.
func (r *movingRound) outcomes(result protocol.Result) []outcome {
	r.t.Helper()
	require.Contains(r.t, []interpreter.Status{interpreter.Completed, interpreter.Partial}, result.Status, "%+v", result.Error)
	if !r.movement.loop {
		return []outcome{r.succeeded(result.Result.Data)}
	}
	var given struct {
		Results []any `json:"results"`
	}
	convert(r.t, result.Result.Data, &given)
	require.Len(r.t, given.Results, len(r.movement.elements))
	outcomes := make([]outcome, len(given.Results))
	loop := r.loop(result)
	for i, data := range given.Results {
		at := slices.IndexFunc(loop.Errors, func(e interpreter.LoopError) bool { return e.Index == i })
		if at < 0 {
			outcomes[i] = r.succeeded(data)
			continue
		}
		require.Nil(r.t, data, "element %d has failed and has a result", i)
		failure := loop.Errors[at].Error
		require.Equal(r.t, interpreter.KindHTTP, failure.Kind, "element %d: %s", i, failure.Message)
		outcomes[i] = outcome{failed: true, status: failure.Status, page: failure.Page}
		convert(r.t, failure.Collected.Data, &outcomes[i].rows)
	}
	return outcomes
}

func (r *movingRound) loop(result protocol.Result) *protocol.LoopRecord {
	r.t.Helper()
	loop := result.Steps[len(result.Steps)-1].Loop
	require.NotNil(r.t, loop)
	return loop
}

// succeeded is the outcome of an element with this result.
func (r *movingRound) succeeded(data any) outcome {
	r.t.Helper()
	var made outcome
	if r.movement.collect {
		convert(r.t, data, &made.rows)
		return made
	}
	var last struct {
		Rows []demoapi.MovingRow `json:"rows"`
		More bool                `json:"more"`
	}
	convert(r.t, data, &last)
	made.rows, made.more = last.Rows, last.More
	return made
}

// convert reads a value of a run as what it stands for.
func convert(t require.TestingT, data, into any) {
	encoded, err := json.Marshal(data)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(encoded, into), "%s", encoded)
}

// checkLoop: the counts add up, and each failure is a dead letter, once.
func (r *movingRound) checkLoop(result protocol.Result, outcomes []outcome) {
	r.t.Helper()
	failed := 0
	dead := []map[string]any{}
	for _, e := range r.loop(result).Errors {
		failed++
		require.Positive(r.t, r.movement.elements[e.Index].failFrom, "element %d failed", e.Index)
		letter := map[string]any{"item": int64(e.Index), "status": int64(e.Error.Status), "attempts": int64(e.Attempts), "collected": nil}
		if e.Error.Collected.Data != nil {
			var rows any
			convert(r.t, e.Error.Collected.Data, &rows)
			letter["collected"] = rows
		}
		dead = append(dead, letter)
	}
	total := len(outcomes)
	require.Equal(r.t, interpreter.LoopStats{Total: total, Success: total - failed, Failed: failed}, r.loop(result).Stats)
	want := interpreter.Completed
	if 100*(total-failed) < 95*total {
		want = interpreter.Partial
	}
	require.Equal(r.t, want, result.Status)
	require.Equal(r.t, dead, r.db.Query(r.t, "SELECT item, status, attempts, collected FROM dead ORDER BY item, attempts"), "dead letters")
}

// written is what each sink holds of each element.
func (r *movingRound) written() map[sink]map[string]holding {
	r.t.Helper()
	all := map[sink]map[string]holding{}
	for _, s := range r.movement.sinks {
		all[s] = map[string]holding{}
		for _, e := range r.movement.elements {
			all[s][e.name] = holding{sink: s}
		}
		switch s.kind {
		case kindHTTP:
			r.readWrites(s, all[s])
		case kindPython:
			r.readPython(s, all[s])
		default:
			r.readRows(s, all[s])
		}
	}
	return all
}

// storedRow is one of a table, or a line of a file.
type storedRow struct {
	demoapi.MovingRow

	Op string `json:"op"` // of a statement
}

func (r *movingRound) readRows(s sink, into map[string]holding) {
	r.t.Helper()
	byWrite := map[[2]string][]demoapi.MovingRow{} // by element and key, if there is one
	for _, row := range r.stored(s) {
		require.Contains(r.t, into, row.Collection, "a row of no element: %+v", row)
		place := [2]string{row.Collection, row.Op}
		byWrite[place] = append(byWrite[place], row.MovingRow)
	}
	for place, rows := range byWrite {
		made := into[place[0]]
		made.writes = append(made.writes, sorted(rows))
		into[place[0]] = made
	}
}

// stored are the rows of a sink's table or file.
func (r *movingRound) stored(s sink) []storedRow {
	r.t.Helper()
	columns := "collection, id, version, '' AS op"
	if s.holds() == rowsByKey {
		columns = "collection, id, version, op"
	}
	query := "SELECT " + columns + " FROM " + s.table()
	switch {
	case s.kind == kindFile:
		return lines[storedRow](&r.stage, s.table()+".jsonl")
	case strings.HasPrefix(s.kind, "sqlite"):
		return r.querySQLite(query)
	}
	var rows []storedRow
	convert(r.t, r.db.Query(r.t, query), &rows)
	return rows
}

// lines are those of a file of the worker's, none where it is not there.
func lines[Line any](r *stage, name string) []Line {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(r.t, err)
	var all []Line
	for text := range strings.Lines(string(text)) {
		var line Line
		require.NoError(r.t, json.Unmarshal([]byte(text), &line), "%s: %q", name, text)
		all = append(all, line)
	}
	return all
}

// sqlite opens a database of the worker's folder.
func (r *stage) sqlite(name string) *sql.DB {
	r.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(r.dir, name))
	require.NoError(r.t, err)
	return db
}

// createSQLite makes tables in one; "" makes nothing.
func (r *stage) createSQLite(name, tables string) {
	r.t.Helper()
	if tables == "" {
		return
	}
	db := r.sqlite(name)
	_, err := db.ExecContext(r.t.Context(), tables)
	require.NoError(r.t, errors.Join(err, db.Close()))
}

func (r *movingRound) querySQLite(query string) []storedRow {
	r.t.Helper()
	db := r.sqlite("rows.db")
	defer func() { require.NoError(r.t, db.Close()) }()
	rows, err := db.QueryContext(r.t.Context(), query)
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, rows.Close()) }()
	var all []storedRow
	for rows.Next() {
		var row storedRow
		require.NoError(r.t, rows.Scan(&row.Collection, &row.ID, &row.Version, &row.Op))
		all = append(all, row)
	}
	require.NoError(r.t, rows.Err())
	return all
}

// posted is what the sinks http and python write.
type posted struct {
	Key   string              `json:"key"`
	Place string              `json:"place"`
	Item  string              `json:"item"`
	Rows  []demoapi.MovingRow `json:"rows"`
}

// readWrites: the API keeps the first body of every key.
func (r *movingRound) readWrites(s sink, into map[string]holding) {
	r.t.Helper()
	for _, write := range r.api.Writes("") {
		var b posted
		convert(r.t, write.Body, &b)
		if b.Place != s.table() {
			continue
		}
		made := into[b.Item]
		made.writes = append(made.writes, b.Rows)
		for _, other := range write.Others {
			var later posted
			convert(r.t, other, &later)
			made.trouble = fmt.Sprintf("key %s came with%s, then with%s", write.Key, short(b.Rows), short(later.Rows))
		}
		into[b.Item] = made
	}
}

// readPython: the file has a line for every time that the code ran.
func (r *movingRound) readPython(s sink, into map[string]holding) {
	r.t.Helper()
	first := map[string]posted{}
	for _, line := range lines[posted](&r.stage, s.table()+".py") {
		made := into[line.Item]
		before, again := first[line.Key]
		switch {
		case !again:
			first[line.Key] = line
			made.writes = append(made.writes, line.Rows)
		case !reflect.DeepEqual(before, line):
			made.trouble = fmt.Sprintf("key %s came with%s, then with%s", line.Key, short(before.Rows), short(line.Rows))
		}
		into[line.Item] = made
	}
}
