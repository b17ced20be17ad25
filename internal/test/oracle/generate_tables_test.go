package oracle_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// tables has some of the sinks that write to a file write to a table: a row with a key and
// what the file would get, or two of them.
func (g *generator) tables() {
	g.Rand = rand.New(rand.NewPCG(g.round.seed, 6))
	for _, s := range g.round.book.steps {
		steady := s.loop == nil || !s.loop.parallel // which row comes last is known
		for _, each := range s.sinks() {
			if each.tool == "file" && g.one(2) {
				g.toTable(s, each, steady)
			}
		}
	}
}

// sinks are all of a step's own.
func (s *step) sinks() []*sink {
	all := s.callSinks()
	if s.loop != nil && s.loop.sink != nil {
		all = append(all, s.loop.sink)
	}
	if s.sink != nil {
		all = append(all, s.sink)
	}
	return all
}

func (g *generator) toTable(s *step, to *sink, steady bool) {
	to.tool, to.path, to.table, to.mode = "sqlite", "rows.db", to.place, pick(g, "", "insert")
	if steady && g.one(2) {
		to.mode, to.key = "upsert", "k"
	}
	row := func(key any) fields { return fields{{"k", key}, {"doc", fields{{"w", to.given()}}}} }
	switch {
	case g.one(3):
		to.args = []any{row("a"), row("b")}
	case g.one(2) && s.sink != to && (s.loop == nil || s.loop.sink != to):
		to.args = row(mixed{"page ", name("_retry.page")})
	default:
		to.args = row(pick[any](g, "a", 7))
	}
}

// given is what a sink writes.
func (s *sink) given() any {
	if s.args == nil {
		return name("result")
	}
	return s.args
}

// writesRows has the rows of a sink be in its table.
func (o *oracle) writesRows(s *sink, args any) {
	rows, many := args.([]any)
	if !many {
		rows = []any{args}
	}
	for _, each := range rows {
		row := each.(map[string]any)
		line := fmt.Sprintf("%v %s", row["k"], canonical(normal(row["doc"])))
		at := slices.IndexFunc(o.keys[s.table], func(key string) bool { return s.mode == "upsert" && key == fmt.Sprint(row["k"]) })
		if at >= 0 {
			o.files[s.table][at] = line
			continue
		}
		o.keys[s.table] = append(o.keys[s.table], fmt.Sprint(row["k"]))
		o.files[s.table] = append(o.files[s.table], line)
	}
}

// tables are the sinks of a playbook that write to one.
func (g *graph) tables() (all []*sink) {
	for _, s := range g.steps {
		for _, each := range s.sinks() {
			if each.table != "" {
				all = append(all, each)
			}
		}
	}
	return all
}

// withTables does something for each sink that writes to a table, with the database in a folder.
func (r *round) withTables(t *testing.T, dir string, do func(db *sql.DB, each *sink)) {
	t.Helper()
	all := r.book.tables()
	if len(all) == 0 {
		return
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "rows.db"))
	require.NoError(t, err)
	defer db.Close()
	for _, each := range all {
		do(db, each)
	}
}

// makeTables makes the tables that a round writes to.
func (r *round) makeTables(t *testing.T, dir string) {
	t.Helper()
	r.withTables(t, dir, func(db *sql.DB, each *sink) {
		unique := ""
		if each.mode == "upsert" {
			unique = " PRIMARY KEY"
		}
		_, err := db.ExecContext(t.Context(), fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (k%s, doc TEXT)", each.table, unique))
		require.NoError(t, err)
	})
}

// readTables adds the rows of the tables to what files hold.
func (r *round) readTables(t *testing.T, dir string, into map[string][]string) {
	t.Helper()
	r.withTables(t, dir, func(db *sql.DB, each *sink) {
		into[each.table] = nil
		rows, err := db.QueryContext(t.Context(), "SELECT k, doc FROM "+each.table+" ORDER BY rowid")
		require.NoError(t, err)
		for rows.Next() {
			var key any
			var doc string
			require.NoError(t, rows.Scan(&key, &doc))
			into[each.table] = append(into[each.table], fmt.Sprintf("%v %s", key, normalJSON([]byte(doc))))
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	})
}
