package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

const (
	// restFrom is the shortest wait for which a child leaves its place in the window
	// of its loop: leaving it and coming back costs some ten events.
	restFrom = 5 * time.Second
	// restUntil is the length of the loop's history up to which its children may
	// leave their places; beyond it they wait in them.
	restUntil = 2000
	// placeSignal tells a loop that a child leaves its place, or wants one.
	placeSignal = "place"
)

// placeWanted tells a loop that a child has left its place, or that it wants one
// again. Kept in workflow history.
type placeWanted struct {
	Index int  `json:"index"` // of the child's first iteration
	Now   bool `json:"now,omitempty"`
	// Waiting is how many iterations of the child wait, and At when the first of them
	// goes on; zero where nobody knows: people decide.
	Waiting int       `json:"waiting"`
	At      time.Time `json:"at,omitzero"`
	// Ended is how many of them have ended, Failed how many of these as failed.
	Ended  int `json:"ended,omitempty"`
	Failed int `json:"failed,omitempty"`
	// Why is what that one waits for.
	Why string `json:"why,omitempty"`
}

// placeGiven gives a place to a child. Kept in workflow history.
type placeGiven struct {
	MayLeave bool `json:"may_leave,omitempty"` // again
}

// place is the place of a child in the window of its loop. While all that the
// child has to do is wait for long, it leaves the place to others, and goes on
// once it was given one again. The child stays open meanwhile, and shows what it
// waits for.
type place struct {
	input    *CallsInput
	width    int  // how many of its calls may go on at a time
	held     bool // the child has a place
	mayLeave bool
	going    int // calls that go on
	wanting  int // calls that want to
	rests    []*resting
	ended    func() (ended, failed int) // of the child's iterations
	asked    bool                       // the loop knows that a place is wanted
}

// resting is a call that waits, until a time or, where that is zero, until people
// say so, and what for.
type resting struct {
	until time.Time
	why   string
}

// newPlace is the place with which a child begins. All of its calls want to go on.
func newPlace(ctx workflow.Context, input *CallsInput, width int, ended func() (ended, failed int)) *place {
	return &place{
		input: input, ended: ended, width: max(width, 1), held: true, wanting: len(input.Calls),
		mayLeave: input.MayLeave && workflow.GetInfo(ctx).ParentWorkflowExecution != nil,
	}
}

// given takes the place that the loop gives.
func (p *place) given(given placeGiven) { p.held, p.asked, p.mayLeave = true, false, given.MayLeave }

// begin waits until one of the calls that want to may go on. The error is that of a
// cancelled ctx.
func (p *place) begin(ctx workflow.Context) error {
	defer func() { p.wanting-- }()
	if !p.held && !p.asked {
		p.asked = true
		p.tell(ctx, placeWanted{Now: true})
	}
	if err := workflow.Await(ctx, func() bool { return p.held && p.going < p.width }); err != nil {
		return err
	}
	p.going++
	return nil
}

// end tells that a call has ended.
func (p *place) end(ctx workflow.Context) {
	p.going--
	p.leave(ctx)
}

// rest has a call wait. back waits until it may go on.
func (p *place) rest(ctx workflow.Context, call resting) (back func() error) {
	p.rests = append(p.rests, &call)
	p.going--
	p.leave(ctx)
	return func() error {
		p.rests = slices.DeleteFunc(p.rests, func(other *resting) bool { return other == &call })
		p.wanting++
		return p.begin(ctx)
	}
}

// stays tells that a call that rests does not come back in this history.
func (p *place) stays() { p.going++ }

// keep has the child keep its place in this history; nil has none to leave.
func (p *place) keep() {
	if p != nil {
		p.mayLeave = false
	}
}

// leave gives the place back where all that the child does is wait.
func (p *place) leave(ctx workflow.Context) {
	if !p.held || !p.mayLeave || p.going > 0 || p.wanting > 0 || len(p.rests) == 0 || ctx.Err() != nil {
		return
	}
	left := placeWanted{Waiting: len(p.rests)}
	left.Ended, left.Failed = p.ended()
	for _, call := range p.rests {
		if sooner := !call.until.IsZero() && (left.At.IsZero() || call.until.Before(left.At)); sooner || left.Why == "" {
			left.At, left.Why = call.until, call.why
		}
	}
	p.held = false
	p.tell(ctx, left)
}

func (p *place) tell(ctx workflow.Context, wanted placeWanted) {
	wanted.Index = *p.input.Calls[0].Index
	signal(ctx, workflow.GetInfo(ctx).ParentWorkflowExecution.ID, placeSignal, wanted)
}

