package hosting_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/interpreter"
	"reprise/interpreter/call"
)

// moving answers like pager, with other rows for each worker.
func moving(worker string, n int) func(context.Context, interpreter.ToolInput) (any, error) {
	return func(_ context.Context, in interpreter.ToolInput) (any, error) {
		return map[string]any{"more": in.Page < n, "rows": []any{fmt.Sprint(worker, in.Page)}}, nil
	}
}

// lost is the worker that is lost behind its third write: what it has told
// nobody is gone, but what it wrote is there.
func lost(t *testing.T, in call.DriveInput) *player {
	t.Helper()
	p := &player{answer: moving("first ", 6)}
	newStage(t, p, activities.Resources{}).drive(in)
	p.notes = p.notes[:3]
	p.written = p.written[:3]
	return p
}

// TestDriveFollowsTheLedger: what a worker that was lost has written stays what
// the call is made of, although the source has changed since.
func TestDriveFollowsTheLedger(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"asks first": true, "finds it written": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := driveInput(perItem, perPage, "a")
			first := lost(t, in)
			second := &player{answer: moving("second ", 6), notes: first.notes}
			stage := newStage(t, second, activities.Resources{})
			if told {
				stage.env.SetHeartbeatDetails(call.DriveOutput{})
			}
			call := stage.drive(in)[0]
			rows := []any{"first 1", "first 2", "first 3", "second 4", "second 5", "second 6"}
			require.Equal(t, rows, call.Result.Data.Data)
			require.Equal(t, []string{
				`a: ["first 1"]`, `a: ["first 2"]`, `a: ["first 3"]`, `a: ["second 4"]`, `a: ["second 5"]`, `a: ["second 6"]`,
				`all of a: ["first 1","first 2","first 3","second 4","second 5","second 6"]`,
			}, slices.Concat(first.written, second.written))
			require.Equal(t, 6, call.Result.Meta.Pages)
			if told {
				require.Equal(t, []string{"a/4", "a/5", "a/6"}, second.asked)
			}
		})
	}
}

// TestDriveFollowsTheLedgerBehindAHeartbeat: what ledgers hold counts, not a heartbeat from before these writes, however many attempts
// that has. Two workers that were lost have left both: one was frozen, and wrote while the other one asked in vain.
func TestDriveFollowsTheLedgerBehindAHeartbeat(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]*interpreter.Outcome{
		"attempts": nil, "an answer": {Data: map[string]any{"more": true, "rows": []any{"stale 2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := driveInput(perItem, perPage, "a")
			first := lost(t, in)
			book, step, err := in.Task.LoadStep()
			require.NoError(t, err)
			stale := in.Task.BuildCall(book, step, in.Calls[0], func() float64 { return 0 })
			now := time.Now()
			stale.Next(now)
			stale.ApplyOutcome(interpreter.Outcome{Data: map[string]any{"more": true, "rows": []any{"first 1"}}}, now)
			stale.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, now)
			state := stale.View().Snapshot()
			state.Attempts = 9
			require.Equal(t, 1, state.Written)

			second := &player{answer: moving("second ", 6), notes: first.notes}
			stage := newStage(t, second, activities.Resources{})
			stage.env.SetHeartbeatDetails(call.DriveOutput{Calls: []call.Driven{{State: &state, Outcome: outcome}}})
			driven := stage.drive(in)[0]
			require.NotNil(t, driven.Result)
			require.Equal(t, []any{"first 1", "first 2", "first 3", "second 4", "second 5", "second 6"}, driven.Result.Data.Data)
			require.Equal(t, []string{"a/4", "a/5", "a/6"}, second.asked)
		})
	}
}

// TestDriveFollowsTheLedgerOfPages: the same where pages are fetched apart from
// what was collected before.
func TestDriveFollowsTheLedgerOfPages(t *testing.T) {
	t.Parallel()
	in := pagesInput(t, perPage, map[string]any{"more": true, "rows": []any{"history 1"}})
	first := lost(t, in)
	require.Equal(t, []string{`a: ["history 1"]`, `a: ["first 2"]`, `a: ["first 3"]`}, first.written)
	second := &player{answer: moving("second ", 6), notes: first.notes}
	stage := newStage(t, second, activities.Resources{})
	stage.env.SetHeartbeatDetails(call.DriveOutput{})
	driven := stage.drive(in)[0]
	require.Equal(t, []any{"first 2", "first 3", "first 4", "second 5"}, driven.State.Collected.Data)
	require.Equal(t, 5, driven.State.Successes)
	require.NotNil(t, driven.Outcome, "the last page is in history before it is written")
	require.Equal(t, []string{"a/5", "a/6"}, second.asked)
}

// TestDriveRepeatsNoFailure: a dead letter that was written stays true, although
// the next worker would have had more luck.
func TestDriveRepeatsNoFailure(t *testing.T) {
	t.Parallel()
	in := driveInput("      dead_letter: {sink: {tool: player, params: {item: \"dead {{ item }}\"}}}", "", "a")
	first := &player{answer: func(context.Context, interpreter.ToolInput) (any, error) { return nil, status(404) }}
	require.Equal(t, 404, newStage(t, first, activities.Resources{}).drive(in)[0].Result.Error.Status)
	require.Len(t, first.notes, 1)

	second := &player{answer: pager(1, 0), notes: first.notes}
	stage := newStage(t, second, activities.Resources{})
	stage.env.SetHeartbeatDetails(call.DriveOutput{})
	require.Equal(t, 404, stage.drive(in)[0].Result.Error.Status)
	require.Empty(t, second.asked)
	require.Empty(t, second.written)
}

