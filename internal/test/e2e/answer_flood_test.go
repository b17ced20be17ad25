package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"reprise/internal/base/connect"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// calledElsewhere begins a run whose call has left to a workflow of its own, and stops the
// worker.
func calledElsewhere(t *testing.T) (a *answering, token string) {
	t.Helper()
	a = newMatrixRun(t, interpreter.Answer{})
	a.begin("30m")
	token = a.other.nth(t, 1).token
	call := a.run.GetID() + "/import#1"
	for n := int64(1); ; n++ {
		_, err := a.world.answer(a.keys, token, interpreter.Answer{Verb: interpreter.AnswerProgress, Done: n})
		require.NoError(t, err)
		if _, err := a.env.Client().DescribeWorkflowExecution(t.Context(), call, ""); err == nil {
			return a, token
		}
		require.Less(t, n, int64(1000), "the call never leaves")
	}
}

// signals sends a run many answers as signals, several at a time. One that a busy server
// does not confirm in time is sent again.
func (a *answering) signals(many int, answer func(i int) interpreter.Answer) {
	a.t.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			for i := int(next.Add(1)); i <= many; i = int(next.Add(1)) {
				signal := func() error {
					return a.env.Client().SignalWorkflow(a.t.Context(), a.run.GetID(), "", protocol.AnswerSignal, answer(i))
				}
				err := signal()
				for until := time.Now().Add(patience); connect.IsUnreachable(err) && time.Now().Before(until); {
					err = signal()
				}
				if err != nil {
					a.t.Errorf("signal %d: %v", i, err)
					return
				}
			}
		})
	}
	testenv.Wait(a.t, group.Wait, "the end of all signals")
}

// TestSignalsInFloods: a run passes answers on to a call that has left it, however many
// come at once, whether a worker is there or not.
func TestSignalsInFloods(t *testing.T) {
	t.Parallel()
	const many = 1200
	for name, works := range map[string]bool{"without a worker": false, "while one works": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, token := calledElsewhere(t)
			if !works {
				a.halt()
			}
			a.signals(many, func(i int) interpreter.Answer {
				return interpreter.Answer{
					AnswerTo: interpreter.AnswerTo{Step: "import", Attempt: 1}, Verb: interpreter.AnswerComplete,
					Result: expression.Of(fmt.Sprint(i)), ID: fmt.Sprint(i),
				}
			})
			if !works {
				a.work()
			}
			last := a.other.nth(t, 2) // the step after it
			_, err := a.world.answer(a.keys, token, interpreter.Answer{Verb: interpreter.AnswerComplete, Result: expression.Of("late")})
			require.Error(t, err)
			require.Eventually(t, func() bool { // a workflow task may fail for what has come meanwhile, and is done again
				_, err = a.world.answer(a.keys, last.token, interpreter.Answer{Verb: interpreter.AnswerComplete, Result: expression.Of("end")})
				return !errors.As(err, new(*serviceerror.WorkflowNotReady))
			}, patience, tick)
			require.NoError(t, err)
			require.Equal(t, "completed", a.status(a.run))
		})
	}
}

// TestProgressBeyondTheUpdatesOfAHistory: a workflow takes 2,000 updates in all, and an
// attempt any number of reports.
func TestProgressBeyondTheUpdatesOfAHistory(t *testing.T) {
	t.Parallel()
	const callers = 8
	many := int64(300)
	if *soak { // more updates than a history takes
		many = 2600
	}
	w, keys := newAnswering(t)
	other := newETL(t)
	run := w.start(strings.Replace(book(importing), "timeout: 30s", "timeout: 30m", 1), map[string]any{"etl": other.URL, "file": "x"})
	first := other.nth(t, 1)
	var next atomic.Int64
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for n := next.Add(1); n <= many; n = next.Add(1) {
				for deadline := time.Now().Add(patience); ; {
					_, err := w.answer(keys, first.token, interpreter.Answer{Verb: interpreter.AnswerProgress, Done: n})
					if err == nil {
						break
					}
					if time.Now().After(deadline) {
						t.Errorf("report %d: %v", n, err)
						return
					}
				}
			}
		})
	}
	testenv.Wait(t, group.Wait, "the answers to all reports")
	require.Eventually(t, func() bool {
		_, err := w.answer(keys, first.token, interpreter.Answer{Verb: interpreter.AnswerComplete})
		return err == nil
	}, patience, tick)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, 1, step(t, result, "import").Attempts)
}
