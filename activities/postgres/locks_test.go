package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/activities/postgres"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

type fields = map[string]any

// staged is a write of rows, or a step, of what is published together.
func staged(pg tooltest.SQL, id string, part int, do interpreter.StagingStep, of fields, rows ...any) interpreter.ToolInput {
	in := pg.TableInput(of, nil)
	in.Args, in.Place, in.RunID = nil, "sink", "run"
	in.Staging = &interpreter.Staging{ID: id, Part: &part, Do: do}
	if do == "" {
		in.Result = tooltest.Value(rows)
		in.OperationKey, in.Fingerprint = fmt.Sprint(id, " ", part), expression.Digest(rows)
	}
	return in
}

// TestPostgresWritesLockTheNameFirst: a write waits for the name of its table before it has locked anything that another write needs, and where it
// locks a whole table, it has the name alone.
func TestPostgresWritesLockTheNameFirst(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	warm := staged(pg, "", 0, "", fields{"table": "warm"}, fields{"id": 9})
	warm.Staging = nil
	db.Exec(t, "CREATE TABLE warm (id bigint)")
	_, err := pg.MakeAttempt(t, warm) // makes the ledger
	require.NoError(t, err)
	_, err = pg.MakeAttempt(t, staged(pg, "warm", 0, interpreter.StagingBegin, fields{"table": "warm", "mode": "replace"}))
	require.NoError(t, err)
	evolve := func(of fields) fields {
		of["schema_contract"] = "evolve"
		return of
	}
	replace, missing := fields{"mode": "replace", "key": "id"}, fields{"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1}
	for name, test := range map[string]struct {
		of    fields
		steps []interpreter.StagingStep // before the write; the last one is the write, "" is rows
		row   fields
		alone bool
	}{
		"insert":                  {of: fields{}, row: fields{"id": 1}},
		"upsert":                  {of: fields{"mode": "upsert", "key": "id"}, row: fields{"id": 1}},
		"insert or ignore":        {of: fields{"mode": "insert_or_ignore"}, row: fields{"id": 1}},
		"a column is made":        {of: evolve(fields{}), row: fields{"id": 1, "more": 1}, alone: true},
		"a column is widened":     {of: evolve(fields{"mode": "upsert", "key": "id"}), row: fields{"id": 1, "n": 1.5}, alone: true},
		"rejected":                {of: fields{"rejected": true}, row: fields{"id": 1, "n": 1000}, alone: true},
		"begins":                  {of: replace, steps: []interpreter.StagingStep{interpreter.StagingBegin}, alone: true},
		"first rows, not begun":   {of: replace, steps: []interpreter.StagingStep{""}, row: fields{"id": 1}, alone: true},
		"first rows":              {of: replace, steps: []interpreter.StagingStep{interpreter.StagingBegin, ""}, row: fields{"id": 1}},
		"rows":                    {of: replace, steps: []interpreter.StagingStep{interpreter.StagingBegin, "", ""}, row: fields{"id": 1}},
		"rows of another shape":   {of: evolve(fields{"mode": "replace"}), steps: []interpreter.StagingStep{interpreter.StagingBegin, ""}, row: fields{"id": 1, "more": 1}, alone: true},
		"publishes":               {of: replace, steps: []interpreter.StagingStep{interpreter.StagingBegin, "", interpreter.StagingPublish}, row: fields{"id": 1}, alone: true},
		"what is missing":         {of: missing, steps: []interpreter.StagingStep{interpreter.StagingBegin, ""}, row: fields{"id": 1}, alone: true},
		"what is missing is gone": {of: missing, steps: []interpreter.StagingStep{interpreter.StagingBegin, "", interpreter.StagingPublish}, row: fields{"id": 1}, alone: true},
	} {
		for _, lock := range []string{"pg_advisory_xact_lock", "pg_advisory_xact_lock_shared"} {
			t.Run(name+" beside "+lock, func(t *testing.T) {
				table, of := "t"+expression.ShortDigest(name, lock), maps.Clone(test.of)
				db.Exec(t, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, n smallint DEFAULT 0 CHECK (n < 100))")
				if of["table"] = table; of["rejected"] != nil {
					of["rejected"] = fields{"table": table + "_aside"}
				}
				write := func(at int, do interpreter.StagingStep) interpreter.ToolInput {
					return staged(pg, table, at, do, of, test.row)
				}
				last := write(0, "")
				if last.Staging = nil; len(test.steps) > 0 {
					end := len(test.steps) - 1
					for at, do := range test.steps[:end] {
						_, err := pg.MakeAttempt(t, write(at, do))
						require.NoError(t, err)
					}
					last = write(end, test.steps[end])
				}
				waits, held := heldWhileWaiting(t, db, pg, last, table, lock)
				require.Equal(t, test.alone || lock == "pg_advisory_xact_lock", waits)
				require.Empty(t, held)
			})
		}
	}
}

// heldWhileWaiting says whether a write waits for another transaction that has the name of its table, and which locks it has meanwhile.
func heldWhileWaiting(t *testing.T, db *testenv.Database, pg tooltest.SQL, in interpreter.ToolInput, table, lock string) (waits bool, held []string) {
	t.Helper()
	other, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	defer func() { _ = other.Close(context.WithoutCancel(t.Context())) }()
	class, name := postgres.NameLock(table)
	_, err = other.Exec(t.Context(), fmt.Sprintf("BEGIN; SELECT %s(%d, %d)", lock, class, name))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := pg.MakeAttempt(t, in)
		done <- err
	}()
	const look = `SELECT trim(l.locktype || ' ' || coalesce(c.relname, '') || ' ' || l.mode), l.granted FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation
		WHERE l.locktype IN ('relation', 'advisory', 'tuple', 'transactionid') AND l.mode <> 'AccessShareLock' AND l.pid IN (
			SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND classid = $1::int8::oid AND objid = ($2::int8 & 4294967295)::oid)`
	find := func() {
		rows, err := other.Query(t.Context(), look, int64(class), int64(name))
		require.NoError(t, err)
		held = nil
		var (
			text    string
			granted bool
		)
		_, err = pgx.ForEachRow(rows, []any{&text, &granted}, func() error {
			if waits = true; granted {
				held = append(held, text)
			}
			return nil
		})
		require.NoError(t, err)
	}
	for !waits {
		select {
		case err := <-done:
			require.NoError(t, err)
			return false, nil
		default:
			find()
		}
	}
	find() // as of one moment, which the server does not promise of what it is asked first
	require.NoError(t, other.Close(context.WithoutCancel(t.Context())))
	require.NoError(t, testenv.Receive(t, done, "the write that waited"))
	return waits, held
}

