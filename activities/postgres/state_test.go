package postgres_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/postgres"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/internal/base/secrets"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

// pgStates keeps states in a new database, which is at url where it is given.
func pgStates(t testing.TB, url string) tooltest.States {
	t.Helper()
	pg := postgres.New(tool.Resources{
		Connections: activities.Connections{"main": url}, MaxResponseBytes: 64 << 20, MaxPayload: 64 << 20, Secrets: &secrets.Masker{},
	})
	t.Cleanup(func() { require.NoError(t, pg.Close()) })
	return tooltest.States{Keeper: pg, Tool: "postgres", Auth: "main"}
}

func TestPostgresKeepsStates(t *testing.T) {
	t.Parallel()

	pgStates(t, testenv.Postgres(t).URL).Run(t)
}

func BenchmarkStateOfAPage(b *testing.B) { pgStates(b, testenv.Postgres(b).URL).BenchmarkPages(b) }

// TestPostgresStateTakesNoRoundTrip counts requests that are answered before the next one.
func TestPostgresStateTakesNoRoundTrip(t *testing.T) {
	t.Parallel()

	server := newCountingProxy(t, testenv.Postgres(t).URL)
	states := pgStates(t, server.url)
	write := func(name string, change func(*interpreter.ToolInput)) int64 {
		trips := int64(math.MaxInt64) // the fewest of several pages: sessions are forgotten meanwhile
		t.Run(name, func(t *testing.T) {
			test := states.Test(t)
			test.ClaimState("a")
			rows := make([]any, 100)
			for page := 1; page <= 6; page++ {
				for i := range rows {
					rows[i] = tooltest.Row(page*100+i, page*100+i)
				}
				in := test.WriteInput(rows...)
				in.Note = &interpreter.LedgerEntry{Call: test.State, Written: page, Forget: page - 1, Continuation: []byte("on")}
				in.State = test.StateWrite("a", page, tooltest.MoveTo(page*100+99), tooltest.At(0).Position)
				in.State.Rows.Sweep = false
				change(&in)
				before := server.trips.Load()
				_, err := states.Keeper.Write(t.Context(), in)
				require.NoError(t, err)
				trips = min(trips, server.trips.Load()-before)
			}
		})
		return trips
	}
	without := write("insert without", func(in *interpreter.ToolInput) { in.State = nil })
	require.Equal(t, int64(1), without, "begin, the ledger, rows and commit go together; a session describes its table once")
	require.Equal(t, without, write("insert", func(*interpreter.ToolInput) {}))
	require.Equal(t, without, write("swept", func(in *interpreter.ToolInput) {
		in.State.Rows.Floor, in.State.Rows.Sweep = in.State.Move.To.Position, true
	}))
	ordered := func(in *interpreter.ToolInput) {
		in.State.Rows.Ordered, in.State.Rows.Reached = true, tooltest.At(in.State.Number*100-1).Position
	}
	require.Equal(t, without, write("ordered", ordered))
	require.Equal(t, without, write("tied", func(in *interpreter.ToolInput) {
		ordered(in)
		rows := in.Result.Data.([]any)
		rows[0] = tooltest.Row(-in.State.Number, in.State.Number*100-1)
	}))
	upsert := func(in *interpreter.ToolInput) {
		in.OperationKey, in.State.Rows = "", nil
		in.Fields["mode"], in.Fields["key"] = *tooltest.Value("upsert"), *tooltest.Value([]any{"id", "at"})
	}
	require.Equal(t, without, write("upsert", upsert))
}

// TestPostgresWriteThatHasWaited: a write that has waited for another one of its state leaves out what that has written.
func TestPostgresWriteThatHasWaited(t *testing.T) {
	t.Parallel()

	for name, reached := range map[string]int{"behind what is known": 199, "searched": 200} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			waitForABlock(t, reached)
		})
	}
}

