package runs

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"reprise/internal/base/connect"
	"reprise/internal/base/sleep"
	"reprise/internal/observe/cost"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// ahead is how many histories are read in advance.
const ahead = 8

// origin is a source of one run's events.
type origin interface {
	// load reads a history and converts it to events; isGone recognises the error for a history that no longer
	// exists.
	load(ctx context.Context, from source, filter EventFilter) (*projector, error)
	// records returns the step visits so far. note says why there are none, for example because no worker responds.
	// latest also finds workflow runs in which the run continued as new.
	records(ctx context.Context, latest bool) (records []protocol.StepRecord, note string, err error)
	// revision changes when a history grows, or when another attempt in it begins.
	revision(ctx context.Context, of source) (string, error)
}

// EventsInfo summarizes a list of events.
type EventsInfo struct {
	// Unasked counts the loops whose iterations have attempts that were not requested.
	Unasked int
	// Notes describe what is missing, and why.
	Notes []string
	// Histories is the number of histories read.
	Histories int
	// Cost is that of the histories read, without those of child runs.
	Cost cost.Cost
}

// merger merges the events of the histories of a run by time. It holds no more than the histories of workflows that
// were open at the same time.
type merger struct {
	origin
	filter EventFilter
	emit   func(Event) error
	info   EventsInfo

	queue   eventQueue
	next    int // number of the item that is pushed next
	seen    map[string]bool
	open    map[string]*openSource // those that may grow, by run ID
	reads   map[string]chan read   // histories that are being read ahead, by run ID
	coming  []link                 // histories that are not read yet, in their order
	ended   bool                   // the run has
	unasked map[string]bool
	frames  frames
	failed  map[string]bool // steps with failures, step#visit
}

// openSource is a history that may still grow.
type openSource struct {
	source
	revision string          // of the history, when it was read
	seen     map[string]bool // events of it that are known
}

// read is the result of reading a history.
type read struct {
	projector *projector
	err       error
}

