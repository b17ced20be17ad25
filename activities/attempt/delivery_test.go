package attempt_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/ratelimit"
)

// TestWhichDeliveriesCount: each word is one delivery, by how it ended.
func TestWhichDeliveriesCount(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		tells      bool // from the first delivery on, as under a rate limit
		deliveries string
		acted, cut int
		spent      bool
	}{
		"the first":                             {false, "", 0, 0, false},
		"one that said nothing may have acted":  {false, "silent", 1, 0, false},
		"not where it would have said so":       {true, "silent", 0, 0, false},
		"later ones say so before they act":     {false, "silent silent silent silent silent", 1, 0, false},
		"what waited":                           {false, "waiting waiting waiting waiting waiting", 0, 0, false},
		"three that acted":                      {false, "silent acting acting", 3, 0, false},
		"four that acted":                       {false, "silent acting acting acting", 4, 0, true},
		"four that told":                        {true, "acting acting acting acting", 4, 0, true},
		"silence in between":                    {true, "acting silent acting silent acting silent", 3, 0, false},
		"silence after the last":                {true, "acting acting acting acting silent", 4, 0, true},
		"waiting in between":                    {false, "silent waiting acting waiting acting", 3, 0, false},
		"what was handed back":                  {false, strings.Repeat("back ", 50), 0, 0, false},
		"handed back after the worker was lost": {false, "silent back acting back", 2, 0, false},
		"what was cut is counted apart":         {false, "cut cut cut cut cut", 0, 5, false},
		"so that it ends one day":               {false, strings.Repeat("cut ", 21), 0, 21, true},
		"a batch that got further":              {false, "silent acting acting further", 1, 0, false},
		"and then does not":                     {false, "acting further acting acting acting", 4, 0, true},
		"one that took in its answer":           {false, "taking", 1, 0, false},
		// mostReceived
		"two that did":                            {false, "taking taking", 2, 0, true},
		"and others in between":                   {false, "taking back acting waiting taking", 3, 0, true},
		"orderly stops meanwhile":                 {false, "taking taking-back taking-back taking-back", 1, 0, false},
		"a batch that was cut, but goes on again": {false, "cut cut further", 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var last attempt.DeliveryState

			deliveries := strings.Fields(test.deliveries)
			for i, how := range deliveries {
				w, spent := attempt.Deliver(last, i+1, test.tells)
				require.False(t, spent && !strings.Contains("silent", how), "delivery %d", i+1)

				switch how {
				case "silent":
					continue
				case "acting":
					w.Begun = true
				case "further":
					w.Begun, w.Acted, w.Cut = true, 0, 0
				case "cut":
					w.Cut++
				case "taking":
					w.Begun, w.Receiving = true, []int{0}
				case "taking-back":
					w.Receiving = []int{0}
				}

				last = w
			}

			w, spent := attempt.Deliver(last, len(deliveries)+1, test.tells)
			require.Equal(t, attempt.DeliveryState{Delivery: len(deliveries) + 1, Acted: test.acted, Cut: test.cut, Received: w.Received}, w)
			require.Len(t, w.Received, strings.Count(test.deliveries, "taking")-strings.Count(test.deliveries, "taking-back"))
			require.Equal(t, test.spent, spent)
		})
	}
}

// stoppingWorker is a worker that stops: one activity on it, and what its heartbeats
// tell.
type stoppingWorker struct {
	t    *testing.T
	env  *testsuite.TestActivityEnvironment
	stop chan struct{}
	mu   sync.Mutex
	last attempt.DeliveryState
}

func newStoppingWorker(t *testing.T, c *activities.Catalogue, grace time.Duration) *stoppingWorker {
	t.Helper()

	s := &stoppingWorker{t: t, env: (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment(), stop: make(chan struct{})}
	s.env.SetTestTimeout(testenv.Within(time.Minute))
	s.env.SetWorkerStopChannel(s.stop)
	s.env.SetWorkerOptions(worker.Options{BackgroundActivityContext: attempt.WithWorker(t.Context(), attempt.Worker{StopGrace: grace})})
	s.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var spoken struct{ Delivery attempt.DeliveryState }

		if details.Get(&spoken) == nil {
			s.mu.Lock()
			defer s.mu.Unlock()

			s.last = spoken.Delivery
		}
	})

	for _, a := range c.Attempts.Activities() {
		s.env.RegisterActivityWithOptions(a.Run, activity.RegisterOptions{Name: a.Name})
	}
	return s
}

