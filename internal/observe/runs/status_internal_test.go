package runs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestWhatHoldsAnItem: what a workflow says of a call is a status, what holds it, and attempts.
func TestWhatHoldsAnItem(t *testing.T) {
	t.Parallel()
	awaiting := &interpreter.AwaitedDetails{Attempt: 2}
	of := func(reason interpreter.Reason) interpreter.CallStatus {
		return interpreter.CallStatus{Status: reason.Status(), Reason: reason, Attempts: 2, MaxAttempts: 5, Waiting: "in words", NextRetryAt: noon}
	}
	for name, row := range map[string]struct {
		call   interpreter.CallStatus
		heldBy string
		most   int
	}{
		"a retry":                  {of(interpreter.ReasonFailure), HeldByWait, 5},
		"told to wait":             {of(interpreter.ReasonRateLimited), HeldByWait, 5},
		"a poll":                   {of(interpreter.ReasonPoll), HeldByWait, 5},
		"a page":                   {of(interpreter.ReasonPage), HeldByWait, 5},
		"its turn":                 {of(interpreter.ReasonTurn), HeldByRateLimit, 5},
		"a person":                 {of(interpreter.ReasonPerson), HeldByPerson, 5},
		"a pause":                  {of(interpreter.ReasonPaused), HeldByPause, 5},
		"a slot":                   {of(interpreter.ReasonSlot), HeldByWindow, 5},
		"a state":                  {of(interpreter.ReasonState), HeldByConcurrency, 5},
		"a state out of reach":     {of(interpreter.ReasonKeeper), HeldByState, 5},
		"an answer":                {interpreter.CallStatus{Status: interpreter.Awaiting, Awaits: awaiting}, HeldByAnswer, 0},
		"a pause before an answer": {interpreter.CallStatus{Status: interpreter.Paused, Awaits: awaiting}, HeldByPause, 0},
		"nothing":                  {interpreter.CallStatus{Status: interpreter.Running, MaxAttempts: 5}, "", 5},
		"nothing any more":         {interpreter.CallStatus{Status: interpreter.Failed, Attempts: 5, MaxAttempts: 5}, "", 0},
	} {
		item := itemOf(row.call)
		require.Equal(t, row.heldBy, item.HeldBy, name)
		require.Equal(t, row.most, item.MaxAttempts, name)
		require.Equal(t, row.call.Status, item.Status, name)
		require.Equal(t, row.call.Attempts, item.Attempt, name)
		require.Equal(t, row.call.NextRetryAt, item.NextRetryAt, name)
	}
	for _, reason := range interpreter.Reasons() {
		require.NotEmpty(t, holders[reason], "what holds an item that waits for %q?", reason)
	}
}

// TestWhatHoldsARunAsListed: of each status in which a run waits, what holds the run is known.
func TestWhatHoldsARunAsListed(t *testing.T) {
	t.Parallel()
	for _, status := range interpreter.StatusesOf(interpreter.OfRun) {
		if !status.Ended() && status != interpreter.Running {
			require.NotEmpty(t, listedHolders[status], "what holds a run with the status %q? listedHolders says it", status)
		}
	}
}

// TestARunHasAStatusOfRuns: whatever status its only open step has, that of the run is one of runs.
func TestARunHasAStatusOfRuns(t *testing.T) {
	t.Parallel()
	for _, of := range interpreter.StatusesOf(interpreter.OfStep) {
		status, _, _ := openStatus([]Step{{Item: Item{Status: of, HeldBy: HeldByWait}}})
		require.Contains(t, interpreter.StatusesOf(interpreter.OfRun), status, "what is a run whose only step is %q? openStatus says it", of)
	}
}

// TestStatusOfAnOpenRun: what holds all of its steps holds the run.
func TestStatusOfAnOpenRun(t *testing.T) {
	t.Parallel()
	step := func(status interpreter.Status, heldBy string) Step {
		return Step{Item: Item{Status: status, HeldBy: heldBy}}
	}
	waits, held := step(interpreter.RetryPending, HeldByWait), step(interpreter.Paused, HeldByPause)
	person, runs := step(interpreter.RetryPending, HeldByPerson), step(interpreter.Running, "")
	done, pending := step(interpreter.Completed, ""), step(interpreter.Pending, "")
	asks := runs
	asks.Child, asks.Awaited = "below", []AwaitedAttempt{{}}
	for name, row := range map[string]struct {
		steps  []Step
		paused bool
		status interpreter.Status
		heldBy string
	}{
		"no step yet":     {nil, false, interpreter.Running, ""},
		"between steps":   {[]Step{done, pending}, false, interpreter.Running, ""},
		"one runs":        {[]Step{waits, runs}, false, interpreter.Running, ""},
		"all wait":        {[]Step{done, waits, waits}, false, interpreter.RetryPending, HeldByWait},
		"one waits":       {[]Step{person, pending}, false, interpreter.RetryPending, HeldByPerson},
		"for two reasons": {[]Step{waits, person}, false, interpreter.RetryPending, HeldByWait},
		"one is paused":   {[]Step{held, done}, false, interpreter.Paused, HeldByPause},
		"paused":          {[]Step{runs}, true, interpreter.Paused, HeldByPause},
		"one awaits":      {[]Step{step(interpreter.Awaiting, HeldByAnswer), waits}, false, interpreter.Awaiting, HeldByAnswer},
		"another runs":    {[]Step{runs, step(interpreter.Awaiting, HeldByAnswer)}, false, interpreter.Awaiting, ""},
		"a child awaits":  {[]Step{asks}, false, interpreter.Awaiting, ""},
	} {
		run := &Status{Steps: row.steps, Control: interpreter.Control{Paused: row.paused}}
		run.deriveStatus()
		require.Equal(t, row.status, run.Status, name)
		require.Equal(t, row.heldBy, run.HeldBy, name)
	}
}