// mergeEvents emits the events of a run in order, each once.
func mergeEvents(ctx context.Context, from origin, root source, filter EventFilter, emit func(Event) error) (EventsInfo, error) {
	m := &merger{
		origin: from, filter: filter, emit: emit, seen: map[string]bool{}, open: map[string]*openSource{},
		reads: make(map[string]chan read), unasked: map[string]bool{}, frames: frames{}, failed: map[string]bool{},
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.pushItem(item{opens: &link{source: root}}) // before all that is known of steps
	err := m.emitAll(ctx)
	m.info.Unasked = len(m.unasked)
	return m.info, err
}

func (m *merger) pushItem(it item) {
	it.number = m.next
	m.next++
	heap.Push(&m.queue, it)
}

// emitAll emits what has happened and, if the filter follows the run, what happens until it ends.
func (m *merger) emitAll(ctx context.Context) error {
	if err := m.queueSteps(ctx); err != nil {
		return err
	}
	for {
		if err := m.drainKnown(ctx); err != nil {
			return err
		}
		if !m.filter.Follow || m.ended || len(m.open) == 0 {
			return nil
		}
		if err := m.awaitNew(ctx); err != nil {
			return err
		}
	}
}

// drainKnown emits all queued events, and reads the histories that they lead to.
func (m *merger) drainKnown(ctx context.Context) error {
	for m.queue.Len() > 0 {
		it := heap.Pop(&m.queue).(item)
		if it.opens != nil {
			if err := m.enterHistory(ctx, *it.opens); err != nil {
				return err
			}
			continue
		}
		if due := m.frames.dueTime(it); due.After(it.at) {
			it.at, it.event.At = due, due
			m.pushItem(it)
			continue
		}
		for _, event := range m.frames.emitNext(it.event) {
			if !m.matchesEvent(event) {
				continue
			}
			if err := m.emit(event); err != nil {
				return err
			}
		}
	}
	return nil
}

// matchesEvent reports whether an event is requested.
func (m *merger) matchesEvent(event Event) bool {
	if m.filter.Failed && event.Step != "" && !m.failed[fmt.Sprintf("%s#%d", event.Step, event.Visit)] {
		return false
	}
	return m.filter.matchesEvent(event)
}

// readAhead starts reading the next histories.
func (m *merger) readAhead(ctx context.Context) {
	for i := 0; i < min(len(m.coming), ahead) && len(m.reads) < ahead; i++ {
		from := m.coming[i]
		if m.reads[from.runID] != nil {
			continue
		}
		answer := make(chan read, 1)
		m.reads[from.runID] = answer
		go func() {
			p, err := m.load(ctx, from.source, m.filter)
			answer <- read{p, err}
		}()
	}
}

// enterHistory reads the next history.
func (m *merger) enterHistory(ctx context.Context, from link) error {
	m.readAhead(ctx)
	var of read
	if answer := m.reads[from.runID]; answer != nil {
		of = <-answer
		delete(m.reads, from.runID)
	} else {
		of.projector, of.err = m.load(ctx, from.source, m.filter)
	}
	m.coming = slices.DeleteFunc(m.coming, func(other link) bool { return other.runID == from.runID })
	if connect.IsNotFound(of.err) {
		m.info.Notes = append(m.info.Notes, fmt.Sprintf("the server no longer has the history of %s", from.workflowID))
		return nil
	}
	if of.err != nil {
		return of.err
	}
	m.info.Histories++
	m.info.Cost = m.info.Cost.Plus(of.projector.cost)
	m.addNew(&openSource{source: from.source, seen: map[string]bool{}}, of.projector)
	return nil
}

// addNew queues the new events of a history.
func (m *merger) addNew(known *openSource, p *projector) {
	for _, event := range p.sortedEvents() {
		if !known.seen[event.key] {
			known.seen[event.key] = true
			m.frames.noteQueued(event, p.workflow)
			m.pushItem(item{at: event.At, event: event})
		}
	}
	for _, next := range p.links {
		if key := "open " + next.runID; !known.seen[key] {
			known.seen[key] = true
			m.coming = append(m.coming, next)
			m.pushItem(item{at: next.at, opens: &next})
		}
	}
	slices.SortStableFunc(m.coming, func(x, y link) int { return x.at.Compare(y.at) })
	if p.workflow == protocol.LoopWorkflowName && !m.filter.withinIterations() {
		m.unasked[fmt.Sprintf("%s#%d", p.step, p.visit)] = true
	}
	if p.isOpen() {
		known.only = p.only
		m.open[known.runID] = known
		return
	}
	delete(m.open, known.runID)
	if p.workflow == protocol.PlaybookWorkflowName && p.h.isClosed() {
		m.ended = true
	}
}

// pollInterval is the pause between reads of open histories.
const pollInterval = 500 * time.Millisecond

// awaitNew waits until an open history has grown, and adds its new events. The pause grows with the time that reading
// takes.
func (m *merger) awaitNew(ctx context.Context) error {
	for wait := pollInterval; ; {
		if sleep.For(ctx, wait) != nil {
			return ctx.Err()
		}
		began := time.Now()
		grown, err := m.pollOpen(ctx)
		if err != nil {
			return err
		}
		if grown {
			return m.queueSteps(ctx)
		}
		wait = max(pollInterval, 4*time.Since(began))
	}
}

// pollOpen reads the open histories that have grown.
func (m *merger) pollOpen(ctx context.Context) (grown bool, err error) {
	inOrder := slices.SortedFunc(maps.Values(m.open), func(x, y *openSource) int {
		return cmp.Or(cmp.Compare(x.workflowID, y.workflowID), cmp.Compare(x.runID, y.runID))
	})
	for _, known := range inOrder {
		revision, err := m.revision(ctx, known.source)
		if err != nil {
			return grown, err
		}
		if revision == known.revision {
			continue
		}
		known.revision, grown = revision, true
		p, err := m.load(ctx, known.source, m.filter)
		if err != nil {
			return grown, err
		}
		m.info.Histories++
		m.addNew(known, p)
	}
	return grown, nil
}

// queueSteps queues the starts and ends of steps, which no history has as events: they come from the result of the
// run, or from its open workflow.
func (m *merger) queueSteps(ctx context.Context) error {
	records, note, err := m.records(ctx, m.filter.Follow)
	if err != nil {
		return err
	}
	if note != "" && len(m.info.Notes) == 0 {
		m.info.Notes = append(m.info.Notes, note)
	}
	var events []Event
	for _, record := range records {
		if record.Visit == 0 {
			continue
		}
		if loop := record.Loop; record.Status == interpreter.Failed || loop != nil && (loop.Stats.Failed > 0 || record.EndedAt.IsZero()) {
			m.failed[fmt.Sprintf("%s#%d", record.Step, record.Visit)] = true
		}
		events = append(events, StepEvents(record)...)
	}
	// At the same time, a step without duration ends before the next one starts: records are in the order of their
	// starts.
	slices.SortStableFunc(events, func(x, y Event) int { return x.At.Compare(y.At) })
	for _, event := range events {
		if !m.seen[event.key] {
			m.seen[event.key] = true
			m.pushItem(item{at: event.At, event: event})
		}
	}
	return nil
}

// item is an event, or a history that must be read before later events.
type item struct {
	at     time.Time
	number int
	event  Event
	opens  *link
}

// eventQueue orders items by time.
type eventQueue []item

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return cmp.Or(q[i].at.Compare(q[j].at), cmp.Compare(q[i].sortRank(), q[j].sortRank()), cmp.Compare(q[i].number, q[j].number)) < 0
}

