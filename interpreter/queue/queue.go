// Package queue grants slots to the runs of one concurrency key: it decides which runs have a slot, wait, are
// skipped or replaced, or can never get one because runs wait for each other. A Queue is a value without a clock or
// server; ConcurrencyWorkflow delivers its messages.
package queue

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"reprise/interpreter/playbook"
)

// Member is a run that shares a key; kept in workflow history.
type Member struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"` // that of the first history of the run
	// Visit identifies the visit of the step that waits for its state; "" for the run as a whole.
	Visit string `json:"visit,omitempty"`
}

// Request is a run's message to the queue of its key; kept in workflow history.
type Request struct {
	Member
	// Leave says that the run needs no slot any more; otherwise it requests one. A run that repeats the request
	// keeps its position.
	Leave bool `json:"leave,omitempty"`
	// Limit and OnConflict are copied from the run's playbook.
	Limit      int                 `json:"limit,omitempty"`
	OnConflict playbook.OnConflict `json:"on_conflict,omitempty"`
	// Started is when the run began. Runs wait in this order, because a request may arrive long after the begin,
	// for example if the first worker died.
	Started time.Time `json:"started,omitzero"`
	// Parents are the slots of the runs that wait for the end of this one.
	Parents []Holding `json:"parents,omitempty"`
	// Known is the last decision that a run knows when it repeats its request, "" for none. Only a different
	// decision is sent, because thousands may repeat theirs at once.
	Known State `json:"known,omitempty"`
}

// Holding is a slot of a run; kept in workflow history.
type Holding struct {
	Run   string `json:"run"`   // workflow ID of the run
	Queue string `json:"queue"` // workflow ID of the queue
}

// Check returns an error for a message that no run sends.
func (r Request) Check() error {
	switch {
	case r.WorkflowID == "" || len(r.WorkflowID) > 1000 || len(r.RunID) > 100 || len(r.Visit) > 1000:
		return fmt.Errorf("%d bytes of workflow ID, %d of run ID and %d of visit", len(r.WorkflowID), len(r.RunID), len(r.Visit))
	case !r.Leave && (r.Limit < 1 || r.Limit > playbook.MaxConcurrencyRuns):
		return fmt.Errorf("a limit of %d", r.Limit)
	case len(r.Parents) > playbook.MaxNesting:
		return fmt.Errorf("%d parent runs", len(r.Parents))
	}
	return nil
}

// State is the decision of a queue about a run.
type State string

// The states of a run. A run whose request has not been decided has none.
const (
	Granted State = "granted"
	Queued  State = "queued"
	// Skipped means that a run with on_conflict skip found no free slot.
	Skipped State = "skipped"
	// Replaced means that the run is cancelled for another one with cancel_running.
	Replaced State = "replaced"
	// Full means that the queue has no room for the run.
	Full State = "full"
	// Deadlocked means that the run would wait forever, because runs wait for each other.
	Deadlocked State = "circle"
)

// Decision is a queue's message to a run; kept in workflow history.
type Decision struct {
	RunID string `json:"run_id"` // run ID of the receiver's first history
	// Queue is the workflow ID of the queue, and Visit that of the request, since a run may wait for several
	// states.
	Queue string `json:"queue,omitempty"`
	Visit string `json:"visit,omitempty"`
	State State  `json:"state"`
	// By is the workflow ID of the run that has the slot, or gets it.
	By string `json:"by,omitempty"`
	// Why describes who waits for whom, for Deadlocked.
	Why string `json:"why,omitempty"`
}

// Message is a decision to be sent; kept in workflow history.
type Message struct {
	To       Member   `json:"to"`
	Decision Decision `json:"decision"`
	bytes    int      // see byteSize
}

// byteSize returns the size of the message in bytes of JSON, computed once.
func (m *Message) byteSize() int {
	if m.bytes == 0 {
		m.bytes = encodedSize(*m) + len(",")
	}
	return m.bytes
}

// Entry is a run that has a slot or waits for one; kept in workflow history.
type Entry struct {
	Member
	Since   time.Time `json:"since"`
	Started time.Time `json:"started,omitzero"` // when the run began
	// Replaces says that the run cancels others instead of waiting for their end.
	Replaces bool `json:"replaces,omitempty"`
	// Leaving says that the run has been asked to cancel.
	Leaving bool `json:"leaving,omitempty"`
	// Parents are the parents of its request.
	Parents []Holding `json:"parents,omitempty"`
	bytes   int       // see byteSize
}

// byteSize returns the size of the entry in bytes of JSON, computed once, because each request sums up all of them.
func (e *Entry) byteSize() int {
	if e.bytes == 0 {
		e.bytes = encodedSize(*e) + len(",")
	}
	return e.bytes
}