// waitForABlock has a write wait for one that adds all of its rows but one. It has reached a cursor.
func waitForABlock(t *testing.T, reached int) {
	t.Helper()

	db := testenv.Postgres(t)
	test := pgStates(t, db.URL).Test(t)
	db.Exec(t, "CREATE TABLE plain (id bigint, at bigint)") // no constraint says what comes twice
	test.Table = "plain"
	test.ClaimState("a")
	rows := make([]any, 0, 241)
	for id := range cap(rows) {
		rows = append(rows, tooltest.Row(id, id))
	}
	for number := 1; number <= 6; number++ { // the last ones in a block
		require.Equal(t, 40, test.MustWrite(test.OrderedWrite("a", number, -1, 0, false), rows[number*40-40:number*40]...))
	}
	// Another write has not known of the block yet, and waits for one that adds it.
	db.Exec(t, "CREATE TABLE blocks AS SELECT * FROM reprise_seen_blocks ORDER BY last_position DESC LIMIT 1")
	db.Exec(t, "DELETE FROM reprise_seen_blocks WHERE last_position = (SELECT last_position FROM blocks)")
	db.Exec(t, "UPDATE reprise_state SET known_to = (SELECT last_position FROM reprise_seen_blocks ORDER BY last_position DESC LIMIT 1)")
	conn, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	for _, statement := range []string{
		"UPDATE reprise_state SET last_write = last_write, known_to = (SELECT last_position FROM blocks)", "INSERT INTO reprise_seen_blocks SELECT * FROM blocks",
	} {
		_, err = tx.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	wrote := make(chan int, 1)
	go func() {
		n, err := test.Write(test.WriteInput(rows[200:]...), test.OrderedWrite("a", 7, reached, 0, false))
		if err != nil {
			n = -1
		}
		wrote <- n
	}()
	require.Eventually(t, func() bool {
		return len(db.Query(t, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")) > 0
	}, testenv.Within(10*time.Second), 10*time.Millisecond)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, 1, testenv.Receive(t, wrote, "the end of the write"))
	require.Len(t, db.Query(t, "SELECT id FROM plain"), len(rows))
}

// countingProxy counts how often a server answers what it was sent.
type countingProxy struct {
	url   string
	trips atomic.Int64
}

func newCountingProxy(t *testing.T, server string) *countingProxy {
	t.Helper()
	target, err := url.Parse(server)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	p := &countingProxy{}
	to := target.Host
	target.Host = listener.Addr().String()
	p.url = target.String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pass(client, to)
		}
	}()
	return p
}

func (p *countingProxy) pass(client net.Conn, to string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var asked atomic.Bool
	go func() {
		_, _ = io.Copy(client, io.TeeReader(server, writerFunc(func() {
			if asked.Swap(false) {
				p.trips.Add(1)
			}
		})))
	}()
	_, _ = io.Copy(server, io.TeeReader(client, writerFunc(func() { asked.Store(true) })))
}

// writerFunc is called for what is written.
type writerFunc func()

// Write calls it.
func (f writerFunc) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// TestPostgresStateNeedsRights: who may not make tables is told which, and may use those that are there.
func TestPostgresStateNeedsRights(t *testing.T) {
	t.Parallel()

	db := testenv.Postgres(t)
	role := "reader_" + db.Name
	db.Exec(t, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	db.Exec(t, fmt.Sprintf("CREATE ROLE %q LOGIN PASSWORD 'sesame-open'", role))
	t.Cleanup(func() {
		db.Exec(t, fmt.Sprintf("DROP OWNED BY %q", role))
		db.Exec(t, fmt.Sprintf("DROP ROLE %q", role))
	})
	owner := pgStates(t, db.URL)
	test := owner.Test(t)
	db.Exec(t, fmt.Sprintf("GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO %q", role))
	address, err := url.Parse(db.URL)
	require.NoError(t, err)
	address.User = url.UserPassword(role, "sesame-open")
	own := *test
	own.States = pgStates(t, address.String())

	claim := incremental.Claim{Name: own.State, Holder: "a", Run: "run", Source: tooltest.Source}
	_, err = own.Keeper.ClaimState(t.Context(), own.WriteInput(), claim)
	require.ErrorContains(t, err, `the user of connection "main" may not create or use the tables that store states between runs (reprise_state, reprise_seen`)
	require.NotContains(t, err.Error(), "sesame-open")
	states, err := own.Keeper.States(t.Context(), own.WriteInput(), "")
	require.NoError(t, err)
	require.Empty(t, states)

	other := *test
	other.State = "another"
	other.ClaimState("b")
	db.Exec(t, fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO %q", role))
	require.Zero(t, own.ClaimState("a"))
	require.Equal(t, 1, own.MustWrite(own.StateWrite("a", 1, tooltest.MoveTo(1), nil), tooltest.Row(1, 1)))
	require.Equal(t, 1, own.Watermark())
}