// TestStatusAsListed: where not all is read that the run does, it has the status that it has
// published.
func TestStatusAsListed(t *testing.T) {
	t.Parallel()
	runs := Step{Item: Item{Status: interpreter.Running}}
	child, loop, unread, plays := runs, runs, runs, runs
	child.Child = "below"
	loop.Loop, unread.Loop, plays.Loop = &Counts{Total: 3}, &Counts{Total: 3}, &Counts{Total: 3, Plays: true}
	unread.silent = true
	for name, row := range map[string]struct {
		step   Step
		listed interpreter.Status
		want   interpreter.Status
		heldBy string
	}{
		"a child run waits":     {child, interpreter.RetryPending, interpreter.RetryPending, HeldByWait},
		"a child run is paused": {child, interpreter.Paused, interpreter.Paused, HeldByPause},
		"a child run is queued": {child, interpreter.Queued, interpreter.Queued, HeldByConcurrency},
		"a child run awaits":    {child, interpreter.Awaiting, interpreter.Awaiting, HeldByAnswer},
		"a child run runs":      {child, interpreter.Running, interpreter.Running, ""},
		"a loop of runs":        {plays, interpreter.Awaiting, interpreter.Awaiting, HeldByAnswer},
		"a loop was not read":   {unread, interpreter.RetryPending, interpreter.RetryPending, HeldByWait},
		"a loop was read":       {loop, interpreter.RetryPending, interpreter.Running, ""},
		"an attempt runs":       {runs, interpreter.RetryPending, interpreter.Running, ""},
	} {
		run := &Status{Found: Found{Status: row.listed}, Steps: []Step{row.step}}
		run.deriveStatus()
		require.Equal(t, row.want, run.Status, name)
		require.Equal(t, row.heldBy, run.HeldBy, name)
	}
}

// TestSinceWhen: each status of a run and of its steps has a beginning of its own.
func TestSinceWhen(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	step := func(status interpreter.Status, since time.Time) Step {
		return Step{Step: "fetch", StartedAt: noon, Item: Item{Status: status, Since: since}}
	}
	control := func(paused bool, held map[string]interpreter.Said) interpreter.Control {
		return interpreter.Control{Version: 1, Paused: paused, Held: held}
	}
	for name, row := range map[string]struct {
		steps []Step
		run   Status
		want  time.Time
		step  time.Time // of the first one
	}{
		"running":                {steps: []Step{step(interpreter.Running, time.Time{})}},
		"paused":                 {[]Step{step(interpreter.Running, time.Time{})}, Status{Control: control(true, map[string]interpreter.Said{"": {At: at(22)}})}, at(22), time.Time{}},
		"paused, and its step":   {[]Step{step(interpreter.Paused, time.Time{})}, Status{Control: control(true, map[string]interpreter.Said{"": {At: at(22)}})}, at(22), at(22)},
		"a step is paused":       {[]Step{step(interpreter.Paused, time.Time{})}, Status{Control: control(false, map[string]interpreter.Said{"fetch": {At: at(7)}})}, at(7), at(7)},
		"a parent run is paused": {[]Step{step(interpreter.Running, time.Time{})}, Status{HeldByParents: []ChildWait{{Item: Item{Since: at(9)}}, {Item: Item{Since: at(5)}}}}, at(5), time.Time{}},
		"all wait":               {[]Step{step(interpreter.RetryPending, at(3)), step(interpreter.RetryPending, at(4))}, Status{}, at(4), at(3)},
		"one waits, who knows":   {[]Step{step(interpreter.RetryPending, at(3)), step(interpreter.RetryPending, time.Time{})}, Status{}, time.Time{}, at(3)},
	} {
		run := row.run
		run.Steps = row.steps
		run.deriveStatus()
		require.Equal(t, row.want, run.Since, name)
		require.Equal(t, row.step, run.Steps[0].Since, name)
	}
	loop := &Step{Loop: &Counts{Total: 9}, active: 2}
	waits := interpreter.CallStatus{Status: interpreter.RetryPending, Reason: interpreter.ReasonFailure, Since: at(2)}
	later := waits
	later.Since = at(6)
	loop.recountLoop([]protocol.Iterations{{Iterations: []protocol.IterationRecord{iterationWith(0, waits), iterationWith(1, later)}}})
	loop.setHeldBy()
	require.Equal(t, at(6), loop.Since)
}