// Queue grants slots to the runs of one key in the order in which they began. Its decisions depend only on the
// times passed to it. Kept in workflow history.
type Queue struct {
	Name Name `json:"name"`
	// Limit is that of the last request, since versions of a playbook may differ.
	Limit    int       `json:"limit,omitempty"`
	Holders  []Entry   `json:"holders,omitempty"` // oldest first
	Waiting  []Entry   `json:"queue,omitempty"`   // next one first
	Messages []Message `json:"messages,omitempty"`
}

// maxSize bounds a queue, in bytes of its JSON, with which it continues as new: Temporal rejects more than 2 MB.
const maxSize = 1_200_000

// byteSize returns the size of the queue in bytes of JSON.
func (q *Queue) byteSize() int {
	size := encodedSize(q.Name)
	for i := range q.Messages {
		size += q.Messages[i].byteSize()
	}
	for _, entries := range [][]Entry{q.Holders, q.Waiting} {
		for i := range entries {
			size += entries[i].byteSize()
		}
	}
	return size
}

// encodedSize returns the size of a value in bytes of JSON.
func encodedSize(v any) int {
	encoded, _ := json.Marshal(v) // it holds text, numbers and times
	return len(encoded)
}

// Empty reports whether no run has a slot or waits for one, and no message is left to send.
func (q *Queue) Empty() bool { return len(q.Holders)+len(q.Waiting)+len(q.Messages) == 0 }

// Apply decides a request.
func (q *Queue) Apply(request Request, now time.Time) {
	if request.Leave {
		q.Remove(now, request.Member)
		return
	}
	q.Limit = request.Limit
	q.grantSlots(now)
	switch known := q.stateOf(request.Member); {
	case known != "":
		if known != request.Known {
			q.notifyRun(request.Member, known, q.stateHolder())
		}
		return
	case len(q.Holders) < q.Limit && len(q.Waiting) == 0:
	case request.OnConflict == playbook.ConflictSkip:
		q.notifyRun(request.Member, Skipped, append(slices.Clone(q.Holders), q.Waiting...)[0].WorkflowID)
		return
	case q.blockingRun(request) != "" && q.countReplacing() == 0:
		q.notifyRun(request.Member, Replaced, q.blockingRun(request))
		return
	case q.byteSize() > maxSize:
		q.notifyRun(request.Member, Full, "")
		return
	}
	q.enqueueRun(Entry{
		Member: request.Member, Since: now, Started: request.Started,
		Replaces: request.OnConflict == playbook.ConflictCancel, Parents: request.Parents,
	})
	q.removeSuperseded()
	q.grantSlots(now)
	if q.stateOf(request.Member) == Queued {
		q.notifyRun(request.Member, Queued, q.stateHolder())
	}
}

// stateHolder returns the run that holds a state; "" for a queue of a concurrency key, where several may have a
// slot.
func (q *Queue) stateHolder() string {
	if !q.Name.State || len(q.Holders) == 0 {
		return ""
	}
	return q.Holders[0].WorkflowID
}

// Has reports whether a run has a slot or waits for one.
func (q *Queue) Has(run Member) bool { return q.stateOf(run) != "" }

// enqueueRun inserts a run after those that began before it.
func (q *Queue) enqueueRun(next Entry) {
	at := len(q.Waiting)
	for at > 0 && q.Waiting[at-1].Started.After(next.Started) {
		at--
	}
	q.Waiting = slices.Insert(q.Waiting, at, next)
}

// blockingRun returns a run that prevents a replacing run from getting a slot, because all slots belong to runs that
// began later; "" if there is none.
func (q *Queue) blockingRun(request Request) string {
	if request.OnConflict != playbook.ConflictCancel || len(q.Holders) < q.Limit {
		return ""
	}
	for _, holder := range q.Holders {
		if !holder.Started.After(request.Started) {
			return ""
		}
	}
	return q.Holders[len(q.Holders)-1].WorkflowID
}

// Remove removes runs that need no slot any more, or have ended.
func (q *Queue) Remove(now time.Time, runs ...Member) {
	isGone := func(entry Entry) bool { return slices.Contains(runs, entry.Member) }
	q.Holders = slices.DeleteFunc(q.Holders, isGone)
	q.Waiting = slices.DeleteFunc(q.Waiting, isGone)
	q.grantSlots(now)
}

// RecoveredQueue returns the queue of a terminated workflow for its successor. Messages may have been lost, so
// grants are sent again, and runs to be replaced are cancelled again.
func (q Queue) RecoveredQueue() Queue {
	q.Holders = slices.Clone(q.Holders)
	for i := range q.Holders {
		q.Holders[i].Leaving = false
		q.notifyRun(q.Holders[i].Member, Granted, "")
	}
	return q
}

