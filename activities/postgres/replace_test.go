package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

var soak = flag.Bool("soak", false, "replace the rows of tables 1,000 times, and cut connections at every statement")

// stagedInput is a write, or what else is done, of the call with a name.
func stagedInput(pg tooltest.SQL, name string, fields map[string]any, do interpreter.StagingStep, rows ...any) interpreter.ToolInput {
	in := pg.TableInput(fields, nil)
	in.Args, in.Place = nil, "sink"
	in.OperationKey, in.Fingerprint = fmt.Sprint(name, " ", do, expression.Digest(rows)), "f"
	in.Staging = &interpreter.Staging{ID: expression.ShortDigest(name) + "cafe", Do: do}
	if do == "" {
		in.Result = tooltest.Value(rows)
	}
	return in
}

// generation are rows that all have one number.
func generation(n int) []any {
	rows := make([]any, 100)
	for i := range rows {
		rows[i] = map[string]any{"id": i + n%7, "n": n}
	}
	return rows
}

// TestReadersSeeOldOrNew: readers of every isolation level see all rows of one generation, and the table stays what
// it was.
func TestReadersSeeOldOrNew(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, `CREATE TABLE keyed (id serial PRIMARY KEY, n bigint NOT NULL); CREATE TABLE plain (id int, n bigint);
		CREATE TABLE other (x int); CREATE TABLE child (id int REFERENCES keyed (id)); 
		CREATE VIEW keyed_view AS SELECT id, n FROM keyed; CREATE VIEW plain_view AS SELECT id, n FROM plain;
		CREATE PUBLICATION those FOR TABLE keyed, plain; ALTER TABLE plain REPLICA IDENTITY FULL;
		GRANT SELECT ON keyed, plain TO PUBLIC; CREATE POLICY all_rows ON keyed USING (true);
		CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER changes BEFORE INSERT ON keyed FOR EACH ROW EXECUTE FUNCTION changed();
		CREATE TRIGGER changes BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION changed();
		INSERT INTO keyed SELECT i, 0 FROM generate_series(0, 99) i; INSERT INTO plain SELECT i, 0 FROM generate_series(0, 99) i;
		INSERT INTO child VALUES (50)`)
	const catalog = `SELECT c.relname::text, c.oid::bigint, c.relfilenode::bigint, c.relacl::text, (SELECT count(*) FROM pg_depend d WHERE d.refobjid = c.oid) AS depend,
			(SELECT string_agg(pg_get_constraintdef(k.oid), '; ' ORDER BY k.oid) FROM pg_constraint k WHERE c.oid IN (k.conrelid, k.confrelid)) AS constraints,
			(SELECT string_agg(pg_get_triggerdef(g.oid), '; ' ORDER BY g.oid) FROM pg_trigger g WHERE g.tgrelid = c.oid AND NOT tgisinternal) AS triggers,
			(SELECT count(*) FROM pg_publication_rel p WHERE p.prrelid = c.oid) AS published, pg_get_serial_sequence('keyed', 'id') AS sequence
		FROM pg_class c WHERE c.relname IN ('keyed', 'plain', 'keyed_view', 'plain_view', 'child') ORDER BY 1`
	before := db.Query(t, catalog)
	rounds := 25 // of two tables
	if *soak {
		rounds = 500
	}
	ctx, stop := context.WithCancel(t.Context())
	var (
		readers sync.WaitGroup
		reads   atomic.Int64
	)
	for i, isolation := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.ReadCommitted, pgx.RepeatableRead} {
		table := []string{"keyed", "keyed", "plain", "plain"}[i]
		readers.Go(func() { readGenerations(ctx, t, db, table, isolation, &reads) })
	}
	for n := 1; n <= rounds; n++ {
		for table, fields := range map[string]map[string]any{"keyed": {"key": "id"}, "plain": {}} {
			fields["table"], fields["mode"] = table, "replace"
			name := fmt.Sprint(table, n)
			for _, in := range []interpreter.ToolInput{
				stagedInput(pg, name, fields, "", generation(n)[:60]...), stagedInput(pg, name, fields, "", generation(n)[60:]...),
				stagedInput(pg, name, fields, interpreter.StagingPublish),
			} {
				_, err := pg.MakeAttempt(t, in)
				require.NoError(t, err)
			}
		}
	}
	stop()
	testenv.Wait(t, readers.Wait, "the end of the readers")
	require.Greater(t, reads.Load(), int64(rounds))
	t.Logf("%d reads beside %d replaces", reads.Load(), 2*rounds)
	require.Equal(t, before, db.Query(t, catalog))
}