func iterationWith(index int, call interpreter.CallStatus) protocol.IterationRecord {
	return protocol.IterationRecord{Index: index, CallStatus: call}
}

// TestNoIterationIsUncounted: whatever its status, an iteration is in one figure of its loop.
func TestNoIterationIsUncounted(t *testing.T) {
	t.Parallel()
	statuses := append(interpreter.StatusesOf(interpreter.OfStep|interpreter.OfIteration|interpreter.OfRun), "of another build")
	for _, status := range statuses {
		step := &Step{Loop: &Counts{Total: 3}, active: 1}
		step.recountLoop([]protocol.Iterations{{Iterations: []protocol.IterationRecord{iterationWith(0, interpreter.CallStatus{Status: status})}}})
		c := step.Loop
		require.Equal(t, c.Total, c.Success+c.Failed+c.Cancelled+c.Running+c.Waiting+c.Pending, status)
		if status != interpreter.Pending {
			require.Equal(t, 2, c.Pending, status)
		}
	}
}

// TestCountsOfALoop: figures of a loop by what it and its open children answer, and what holds it.
func TestCountsOfALoop(t *testing.T) {
	t.Parallel()
	waits := interpreter.CallStatus{Status: interpreter.RetryPending, Reason: interpreter.ReasonFailure, NextRetryAt: noon.Add(time.Minute)}
	turn := interpreter.CallStatus{Status: interpreter.Running, Reason: interpreter.ReasonTurn, NextRetryAt: noon.Add(time.Hour)}
	person := interpreter.CallStatus{Status: interpreter.RetryPending, Reason: interpreter.ReasonPerson}
	runs, done := interpreter.CallStatus{Status: interpreter.Running}, interpreter.CallStatus{Status: interpreter.Completed}
	awaits := interpreter.CallStatus{Status: interpreter.Running, Awaits: &interpreter.AwaitedDetails{Attempt: 1}}
	keeper := interpreter.CallStatus{Status: interpreter.RetryPending, Reason: interpreter.ReasonKeeper}
	for name, row := range map[string]struct {
		calls  []interpreter.CallStatus
		want   Counts
		status interpreter.Status
		heldBy string
		next   time.Time
	}{
		"some run": {
			[]interpreter.CallStatus{runs, waits, done},
			Counts{Total: 10, Success: 3, Running: 1, Waiting: 1, Pending: 5},
			interpreter.Running, HeldByWindow, noon.Add(time.Minute),
		},
		"all wait": {
			[]interpreter.CallStatus{waits, waits},
			Counts{Total: 10, Success: 2, Waiting: 2, Pending: 6},
			interpreter.RetryPending, HeldByWait, noon.Add(time.Minute),
		},
		"all wait for their turns": {
			[]interpreter.CallStatus{turn, turn},
			Counts{Total: 10, Success: 2, Waiting: 2, Pending: 6},
			interpreter.Running, HeldByRateLimit, noon.Add(time.Hour),
		},
		"all wait for a person": {
			[]interpreter.CallStatus{person}, Counts{Total: 10, Success: 2, Waiting: 1, Pending: 7}, interpreter.RetryPending, HeldByPerson, time.Time{},
		},
		"all wait for states": {
			[]interpreter.CallStatus{keeper, keeper}, Counts{Total: 10, Success: 2, Waiting: 2, Pending: 6}, interpreter.RetryPending, HeldByState, time.Time{},
		},
		"a state and a retry": {
			[]interpreter.CallStatus{keeper, waits}, Counts{Total: 10, Success: 2, Waiting: 2, Pending: 6}, interpreter.RetryPending, HeldByWait, noon.Add(time.Minute),
		},
		"all await answers": {
			[]interpreter.CallStatus{awaits}, Counts{Total: 10, Success: 2, Running: 1, Awaiting: 1, Pending: 7}, interpreter.Awaiting, HeldByAnswer, time.Time{},
		},
		"one awaits its answer": {
			[]interpreter.CallStatus{awaits, runs}, Counts{Total: 10, Success: 2, Running: 2, Awaiting: 1, Pending: 6}, interpreter.Awaiting, "", time.Time{},
		},
		"some fail": {
			[]interpreter.CallStatus{{Status: interpreter.Failed}, {Status: interpreter.Cancelled}, runs},
			Counts{Total: 10, Success: 2, Failed: 1, Cancelled: 1, Running: 1, Pending: 5},
			interpreter.Running, HeldByWindow,
			time.Time{},
		},
	} {
		step := &Step{Loop: &Counts{Total: 10}, active: len(row.calls), ended: interpreter.LoopStats{Success: 2}}
		answer := protocol.Iterations{}
		for i, call := range row.calls {
			answer.Iterations = append(answer.Iterations, iterationWith(i, call))
		}
		step.recountLoop([]protocol.Iterations{answer})
		step.setHeldBy()
		require.Equal(t, row.want, *step.Loop, name)
		require.Equal(t, row.status, step.Status, name)
		require.Equal(t, row.heldBy, step.HeldBy, name)
		require.Equal(t, row.next, step.NextRetryAt, name)
	}
}

