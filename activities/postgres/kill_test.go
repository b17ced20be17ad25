package postgres_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

// cutter is a proxy that cuts a connection at a statement: before the server has it, or once the server
// has answered, which the client does not learn.
type cutter struct {
	url string

	mu     sync.Mutex
	left   int // statements until the cut; 0 for none
	before bool
	sent   []string // statements
	// freezeAt is the statement at which a connection stays open and passes nothing on any more, frozen what is closed then.
	freezeAt string
	frozen   chan struct{}
}

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	target, err := url.Parse(server)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	c, to := &cutter{}, target.Host
	target.Host = listener.Addr().String()
	c.url = target.String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			go c.pass(client, server)
		}
	}()
	return c
}

// arm has the n-th statement from now on cut its connection.
func (c *cutter) arm(n int, before bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.before = n, before
}

// fired reports whether the cut was made, and makes none any more.
func (c *cutter) fired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	fired := c.left == 0
	c.left = 0
	return fired
}

// freeze has the next statement with a text freeze its connection, and gives what is closed then.
func (c *cutter) freeze(statement string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.freezeAt, c.frozen = statement, make(chan struct{})
	return c.frozen
}

// freezes reports whether a connection freezes at a statement. One does.
func (c *cutter) freezes(statement string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.freezeAt == "" || statement != c.freezeAt {
		return false
	}
	c.freezeAt = ""
	close(c.frozen)
	return true
}

// statement counts one, and says whether it is the one at which the connection is cut.
func (c *cutter) statement() (cut, before bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return false, false
	}
	c.left--
	return c.left == 0, c.before
}

// rememberStatement keeps the text of a message that has a statement, and gives it.
func (c *cutter) rememberStatement(kind byte, body []byte) (statement string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch texts := bytes.Split(body, []byte{0}); {
	case kind == 'Q':
		statement = string(texts[0])
	case kind == 'P' && len(texts) > 1: // behind its name
		statement = string(texts[1])
	default:
		return ""
	}
	c.sent = append(c.sent, statement)
	return statement
}

// statements are those that were sent since it was last called.
func (c *cutter) statements() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := c.sent
	c.sent = nil
	return sent
}

// pass passes messages on until a cut.
func (c *cutter) pass(client, server net.Conn) {
	defer func() { _, _ = client.Close(), server.Close() }()
	cut := make(chan struct{})
	go func() {
		defer func() { _, _ = client.Close(), server.Close() }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			select {
			case <-cut:
				return // the answer is lost
			default:
			}
			if err != nil {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	for kinds := 0; ; kinds = 1 { // the first message has no kind
		head := make([]byte, kinds+4)
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[kinds:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if c.freezes(c.rememberStatement(head[0], body)) {
			_, _ = io.Copy(io.Discard, client)
			return
		}
		if kinds == 1 && (head[0] == 'Q' || head[0] == 'S' || head[0] == 'c') { // a query, the end of a statement, or of COPY
			switch at, before := c.statement(); {
			case at && before:
				return
			case at:
				close(cut)
			}
		}
		if _, err := server.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// killTest makes calls whose connection is cut at each of their statements, one after the other.
type killTest struct {
	prepare string // SQL before the calls
	content string // SQL of what is compared
	calls   []func(key string) interpreter.ToolInput
	every   int // how many statements are between two that are cut, 0 for many
}

// TestKillsAtEachStatement: what a call has done when its connection is lost is all or nothing, and the call that
// is made again does the rest.
func TestKillsAtEachStatement(t *testing.T) {
	t.Parallel()
	db := testenv.Postgres(t)
	cutter := newCutter(t, db.URL)
	catalogue := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"main": cutter.url}})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })
	pg := tooltest.SQL{Catalogue: catalogue, Name: "postgres", Auth: "main"}
	for name, test := range killTests(pg) {
		t.Run(name, func(t *testing.T) {
			states := test.undisturbed(t, db, pg)
			every := cmp.Or(test.every, 131)
			if *soak {
				every = 1
			}
			for _, before := range []bool{true, false} {
				first := 1
				if !before {
					first += every / 2
				}
				statement, cuts := first, 0
				for ; test.disturbed(t, db, pg, cutter, statement, before, states); statement += every {
					cuts++
				}
				require.Greater(t, statement, len(test.calls)*5)
				t.Logf("cut at %d of %d statements", cuts, statement)
			}
		})
	}
}

