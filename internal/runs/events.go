package runs

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reprise/internal/connect"
	"reprise/interpreter"
	"reprise/workflows"
)

// ahead is how many histories are read before their turn.
const ahead = 8

// Told is what Events did besides.
type Told struct {
	// Unasked counts the loops of which the attempts of iterations were not asked
	// for.
	Unasked int
	// Notes say what could not be told, and why.
	Notes []string
	// Histories is how many were read.
	Histories int
}

// Events gives the events of a run in their order, each once. The histories of
// iterations are read only where they are asked for. Not more is held at a time
// than the histories of workflows that were open at the same time.
func (r *Reader) Events(ctx context.Context, run Found, ask Ask, emit func(Event) error) (Told, error) {
	s := &stream{
		Reader: r, run: run, ask: ask, emit: emit, seen: map[string]bool{}, open: map[string]*openSource{},
		reads: make(map[string]chan read), unasked: map[string]bool{}, failed: map[string]bool{},
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	root := source{workflowID: run.WorkflowID, runID: run.RunID, workflow: workflows.PlaybookWorkflowName, first: true}
	s.push(item{opens: &opening{source: root}}) // before all that is known of steps
	err := s.all(ctx)
	s.told.Unasked = len(s.unasked)
	return s.told, err
}

// stream merges the events of many histories.
type stream struct {
	*Reader
	run  Found
	ask  Ask
	emit func(Event) error
	told Told

	queue   queue
	next    int // number of the item that is pushed next
	seen    map[string]bool
	open    map[string]*openSource // those that go on, by run ID
	reads   map[string]chan read   // histories that are being read ahead, by run ID
	coming  []opening              // histories that are not read yet, in their order
	ended   bool                   // the run has
	unasked map[string]bool
	failed  map[string]bool // steps with failures, step#visit
}

// openSource is a history that goes on.
type openSource struct {
	source
	events int64 // of the history, when it was read
	busy   string
	seen   map[string]bool // events that were told of it
}

// item is an event, or a history that has to be opened before later events.
type item struct {
	at     time.Time
	number int
	event  Event
	opens  *opening
}

// queue is items by time.
type queue []item

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return cmp.Or(q[i].at.Compare(q[j].at), cmp.Compare(q[i].rank(), q[j].rank()), cmp.Compare(q[i].number, q[j].number)) < 0
}

// rank puts the end of an iteration behind what it has done at the same moment, which
// another history tells.
func (it item) rank() int {
	switch it.event.Event {
	case IterationCompleted, IterationFailed:
		return 1
	case StepRetryExhausted, SinkFailed:
		if it.event.Index != nil && it.event.Attempts > 0 { // not of an attempt
			return 1
		}
	}
	return 0
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is that of container/heap.
func (q *queue) Push(x any) { *q = append(*q, x.(item)) }

// Pop is that of container/heap.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (s *stream) push(it item) {
	it.number = s.next
	s.next++
	heap.Push(&s.queue, it)
}

// read is a history that was read.
type read struct {
	teller *teller
	err    error
}

// all tells what has happened and, where that is asked for, what happens until
// the run has ended.
func (s *stream) all(ctx context.Context) error {
	if err := s.steps(ctx); err != nil {
		return err
	}
	for {
		if err := s.drain(ctx); err != nil {
			return err
		}
		if !s.ask.Follow || s.ended || len(s.open) == 0 {
			return nil
		}
		if err := s.more(ctx); err != nil {
			return err
		}
	}
}

// drain tells all that is known, and opens what that leads to.
func (s *stream) drain(ctx context.Context) error {
	for s.queue.Len() > 0 {
		it := heap.Pop(&s.queue).(item)
		if it.opens != nil {
			if err := s.openUp(ctx, *it.opens); err != nil {
				return err
			}
			continue
		}
		if s.takes(it.event) {
			if err := s.emit(it.event); err != nil {
				return err
			}
		}
	}
	return nil
}