func (s *stoppingWorker) run(name string, in interpreter.ToolInput) (any, error) {
	s.t.Helper()

	encoded, err := s.env.ExecuteActivity(name, in)
	if err != nil {
		return nil, err
	}

	var result interpreter.ToolResult

	require.NoError(s.t, encoded.Get(&result))
	return result.Data.Data, nil
}

func (s *stoppingWorker) requireHandedBack(err error, says string, word attempt.DeliveryState) {
	s.t.Helper()

	var application *temporal.ApplicationError

	require.ErrorAs(s.t, err, &application)
	require.EqualValues(s.t, interpreter.KindWorkerLost, application.Type())
	require.False(s.t, application.NonRetryable())
	require.Contains(s.t, application.Message(), says)

	s.mu.Lock()
	defer s.mu.Unlock()

	require.Equal(s.t, word, s.last)
}

// TestAStoppingWorkerHandsBackWhatWaits: at once, whatever its grace is.
func TestAStoppingWorkerHandsBackWhatWaits(t *testing.T) {
	t.Parallel()

	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("open files are not to be seen here")
	}

	dir := t.TempDir()
	journal, err := os.Create(filepath.Join(dir, "rows.jsonl.reprise"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = journal.Close() })
	require.NoError(t, syscall.Flock(int(journal.Fd()), syscall.LOCK_EX)) // somebody else writes

	s := newStoppingWorker(t, activities.NewCatalogue(activities.Resources{Directory: dir}), time.Hour)
	opened := func() bool { // the attempt has the journal open, too
		open, _ := filepath.Glob("/proc/self/fd/*")
		n := 0
		for _, fd := range open {
			if target, _ := os.Readlink(fd); target == journal.Name() {
				n++
			}
		}
		return n > 1
	}

	go func() {
		defer close(s.stop)

		for !opened() {
			time.Sleep(time.Millisecond)
		}
	}()

	_, err = s.run("file.write", tooltest.CompleteInput(interpreter.ToolInput{
		Result: tooltest.Value([]any{1}), Fields: map[string]expression.Value{"path": expression.Of("rows.jsonl")},
	}, "file"))
	s.requireHandedBack(err, "before the attempt started", attempt.DeliveryState{Delivery: 1})
	require.NoFileExists(t, filepath.Join(dir, "rows.jsonl"))
}

// TestNothingBeginsOnAStoppingWorker.
func TestNothingBeginsOnAStoppingWorker(t *testing.T) {
	t.Parallel()

	called := false
	s := newStoppingWorker(t, probe(t, func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
		called = true
		return interpreter.ToolResult{}, nil
	}), time.Hour)
	close(s.stop)

	_, err := s.run("probe", tooltest.CompleteInput(interpreter.ToolInput{}, "probe"))
	s.requireHandedBack(err, "before the attempt started", attempt.DeliveryState{Delivery: 1})
	require.False(t, called)
}

// TestAStoppingWorkerLetsAttemptsEnd that act, within its grace; what does not
// end in time is cut and handed back.
func TestAStoppingWorkerLetsAttemptsEnd(t *testing.T) {
	t.Parallel()

	var s *stoppingWorker

	s = newStoppingWorker(t, probe(t, func(ctx context.Context, _ interpreter.ToolInput) (interpreter.ToolResult, error) {
		close(s.stop)

		select {
		case <-ctx.Done():
			return interpreter.ToolResult{}, ctx.Err()
		case <-time.After(100 * time.Millisecond): // as long as the stop has time to reach it
			return interpreter.ToolResult{Data: expression.Of("done")}, nil
		}
	}), time.Hour)
	done, err := s.run("probe", tooltest.CompleteInput(interpreter.ToolInput{}, "probe"))
	require.NoError(t, err)
	require.Equal(t, "done", done)

	var cut *stoppingWorker

	cut = newStoppingWorker(t, probe(t, func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		close(cut.stop)
		return untilDone(ctx, in)
	}), time.Millisecond)
	_, err = cut.run("probe", tooltest.CompleteInput(interpreter.ToolInput{}, "probe"))
	cut.requireHandedBack(err, "stopped during the attempt", attempt.DeliveryState{Delivery: 1, Cut: 1})
}