// longWait is until when a call rests that is about to wait; false where that is
// not worth leaving a place.
func longWait(ctx workflow.Context, wait interpreter.Wait) (until time.Time, long bool) {
	return workflow.Now(ctx).Add(wait.Delay), wait.Delay >= restFrom
}

// window is how many batches of a loop may run, and how many may be open, those
// that wait included.
type window struct {
	size      func() int // places
	taken     int
	open      int
	maxOpen   func() int
	returning int // batches that wait for a place to go on
}

// maxOpen bounds the iterations of a loop that are open (language.md, section
// loop).
const maxOpen = 500

func (w *window) free() bool { return w.taken < w.size() }

// enter takes a place for a new batch, once more is let in. Batches that have
// waited go first.
func (w *window) enter(ctx workflow.Context, letsIn func() bool) error {
	if err := workflow.Await(ctx, func() bool {
		return w.free() && w.returning == 0 && w.open < w.maxOpen() && letsIn()
	}); err != nil {
		return err
	}
	w.taken++
	return nil
}

// leave gives a place back.
func (w *window) leave() { w.taken-- }

// member is an open batch of a loop.
type member struct {
	id    string // of its workflow
	index int    // of its first iteration
	holds bool   // a place in the window
	ended bool
	left  placeWanted // how it has left its place, where it does not hold one
	// within are those of its iterations that have ended, as far as it has told.
	within interpreter.LoopStats
	late   int // how many times it has left and the loop knows, but was not told yet
}

// listenForPlaces takes in which children leave their places, and gives places to
// those that want one again. What a child tells may come in another order: who wants
// a place has left it.
func (l *loop) listenForPlaces(ctx workflow.Context) {
	onSignal(ctx, placeSignal, func(ctx workflow.Context, next placeWanted) {
		at := slices.IndexFunc(l.members, func(m *member) bool { return m.index == next.Index })
		if at < 0 {
			return // it has ended meanwhile
		}
		m := l.members[at]
		if !next.Now {
			m.within.Success, m.within.Failed = next.Ended-next.Failed, next.Failed
		}
		switch {
		case next.Now:
			if m.holds {
				m.late++
				m.holds = false
				l.window.leave()
			}
			m.left.Now = true
			workflow.Go(ctx, func(ctx workflow.Context) { l.bringBack(ctx, m) })
		case m.late > 0:
			m.late--
		case m.holds:
			m.holds, m.left = false, next
			l.window.leave()
			l.describe(ctx)
		}
	})
}

// bringBack gives a child a place again.
func (l *loop) bringBack(ctx workflow.Context, m *member) {
	l.window.returning++
	err := workflow.Await(ctx, func() bool { return m.ended || l.window.free() })
	l.window.returning--
	if m.ended || err != nil {
		return
	}
	m.holds, m.left = true, placeWanted{}
	l.window.taken++
	l.describe(ctx)
	signal(ctx, m.id, ControlSignal, Steering{
		Control: l.controls.Of(l.step.Name),
		Place:   &placeGiven{MayLeave: workflow.GetInfo(ctx).GetCurrentHistoryLength() < restUntil},
	})
}

// close forgets a child that has ended, and frees its place.
func (l *loop) close(m *member) {
	m.ended = true
	if m.holds {
		l.window.leave()
	}
	l.members = slices.DeleteFunc(l.members, func(other *member) bool { return other == m })
}

// atRest is what the children of a loop do that have no place: how many iterations
// wait, and when the first of them goes on; zero where nobody knows. returning is how many
// only wait for a place: of a batch that people have let go on all, else the one that is
// due. within are those that have ended in batches that are open.
type atRest struct {
	waiting, returning int
	next               time.Time
	within             interpreter.LoopStats
}

// under is how many of the loop's iterations under way may act.
func (r atRest) under(all int) int {
	return all - r.waiting - r.returning - r.within.Success - r.within.Failed
}

// resting looks at the children that are open.
func (l *loop) resting() (rest atRest) {
	for _, m := range l.members {
		rest.within.Success += m.within.Success
		rest.within.Failed += m.within.Failed
		if m.holds {
			continue
		}
		wait := m.left.Waiting
		if m.left.Now {
			due := 1
			if m.left.At.IsZero() {
				due = max(due, wait)
			}
			rest.returning, wait = rest.returning+due, max(0, wait-due)
		}
		rest.waiting += wait
		if at := m.left.At; wait > 0 && !at.IsZero() && (rest.next.IsZero() || at.Before(rest.next)) {
			rest.next = at
		}
	}
	return rest
}