// killTests are the calls of each way of writing.
func killTests(pg tooltest.SQL) map[string]*killTest {
	type row = map[string]any
	many := make([]any, 1200)
	for i := range many {
		many[i] = row{"id": i, "n": i, "word": "new"}
	}
	call := func(fields row, staging *interpreter.Staging, rows []any) func(string) interpreter.ToolInput {
		return func(key string) interpreter.ToolInput {
			in := pg.TableInput(fields, nil)
			in.Args, in.Place, in.OperationKey, in.Fingerprint = nil, "sink", fmt.Sprint(key, expression.Digest(fields), len(rows), staging), fmt.Sprint(len(rows))
			in.ControlID = key
			if staging != nil {
				own := *staging
				own.ID = expression.ShortDigest(key) + "beef"
				in.Staging = &own
			}
			if staging == nil || staging.Do == "" {
				in.Result = tooltest.Value(rows)
			}
			return in
		}
	}
	const prepare = "DROP TABLE IF EXISTS target, aside; CREATE TABLE target (id int PRIMARY KEY, n int CHECK (n >= 0)); INSERT INTO target SELECT i, 0 FROM generate_series(1199, 2200) AS i"
	const content = "SELECT count(*) AS n, sum(n) AS sum, string_agg(DISTINCT t::jsonb ->> 'word', '') AS word FROM (SELECT n, to_jsonb(target) AS t FROM target) AS x"
	everything := row{"columns": "evolve", "data_type": "evolve"}
	replace := row{"table": "target", "key": "id", "mode": "replace", "schema_contract": everything, "rejected": row{"table": "aside"}}
	missing := row{"table": "target", "key": "id", "mode": "upsert", "delete_missing": true, "max_delete": 1, "schema_contract": everything, "rejected": row{"table": "aside"}}
	part := 1
	staged := func(fields row) *killTest {
		return &killTest{prepare: prepare, content: content, calls: []func(string) interpreter.ToolInput{
			call(fields, &interpreter.Staging{}, many),
			call(fields, &interpreter.Staging{Part: &part}, []any{row{"id": 5000, "n": 5}, row{"id": 5001, "n": -5}}),
			call(fields, &interpreter.Staging{Part: &part, Round: 1}, []any{row{"id": 6000, "n": 6}}),
			call(fields, &interpreter.Staging{Do: interpreter.StagingPublish}, nil),
		}}
	}
	plain := func(fields row) *killTest {
		return &killTest{prepare: prepare, content: content, calls: []func(string) interpreter.ToolInput{call(fields, nil, many[:1100]), call(fields, nil, []any{row{"id": 5000, "n": 5, "more": 1.5}, row{"id": 5001, "n": -5}})}}
	}
	keyless := row{"table": "target", "mode": "replace", "schema_contract": everything, "rejected": row{"table": "aside"}}
	children := func(more row) *killTest {
		fields := row{"table": "target", "key": "id", "schema_contract": "evolve", "children": row{"below": row{"table": "lines", "key": []any{"target", "line"}, "with": row{"target": "id"}}}}
		maps.Copy(fields, more)
		lines := func(lines ...any) (list []any) {
			for _, line := range lines {
				list = append(list, row{"line": line, "n": 1})
			}
			return list
		}
		first := []any{row{"id": 1, "n": 1, "below": lines(1, 2)}, row{"id": 2, "n": 2}, row{"id": 3, "n": 3, "below": lines(1)}}
		second := []any{row{"id": 4, "n": 1, "below": lines(2, 3)}, row{"id": 5, "n": 5, "word": "new", "below": []any{row{"line": 1, "word": "child"}}}}
		if more["mode"] == "upsert" {
			second = append(second, row{"id": 1, "n": 7, "below": lines(2, 3)}, row{"id": 3, "n": 3, "below": nil})
		}
		return &killTest{
			prepare: "DROP TABLE IF EXISTS target, lines; CREATE TABLE target (id int PRIMARY KEY, n int)",
			content: "SELECT (SELECT string_agg(concat(id, ':', n), ' ' ORDER BY id) FROM target) AS target, to_regclass('lines') AS made, " +
				"query_to_xml(CASE WHEN to_regclass('lines') IS NULL THEN 'SELECT 1' ELSE 'SELECT * FROM lines ORDER BY target, line' END, true, true, '')::text AS lines",
			calls: []func(string) interpreter.ToolInput{call(fields, nil, first), call(fields, nil, second)}, every: 17,
		}
	}
	replaced, parts := children(nil), []int{0, 1}
	replaced.calls, replaced.every = nil, 61
	replacing := row{"table": "target", "key": "id", "mode": "replace", "schema_contract": "evolve", "children": row{"below": row{"table": "lines", "key": []any{"target", "line"}, "with": row{"target": "id"}}}}
	for i, ids := range [][]int{{1, 2, 2}, {3, 4}, {4}} { // the third replaces what the second has staged
		rows := []any{}
		for _, id := range ids {
			rows = append(rows, row{"id": id, "n": i, "below": []any{row{"line": i, "n": id}, row{"line": 7, "n": id, "word": "w"}}})
		}
		replaced.calls = append(replaced.calls, call(replacing, &interpreter.Staging{Part: &parts[min(i, 1)], Round: max(0, i-1)}, rows))
	}
	replaced.calls = append(replaced.calls, call(replacing, &interpreter.Staging{Do: interpreter.StagingPublish}, nil))
	return map[string]*killTest{
		"children": children(nil), "children of a replace": replaced, "children of an upsert": children(row{"mode": "upsert"}),
		"replace by key": staged(replace), "replace": staged(keyless), "delete missing": staged(missing),
		"evolve, COPY beside, rejected": plain(row{"table": "target", "key": "id", "mode": "upsert", "schema_contract": everything, "rejected": row{"table": "aside"}}),
		"COPY":                          plain(row{"table": "target", "mode": "insert", "schema_contract": everything, "rejected": row{"table": "aside", "max": 1000}}),
	}
}