// awayServer is a client of a server that accepts a heartbeat once it has failed some.
type awayServer struct {
	client.Client

	err   error
	fails int
	tries int
	last  attempt.DeliveryState // of the heartbeat that it has accepted
}

func (s *awayServer) RecordActivityHeartbeat(_ context.Context, _ []byte, details ...any) error {
	if s.tries++; s.tries <= s.fails {
		return s.err
	}

	var accepted struct{ Delivery attempt.DeliveryState }

	text, err := json.Marshal(details[0])
	if err == nil {
		err = json.Unmarshal(text, &accepted)
	}

	s.last = accepted.Delivery
	return err
}

// TestWhatAStoppingWorkerReturnsArrives: the last heartbeat is all that the next worker knows of what was
// done, so it is sent again where the server did not answer, and not where it was refused.
func TestWhatAStoppingWorkerReturnsArrives(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		err   error
		tries int
		last  attempt.DeliveryState
	}{
		"away":     {serviceerror.NewUnavailable("away"), 4, attempt.DeliveryState{Delivery: 1, Cut: 1}},
		"too late": {context.DeadlineExceeded, 4, attempt.DeliveryState{Delivery: 1, Cut: 1}},
		"refused":  {serviceerror.NewInvalidArgument("too large"), 1, attempt.DeliveryState{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			server := &awayServer{err: test.err, fails: 3}

			var s *stoppingWorker

			s = newStoppingWorker(t, probe(t, func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
				close(s.stop)
				return untilDone(ctx, in)
			}), 0)
			s.env.SetWorkerOptions(worker.Options{BackgroundActivityContext: attempt.WithWorker(t.Context(), attempt.Worker{StopGrace: time.Millisecond, Client: server})})
			_, err := s.run("probe", tooltest.CompleteInput(interpreter.ToolInput{}, "probe"))
			require.ErrorContains(t, err, "stopped during the attempt")
			require.Equal(t, test.tries, server.tries)
			require.Equal(t, test.last, server.last)
		})
	}
}

// TestTheLastDeliveryActsNoMore: the activity itself ends what was lost four
// times.
func TestTheLastDeliveryActsNoMore(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		word        attempt.DeliveryState
		lost        int // before this attempt
		says, class string
	}{
		"lost": {attempt.DeliveryState{Delivery: 4, Acted: 3, Begun: true}, 0, "dispatched 4 times, and its worker was lost each time", "retryable"},
		"cut":  {attempt.DeliveryState{Delivery: 21, Cut: 21}, 0, "interrupted 21 times by a stopping worker", "retryable"},
		"it takes too much in": {
			attempt.DeliveryState{Delivery: 2, Acted: 1, Begun: true, Receiving: []int{0}, Received: []int{0}}, 0, "the last one while it read the response", "final",
		},
		"in a batch, and alone": {
			attempt.DeliveryState{Delivery: 1, Begun: true, Receiving: []int{0}}, 1, "the last one while it read the response", "final",
		},
		"lost again": {attempt.DeliveryState{Delivery: 1, Begun: true}, 1, "was repeated, and lost another worker", "final"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			called := false
			s := newStoppingWorker(t, probe(t, func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
				called = true
				return interpreter.ToolResult{}, nil
			}), time.Hour)
			s.env.SetHeartbeatDetails(map[string]any{"delivery": test.word})

			_, err := s.run("probe", tooltest.CompleteInput(interpreter.ToolInput{Attempt: 2, Page: 3, Lost: test.lost}, "probe"))
			object := tooltest.ErrorObject(t, err)
			require.Equal(t, interpreter.KindWorkerLost, object.Kind)
			require.EqualValues(t, test.class, object.Class)
			require.Equal(t, test.class == "final", object.Final, "the policies are not asked")
			require.Contains(t, object.Message, test.says)
			require.Equal(t, [2]int{2, 3}, [2]int{object.Attempt, object.Page})
			require.False(t, called)
		})
	}
}

