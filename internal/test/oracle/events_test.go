package oracle_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
)

// events are how often which event of which item is predicted, or came.
type events map[string]int

// sinksAction is what attempts of sinks are called here.
const sinksAction = "sink's action"

// item is a visit of a step, or an iteration of it.
type item struct {
	step  string
	visit int
	index int // -1 outside of loops
}

func (i item) event(word string) string {
	return fmt.Sprintf("%s#%d[%d] %s", i.step, i.visit, i.index, word)
}

// tells notes an event of the first run.
func (o *oracle) emits(word string) {
	if o.below == 0 {
		o.events[o.item.event(word)]++
	}
}

// attempted notes an attempt of a call, or of a sink.
func (c *predictedCall) attempted(failed bool) {
	of := "action"
	if c.s.writes {
		of = sinksAction
	}
	c.o.emits(of + " started")
	if failed {
		c.o.emits(of + " error")
	} else {
		c.o.emits(of + " completed")
	}
}

// refused turns the attempt that was noted last into one that failed.
func (c *predictedCall) refused() {
	if c.o.below == 0 {
		c.o.events[c.o.item.event("action completed")]--
		if c.o.events[c.o.item.event("action completed")] == 0 {
			delete(c.o.events, c.o.item.event("action completed"))
		}
	}
	c.o.emits("action error")
}

// tells notes how a visit of a step ended.
func (e *stepEnded) emits(o *oracle) {
	if e.status != "failed" || e.loop != nil {
		o.emits(runs.StepResult)
	}
	if e.status == "failed" {
		o.emits(runs.StepFailedTerminal)
	}
}

// readEvents reads the events of a run, and how they follow each other.
func readEvents(ctx context.Context, t *testing.T, env *testenv.Env, id, runID string) (events, disagreements) {
	t.Helper()
	reader := &runs.Reader{Client: env.Client(), Namespace: env.Namespace, Store: testenv.PayloadStore(t)}
	found, err := reader.Find(ctx, id, runID)
	require.NoError(t, err)
	all, order := events{}, &following{open: map[string]int{}, ended: map[string]bool{}}
	_, err = reader.Events(ctx, found, runs.EventFilter{Attempts: true}, func(e runs.Event) error {
		at := item{e.Step, e.Visit, -1}
		if e.Index != nil {
			at.index = *e.Index
		}
		order.next(at, e)
		word, n := e.Event, 1+max(e.AttemptTo-e.Attempt, 0)
		switch word {
		case runs.ActionStarted, runs.ActionCompleted, runs.ActionError:
			of := "action"
			if e.Sink != "" {
				of = sinksAction
			}
			word = of + " " + word[len("action_"):]
		case runs.AnswerAwaited:
			return nil
		case runs.StepRetry:
			if n = 1; e.Delay == 0 || !slices.Contains([]string{"failure", "rate_limited", "poll", "page"}, e.Reason) {
				return nil
			}
		}
		all[at.event(word)] += n
		return nil
	})
	require.NoError(t, err)
	return all, order.wrong
}

// following is what events may follow.
type following struct {
	open  map[string]int // attempts
	ended map[string]bool
	wrong disagreements
	last  string
}

// next looks at an event with those before it.
func (f *following) next(at item, e runs.Event) {
	of := at.event("")
	if f.last == "end" {
		f.wrong.say("%s%s is told behind the end of the run", of, e.Event)
	}
	if at.step != "" && f.ended[of] {
		f.wrong.say("%s%s is told behind its end", of, e.Event)
	}
	switch e.Event {
	case runs.ActionStarted:
		f.open[of]++
	case runs.ActionCompleted, runs.ActionError:
		if f.open[of]--; f.open[of] < 0 {
			f.wrong.say("%s%s is told before its start", of, e.Event)
		}
	case runs.IterationCompleted, runs.IterationFailed, runs.StepFailedTerminal:
		f.ended[of] = true
	case runs.StepResult:
		f.ended[of] = e.Error == nil && e.Status != "failed" // a failed loop has another end behind it
	case runs.ExecutionCompleted, runs.ExecutionFailed:
		f.last = "end"
	}
}

// events compares what was predicted of events with those that came.
func (d *disagreements) events(o *oracle, c came) {
	if c.events == nil || o.torn {
		return
	}
	*d = append(*d, c.order...)
	predicted := maps.Clone(o.events)
	for _, event := range slices.Sorted(mapKeys(predicted)) {
		f, n := predicted[event], c.events[event]
		switch _, word, _ := strings.Cut(event, "] "); {
		case word == runs.SinkCompleted: // one of all that an activity has written
			f, n = min(f, 1), min(n, 1)
		case strings.HasPrefix(word, sinksAction): // those in an activity that hosts calls are not told
			continue
		}
		if n != f {
			d.say("event %s: %d were predicted, %d came", event, f, n)
		}
	}
	for _, event := range slices.Sorted(mapKeys(c.events)) {
		if _, known := predicted[event]; !known && predicts(event) {
			d.say("event %s: none was predicted, %d came", event, c.events[event])
		}
	}
}

// predicts says that the oracle has events of a word.
func predicts(event string) bool {
	_, word, _ := strings.Cut(event, "] ")
	return !slices.Contains([]string{
		runs.ExecutionStarted, runs.ExecutionCompleted, runs.ExecutionFailed, runs.StepRetryExhausted,
	}, word)
}