// TestPaceOfALoop: the time that is left follows from the pace, and people have none.
func TestPaceOfALoop(t *testing.T) {
	t.Parallel()
	step := &Step{StartedAt: noon, Loop: &Counts{Total: 100, Success: 40, Running: 10, Pending: 50}}
	step.summarizeLoop(noon.Add(20 * time.Second))
	require.InDelta(t, 2, step.Loop.PerSecond, 0.001)
	require.InDelta(t, 30, step.Loop.Left, 0.001)
	step.Loop.Asks = true
	step.summarizeLoop(noon.Add(20 * time.Second))
	require.Zero(t, step.Loop.Left)
}

// TestAPausedLoopRests: it has no pace, and nothing that is not known to run runs.
func TestAPausedLoopRests(t *testing.T) {
	t.Parallel()
	paused := func() *Step {
		return &Step{
			StartedAt: noon, Item: Item{Status: interpreter.Paused, HeldBy: HeldByPause}, active: 10, ended: interpreter.LoopStats{Success: 40},
			Loop: &Counts{Total: 100, Success: 40, Running: 7, Waiting: 3, Pending: 50},
		}
	}
	step := paused()
	step.summarizeLoop(noon.Add(20 * time.Second))
	require.Equal(t, Counts{Total: 100, Success: 40, Waiting: 10, Pending: 50}, *step.Loop)
	step = paused()
	answer := protocol.Iterations{}
	for i := range 10 {
		call := interpreter.CallStatus{Status: interpreter.Paused, Reason: interpreter.ReasonPaused}
		if i == 0 {
			call = interpreter.CallStatus{Status: interpreter.Running} // its attempt was under way
		}
		answer.Iterations = append(answer.Iterations, iterationWith(i, call))
	}
	step.recountLoop([]protocol.Iterations{answer})
	step.summarizeLoop(noon.Add(20 * time.Second))
	require.Equal(t, Counts{Total: 100, Success: 40, Running: 1, Waiting: 9, Pending: 50}, *step.Loop)
}

// TestListQueries: a filter is a query of the server, for each status of runs.
func TestListQueries(t *testing.T) {
	t.Parallel()
	const own = " AND ParentWorkflowId IS NULL"
	all := "WorkflowType = 'PlaybookWorkflow' AND ExecutionStatus != 'ContinuedAsNew'"
	for status, want := range map[interpreter.Status]string{
		"":                    "",
		interpreter.Running:   " AND ExecutionStatus = 'Running'",
		interpreter.Paused:    " AND ExecutionStatus = 'Running' AND RepriseStatus = 'paused'",
		interpreter.Awaiting:  " AND ExecutionStatus = 'Running' AND RepriseStatus = 'awaiting'",
		interpreter.Queued:    " AND ExecutionStatus = 'Running' AND RepriseStatus = 'queued'",
		interpreter.Completed: " AND ExecutionStatus = 'Completed' AND RepriseStatus = 'completed'",
		interpreter.Partial:   " AND ExecutionStatus = 'Completed' AND RepriseStatus = 'partial_success'",
		interpreter.Skipped:   " AND ExecutionStatus = 'Completed' AND RepriseStatus = 'skipped'",
		interpreter.Failed:    " AND ExecutionStatus IN ('Failed', 'Terminated', 'TimedOut')",
		interpreter.Cancelled: " AND ExecutionStatus = 'Canceled'",
	} {
		require.Equal(t, all+own+want, Filter{Status: status}.queryText(), status)
	}
	for _, status := range interpreter.StatusesOf(interpreter.OfRun) {
		require.Contains(t, Filter{Status: status}.queryText(), own+" AND ExecutionStatus", status)
	}
	require.Equal(t, all+" AND ReprisePlaybook = 'it\\'s' AND StartTime >= '2026-03-01T12:00:00Z'",
		Filter{Playbook: "it's", Since: noon, Children: true}.queryText())
}
