package interpreter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Names of the workflow that gives the runs of one concurrency key their turns, of
// what it is told and asked, of what it tells runs, and of the activities for it.
// They are part of histories, so they never change.
const (
	ConcurrencyWorkflow = "ConcurrencyWorkflow"
	// LineSignal carries a LineRequest to it.
	LineSignal = "concurrency_request"
	// LineQuery asks it with a list of Member for a LineStanding, LineAllQuery for the
	// Line.
	LineQuery    = "concurrency"
	LineAllQuery = "concurrency_line"
	// LineAnswerSignal carries a LineAnswer to a run.
	LineAnswerSignal = "concurrency"
	// LineEnterActivity takes a LineEnter, LineLookActivity gives those of a list of
	// Member that have ended, LineCancelActivity takes a LineCancel, LineCircleActivity
	// gives for the workflow ID of a line its LineVictim.
	LineEnterActivity  = "concurrency_enter"
	LineLookActivity   = "concurrency_look"
	LineCancelActivity = "concurrency_cancel"
	LineCircleActivity = "concurrency_circle"
)

// LongHistory and LargeHistory are the events and bytes of a history beyond which its
// workflow continues as new. Who has something for a line waits then until it has: the
// server refuses that a workflow continues while signals come.
const (
	LongHistory  = 3500
	LargeHistory = 3_000_000
)

// LineMemo is the key under which a run that waits for its turn keeps its Ticket in
// the memo of its workflow, where lists of runs see it.
const LineMemo = "reprise_concurrency"

// maxConcurrencyKey bounds the name under which runs share, in bytes.
const maxConcurrencyKey = 500

// LineName is what runs share; kept in workflow history.
type LineName struct {
	Key string `json:"key"`
	// Playbook is the one whose key it is; "" is one that playbooks share.
	Playbook string `json:"playbook,omitempty"`
}

// ID is the workflow ID of the ConcurrencyWorkflow. Different names have different
// ones, whatever they hold.
func (n LineName) ID() string {
	id := "reprise-concurrency/" + url.PathEscape(n.Playbook) + "/" + url.PathEscape(n.Key)
	if n.Playbook == "" {
		id = "reprise-concurrency-shared/" + url.PathEscape(n.Key)
	}
	if len(id) <= mostLineID {
		return id
	}
	digest := sha256.Sum256([]byte(id))
	return id[:mostLineID] + "~" + hex.EncodeToString(digest[:16])
}

// mostLineID is how much of an ID stands in clear. Temporal takes 1,000 bytes.
const mostLineID = 900

// ConcurrencyName renders the name under which a run shares. The error is that of
// an expression.
func ConcurrencyName(book *playbook.Playbook, scope expression.Scope, budget *expression.Budget) (LineName, error) {
	name, node := LineName{Playbook: book.Name}, book.Concurrency.Name()
	if book.Concurrency.Shared != nil {
		name.Playbook = ""
	}
	value, err := node.RenderKey(scope, budget)
	if err != nil {
		return name, err
	}
	problem := ""
	switch value.(type) {
	case []any, map[string]any:
		problem = "must be text, not a " + expression.TypeName(value)
	default:
		name.Key = expression.Text(value)
	}
	switch {
	case problem != "":
	case name.Key == "":
		problem = "must not be empty"
	case len(name.Key) > maxConcurrencyKey:
		problem = fmt.Sprintf("has %d bytes; it may have %d", len(name.Key), maxConcurrencyKey)
	default:
		return name, nil
	}
	return name, &playbook.EvalError{Pos: node.Pos, Message: "the name of concurrency " + problem}
}

// Member is a run in a line; kept in workflow history.
type Member struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"` // the first of its chain
}

