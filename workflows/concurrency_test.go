package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/test/testenv"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/workflows"
)

// counter is the queue of a key, with runs that a test plays. Time is skipped.
type counter struct {
	t         *testing.T
	env       *testsuite.TestWorkflowEnvironment
	mu        sync.Mutex      // of told and deaf: signals arrive beside the workflow
	told      []string        // in order
	gone      map[string]bool // runs that nobody hears of any more
	deaf      map[string]bool // those that no signal reaches
	cancelled []queue.Cancel
	looks     []time.Duration
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{
		t: t, env: (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment(), gone: map[string]bool{}, deaf: map[string]bool{},
	}
	c.env.SetStartTime(began)
	c.env.SetTestTimeout(testenv.Within(time.Minute))
	workflows.Register(c.env)
	c.env.RegisterActivityWithOptions(func(_ context.Context, members []queue.Member) ([]queue.Member, error) {
		c.looks = append(c.looks, c.env.Now().Sub(began))
		var ended []queue.Member
		for _, member := range members {
			if c.gone[member.WorkflowID] {
				ended = append(ended, member)
			}
		}
		return ended, nil
	}, activity.RegisterOptions{Name: queue.EndedActivity})
	c.env.RegisterActivityWithOptions(func(_ context.Context, cancel queue.Cancel) error {
		c.cancelled = append(c.cancelled, cancel)
		return nil
	}, activity.RegisterOptions{Name: queue.CancelActivity})
	c.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, "", queue.DecisionSignal, mock.Anything).Return(
		func(_, id, _, _ string, arg any) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.deaf[id] {
				return errors.New("there is no such run")
			}
			answer := arg.(queue.Decision)
			c.told = append(c.told, fmt.Sprintf("%s %s", id, answer.State))
			return nil
		})
	return c
}

// at has a run say something after a time.
func (c *counter) at(after time.Duration, id string, change func(*queue.Request)) {
	c.env.RegisterDelayedCallback(func() {
		request := queue.Request{
			Member: queue.Member{WorkflowID: id, RunID: "1"}, Limit: 1, OnConflict: playbook.ConflictQueue,
		}
		if change != nil {
			change(&request)
		}
		c.env.SignalWorkflow(queue.RequestSignal, request)
	}, after)
}

func leaves(request *queue.Request) {
	*request = queue.Request{Member: request.Member, Leave: true}
}
func skips(request *queue.Request)          { request.OnConflict = playbook.ConflictSkip }
func cancelsRunning(request *queue.Request) { request.OnConflict = playbook.ConflictCancel }
func two(request *queue.Request)            { request.Limit = 2 }
func wrong(request *queue.Request)          { request.Limit = 0 }

// run runs the queue to its end and gives when that was.
func (c *counter) run(state queue.Queue) time.Duration {
	c.t.Helper()
	c.env.ExecuteWorkflow(queue.WorkflowName, state)
	require.True(c.t, c.env.IsWorkflowCompleted())
	return c.env.Now().Sub(began)
}

func TestConcurrencyGrantsSlots(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	for i, id := range []string{"a", "b", "c"} {
		c.at(time.Duration(i)*time.Second, id, two)
	}
	c.at(3*time.Second, "d", skips)
	c.at(4*time.Second, "e", wrong)
	c.at(10*time.Second, "b", leaves)
	c.at(11*time.Second, "a", leaves)
	c.at(11*time.Second, "a", leaves)
	c.at(20*time.Second, "c", leaves)
	ended := c.run(queue.Queue{})
	require.NoError(t, c.env.GetWorkflowError())
	require.Equal(t, []string{"a granted", "b granted", "c queued", "d skipped", "c granted"}, c.told)
	require.Equal(t, 80*time.Second, ended, "it stays for a minute")
	require.Empty(t, c.cancelled)
}

func TestConcurrencyCancels(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	c.at(0, "a", cancelsRunning)
	c.at(time.Second, "b", cancelsRunning)
	c.at(2*time.Second, "a", leaves)
	c.at(3*time.Second, "b", leaves)
	c.run(queue.Queue{Name: queue.Name{Key: "acme"}})
	require.NoError(t, c.env.GetWorkflowError())
	require.ElementsMatch(t, []string{"a granted", "a replaced", "b queued", "b granted"}, c.told)
	require.Equal(t, []queue.Cancel{{
		Member: queue.Member{WorkflowID: "a", RunID: "1"}, Reason: `the run b took the concurrency key "acme" (on_conflict: cancel_running)`,
	}}, c.cancelled)
}