// readGenerations reads a table and its view until the test stops it.
func readGenerations(ctx context.Context, t *testing.T, db *testenv.Database, table string, isolation pgx.TxIsoLevel, reads *atomic.Int64) {
	conn, err := pgx.Connect(context.WithoutCancel(ctx), db.URL)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for last := int64(0); ctx.Err() == nil; {
		err := pgx.BeginTxFunc(context.WithoutCancel(ctx), conn, pgx.TxOptions{IsoLevel: isolation}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(context.WithoutCancel(ctx), "SELECT count(*) FROM other; SELECT pg_sleep(random() / 50)"); err != nil {
				return err
			}
			for _, name := range []string{table, table + "_view"} {
				var rows, least, most int64
				if err := tx.QueryRow(context.WithoutCancel(ctx), "SELECT count(*), min(n), max(n) FROM "+name).Scan(&rows, &least, &most); err != nil {
					return err
				}
				if rows != 100 || least != most || least < last {
					return fmt.Errorf("%s read %d rows of generations %d to %d behind %d in %s", isolation, rows, least, most, last, name)
				}
				last = least
			}
			reads.Add(1)
			return nil
		})
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// TestStagedRowsOutliveACrash: a server that was killed has all rows that were staged.
func TestStagedRowsOutliveACrash(t *testing.T) {
	t.Parallel()
	db := testenv.PostgresServer(t)
	catalogue := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"main": db.URL}})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })
	pg := tooltest.SQL{Catalogue: catalogue, Name: "postgres", Auth: "main"}
	db.Exec(t, "CREATE TABLE target (id int PRIMARY KEY, n int); INSERT INTO target VALUES (1, 0)")
	for _, fields := range []map[string]any{
		{"table": "target", "mode": "replace"},
		{"table": "target", "mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1},
	} {
		name := fmt.Sprint(fields["mode"])
		_, err := pg.MakeAttempt(t, stagedInput(pg, name, fields, "", generation(7)...))
		require.NoError(t, err)
		db.Kill(t)
		db.Start(t)
		publish := stagedInput(pg, name, fields, interpreter.StagingPublish)
		_, err = pg.MakeAttempt(t, publish)
		for try := 0; err != nil && try < 10; try++ { // by connections of before
			require.Equal(t, interpreter.ClassRetryable, tooltest.ErrorObject(t, err).Class, "%v", err)
			_, err = pg.MakeAttempt(t, publish)
		}
		require.NoError(t, err)
		require.Equal(t, int64(100), db.Query(t, "SELECT count(*) AS n FROM target WHERE n = 7")[0]["n"])
	}
}

// TestReplaceOfTables: what tables of PostgreSQL may be replaced, and which may not.
func TestReplaceOfTables(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	long := strings.Repeat("n", 63)
	db.Exec(t, `CREATE SCHEMA shop; CREATE TYPE pair AS (a int, b text); CREATE DOMAIN word AS text CHECK (value <> 'bad');
		CREATE TABLE shop.parts (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
		CREATE TABLE shop.parts_a PARTITION OF shop.parts FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
		CREATE TABLE shop.parts_b PARTITION OF shop.parts FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
		INSERT INTO shop.parts VALUES (1, '2024-01-01'), (2, '2024-02-01');
		CREATE TABLE ruled (id int); CREATE RULE r AS ON INSERT TO ruled DO ALSO NOTHING;
		CREATE TABLE parent (id int); CREATE TABLE heir () INHERITS (parent);
		CREATE TABLE hidden (id int); ALTER TABLE hidden ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
		CREATE MATERIALIZED VIEW seen AS SELECT 1 AS id;
		CREATE UNLOGGED TABLE odd (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, p pair, w word, l text COLLATE "C", `+long+` text[] NOT NULL DEFAULT '{}');
		CREATE TABLE always (id int GENERATED ALWAYS AS IDENTITY, n int)`)
	run := func(name string, fields map[string]any, rows ...any) (any, error) {
		fields["mode"] = "replace"
		if _, err := pg.MakeAttempt(t, stagedInput(pg, name, fields, "", rows...)); err != nil {
			return nil, err
		}
		result, err := pg.MakeAttempt(t, stagedInput(pg, name, fields, interpreter.StagingPublish))
		return result.Data.Data, err
	}
	type row = map[string]any
	for table, says := range map[string]string{
		"ruled": "it has rules", "parent": "other tables inherit from it", "hidden": "", "seen": "it is a materialized view", "always": "the database generates its values; remove",
	} {
		_, err := run(table, row{"table": table}, row{"id": 1})
		if says == "" { // for a superuser policies do not hold
			require.NoError(t, err)
			continue
		}
		require.Contains(t, tooltest.ErrorObject(t, err).Message, says)
	}
	done, err := run("parts", row{"table": "shop.parts", "key": []any{"id", "day"}}, row{"id": 1, "day": "2024-02-02"}, row{"id": 2, "day": "2024-02-01"})
	require.NoError(t, err)
	require.Equal(t, row{"rows_affected": 1, "rows_deleted": 1}, done)
	db.Exec(t, "CREATE FUNCTION no_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER no_row BEFORE INSERT ON shop.parts_a FOR EACH ROW EXECUTE FUNCTION no_row()")
	fields := row{"table": "shop.parts", "mode": "replace", "key": []any{"id", "day"}}
	_, err = pg.MakeAttempt(t, stagedInput(pg, "kept", fields, "", row{"id": 3, "day": "2024-01-03"}, row{"id": 4, "day": "2024-02-04"}))
	require.NoError(t, err)
	result, err := pg.MakeAttempt(t, stagedInput(pg, "kept", fields, interpreter.StagingPublish))
	require.NoError(t, err)
	require.Equal(t, &interpreter.RowCounts{UnwrittenRows: 1}, result.Meta.LeftOut, "by a trigger of one partition")
	for i, want := range []row{{"rows_affected": 2, "rows_deleted": 0}, {"rows_affected": 0, "rows_deleted": 0}} {
		done, err = run(fmt.Sprint("odd", i), row{"table": "odd", "key": "id"},
			row{"id": 1, "p": row{"a": 1, "b": "x"}, "w": "ok", "l": "ä"}, row{"id": 2, long: []any{"a", nil}})
		require.NoError(t, err)
		require.Equal(t, want, done)
	}
	_, err = run("bad", row{"table": "odd"}, row{"id": 1, "w": "ok"}, row{"id": 2, "w": "bad"})
	require.Contains(t, tooltest.ErrorObject(t, err).Message, "row 2")
	done, err = run("always", row{"table": "always"}, row{"n": 1})
	require.NoError(t, err)
	require.Equal(t, row{"rows_affected": 1, "rows_deleted": 0}, done)
	require.Empty(t, db.Query(t, "SELECT relname::text FROM pg_class WHERE relname ~ '^reprise_staging_.*cafe$' AND relname !~ 'bad'"), "of what failed at its first write nothing stays")
}