// LineRequest is what a run says to the line of its key; kept in workflow history.
type LineRequest struct {
	Member
	// Leave says that the run needs no turn any more; else it asks for one. A run that
	// asks again is where it was.
	Leave bool `json:"leave,omitempty"`
	// Limit and OnConflict are those of the run's playbook.
	Limit      int                 `json:"limit,omitempty"`
	OnConflict playbook.OnConflict `json:"on_conflict,omitempty"`
	// Started is when the run began, which may be long before it asks: its first worker
	// may have died. Runs wait in that order.
	Started time.Time `json:"started,omitzero"`
	// Above are the turns that runs have which wait for the end of this one.
	Above []LineHolding `json:"above,omitempty"`
	// Known is what a run that asks again was told last, "" for nothing. It is told only
	// what is new: thousands may ask again at once.
	Known LineState `json:"known,omitempty"`
}

// LineHolding is a turn that a run has; kept in workflow history.
type LineHolding struct {
	Run  string `json:"run"` // its workflow ID
	Line string `json:"line"`
}

// Check finds what no run asks.
func (r LineRequest) Check() error {
	switch {
	case r.WorkflowID == "" || len(r.WorkflowID) > 1000 || len(r.RunID) > 100:
		return fmt.Errorf("%d bytes of workflow ID and %d of run ID", len(r.WorkflowID), len(r.RunID))
	case !r.Leave && (r.Limit < 1 || r.Limit > playbook.MaxConcurrencyRuns):
		return fmt.Errorf("a limit of %d", r.Limit)
	case len(r.Above) > MaxNesting:
		return fmt.Errorf("%d runs above", len(r.Above))
	}
	return nil
}

// LineState says what a line has decided about a run.
type LineState string

// The states of a run in its line. One that has asked and not been answered has
// none.
const (
	LineGranted LineState = "granted"
	LineQueued  LineState = "queued"
	// LineSkipped is a run with on_conflict skip that found no place.
	LineSkipped LineState = "skipped"
	// LineReplaced is a run that goes for another one with cancel_running.
	LineReplaced LineState = "replaced"
	// LineFull is a run for which the queue has no room.
	LineFull LineState = "full"
	// LineCircle is a run that would wait for ever, as others wait for it.
	LineCircle LineState = "circle"
)

// LineAnswer is what a line tells a run; kept in workflow history.
type LineAnswer struct {
	RunID string    `json:"run_id"` // of the run that is meant, the first of its chain
	State LineState `json:"state"`
	// By is the workflow ID of the run that has the place, or takes it.
	By string `json:"by,omitempty"`
	// Why says of LineCircle who waits for whom.
	Why string `json:"why,omitempty"`
}

// LineMessage is an answer on its way; kept in workflow history.
type LineMessage struct {
	To     Member     `json:"to"`
	Answer LineAnswer `json:"answer"`
	bytes  int        // see size
}

// size is how many bytes of JSON the message takes, worked out once.
func (m *LineMessage) size() int {
	if m.bytes == 0 {
		m.bytes = EncodedSize(*m) + len(",")
	}
	return m.bytes
}

// LineMember is a run that has a place or waits for one; kept in workflow history.
type LineMember struct {
	Member
	Since   time.Time `json:"since"`
	Started time.Time `json:"started,omitzero"` // when the run began
	// Replaces says that the run does not wait for others to end by themselves.
	Replaces bool `json:"replaces,omitempty"`
	// Leaving says that the run was asked to cancel.
	Leaving bool `json:"leaving,omitempty"`
	// Above is that of its request.
	Above []LineHolding `json:"above,omitempty"`
	bytes int           // see size
}

// size is how many bytes of JSON the member takes. It is worked out once: a line asks for
// it with each request.
func (m *LineMember) size() int {
	if m.bytes == 0 {
		m.bytes = EncodedSize(*m) + len(",")
	}
	return m.bytes
}

// Line gives the runs of one key their turns, first come, first served. It knows no
// clock: its decisions follow from the times it is given. Kept in workflow history.
type Line struct {
	Name LineName `json:"name"`
	// Limit is that of the run that asked last: versions of a playbook may differ.
	Limit    int           `json:"limit,omitempty"`
	Holders  []LineMember  `json:"holders,omitempty"` // the oldest first
	Queue    []LineMember  `json:"queue,omitempty"`   // who comes next first
	Messages []LineMessage `json:"messages,omitempty"`
}

