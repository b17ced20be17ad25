package hosting_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/activities/tool"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// player is a tool and a sink that a test plays; what it is asked is kept.
type player struct {
	answer func(ctx context.Context, in interpreter.ToolInput) (any, error)
	write  func(in interpreter.ToolInput) error // nil takes everything
	plain  bool                                 // it keeps no notes

	mu       sync.Mutex
	asked    []string // "element/page"
	written  []string // "key of the page: rows"
	now, top int      // attempts at a time
	notes    []interpreter.LedgerEntry
}

func (*player) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{Name: "player", Summary: "A tool of a test.", Writes: true}
}

func (p *player) Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	p.mu.Lock()
	p.asked = append(p.asked, fmt.Sprintf("%s/%d", param(in, "item"), in.Page))
	p.now++
	p.top = max(p.top, p.now)
	p.mu.Unlock()
	data, err := p.answer(ctx, in)
	p.mu.Lock()
	p.now--
	p.mu.Unlock()
	return interpreter.ToolResult{Data: expression.Of(data)}, err
}

func (p *player) Write(_ context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, note := range p.notes {
		if in.Note != nil && note.Call == in.Note.Call && note.Written == in.Note.Written {
			return interpreter.ToolResult{Noted: note.Continuation}, nil
		}
	}
	p.written = append(p.written, param(in, "item")+": "+expression.Text(in.Result.Data))
	if p.write != nil {
		if err := p.write(in); err != nil {
			return interpreter.ToolResult{}, err
		}
	}
	if in.Note != nil {
		p.notes = append(p.notes, *in.Note)
	}
	return interpreter.ToolResult{}, nil
}

// RecordsWrite reports whether the player is a ledger.
func (p *player) RecordsWrite(interpreter.ToolInput) bool { return !p.plain }

// RecallNotes gives what was noted.
func (p *player) RecallNotes(_ context.Context, in interpreter.ToolInput) ([]interpreter.LedgerEntry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []interpreter.LedgerEntry
	for _, note := range p.notes {
		if note.Call == in.Note.Call && note.Written > in.Note.Written {
			found = append(found, note)
		}
	}
	return found, nil
}

// ForgetNotes drops what was noted.
func (p *player) ForgetNotes(_ context.Context, _ interpreter.ToolInput, calls []string, _ bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = slices.DeleteFunc(p.notes, func(note interpreter.LedgerEntry) bool { return slices.Contains(calls, note.Call) })
	return nil
}

// param is one of the params of a request, as text.
func param(in interpreter.ToolInput, name string) string {
	params, _ := in.Fields["params"].Data.(map[string]any)
	return expression.Text(params[name])
}

// pager answers with n pages of one row of the given bytes.
func pager(n, bytes int) func(context.Context, interpreter.ToolInput) (any, error) {
	return func(_ context.Context, in interpreter.ToolInput) (any, error) {
		row := any(in.Page)
		if bytes > 0 {
			row = fmt.Sprint(in.Page, strings.Repeat("x", bytes))
		}
		return map[string]any{"more": in.Page < n, "rows": []any{row}}, nil
	}
}

const driven = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: driven}
workflow:
  - step: fetch
    tool: player
    params: {item: "{{ item }}", page: 1}
    loop:
      collection: [a, b, c, d, e, f]
      mode: parallel
%s
    retry:
      - when: "{{ error.status == 503 }}"
        then: {max_attempts: 3, delay: 1h}
      - when: "{{ error.status == 500 }}"
        then: {max_attempts: 3, delay: 0}
      - when: "{{ response.more }}"
        then:
          next_call: {params: {page: "{{ _retry.index + 1 }}"}}
          collect: {path: rows}
          %s