// TestReplaceByAUser: what a user may not do, or does not see, is said.
func TestReplaceByAUser(t *testing.T) {
	t.Parallel()
	_, db := pgTool(t)
	pg, user := asUser(t, db)
	db.Exec(t, "GRANT CREATE ON SCHEMA public TO "+user+`; CREATE SCHEMA shop; CREATE TABLE shop.closed (id int);
		CREATE TABLE hidden (id int); ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON hidden USING (id > 5);
		GRANT USAGE ON SCHEMA shop TO `+user+"; GRANT ALL ON hidden, shop.closed TO "+user)
	for table, says := range map[string]string{
		"hidden": "row-level security may hide some rows", "shop.closed": "the user needs CREATE on its schema",
	} {
		object := pg.FailingCall(t, stagedInput(pg, table, map[string]any{"table": table, "mode": "replace"}, "", map[string]any{"id": 1}))
		require.Contains(t, object.Message, says)
		require.Equal(t, interpreter.ClassFinal, object.Class)
	}
}

// TestIterationsStageTogether: iterations write at once, whatever they change.
func TestIterationsStageTogether(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	fields := map[string]any{"table": "target", "mode": "replace", "key": "id", "schema_contract": "evolve"}
	var group errgroup.Group
	db.Exec(t, "CREATE TABLE plain (id int)")
	plain := map[string]any{"table": "plain", "mode": "replace"}
	_, err := pg.MakeAttempt(t, stagedInput(pg, "plain", plain, interpreter.StagingSettle))
	require.NoError(t, err, "the call is known, and has no table beside yet")
	for part := range 8 {
		in := stagedInput(pg, "plain", plain, "", map[string]any{"id": part})
		in.Staging.Part = &part
		group.Go(func() error {
			_, err := pg.MakeAttempt(t, in)
			return err
		})
	}
	require.NoError(t, testenv.WaitResult(t, group.Wait, "the end of the writes"))
	require.Equal(t, []map[string]any{{"n": int64(8)}}, db.Query(t, "SELECT sum(staged)::bigint AS n FROM reprise_staged"))
	for part := range 24 {
		in := stagedInput(pg, "together", fields, "", map[string]any{"id": part, fmt.Sprint("c", part%3): 1}, map[string]any{"id": -1, "n": part})
		in.Staging.Part = &part
		group.Go(func() error {
			_, err := pg.MakeAttempt(t, in)
			return err
		})
	}
	require.NoError(t, testenv.WaitResult(t, group.Wait, "the end of the writes"))
	publish := stagedInput(pg, "together", fields, interpreter.StagingPublish)
	for range 4 {
		group.Go(func() error {
			result, err := pg.MakeAttempt(t, publish)
			if err == nil && fmt.Sprint(result.Data.Data) != "map[rows_affected:25 rows_deleted:0]" {
				return fmt.Errorf("%v", result.Data.Data)
			}
			return err
		})
	}
	require.NoError(t, testenv.WaitResult(t, group.Wait, "the end of the writes"))
	require.Equal(t, []map[string]any{{"rows": int64(25), "c0": int64(8), "c1": int64(8), "c2": int64(8)}},
		db.Query(t, "SELECT count(*) AS rows, count(c0) AS c0, count(c1) AS c1, count(c2) AS c2 FROM target"))
}