// maxLine bounds a line, in bytes of the JSON that it takes along into another history.
const maxLine = 1_200_000

// size is how many bytes of JSON the line takes.
func (l *Line) size() int {
	size := EncodedSize(l.Name)
	for i := range l.Messages {
		size += l.Messages[i].size()
	}
	for _, members := range [][]LineMember{l.Holders, l.Queue} {
		for i := range members {
			size += members[i].size()
		}
	}
	return size
}

// Empty reports whether nobody has a place, waits for one or is to be told
// something.
func (l *Line) Empty() bool { return len(l.Holders)+len(l.Queue)+len(l.Messages) == 0 }

// Take takes in what a run says.
func (l *Line) Take(request LineRequest, now time.Time) {
	if request.Leave {
		l.Gone(now, request.Member)
		return
	}
	l.Limit = request.Limit
	l.settle(now)
	switch known := l.state(request.Member); {
	case known != "":
		if known != request.Known {
			l.tell(request.Member, known, "")
		}
		return
	case len(l.Holders) < l.Limit && len(l.Queue) == 0:
	case request.OnConflict == playbook.ConflictSkip:
		l.tell(request.Member, LineSkipped, append(slices.Clone(l.Holders), l.Queue...)[0].WorkflowID)
		return
	case l.newer(request) != "" && l.replacing() == 0:
		l.tell(request.Member, LineReplaced, l.newer(request))
		return
	case l.size() > maxLine:
		l.tell(request.Member, LineFull, "")
		return
	}
	l.queue(LineMember{
		Member: request.Member, Since: now, Started: request.Started,
		Replaces: request.OnConflict == playbook.ConflictCancel, Above: request.Above,
	})
	l.supersede()
	l.settle(now)
	if l.state(request.Member) == LineQueued {
		l.tell(request.Member, LineQueued, "")
	}
}

// queue puts a run behind those that began before it.
func (l *Line) queue(next LineMember) {
	at := len(l.Queue)
	for at > 0 && l.Queue[at-1].Started.After(next.Started) {
		at--
	}
	l.Queue = slices.Insert(l.Queue, at, next)
}

// newer is a run that keeps one from its place which replaces those before it: all
// places have gone to runs that began later. It is "" where there is none.
func (l *Line) newer(request LineRequest) string {
	if request.OnConflict != playbook.ConflictCancel || len(l.Holders) < l.Limit {
		return ""
	}
	for _, holder := range l.Holders {
		if !holder.Started.After(request.Started) {
			return ""
		}
	}
	return l.Holders[len(l.Holders)-1].WorkflowID
}

// Gone takes out runs that need no turn any more, or have ended.
func (l *Line) Gone(now time.Time, members ...Member) {
	isGone := func(member LineMember) bool { return slices.Contains(members, member.Member) }
	l.Holders = slices.DeleteFunc(l.Holders, isGone)
	l.Queue = slices.DeleteFunc(l.Queue, isGone)
	l.settle(now)
}

// TakenUp is the line of a workflow that was ended from outside, for the one after it.
// What was on its way is lost, so who has a turn is told so again, and who is to go is
// cancelled again.
func (l Line) TakenUp() Line {
	l.Holders = slices.Clone(l.Holders)
	for i := range l.Holders {
		l.Holders[i].Leaving = false
		l.tell(l.Holders[i].Member, LineGranted, "")
	}
	return l
}

// state is where a run is, "" for nowhere.
func (l *Line) state(member Member) LineState {
	is := func(other LineMember) bool { return other.Member == member }
	switch {
	case slices.ContainsFunc(l.Holders, is):
		return LineGranted
	case slices.ContainsFunc(l.Queue, is):
		return LineQueued
	}
	return ""
}

func (l *Line) tell(to Member, state LineState, by string) {
	l.Messages = append(l.Messages, LineMessage{To: to, Answer: LineAnswer{RunID: to.RunID, State: state, By: by}})
}