`

const (
	perPage = `per_page: {sink: {tool: player, params: {item: "{{ item }}"}, retry: [{when: "{{ error.status == 503 }}", then: {delay: 1h, max_attempts: 2}}]}}`
	perItem = `      sink: {tool: player, params: {item: "all of {{ item }}"}}`
)

// driveInput hosts the elements, none begun yet.
func driveInput(loopWords, then string, elements ...string) call.DriveInput {
	in := call.DriveInput{Width: 10, Task: call.Task{
		Name: "driven.yaml", Source: fmt.Sprintf(driven, loopWords, then), Step: "fetch", Visit: 1,
		Run: interpreter.RunInfo{WorkflowID: "w", RunID: "r"},
	}}
	for i, element := range elements {
		index := i
		in.Calls = append(in.Calls, call.Snapshot{Index: &index, Size: len(elements), Element: expression.Of(element)})
	}
	return in
}

// pagesInput is an input of pages only: the call of one element whose first page
// is there.
func pagesInput(t *testing.T, then string, first any) call.DriveInput {
	t.Helper()
	in := driveInput("", then, "a")
	in.Pages, in.Width = true, 1
	book, step, err := in.Task.LoadStep()
	require.NoError(t, err)
	call := in.Task.BuildCall(book, step, in.Calls[0], func() float64 { return 0 })
	call.Next(time.Now())
	call.ApplyOutcome(interpreter.Outcome{Data: first}, time.Now())
	require.True(t, call.View().FetchesPage())
	in.Calls[0].State = call.View().SnapshotFor(true)
	return in
}

// firstPage of those that pager gives.
func firstPage() any { return map[string]any{"more": true, "rows": []any{1}} }

// stageOf is a worker that has only Drive.
type stageOf struct {
	t    *testing.T
	env  *testsuite.TestActivityEnvironment
	last call.DriveOutput // of the heartbeats
	mu   sync.Mutex
}

func newStage(t *testing.T, p *player, res activities.Resources) *stageOf {
	t.Helper()
	catalogue := activities.NewCatalogue(res)
	require.NoError(t, catalogue.RegisterTool(p))
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &stageOf{t: t, env: suite.NewTestActivityEnvironment()}
	s.env.RegisterActivityWithOptions(catalogue.Calls.Drive, activity.RegisterOptions{Name: call.DriveActivity})
	s.env.SetTestTimeout(testenv.Within(30 * time.Second))
	s.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var output call.DriveOutput
		if details.Get(&output) == nil {
			s.last = output
		}
	})
	return s
}

// background makes ctx the parent of the activity's context.
func (s *stageOf) background(ctx context.Context) {
	s.env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
}

func (s *stageOf) tryDrive(in call.DriveInput) (call.DriveOutput, error) {
	s.t.Helper()
	var output call.DriveOutput
	task, script := in.Task.SplitScript()
	in.Task = task
	value, err := s.env.ExecuteActivity(call.DriveActivity, in, script)
	if err != nil {
		return output, err
	}
	require.NoError(s.t, value.Get(&output))
	require.Len(s.t, output.Calls, len(in.Calls))
	return output, nil
}

// drive gives what the activity did, which travels in the details of a failure where
// the last attempt of its one call failed.
func (s *stageOf) drive(in call.DriveInput) []call.Driven {
	s.t.Helper()
	output, err := s.tryDrive(in)
	var failure *temporal.ApplicationError
	if errors.As(err, &failure) {
		require.NoError(s.t, failure.Details(&output))
		require.Len(s.t, in.Calls, 1)
		require.Equal(s.t, failure.Type(), string(output.Calls[0].LastFailure(in.Calls[0].State).Kind))
		return output.Calls
	}
	require.NoError(s.t, err)
	return output.Calls
}

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }

func status(code int) error {
	return &tool.Error{Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Status: code, Message: fmt.Sprint("HTTP ", code)}
}

// TestDriveABatch: each call goes as far as it can without a wait, its pages
// and sinks included.
func TestDriveABatch(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	failures := map[string]int{}
	p := &player{answer: func(ctx context.Context, in interpreter.ToolInput) (any, error) {
		switch item := param(in, "item"); item {
		case "b":
			return nil, status(404)
		case "c":
			return nil, status(503)
		case "d":
			mu.Lock()
			defer mu.Unlock()
			if failures[item]++; failures[item] < 3 {
				return nil, status(500)
			}
			return map[string]any{"rows": []any{"d"}}, nil
		case "e":
			return map[string]any{"rows": []any{"e"}}, nil
		}
		return pager(3, 0)(ctx, in)
	}, write: func(in interpreter.ToolInput) error {
		if param(in, "item") == "e" {
			return status(503)
		}
		return nil
	}}
	calls := newStage(t, p, activities.Resources{}).drive(driveInput(perItem, perPage, "a", "b", "c", "d", "e"))

	require.Equal(t, []any{1, 2, 3}, calls[0].Result.Data.Data)
	require.Equal(t, 3, calls[0].Result.Meta.Pages)
	require.Equal(t, 404, calls[1].Result.Error.Status)
	require.Nil(t, calls[2].Result)
	require.Equal(t, time.Hour, calls[2].State.Todo[0].Wait.Delay.Round(time.Hour))
	require.Equal(t, 1, calls[2].State.Attempts)
	require.Equal(t, []any{"d"}, calls[3].Result.Data.Data)
	require.Equal(t, 3, calls[3].Result.Meta.Attempts)
	require.Nil(t, calls[4].Result, "its sink has to wait")
	require.True(t, calls[4].State.Todo[0].Sink.Page)
	require.NotNil(t, calls[4].State.Todo[0].Sink.State.Todo[0].Wait)
	require.Equal(t, []string{"a/1", "a/2", "a/3", "b/1", "c/1", "d/1", "d/1", "d/1", "e/1"}, sorted(p.asked))
	require.Equal(t, []string{`a: [1]`, `a: [2]`, `a: [3]`, `all of a: [1,2,3]`, `all of d: ["d"]`, `d: ["d"]`, `e: ["e"]`}, sorted(p.written))
}

func TestDriveHonorsItsWidth(t *testing.T) {
	t.Parallel()
	for _, width := range []int{0, 1, 3} {
		p := &player{answer: func(context.Context, interpreter.ToolInput) (any, error) {
			time.Sleep(20 * time.Millisecond) // so that attempts meet
			return map[string]any{"rows": []any{1}}, nil
		}}
		in := driveInput("", "", "a", "b", "c", "d", "e", "f")
		in.Width = width
		for _, call := range newStage(t, p, activities.Resources{}).drive(in) {
			require.Equal(t, []any{1}, call.Result.Data.Data)
		}
		require.Equal(t, max(width, 1), p.top)
	}
}

// TestDriveGivesNoDataThatItsLoopDrops: neither do results count against the cap that
// nobody gets.
func TestDriveGivesNoDataThatItsLoopDrops(t *testing.T) {
	t.Parallel()
	p := &player{answer: pager(1, 400_000)}
	res := activities.Resources{Payloads: attempt.Payloads{MaxBytes: 1_000_000}}
	calls := newStage(t, p, res).drive(driveInput("      results: stats", "", "a", "b", "c"))
	for _, driven := range calls {
		require.Nil(t, driven.Result.Error)
		require.Zero(t, driven.Result.Data)
		require.Equal(t, 1, driven.Result.Meta.Pages)
	}
}

// TestDriveInOrder: with a width of 0 no call begins before the one before it
// has ended.
func TestDriveInOrder(t *testing.T) {
	t.Parallel()
	p := &player{answer: func(_ context.Context, in interpreter.ToolInput) (any, error) {
		if param(in, "item") == "b" {
			return nil, status(503)
		}
		return map[string]any{"rows": []any{1}}, nil
	}}
	in := driveInput("", "", "a", "b", "c")
	in.Width = 0
	calls := newStage(t, p, activities.Resources{}).drive(in)
	require.Equal(t, []string{"a/1", "b/1"}, p.asked)
	require.NotNil(t, calls[0].Result)
	require.NotNil(t, calls[1].State.Todo[0].Wait)
	require.Equal(t, call.Driven{}, calls[2])
}

// TestDriveYields: what one activity does for a call is bounded, in a batch and
// where it only turns pages.
func TestDriveYields(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then         string
		bytes, pages int
	}{
		"quick pages": {"max_attempts: 1000", 0, call.MostPagesPerActivity},
		"4 pages":     {"pages_per_activity: 4", 0, 4},
		"1 MiB":       {"", 200_000, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &player{answer: pager(1000, test.bytes)}
			res := activities.Resources{Payloads: attempt.Payloads{MaxBytes: 8 << 20}}
			hosted := newStage(t, p, res).drive(driveInput("", test.then, "a"))[0]
			require.Nil(t, hosted.Result)
			require.Equal(t, test.pages, hosted.State.Successes)
			require.Len(t, hosted.State.Collected.Data, test.pages)

			p = &player{answer: pager(1000, test.bytes)}
			fetched := newStage(t, p, res).drive(pagesInput(t, test.then, firstPage()))[0]
			require.Nil(t, fetched.Outcome)
			require.Equal(t, test.pages+1, fetched.State.Successes)
			require.Len(t, fetched.State.Collected.Data, test.pages, "only its own")
			require.Len(t, p.asked, test.pages)
		})
	}
}

// TestDriveHandsBack what is no page, and pages that are large, as they came. It passes maxPageBytes.
func TestDriveHandsBack(t *testing.T) {
	t.Parallel()
	answer := func(at int, bytes int, err error) func(context.Context, interpreter.ToolInput) (any, error) {
		return func(ctx context.Context, in interpreter.ToolInput) (any, error) {
			if in.Page == at {
				data, _ := pager(1000, bytes)(ctx, in)
				return data, err
			}
			return pager(1000, 0)(ctx, in)
		}
	}
	for name, test := range map[string]struct {
		answer  func(context.Context, interpreter.ToolInput) (any, error)
		most    int
		outcome string
	}{
		"a failure":            {answer(4, 0, status(503)), 0, "HTTP 503"},
		"the last page":        {pager(4, 0), 0, "data"},
		"a large page":         {answer(4, 400_000, nil), 0, "data"},
		"a page over the cap":  {answer(4, 400_000, nil), 400_500, ""},
		"what no worker takes": {answer(4, 400_000, nil), 300_000, "bytes of JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &player{answer: test.answer}
			res := activities.Resources{Payloads: attempt.Payloads{MaxBytes: test.most}}
			fetched := newStage(t, p, res).drive(pagesInput(t, perPage, firstPage()))[0]
			require.Equal(t, []string{"a/2", "a/3", "a/4"}, p.asked)
			require.Equal(t, 3, fetched.State.Successes, "the pages before, not this one")
			require.NotNil(t, fetched.State.Todo[0].Attempt)
			require.Equal(t, []string{"a: [1]", "a: [2]", "a: [3]"}, p.written)
			switch test.outcome {
			case "":
				require.Nil(t, fetched.Outcome)
			case "data":
				require.NotNil(t, fetched.Outcome.Data)
			default:
				require.Contains(t, fetched.Outcome.Err.Message, test.outcome)
			}
		})
	}
}

// TestDriveLeavesAPagesSink that waits or failed to the workflow.
func TestDriveLeavesAPagesSink(t *testing.T) {
	t.Parallel()
	for code, ended := range map[int]bool{503: false, 404: true} {
		p := &player{answer: pager(10, 0), write: func(in interpreter.ToolInput) error {
			if in.Page == 3 {
				return status(code)
			}
			return nil
		}}
		fetched := newStage(t, p, activities.Resources{}).drive(pagesInput(t, perPage, firstPage()))[0]
		require.True(t, fetched.State.Todo[0].Sink.Page)
		next := fetched.State.Todo[0].Sink.State.Todo[0]
		require.Equal(t, ended, next.End != nil)
		require.Equal(t, ended, next.Wait == nil)
		require.Equal(t, 3, fetched.State.Successes)
		require.Equal(t, []string{"a/2", "a/3"}, p.asked)
		require.Len(t, p.written, 3)
	}
}

// TestDriveGoesOnBehindItsHeartbeats: a call that they show as done is not made
// again, and no page that they hold is fetched again.
func TestDriveGoesOnBehindItsHeartbeats(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	first := stopping(func() { close(stop); cancel() })
	stage := newStage(t, first, activities.Resources{})
	stage.background(ctx)
	stage.env.SetWorkerStopChannel(stop)
	in := driveInput(perItem, perPage, "a", "b", "c", "d")
	in.Width = 1
	_, err := stage.tryDrive(in)
	require.Error(t, err)
	require.Equal(t, []string{"a/1", "b/1", "c/1", "c/2", "c/3"}, first.asked)

	second := &player{answer: pager(4, 0)}
	next := newStage(t, second, activities.Resources{})
	next.env.SetHeartbeatDetails(stage.last)
	calls := next.drive(in)
	require.Equal(t, []any{1}, calls[0].Result.Data.Data)
	require.Equal(t, []any{1}, calls[1].Result.Data.Data)
	require.Equal(t, []any{1, 2, 3, 4}, calls[2].Result.Data.Data)
	require.Equal(t, []any{1, 2, 3, 4}, calls[3].Result.Data.Data)
	require.Equal(t, []string{"c/3", "c/4", "d/1", "d/2", "d/3", "d/4"}, second.asked)
	require.Equal(t, []string{
		"a: [1]", "all of a: [1]", "b: [1]", "all of b: [1]", "c: [1]", "c: [2]", "c: [3]", "c: [4]",
		"all of c: [1,2,3,4]", "d: [1]", "d: [2]", "d: [3]", "d: [4]", "all of d: [1,2,3,4]",
	}, slices.Concat(first.written, second.written))
}

// TestDriveFetchesPagesAfterALostWorker: the same where pages are fetched apart,
// also where the last of them had been handed back.
func TestDriveFetchesPagesAfterALostWorker(t *testing.T) {
	t.Parallel()
	in := pagesInput(t, "", firstPage())
	fetched := newStage(t, &player{answer: pager(20, 0)}, activities.Resources{}).drive(in)[0]
	require.NotNil(t, fetched.Outcome)
	require.Equal(t, len(in.Calls[0].State.Seen), fetched.SeenBefore)
	whole := *fetched.State // as heartbeats hold it
	whole.Seen = slices.Concat(in.Calls[0].State.Seen, fetched.State.Seen)

	second := &player{answer: pager(20, 0)}
	stage := newStage(t, second, activities.Resources{})
	stage.env.SetHeartbeatDetails(call.DriveOutput{Calls: []call.Driven{{State: &whole, Outcome: fetched.Outcome, Made: fetched.Made}}})
	again := stage.drive(in)[0]
	require.Empty(t, second.asked)
	require.Equal(t, toJSON(t, fetched), toJSON(t, again))

	stage = newStage(t, second, activities.Resources{})
	stage.env.SetHeartbeatDetails(call.DriveOutput{Calls: []call.Driven{{State: &whole}}})
	anew := stage.drive(in)[0]
	require.True(t, anew.Made.Cover(20, 20), "%+v", anew.Made) // the last page, which they do not hold
	anew.Made, fetched.Made = nil, nil
	require.Equal(t, toJSON(t, fetched), toJSON(t, anew))
	require.Equal(t, []string{"a/20"}, second.asked)
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// stopping is a player that ends the activity's context in the middle: two
// calls are done, one is at its third page.
func stopping(end func()) *player {
	var once sync.Once
	p := &player{}
	p.answer = func(ctx context.Context, in interpreter.ToolInput) (any, error) {
		if param(in, "item") == "c" && in.Page == 3 {
			once.Do(end)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return pager(map[string]int{"a": 1, "b": 1, "c": 9}[param(in, "item")], 0)(ctx, in)
	}
	return p
}

// TestDriveCancelled: what was done until then comes back.
func TestDriveCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	stage := newStage(t, stopping(cancel), activities.Resources{})
	stage.background(ctx)
	in := driveInput("", "", "a", "b", "c", "d")
	in.Width = 1
	_, err := stage.tryDrive(in)
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, err, &cancelled)
	var output call.DriveOutput
	require.NoError(t, cancelled.Details(&output))
	require.Equal(t, []any{1}, output.Calls[0].Result.Data.Data)
	require.Equal(t, []any{1}, output.Calls[1].Result.Data.Data)
	require.Equal(t, []any{1, 2}, output.Calls[2].State.Collected.Data)
	require.Equal(t, 2, output.Calls[2].State.Attempts)
	require.Nil(t, output.Calls[3].Result)
}

// TestDriveOnAWorkerThatStops: the activity is handed out again, and its
// progress with it.
func TestDriveOnAWorkerThatStops(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	stage := newStage(t, stopping(func() { close(stop); cancel() }), activities.Resources{})
	stage.background(ctx)
	stage.env.SetWorkerStopChannel(stop)
	in := driveInput("", "", "a", "b", "c", "d")
	in.Width = 1
	_, err := stage.tryDrive(in)
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	require.EqualValues(t, interpreter.KindWorkerLost, application.Type())
	require.False(t, application.NonRetryable())
	require.NotNil(t, stage.last.Calls[1].Result)
	require.Equal(t, 2, stage.last.Calls[2].State.Successes)
}

// TestDriveOutputOverTheCap: what takes more than its share fails, or begins
// again where it was left half-way; the others are kept.
func TestDriveOutputOverTheCap(t *testing.T) {
	t.Parallel()
	p := &player{answer: func(ctx context.Context, in interpreter.ToolInput) (any, error) {
		switch param(in, "item") {
		case "a":
			return pager(1, 400_000)(ctx, in)
		case "b":
			return pager(1, 0)(ctx, in)
		}
		return pager(1000, 100_000)(ctx, in)
	}}
	res := activities.Resources{Payloads: attempt.Payloads{MaxBytes: 1_000_000}}
	calls := newStage(t, p, res).drive(driveInput("", "", "a", "b", "c"))
	require.Equal(t, interpreter.KindPayloadTooLarge, calls[0].Result.Error.Kind)
	require.Contains(t, calls[0].Result.Error.Message, "more than its share of 333333")
	require.Equal(t, 1, calls[0].Result.Meta.Attempts)
	require.Equal(t, []any{1}, calls[1].Result.Data.Data)
	require.Equal(t, call.Driven{}, calls[2])
}

// TestDriveUnknownTool is an error of the call and not of the activity.
func TestDriveUnknownTool(t *testing.T) {
	t.Parallel()
	in := driveInput("", "", "a")
	in.Task.Source = strings.Replace(in.Task.Source, "tool: player", "tool: stranger", 1)
	calls := newStage(t, &player{}, activities.Resources{}).drive(in)
	require.Contains(t, calls[0].Result.Error.Message, `no tool "stranger"`)

	in.Task.Step = "nowhere"
	_, err := newStage(t, &player{}, activities.Resources{}).tryDrive(in)
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	require.True(t, application.NonRetryable())
}

// TestDriveKeys: hosted attempts have the keys that they have elsewhere.
func TestDriveKeys(t *testing.T) {
	t.Parallel()
	keys := map[string]string{}
	p := &player{answer: func(ctx context.Context, in interpreter.ToolInput) (any, error) {
		keys[fmt.Sprint(*in.Index, "/", in.Page)] = in.OperationKey
		return pager(3, 0)(ctx, in)
	}}
	in := driveInput("", "", "a", "b")
	in.Width = 1
	newStage(t, p, activities.Resources{}).drive(in)
	batch := maps.Clone(keys)
	clear(keys)
	newStage(t, p, activities.Resources{}).drive(pagesInput(t, "", firstPage()))
	require.Len(t, batch, 6)
	require.Equal(t, map[string]string{"0/2": batch["0/2"], "0/3": batch["0/3"]}, keys)
	require.NotEqual(t, batch["0/2"], batch["1/2"])
}
