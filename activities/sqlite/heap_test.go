package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities/sqlite"
	"reprise/activities/tool"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// hungry makes so many values of 1 MB that are all in memory at once.
func hungry(values int) string {
	return "SELECT length(max(" + strings.Repeat("hex(zeroblob(500000)),", values) + "'')) AS n"
}

// TestSQLiteMemoryIsBounded: for how much a statement makes at once there is a
// bound as well. It runs by itself, as SQLite's memory is one for the process.
func TestSQLiteMemoryIsBounded(t *testing.T) {
	lite, directory := liteTool(t)
	limit := sqlite.HeapLimit()

	object := lite.FailingCall(t, lite.RawInput(hungry(900)))
	require.Equal(t, interpreter.KindPayloadTooLarge, object.Kind)
	require.Equal(t, interpreter.ClassFinal, object.Class)
	require.True(t, object.Final)
	require.Equal(t, "SQLITE_NOMEM", object.Type)

	if limit == 0 {
		limit = sqlite.HeapLimit()
	}

	require.LessOrEqual(t, limit, int64(600<<20), "else the statement should be hungrier")
	require.Contains(t, object.Message, fmt.Sprintf("SQLite would need more than %d bytes of memory, "+
		"all that it has in this worker (REPRISE_MAX_ANSWERS_BYTES)", limit))

	// The connection and the file are as good as before, and a hungry write left
	// nothing.
	require.Equal(t, []any{map[string]any{"n": 1_000_000}}, lite.RunStatement(t, hungry(20), nil))
	lite.RunStatement(t, "CREATE TABLE kept (a)", nil)

	in := lite.RawInput("INSERT INTO kept VALUES (1), ((" + hungry(900) + "))")
	require.Equal(t, "SQLITE_NOMEM", lite.FailingCall(t, in).Type)
	require.Equal(t, []any{map[string]any{"n": 0}}, lite.RunStatement(t, "SELECT count(*) AS n FROM kept", nil))

	// While another attempt is at SQLite, it may have what is missing.
	other := lite
	other.Auth = "sqlite:locked.db"
	other.RunStatement(t, "CREATE TABLE t (a)", nil)

	locked, err := sql.Open("sqlite", "file:"+filepath.Join(directory, "locked.db")+"?_txlock=immediate")
	require.NoError(t, err)

	defer locked.Close()

	tx, err := locked.BeginTx(t.Context(), nil)
	require.NoError(t, err)

	waited := make(chan struct{})

	go func() {
		defer close(waited)

		_, _ = other.MakeAttempt(t, other.RawInput("INSERT INTO t VALUES (1)")) // in time for the lock, or not
	}()

	require.Eventually(t, func() bool { return sqlite.HeapUsers() == 1 }, testenv.Within(10*time.Second), time.Millisecond)

	object = lite.FailingCall(t, lite.RawInput(hungry(900)))
	require.NoError(t, tx.Rollback())
	testenv.Receive(t, waited, "the end of the write")

	require.Equal(t, interpreter.KindTool, object.Kind)
	require.Equal(t, interpreter.ClassRetryable, object.Class)
	require.False(t, object.Final)
	require.Equal(t, "SQLITE_NOMEM", object.Type)
	require.Contains(t, object.Message, fmt.Sprintf("the attempts of this worker share %d bytes", limit))
}

// TestSQLiteMemoryFitsOwnValues: what the worker allows its attempts is SQLite's
// too, and never less than writing a value of its own takes.
func TestSQLiteMemoryFitsOwnValues(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		answers, response int64
		payload           int
		want              int64
	}{
		{256 << 20, 10 << 20, interpreter.MaxInlinePayload, 256 << 20},
		{64 << 20, 1 << 20, 1 << 20, 64 << 20},
		{256 << 20, 10 << 20, 64 << 20, 4 * 2 * (10 + 64) << 20},
		{1 << 30, 10 << 20, 64 << 20, 1 << 30},
	} {
		require.Equal(t, test.want, sqlite.HeapBytes(tool.Resources{
			MaxResponseBytes: test.response, MaxPayload: test.payload, MemoryBytes: test.answers,
		}))
	}
}