// TestConcurrencyChecksItsMembers: who ends without a word is found, more and more seldom while
// all is well, and hourly where nobody waits.
func TestConcurrencyChecksItsMembers(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	c.at(0, "a", nil)
	c.at(time.Minute, "b", nil)
	c.at(2*time.Minute, "c", nil)
	c.env.RegisterDelayedCallback(func() { c.gone["a"], c.gone["b"] = true, true }, 10*time.Minute)
	c.env.RegisterDelayedCallback(func() { c.gone["c"] = true }, 20*time.Minute)
	ended := c.run(queue.Queue{})
	require.NoError(t, c.env.GetWorkflowError())
	require.Equal(t, []string{"a granted", "b queued", "c queued", "c granted"}, c.told)
	minute := time.Minute
	require.Equal(t, []time.Duration{minute + 5*time.Second, minute + 15*time.Second, minute + 35*time.Second, minute + 75*time.Second, minute + 135*time.Second},
		c.looks[:5])
	last := c.looks[len(c.looks)-1]
	require.Greater(t, last, time.Hour, "nobody waits after a and b are found")
	require.Equal(t, last+minute, ended)
}

// TestConcurrencyDeafRuns: who cannot be told that it has its slot has ended, and the
// next has it at once.
func TestConcurrencyDeafRuns(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	for i, id := range []string{"a", "b", "c"} {
		c.at(time.Duration(i)*time.Second, id, nil)
	}
	c.env.RegisterDelayedCallback(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.deaf["b"] = true
	}, 3*time.Second)
	c.at(4*time.Second, "a", leaves)
	c.at(5*time.Second, "c", leaves)
	ended := c.run(queue.Queue{})
	require.NoError(t, c.env.GetWorkflowError())
	require.Equal(t, []string{"a granted", "b queued", "c queued", "c granted"}, c.told)
	require.Equal(t, 65*time.Second, ended)
}

// TestConcurrencyContinuesAsNew: a long history goes on in another with who has a slot, who
// waits and what is still to be told. A thousand fit.
func TestConcurrencyContinuesAsNew(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	var many queue.Queue
	for i := range 1000 {
		member := queue.Member{WorkflowID: fmt.Sprintf("run-%04d-%s", i, strings.Repeat("x", 100)), RunID: "1"}
		many.Apply(queue.Request{Member: member, Limit: 1, OnConflict: playbook.ConflictQueue}, began)
	}
	require.Len(t, many.Messages, 1000)
	// Sooner or later than the last has been told.
	c.env.RegisterDelayedCallback(func() { c.env.SetContinueAsNewSuggested(true) }, time.Second)
	c.run(many)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, c.env.GetWorkflowError(), &next)
	var state queue.Queue
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &state))
	travelled, err := json.Marshal(queue.Queue{Limit: many.Limit, Holders: many.Holders, Waiting: many.Waiting, Messages: state.Messages})
	require.NoError(t, err)
	came, err := json.Marshal(state)
	require.NoError(t, err)
	require.JSONEq(t, string(travelled), string(came))
	require.Equal(t, 1000, len(c.told)+len(state.Messages))

	after := newCounter(t)
	after.at(time.Second, state.Holders[0].WorkflowID, leaves)
	for _, member := range state.Waiting {
		after.gone[member.WorkflowID] = true
	}
	after.run(state)
	require.NoError(t, after.env.GetWorkflowError())
	require.Subset(t, after.told, []string{state.Waiting[0].WorkflowID + " granted"})
	require.GreaterOrEqual(t, len(after.told), len(state.Messages))
}

// TestConcurrencyIsNotCancelled: a cancel of the queue frees no slot.
func TestConcurrencyIsNotCancelled(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	c.at(0, "a", nil)
	c.env.RegisterDelayedCallback(c.env.CancelWorkflow, time.Second)
	c.at(2*time.Second, "b", nil)
	c.at(3*time.Second, "a", leaves)
	c.at(4*time.Second, "b", leaves)
	c.run(queue.Queue{})
	require.NoError(t, c.env.GetWorkflowError())
	require.Equal(t, []string{"a granted", "b queued", "b granted"}, c.told)
}