func (k *killTest) state(t *testing.T, db *testenv.Database) string {
	t.Helper()
	beside := db.Query(t, "SELECT count(*) AS n FROM pg_class WHERE relname LIKE 'reprise_staging\\_%' AND relkind = 'r'")
	return fmt.Sprint(db.Query(t, k.content), beside)
}

// undisturbed gives the states before and behind the calls.
func (k *killTest) undisturbed(t *testing.T, db *testenv.Database, pg tooltest.SQL) []string {
	t.Helper()
	db.Exec(t, k.prepare)
	states := []string{k.state(t, db)}
	for _, call := range k.calls {
		_, err := pg.MakeAttempt(t, call(t.Name()))
		require.NoError(t, err)
		states = append(states, k.state(t, db))
	}
	require.NotEqual(t, states[0], states[len(states)-1])
	return states
}

// disturbed makes the calls with a cut at the n-th statement, and reports whether there were so many.
func (k *killTest) disturbed(t *testing.T, db *testenv.Database, pg tooltest.SQL, cutter *cutter, n int, before bool, states []string) bool {
	t.Helper()
	db.Exec(t, k.prepare)
	key := fmt.Sprint(t.Name(), n, before)
	cutter.arm(n, before)
	for i, call := range k.calls {
		_, err := pg.MakeAttempt(t, call(key))
		if err != nil {
			object := tooltest.ErrorObject(t, err)
			require.Equal(t, interpreter.ClassRetryable, object.Class, object.Message)
			require.Contains(t, states[i:i+2], k.state(t, db), "call %d, statement %d", i, n)
			_, err = pg.MakeAttempt(t, call(key))
		}
		require.NoError(t, err, "call %d, statement %d", i, n)
		require.Equal(t, states[i+1], k.state(t, db), "call %d, statement %d", i, n)
	}
	return cutter.fired()
}

// TestFrozenWriterHoldsNoState: the lock of a worker that freezes within its transaction is released, and another one gets the state.
func TestFrozenWriterHoldsNoState(t *testing.T) {
	t.Parallel()
	db := testenv.Postgres(t)
	cutter := newCutter(t, db.URL)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	frozen, other := pgStates(t, cutter.url).Keeper, pgStates(t, db.URL).Keeper
	claim := func(by tool.StateStore, holder string) error {
		in := tooltest.CompleteInput(interpreter.ToolInput{Auth: "main", Fields: tooltest.Fields(map[string]any{"table": "orders"})}, "postgres")
		_, err := by.ClaimState(ctx, in, incremental.Claim{Name: "orders", Holder: holder, Source: tooltest.Source})
		return err
	}
	require.NoError(t, claim(frozen, "first"))
	isFrozen := cutter.freeze("commit")
	go func() { _ = claim(frozen, "second") }()
	select {
	case <-isFrozen:
	case <-ctx.Done():
		require.Fail(t, "the claim sent no commit", "%q", cutter.statements())
	}
	require.NoError(t, claim(other, "third"))
}