// stateOf returns the state of a run, "" for an unknown one.
func (q *Queue) stateOf(run Member) State {
	is := func(entry Entry) bool { return entry.Member == run }
	switch {
	case slices.ContainsFunc(q.Holders, is):
		return Granted
	case slices.ContainsFunc(q.Waiting, is):
		return Queued
	}
	return ""
}

func (q *Queue) notifyRun(to Member, state State, by string) {
	q.Messages = append(q.Messages, Message{To: to, Decision: Decision{
		RunID: to.RunID, Queue: q.Name.WorkflowID(), Visit: to.Visit, State: state, By: by,
	}})
}

// removeSuperseded removes waiting runs that would be cancelled as soon as they began: of runs that replace others,
// only the newest wait, as many as there are slots.
func (q *Queue) removeSuperseded() {
	over, newest := q.countReplacing()-q.Limit, Entry{}
	for _, entry := range q.Waiting {
		if entry.Replaces {
			newest = entry
		}
	}
	q.Waiting = slices.DeleteFunc(q.Waiting, func(entry Entry) bool {
		if !entry.Replaces || over <= 0 {
			return false
		}
		over--
		q.notifyRun(entry.Member, Replaced, newest.WorkflowID)
		return true
	})
}

// countReplacing counts the waiting runs that replace others.
func (q *Queue) countReplacing() (n int) {
	for _, entry := range q.Waiting {
		if entry.Replaces {
			n++
		}
	}
	return n
}

// grantSlots grants free slots to the next runs, and cancels the oldest holders for runs that replace others.
func (q *Queue) grantSlots(now time.Time) {
	for len(q.Waiting) > 0 && len(q.Holders) < q.Limit {
		next := q.Waiting[0]
		q.Waiting = q.Waiting[1:]
		next.Since = now
		q.Holders = append(q.Holders, next)
		q.notifyRun(next.Member, Granted, "")
	}
	wanted, by := q.countReplacing(), ""
	for _, entry := range q.Waiting {
		if entry.Replaces {
			by = entry.WorkflowID
		}
	}
	for i := range q.Holders {
		holder := &q.Holders[i]
		if wanted <= 0 {
			return
		}
		wanted--
		if !holder.Leaving {
			holder.Leaving = true
			q.notifyRun(holder.Member, Replaced, by)
		}
	}
}

// Status is the result of StatusQuery.
type Status struct {
	Name    Name `json:"name"`
	Limit   int  `json:"limit"`
	Waiting int  `json:"waiting"`
	Running int  `json:"running"`
	// Holders are the workflow IDs of the first few runs that have a slot, and HoldersSince when they got it.
	Holders      []string    `json:"holders,omitempty"`
	HoldersSince []time.Time `json:"holders_since,omitempty"`
	// Positions are the positions of the queried runs, in order, from 1; 0 for a run that does not wait. A Member
	// without a run ID matches any run with its workflow ID.
	Positions []int `json:"positions,omitempty"`
}

// shownHolders bounds the holders in a Status.
const shownHolders = 5

// Status returns the status of the queue, and the positions of some runs.
func (q *Queue) Status(runs []Member) Status {
	status := Status{
		Name: q.Name, Limit: q.Limit, Waiting: len(q.Waiting), Running: len(q.Holders), Positions: make([]int, len(runs)),
	}
	for _, holder := range q.Holders[:min(len(q.Holders), shownHolders)] {
		status.Holders, status.HoldersSince = append(status.Holders, holder.WorkflowID), append(status.HoldersSince, holder.Since)
	}
	positions := make(map[Member]int, 2*len(q.Waiting))
	for i, entry := range q.Waiting {
		positions[entry.Member], positions[Member{WorkflowID: entry.WorkflowID}] = i+1, i+1
	}
	for i, run := range runs {
		status.Positions[i] = positions[run]
	}
	return status
}

// Ticket is the position of a run in the queue of its key; kept in workflow history.
type Ticket struct {
	Queue string    `json:"queue"` // workflow ID of the queue
	Name  Name      `json:"name"`
	State State     `json:"state,omitempty"`
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since"` // when the run began
}

// Waits reports whether the run may not begin yet.
func (t *Ticket) Waits() bool { return t != nil && (t.State == "" || t.State == Queued) }

// Apply applies a decision of the queue; it returns false if that changes nothing. A decision is final, except that
// a run with a slot may be replaced.
func (t *Ticket) Apply(decision Decision) bool {
	if t.State == decision.State || !t.Waits() && (t.State != Granted || decision.State != Replaced) {
		return false
	}
	t.State, t.By = decision.State, decision.By
	return true
}