// supersede takes those out of the queue that would be cancelled as soon as they
// began: of the runs that replace others only as many wait as there are places, the
// newest.
func (l *Line) supersede() {
	over, newest := l.replacing()-l.Limit, LineMember{}
	for _, member := range l.Queue {
		if member.Replaces {
			newest = member
		}
	}
	l.Queue = slices.DeleteFunc(l.Queue, func(member LineMember) bool {
		if !member.Replaces || over <= 0 {
			return false
		}
		over--
		l.tell(member.Member, LineReplaced, newest.WorkflowID)
		return true
	})
}

// replacing counts the runs in the queue that do not wait for others to end.
func (l *Line) replacing() (n int) {
	for _, member := range l.Queue {
		if member.Replaces {
			n++
		}
	}
	return n
}

// settle gives free places to the first in the queue, and has the oldest runs
// cancelled that somebody is to replace.
func (l *Line) settle(now time.Time) {
	for len(l.Queue) > 0 && len(l.Holders) < l.Limit {
		next := l.Queue[0]
		l.Queue = l.Queue[1:]
		next.Since = now
		l.Holders = append(l.Holders, next)
		l.tell(next.Member, LineGranted, "")
	}
	wanted, by := l.replacing(), ""
	for _, member := range l.Queue {
		if member.Replaces {
			by = member.WorkflowID
		}
	}
	for i := range l.Holders {
		holder := &l.Holders[i]
		if wanted <= 0 {
			return
		}
		wanted--
		if !holder.Leaving {
			holder.Leaving = true
			l.tell(holder.Member, LineReplaced, by)
		}
	}
}

// LineStanding is how a line stands: the answer to LineQuery.
type LineStanding struct {
	Name    LineName `json:"name"`
	Limit   int      `json:"limit"`
	Waiting int      `json:"waiting"`
	Running int      `json:"running"`
	// Holders are the workflow IDs of those that have a place, the first few.
	Holders []string `json:"holders,omitempty"`
	// Places are those in the queue, from 1, of the runs that were asked about, in
	// their order; 0 for one that does not wait. A Member without a run ID is whichever
	// run of its workflow ID waits.
	Places []int `json:"places,omitempty"`
}

// mostShown bounds the holders that a LineStanding names.
const mostShown = 5

// Standing tells how the line stands, and where some runs do.
func (l *Line) Standing(members []Member) LineStanding {
	standing := LineStanding{
		Name: l.Name, Limit: l.Limit, Waiting: len(l.Queue), Running: len(l.Holders), Places: make([]int, len(members)),
	}
	for _, holder := range l.Holders[:min(len(l.Holders), mostShown)] {
		standing.Holders = append(standing.Holders, holder.WorkflowID)
	}
	places := make(map[Member]int, 2*len(l.Queue))
	for i, member := range l.Queue {
		places[member.Member], places[Member{WorkflowID: member.WorkflowID}] = i+1, i+1
	}
	for i, member := range members {
		standing.Places[i] = places[member]
	}
	return standing
}

// LineEnter is the argument of LineEnterActivity; kept in workflow history.
type LineEnter struct {
	Name    LineName    `json:"name"`
	Request LineRequest `json:"request"`
}

// LineCancel is the argument of LineCancelActivity; kept in workflow history.
type LineCancel struct {
	Member
	Reason string `json:"reason"`
}

// Ticket is where a run stands in the line of its key; kept in workflow history.
type Ticket struct {
	Line  string    `json:"line"` // workflow ID of the ConcurrencyWorkflow
	Name  LineName  `json:"name"`
	State LineState `json:"state,omitempty"`
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since"` // when the run began
}

// Waits reports whether the run may not begin yet.
func (t *Ticket) Waits() bool { return t != nil && (t.State == "" || t.State == LineQueued) }

// Answered takes in what the line says; false where that changes nothing. What was
// decided stays, but for a run that is to go.
func (t *Ticket) Answered(answer LineAnswer) bool {
	if t.State == answer.State || !t.Waits() && (t.State != LineGranted || answer.State != LineReplaced) {
		return false
	}
	t.State, t.By = answer.State, answer.By
	return true
}