// sortRank puts the end of an iteration after its attempts at the same time, which are in another history.
func (it item) sortRank() int {
	kind := it.event.Kind()
	if kind.Of == OfIteration && kind.Phase == Ends || kind.Phase == Happens && it.event.Index != nil && it.event.Attempts > 0 {
		return 1
	}
	return 0
}

func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *eventQueue) Push(x any) { *q = append(*q, x.(item)) }

// Pop implements heap.Interface.
func (q *eventQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// frames keep the events of an iteration between its start and its end. These two come from the history of its loop,
// possibly with times of a worker's clock; the events between come from another history, with times of the server.
type frames map[string]*frame

// frame is an iteration that has not ended.
type frame struct {
	start *Event    // that was not emitted yet, nil for none
	last  time.Time // when it is known to have done something last
}

func frameOf(event Event) string {
	return fmt.Sprintf("%s#%d/%d", event.Step, event.Visit, *event.Index)
}

// frameOf returns the frame of an event's iteration, creating it if necessary.
func (f frames) frameOf(event Event) *frame {
	key := frameOf(event)
	if f[key] == nil {
		f[key] = &frame{}
	}
	return f[key]
}

// noteQueued records a queued event; workflow is the type of the workflow whose history has it.
func (f frames) noteQueued(event Event, workflow string) {
	switch {
	case event.Index == nil:
	case event.Event == IterationStarted:
		f.frameOf(event).start = &event
	case workflow == protocol.CallsWorkflowName:
		if of := f.frameOf(event); of.last.Before(event.At) {
			of.last = event.At
		}
	}
}

// dueTime returns when an event may be emitted: the end of an iteration not before the last of its events.
func (f frames) dueTime(it item) time.Time {
	if it.sortRank() > 0 {
		if of := f[frameOf(it.event)]; of != nil && it.at.Before(of.last) {
			return of.last
		}
	}
	return it.at
}

// emitNext returns the events to emit: the delayed start of the event's iteration, if not emitted yet, and the event.
func (f frames) emitNext(event Event) []Event {
	if event.Index == nil || f[frameOf(event)] == nil {
		return []Event{event}
	}
	of := f.frameOf(event)
	start := of.start
	of.start = nil
	if kind := event.Kind(); kind.Of == OfIteration && kind.Phase == Ends {
		delete(f, frameOf(event))
	}
	switch {
	case event.Event == IterationStarted && start == nil:
		return nil
	case event.Event != IterationStarted && start != nil:
		began := *start
		began.At = event.At
		return []Event{began, event}
	}
	return []Event{event}
}