// TestDriveNotesNoWriteThatFailed: a sink that ignores its failure has left no
// note, so whoever goes on from the note behind it needs what came before.
func TestDriveNotesNoWriteThatFailed(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]string{
		"ignore": "{ignore: true}", "on_exhausted": "{max_attempts: 1, on_exhausted: succeed}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := driveInput("", `per_page: {sink: {tool: player, params: {item: "{{ item }}"}, retry: [{when: "{{ error is defined }}", then: `+then+`}]}}`, "a")
			first := &player{answer: moving("first ", 6), write: func(in interpreter.ToolInput) error {
				if in.Page == 2 {
					return status(409)
				}
				return nil
			}}
			newStage(t, first, activities.Resources{}).drive(in)
			require.Len(t, first.notes, 5)

			second := &player{answer: moving("second ", 6), notes: first.notes[:2]}
			stage := newStage(t, second, activities.Resources{})
			stage.env.SetHeartbeatDetails(call.DriveOutput{})
			call := stage.drive(in)[0]
			require.Equal(t, []any{"first 1", "first 2", "first 3", "second 4", "second 5", "second 6"}, call.Result.Data.Data)
			require.Equal(t, []string{"a/4", "a/5", "a/6"}, second.asked)
		})
	}
}

// TestDriveFollowsTheLedgerPastARestart: what is noted behind a restart has
// nothing of the round before, wherever it is taken up.
func TestDriveFollowsTheLedgerPastARestart(t *testing.T) {
	t.Parallel()
	expiring := func(worker string) func(context.Context, interpreter.ToolInput) (any, error) {
		expired := false
		return func(ctx context.Context, in interpreter.ToolInput) (any, error) {
			if in.Page == 3 && worker == "first " && !expired {
				expired = true
				return nil, status(410)
			}
			return moving(fmt.Sprint(worker, expired, " "), 5)(ctx, in)
		}
	}
	in := driveInput("", perPage, "a")
	in.Task.Source = strings.Replace(in.Task.Source, "    retry:\n", "    retry:\n      - {when: \"{{ error.status == 410 }}\", then: {restart: true, delay: 0}}\n", 1)
	first := &player{answer: expiring("first ")}
	whole := newStage(t, first, activities.Resources{}).drive(in)[0]
	require.Equal(t, []any{"first true 1", "first true 2", "first true 3", "first true 4", "first true 5"}, whole.Result.Data.Data)
	require.Equal(t, 5, whole.Result.Meta.Pages)
	require.Equal(t, 8, whole.Result.Meta.Attempts)
	require.Len(t, first.notes, 7, "two pages, then five")

	for notes, want := range map[int][]any{
		1: {"first false 1", "second false 2", "second false 3", "second false 4", "second false 5"},
		2: {"first false 1", "first false 2", "second false 3", "second false 4", "second false 5"},
		3: {"first true 1", "second false 2", "second false 3", "second false 4", "second false 5"},
		5: {"first true 1", "first true 2", "first true 3", "second false 4", "second false 5"},
	} {
		second := &player{answer: expiring("second "), notes: slices.Clone(first.notes[:notes])}
		stage := newStage(t, second, activities.Resources{})
		stage.env.SetHeartbeatDetails(call.DriveOutput{})
		call := stage.drive(in)[0]
		require.NotNil(t, call.Result, "%d notes", notes)
		require.Equal(t, want, call.Result.Data.Data, "%d notes", notes)
		require.Equal(t, 5, call.Result.Meta.Pages, "%d notes", notes)
	}
}

// TestDriveHasHistoryFirst: what cannot be noted is handed back before it is
// written, as it came, and written by whoever gets it from history.
func TestDriveHasHistoryFirst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		player *player
		bytes  int
		sink   string
	}{
		"no ledger":           {player: &player{plain: true}, sink: perPage},
		"a page too large":    {player: &player{}, bytes: call.MaxContinuation + 1, sink: perPage},
		"a place of the page": {player: &player{}, sink: strings.Replace(perPage, "per_page: {sink: {tool: player, params: {item: \"{{ item }}\"}", "per_page: {sink: {tool: player, params: {item: \"{{ item }}\", n: \"{{ response.rows }}\"}", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := test.player
			p.answer = pager(4, test.bytes)
			res := activities.Resources{Payloads: attempt.Payloads{MaxBytes: 8 << 20}}
			in := pagesInput(t, test.sink, firstPage())
			for page := 2; page < 4; page++ {
				fetched := newStage(t, p, res).drive(in)[0]
				require.Equal(t, page-1, fetched.State.Successes)
				require.NotNil(t, fetched.Outcome)
				require.Len(t, p.written, page-1, "page %d is not written before it is in history", page)
				require.Empty(t, p.notes)
				in = resumed(t, in, fetched)
			}

			batch := driveInput("", test.sink, "a")
			driven := newStage(t, &player{plain: p.plain, answer: p.answer}, res).drive(batch)[0]
			require.NotNil(t, driven.Outcome)
			require.Zero(t, driven.State.Successes)
		})
	}
}

// resumed is the input for the activity after the one that gave turned.
func resumed(t *testing.T, in call.DriveInput, driven call.Driven) call.DriveInput {
	t.Helper()
	book, step, err := in.Task.LoadStep()
	require.NoError(t, err)
	call := in.Task.BuildCall(book, step, in.Calls[0], func() float64 { return 0 })
	call.Apply(driven, call.View().StartedAt)
	require.True(t, call.View().FetchesPage())
	next := in
	next.Calls = slices.Clone(in.Calls)
	next.Calls[0].State = call.View().SnapshotFor(true)
	return next
}
