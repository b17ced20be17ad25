package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/internal/test/testenv"
)

// notedFile is a database with a note of each of some calls.
func notedFile(t *testing.T, calls int) *database {
	t.Helper()
	f := newDatabase(filepath.Join(t.TempDir(), "notes.db"), 1<<20, false)
	t.Cleanup(func() { require.NoError(t, f.closeFile()) })
	require.NoError(t, f.useConnection(t.Context(), true, func(conn *guardedConn) error {
		for _, statement := range notesTable.Create {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				return err
			}
		}
		for i := range calls {
			if _, err := conn.ExecContext(t.Context(), "INSERT INTO reprise_notes (call_key, written, continuation) VALUES (?, 1, 'on')", fmt.Sprint(i)); err != nil {
				return err
			}
		}
		return nil
	}))
	return f
}

// ask gives a number of the database.
func (f *database) ask(t *testing.T, question string) (number int) {
	t.Helper()
	require.NoError(t, f.useConnection(t.Context(), false, func(conn *guardedConn) error {
		return conn.QueryRowContext(t.Context(), question).Scan(&number)
	}))
	return number
}

// joined is how many calls are to be forgotten next.
func (f *forgetting) joined(again bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next[again] == nil {
		return 0
	}
	return len(f.next[again].calls)
}

// TestCallsAreForgottenTogether: calls that end while the file is written to are forgotten in one transaction, and what is
// written afterwards waits for the disk again.
func TestCallsAreForgottenTogether(t *testing.T) {
	t.Parallel()
	const calls = 8
	f := notedFile(t, calls+1)
	f.writer <- struct{}{}
	var all errgroup.Group
	for i := range calls {
		all.Go(func() error { return f.forgetCalls(t.Context(), []string{fmt.Sprint(i)}, false) })
	}
	require.Eventually(t, func() bool { return f.forgetting.joined(false) == calls }, testenv.Within(10*time.Second), time.Millisecond)
	testenv.Receive(t, f.writer, "nobody held the file")
	require.NoError(t, testenv.WaitResult(t, all.Wait, "the calls were not forgotten"))
	require.Equal(t, 1, f.ask(t, "SELECT count(*) FROM reprise_notes"))
	require.Zero(t, f.forgetting.joined(false))
	const full = 2
	require.Equal(t, full, f.ask(t, "PRAGMA synchronous"))
	require.NoError(t, f.forgetCalls(t.Context(), []string{fmt.Sprint(calls)}, true))
	require.Equal(t, 1, f.ask(t, "SELECT count(*) FROM reprise_notes WHERE length(continuation) = 0"))
}

// TestForgettingIsGivenUp: who gives up keeps nobody from forgetting later.
func TestForgettingIsGivenUp(t *testing.T) {
	t.Parallel()
	f := notedFile(t, 1)
	f.writer <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.forgetCalls(ctx, []string{"0"}, false), context.Canceled)
	testenv.Receive(t, f.writer, "nobody held the file")
	require.NoError(t, f.forgetCalls(t.Context(), []string{"0"}, false))
	require.Zero(t, f.ask(t, "SELECT count(*) FROM reprise_notes"))
}