// TestReplacesAtOnce: of two replaces that publish at once one is behind the other and fails, and the table has all rows of one.
func TestReplacesAtOnce(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE target (id int PRIMARY KEY, of text)")
	for round, key := range []any{"id", nil, "id", nil} {
		fields := map[string]any{"table": "target", "mode": "replace"}
		if key != nil {
			fields["key"] = key
		}
		var (
			group   errgroup.Group
			changed atomic.Int32
		)
		names := []string{fmt.Sprint("one", round), fmt.Sprint("other", round)}
		for n, name := range names {
			for page := range 4 {
				rows := make([]any, 50)
				for i := range rows {
					rows[i] = map[string]any{"id": 50*page + i + 100*n, "of": name}
				}
				_, err := pg.MakeAttempt(t, stagedInput(pg, name, fields, "", rows...))
				require.NoError(t, err)
			}
		}
		for _, name := range names {
			group.Go(func() error {
				_, err := pg.MakeAttempt(t, stagedInput(pg, name, fields, interpreter.StagingPublish))
				if err != nil && tooltest.ErrorObject(t, err).Type == "table_changed" {
					changed.Add(1)
					return nil
				}
				return err
			})
		}
		require.NoError(t, testenv.WaitResult(t, group.Wait, "the end of the writes"))
		require.EqualValues(t, 1, changed.Load())
		found := db.Query(t, "SELECT of, count(*) AS n FROM target GROUP BY of")
		require.Len(t, found, 1, "%v", found)
		require.Equal(t, int64(200), found[0]["n"])
	}
}

// TestPublishWaitsForWriters: a writer that takes long is waited for, and then left to a further attempt.
func TestPublishWaitsForWriters(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE target (id int)")
	fields := map[string]any{"table": "target", "mode": "replace"}
	_, err := pg.MakeAttempt(t, stagedInput(pg, "a", fields, "", map[string]any{"id": 1}))
	require.NoError(t, err)
	writer := begin(t, db, "INSERT INTO target VALUES (2)")
	began := time.Now()
	_, err = pg.MakeAttempt(t, stagedInput(pg, "a", fields, interpreter.StagingPublish))
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, "55P03", object.Type)
	require.Equal(t, interpreter.ClassRetryable, object.Class)
	require.Greater(t, time.Since(began), 4*time.Second)
	require.NoError(t, writer.Commit(t.Context()))
	_, err = pg.MakeAttempt(t, stagedInput(pg, "a", fields, interpreter.StagingPublish))
	require.NoError(t, err)
	require.Equal(t, []map[string]any{{"id": int32(1)}}, db.Query(t, "SELECT id FROM target"))
}

// TestLeftOverInUse: what is being written to is not dropped, and what is being dropped is not written to.
func TestLeftOverInUse(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE target (id int)")
	fields := map[string]any{"table": "target", "mode": "replace"}
	write := func(name string, id int) error {
		_, err := pg.MakeAttempt(t, stagedInput(pg, name, fields, "", map[string]any{"id": id}))
		return err
	}
	require.NoError(t, write("old", 1))
	db.Exec(t, "UPDATE reprise_staging SET started_at = now() - interval '8 days'; UPDATE reprise_staged SET written_at = now() - interval '8 days'")
	user := begin(t, db, "SELECT FROM reprise_staging FOR KEY SHARE")
	require.NoError(t, write("new", 1))
	require.NoError(t, user.Rollback(t.Context()))
	require.NoError(t, write("old", 2), "nobody has dropped it")
	dropper := begin(t, db, "SELECT FROM reprise_staging FOR UPDATE")
	written := make(chan error, 1)
	go func() { written <- write("old", 3) }()
	require.Eventually(t, func() bool {
		return len(db.Query(t, "SELECT FROM pg_locks WHERE NOT granted")) > 0
	}, testenv.Within(10*time.Second), 20*time.Millisecond)
	_, err := dropper.Exec(t.Context(), "UPDATE reprise_staging SET dropped_at = now()")
	require.NoError(t, err)
	require.NoError(t, dropper.Commit(t.Context()))
	require.Equal(t, "staging_lost", tooltest.ErrorObject(t, testenv.Receive(t, written, "the end of the write")).Type)
}

// begin runs a statement in a transaction that the test ends.
func begin(t *testing.T, db *testenv.Database, statement string) pgx.Tx {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), statement)
	require.NoError(t, err)
	return tx
}
