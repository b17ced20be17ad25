package tooltest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/activities/attempt"
	"reprise/activities/hosting"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// testLedger writes with notes: a write and its note are one, and the first one
// stays.
func (s *runner) testLedger(t *testing.T, ledger LedgerCase) {
	t.Parallel()
	l := &ledgerTest{runner: s, ledger: ledger, write: ActivityOf(t, s.Catalogue, interpreter.WriteActivity(s.Tool))}
	first := CompleteInput(ledger.Input(t), s.Tool)
	first.OperationKey, first.Fingerprint = "op-first", "f1"
	other := CompleteInput(ledger.Other(t), s.Tool)
	other.OperationKey, other.Fingerprint = "op-second", "f2"
	require.Empty(t, l.recallNotes(t, first, 0), "nothing was written")
	require.Nil(t, l.putNoted(t, first, 1, 0, "one").Noted)
	once := ledger.Effect(t)
	require.Equal(t, []string{"1: one"}, l.recallNotes(t, first, 0))
	require.Equal(t, "one", string(l.putNoted(t, first, 1, 0, "again").Noted), "what was noted comes back")
	require.Equal(t, "one", string(l.putNoted(t, other, 1, 0, "another path").Noted), "also to another write")
	require.Equal(t, once, ledger.Effect(t))
	long := strings.Repeat("long ", 10_000)
	require.Nil(t, l.putNoted(t, other, 2, 0, long).Noted)
	require.NotEqual(t, once, ledger.Effect(t))
	require.Equal(t, []string{"2: " + long}, l.recallNotes(t, first, 1))
	require.Equal(t, []string{"1: one", "2: " + long}, l.recallNotes(t, first, 0))
	empty := other
	empty.OperationKey, empty.Args, empty.Result = "op-empty", nil, &expression.Value{Data: []any{}}
	require.Nil(t, l.putNoted(t, empty, 3, 1, "of nothing").Noted)
	require.Equal(t, []string{"2: " + long, "3: of nothing"}, l.recallNotes(t, first, 0), "the first was to be forgotten")
	l.testConcurrentWrites(t, other)
	l.testConflict(t, first)
	l.testForgetting(t, first)
}

// testForgetting: nothing stays of notes that nobody needs, or, where a worker that was
// frozen may still write, that they were made.
func (l *ledgerTest) testForgetting(t *testing.T, in interpreter.ToolInput) {
	t.Helper()
	in.OperationKey, in.Fingerprint = "op-late", "late"
	l.putNoted(t, in, 11, 0, "a page")
	place := in
	place.Args, place.Result, place.Note = nil, nil, nil
	require.NoError(t, hosting.ForgetNotes(t.Context(), l.Catalogue.Attempts, place, []string{"another call"}, false))
	require.Equal(t, []string{"11: a page"}, l.recallNotes(t, in, 10), "of another call")
	require.NoError(t, hosting.ForgetNotes(t.Context(), l.Catalogue.Attempts, place, []string{l.ledger.Name}, true))
	require.Equal(t, []string{"11: "}, l.recallNotes(t, in, 10))
	written := l.ledger.Effect(t)
	in.OperationKey = "op-later"
	require.Equal(t, []byte{}, l.putNoted(t, in, 11, 0, "another page").Noted, "it was written")
	require.Equal(t, written, l.ledger.Effect(t))
	require.NoError(t, hosting.ForgetNotes(t.Context(), l.Catalogue.Attempts, place, []string{l.ledger.Name}, false))
	for _, left := range l.recallNotes(t, in, 0) {
		require.Regexp(t, `^\d+: $`, left)
	}
}

// testConcurrentWrites: of several workers that make one write, one writes.
func (l *ledgerTest) testConcurrentWrites(t *testing.T, in interpreter.ToolInput) {
	t.Helper()
	var (
		wrote atomic.Int32
		group errgroup.Group
	)
	in.OperationKey = "op-together"
	for i := range together {
		group.Go(func() error {
			mine := in
			mine.Note = &interpreter.LedgerEntry{Call: l.ledger.Name, Written: 9, Continuation: fmt.Append(nil, i)}
			result, err := l.write(t.Context(), mine)
			if result.Noted == nil {
				wrote.Add(1)
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, int32(1), wrote.Load())
	require.Len(t, l.recallNotes(t, in, 8), 1)
}

// testConflict: a key that is there with other rows is never skipped in silence.
func (l *ledgerTest) testConflict(t *testing.T, in interpreter.ToolInput) {
	t.Helper()
	once := l.ledger.Effect(t)
	result, err := l.write(t.Context(), in)
	require.NoError(t, err, "the same rows are written already")
	if l.ledger.Upserts {
		return
	}
	require.Equal(t, once, l.ledger.Effect(t))
	in.Fingerprint = "moved"
	_, err = l.write(t.Context(), in)
	object := ErrorObject(t, err)
	require.Equal(t, "written_before", object.Type, "%v, %v", object, result)
	require.Equal(t, interpreter.ClassFinal, object.Class)
	require.True(t, object.Final)
	require.Contains(t, object.Message, "op-first")
	require.Equal(t, once, l.ledger.Effect(t))
}

type ledgerTest struct {
	*runner
	ledger LedgerCase
	write  attempt.Func
}

// putNoted writes with a note.
func (l *ledgerTest) putNoted(t *testing.T, in interpreter.ToolInput, written, forget int, continuation string) interpreter.ToolResult {
	t.Helper()
	in.Note = &interpreter.LedgerEntry{Call: l.ledger.Name, Written: written, Forget: forget, Continuation: []byte(continuation)}
	result, err := l.write(t.Context(), in)
	require.NoError(t, err)
	return result
}

// recallNotes gives the notes behind a write, as "write: continuation".
func (l *ledgerTest) recallNotes(t *testing.T, in interpreter.ToolInput, behind int) []string {
	t.Helper()
	in.Note = &interpreter.LedgerEntry{Call: l.ledger.Name, Written: behind}
	in.Args, in.Result = nil, nil
	notes, err := hosting.RecallNotes(t.Context(), l.Catalogue.Attempts, in)
	require.NoError(t, err)
	var all []string
	for _, note := range notes {
		require.Equal(t, l.ledger.Name, note.Call)
		all = append(all, fmt.Sprintf("%d: %s", note.Written, note.Continuation))
	}
	elsewhere := in
	elsewhere.Note = &interpreter.LedgerEntry{Call: "another call"}
	none, err := hosting.RecallNotes(t.Context(), l.Catalogue.Attempts, elsewhere)
	require.NoError(t, err)
	require.Empty(t, none)
	return all
}