// takes reports whether an event is asked for.
func (s *stream) takes(event Event) bool {
	if s.ask.Failed && event.Step != "" && !s.failed[fmt.Sprintf("%s#%d", event.Step, event.Visit)] {
		return false
	}
	return s.ask.takes(event)
}

// readAhead begins to read the histories that are opened next.
func (s *stream) readAhead(ctx context.Context) {
	for i := 0; i < min(len(s.coming), ahead) && len(s.reads) < ahead; i++ {
		from := s.coming[i]
		if s.reads[from.runID] != nil {
			continue
		}
		answer := make(chan read, 1)
		s.reads[from.runID] = answer
		go func() {
			t, err := s.tell(ctx, from.source, s.ask)
			answer <- read{t, err}
		}()
	}
}

// openUp takes in a history.
func (s *stream) openUp(ctx context.Context, from opening) error {
	s.readAhead(ctx)
	var of read
	if answer := s.reads[from.runID]; answer != nil {
		of = <-answer
		delete(s.reads, from.runID)
	} else {
		of.teller, of.err = s.tell(ctx, from.source, s.ask)
	}
	s.coming = slices.DeleteFunc(s.coming, func(o opening) bool { return o.runID == from.runID })
	if connect.NotFound(of.err) {
		s.told.Notes = append(s.told.Notes, fmt.Sprintf("the server no longer has the history of %s", from.workflowID))
		return nil
	}
	if of.err != nil {
		return of.err
	}
	s.told.Histories++
	known := &openSource{source: from.source, seen: map[string]bool{}}
	s.takeIn(known, of.teller)
	return nil
}

// takeIn queues what a history tells anew.
func (s *stream) takeIn(known *openSource, t *teller) {
	for _, event := range t.events {
		if !known.seen[event.key] {
			known.seen[event.key] = true
			s.push(item{at: event.At, event: event})
		}
	}
	for _, below := range t.below {
		if key := "open " + below.runID; !known.seen[key] {
			known.seen[key] = true
			s.coming = append(s.coming, below)
			s.push(item{at: below.at, opens: &below})
		}
	}
	slices.SortStableFunc(s.coming, func(x, y opening) int { return x.at.Compare(y.at) })
	if t.workflow == workflows.LoopWorkflowName && !s.ask.within() {
		s.unasked[fmt.Sprintf("%s#%d", t.step, t.visit)] = true
	}
	if t.goesOn() {
		known.only = t.only
		s.open[known.runID] = known
		return
	}
	delete(s.open, known.runID)
	if t.workflow == workflows.PlaybookWorkflowName && t.h.closed() {
		s.ended = true
	}
}

// lookEvery is how often events that are followed are looked for.
const lookEvery = 500 * time.Millisecond

// more waits until a history that goes on has become longer, and takes in what
// that tells. Looking at many takes long; the pauses grow with it.
func (s *stream) more(ctx context.Context) error {
	for wait := lookEvery; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		began, changed := time.Now(), false
		for _, known := range s.opened() {
			news, err := s.changed(ctx, known)
			if err != nil {
				return err
			}
			if !news {
				continue
			}
			changed = true
			t, err := s.tell(ctx, known.source, s.ask)
			if err != nil {
				return err
			}
			s.told.Histories++
			s.takeIn(known, t)
		}
		if changed {
			return s.steps(ctx)
		}
		wait = max(lookEvery, 4*time.Since(began))
	}
}

// opened are the histories that go on, in a certain order.
func (s *stream) opened() []*openSource {
	var all []*openSource
	for _, known := range s.open {
		all = append(all, known)
	}
	slices.SortFunc(all, func(x, y *openSource) int {
		return cmp.Or(cmp.Compare(x.workflowID, y.workflowID), cmp.Compare(x.runID, y.runID))
	})
	return all
}