// TestPostgresIterationsEvolveTogether: iterations that bring columns of their own wait for each other, and not in circles.
func TestPostgresIterationsEvolveTogether(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	db.Exec(t, "ALTER DATABASE "+pgx.Identifier{db.Name}.Sanitize()+" SET deadlock_timeout = '10min'") // a circle is an error of this test by its time
	const iterations, rounds = 4, 6
	for round := range rounds {
		for name, of := range map[string]fields{
			"replace": {"mode": "replace", "key": "id"}, "missing": {"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1},
		} {
			for _, begins := range []bool{false, true} {
				table := fmt.Sprintf("%s_%d_%t", name, round, begins)
				db.Exec(t, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, n bigint DEFAULT 3 CHECK (n > 0), word text DEFAULT 'none')")
				of["table"], of["schema_contract"] = table, "evolve"
				id := expression.ShortDigest(table)
				var group errgroup.Group
				for part := range iterations {
					group.Go(func() error {
						if begins {
							if _, err := pg.MakeAttempt(t, staged(pg, id, part, interpreter.StagingBegin, of)); err != nil {
								return err
							}
						}
						_, err := pg.MakeAttempt(t, staged(pg, id, part, "", of, fields{"id": part, fmt.Sprint("own", part): part}, fields{"id": 10 + part}))
						return err
					})
				}
				require.NoError(t, testenv.WaitResult(t, group.Wait, "the iterations"), table)
				_, err := pg.MakeAttempt(t, staged(pg, id, -1, interpreter.StagingPublish, of))
				require.NoError(t, err, table)
				require.Len(t, db.Query(t, "SELECT id FROM "+table), 2*iterations)
			}
		}
	}
}