// TestLargeAnswersAreTold: should the worker be lost then, the next one knows.
func TestLargeAnswersAreTold(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		body   string
		taking []int
	}{
		"a page":           {strings.Repeat("x", 900_000), nil},
		"a large text":     {strings.Repeat("x", 1_200_000), []int{0}},
		"JSON that swells": {"[" + strings.Repeat(`{"a":1},`, 10_000) + "1]", []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, _ *http.Request) {
				if test.body[0] == '[' {
					w.Header().Set("Content-Type", "application/json")
				}

				_, _ = w.Write([]byte(test.body))
			})
			s := newStoppingWorker(t, activities.NewCatalogue(activities.Resources{}), time.Hour)
			_, err := s.run("http", tooltest.CompleteInput(interpreter.ToolInput{
				TimeoutSeconds: 50, Fields: map[string]expression.Value{"url": expression.Of(url)},
			}, "http"))
			require.NoError(t, err)

			s.mu.Lock()
			defer s.mu.Unlock()
			require.Equal(t, test.taking, s.last.Receiving)
		})
	}
}

// TestWordsInHeartbeatsHaveTheirShape: another build reads them.
func TestWordsInHeartbeatsHaveTheirShape(t *testing.T) {
	t.Parallel()

	text, err := json.Marshal(attempt.DeliveryState{Delivery: 3, Acted: 2, Cut: 1, Begun: true})
	require.NoError(t, err)
	require.JSONEq(t, `{"delivery":3,"acted":2,"cut":1,"begun":true}`, string(text))

	text, err = json.Marshal(attempt.DeliveryState{Delivery: 3, Receiving: []int{0}, Received: []int{4}})
	require.NoError(t, err)
	require.JSONEq(t, `{"delivery":3,"receiving":[0],"received":[4]}`, string(text))
}

// TestTurnsByTheClockOfTheWorker: it is believed as far as it can be right.
func TestTurnsByTheClockOfTheWorker(t *testing.T) {
	t.Parallel()

	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // when the limiter decided, by its clock
	lease := ratelimit.Lease{DelaySeconds: 0.5, At: at.Add(500 * time.Millisecond)}
	ms := time.Millisecond

	for name, test := range map[string]struct {
		asked, answered, turn time.Duration // by the worker's clock, since at
	}{
		"the clocks agree":                  {-20 * ms, 30 * ms, 500 * ms},
		"the worker's is a little ahead":    {-10 * ms, 40 * ms, 500 * ms},
		"it is an hour ahead":               {time.Hour, time.Hour + 50*ms, time.Hour + 500*ms},
		"it is an hour behind":              {-time.Hour, -time.Hour + 50*ms, -time.Hour + 550*ms},
		"the answer came after the turn":    {-20 * ms, 900 * ms, 500 * ms},
		"it is ahead by more than it knows": {10 * ms, 60 * ms, 510 * ms},
	} {
		require.Equal(t, at.Add(test.turn), attempt.FirstTurn(lease, at.Add(test.asked), at.Add(test.answered)), name)
	}

	old := ratelimit.Lease{DelaySeconds: 0.5} // of a limiter that does not tell
	require.Equal(t, at.Add(530*ms), attempt.FirstTurn(old, at, at.Add(30*ms)))
}

// TestARequestWithoutAConnectionHasNotBegun: a worker that stops meanwhile hands
// it back at once.
func TestARequestWithoutAConnectionHasNotBegun(t *testing.T) {
	t.Parallel()

	var s *stoppingWorker

	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		close(s.stop)
		<-ctx.Done() // nobody answers
		return nil, ctx.Err()
	}}
	s = newStoppingWorker(t, activities.NewCatalogue(activities.Resources{HTTP: activities.HTTPOptions{Transport: transport}}), time.Hour)
	_, err := s.run("http", tooltest.CompleteInput(interpreter.ToolInput{
		TimeoutSeconds: 50, Fields: map[string]expression.Value{"url": expression.Of("http://127.0.0.1:1/")},
	}, "http"))
	s.requireHandedBack(err, "before the attempt started", attempt.DeliveryState{Delivery: 1})
}