// changed reports whether a history has become longer, or another attempt is under
// way.
func (s *stream) changed(ctx context.Context, known *openSource) (bool, error) {
	described, err := s.Client.DescribeWorkflowExecution(ctx, known.workflowID, known.runID)
	if err != nil {
		return false, fmt.Errorf("look whether %s goes on: %w", known.workflowID, err)
	}
	busy := ""
	for _, activity := range described.GetPendingActivities() {
		busy += fmt.Sprint(activity.GetActivityId(), activity.GetState(), " ")
	}
	length := described.GetWorkflowExecutionInfo().GetHistoryLength()
	news := length != known.events || busy != known.busy
	known.events, known.busy = length, busy
	return news, nil
}

// steps queues the starts and ends of steps, which no history tells: the result of
// the run has them, or its workflow answers.
func (s *stream) steps(ctx context.Context) error {
	records, err := s.records(ctx)
	if err != nil {
		return err
	}
	var events []Event
	for _, record := range records {
		if record.Visit == 0 {
			continue
		}
		if loop := record.Loop; record.Status == interpreter.Failed || loop != nil && (loop.Stats.Failed > 0 || record.EndedAt.IsZero()) {
			s.failed[fmt.Sprintf("%s#%d", record.Step, record.Visit)] = true
		}
		events = append(events, stepEvents(record)...)
	}
	// Of one moment, a step that takes no time ends before the next one starts: their
	// records are in the order of their starts.
	slices.SortStableFunc(events, func(x, y Event) int { return x.At.Compare(y.At) })
	for _, event := range events {
		if !s.seen[event.key] {
			s.seen[event.key] = true
			s.push(item{at: event.At, event: event})
		}
	}
	return nil
}

// records are the step visits of the run so far; nil where nobody can tell.
func (s *stream) records(ctx context.Context) ([]workflows.StepRecord, error) {
	found, err := s.describe(ctx, s.run.WorkflowID, s.run.last)
	if err != nil {
		return nil, err
	}
	if s.ask.Follow { // it may have gone on in another history
		if latest, err := s.describe(ctx, s.run.WorkflowID, ""); err == nil && latest.RunID == s.run.RunID {
			found = latest
		}
	}
	if found.Ended() {
		q := &inquiry{Reader: s.Reader, run: found, status: &Status{}}
		result, err := q.lastResult(ctx)
		if err != nil || result.Status != "" || result.Error != nil {
			return result.Steps, err
		}
	}
	progress, err := s.Progress(ctx, found.WorkflowID, found.last)
	if err == nil {
		return progress.Steps, nil
	}
	if ctx.Err() != nil || connect.Unavailable(err) {
		return nil, errors.Join(ctx.Err(), err)
	}
	if len(s.told.Notes) == 0 {
		s.told.Notes = append(s.told.Notes, fmt.Sprintf(
			"no worker of the task queue %q answers, so the starts and ends of steps are left out", found.TaskQueue))
	}
	return nil, nil
}

// stepEvents are those of one visit of a step.
func stepEvents(record workflows.StepRecord) []Event {
	base := Event{Step: record.Step, Visit: record.Visit}
	told := func(word string, at time.Time) Event {
		event := base
		event.Event, event.At = word, at
		event.key = fmt.Sprintf("%s#%d/%s", record.Step, record.Visit, word)
		return event
	}
	events := []Event{told(StepStarted, record.StartedAt)}
	if record.EndedAt.IsZero() {
		return events
	}
	end := told(StepResult, record.EndedAt)
	end.Duration, end.Status = record.EndedAt.Sub(record.StartedAt).Seconds(), record.Status
	end.Attempts, end.Pages, end.Handled, end.Error = record.Attempts, record.Pages, record.Handled, record.Error
	if record.Loop != nil {
		end.Stats = &record.Loop.Stats
	}
	if record.Status != interpreter.Failed {
		return append(events, end)
	}
	for _, word := range endings(record.Error) {
		before := told(word, record.EndedAt)
		before.Attempts, before.Error = record.Attempts, record.Error
		events = append(events, before)
	}
	if record.Loop != nil { // a failed loop has a result too
		result := end
		result.Error = nil
		events = append(events, result)
	}
	end.Event, end.key = StepFailedTerminal, told(StepFailedTerminal, record.EndedAt).key
	return append(events, end)
}
