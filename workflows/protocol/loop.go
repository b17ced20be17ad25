package protocol

import (
	"fmt"
	"time"

	"reprise/interpreter"
)

const (
	// SlotSignal signals a loop that a child releases its slot, or requests one.
	SlotSignal = "slot"
)

// SlotRequest says that a child has released its slot, or that it requests one again.
// Kept in workflow history.
type SlotRequest struct {
	Index int  `json:"index"` // of the child's first iteration
	Now   bool `json:"now,omitempty"`
	// Waiting is how many iterations of the child wait, and At when the first of them
	// continues; zero where people decide.
	Waiting int       `json:"waiting"`
	At      time.Time `json:"at,omitzero"`
	// Ended is how many of them have ended, Failed how many of these as failed.
	Ended  int `json:"ended,omitempty"`
	Failed int `json:"failed,omitempty"`
	// Why is what that one waits for.
	Why string `json:"why,omitempty"`
}

// SlotGrant gives a slot to a child. Kept in workflow history.
type SlotGrant struct {
	MayRelease bool `json:"may_release,omitempty"` // again
}

// MaxOpen bounds the iterations of a loop that are open (docs/concepts/loops.md): Temporal
// refuses more than 2,000 open children.
const MaxOpen = 500

// SharedWindow is what lingering shards of a loop use of its window: shards that have
// nothing left to start, while the next shard begins. Kept in workflow history.
type SharedWindow struct {
	Slots int `json:"slots,omitempty"` // batches that run at a time
	Open  int `json:"open,omitempty"`  // open iterations, waiting ones included
}

// Plus adds what others use.
func (s SharedWindow) Plus(other SharedWindow) SharedWindow {
	return SharedWindow{Slots: s.Slots + other.Slots, Open: s.Open + other.Open}
}

// FallsEnough reports whether use has fallen enough to be reported again: by a tenth of the
// loop's width, or by half.
func (s SharedWindow) FallsEnough(reported SharedWindow, width int) bool {
	return s != reported && (reported.Slots-s.Slots >= max(1, width/10) || reported.Open-s.Open >= MaxOpen/10 ||
		2*s.Slots <= reported.Slots || 2*s.Open <= reported.Open)
}

// Check returns an error for numbers that no loop can share.
func (s SharedWindow) Check() error {
	if s.Slots < 0 || s.Open < 0 || s.Slots > MaxOpen || s.Open > MaxOpen {
		return fmt.Errorf("%d slots and %d iterations that are shared", s.Slots, s.Open)
	}
	return nil
}

// LingerSignal signals a loop that one of its shards lingers.
const LingerSignal = "linger"

// SliceOf is the choice for the elements from first up to end.
func (c *Subset) SliceOf(first, end int) *Subset {
	if c == nil {
		return nil
	}
	return &Subset{Indexes: c.Indexes[first:end], Size: c.Size}
}

// A child reports to its parent workflow that all of it waits, so that lists show the run as waiting.
// A report costs some twenty events of three histories, so it is sent only for what lasts: a wait
// that takes long when it begins, or one without an end that has lasted as long. When a wait is
// over at the time that was reported, nothing is sent: the parent knows the time.

// WaitsSignal passes a report from a child to its parent workflow; kept in histories.
const WaitsSignal = "waits"

// WaitReport is what a child reports: the status of all of it that is open. Kept in workflow
// history.
//
// It is separate from SlotRequest because open runs have sent both: a replay compares the names of signals and their
// order.
type WaitReport struct {
	From   string             `json:"from,omitempty"`   // workflow ID of the child
	Status interpreter.Status `json:"status,omitempty"` // "" is running
	// Until is when the first wait for a retry is over; zero where that is not known.
	Until time.Time `json:"until,omitzero"`
}

// Waits reports whether the report still says that the child waits.
func (w WaitReport) Waits(now time.Time) bool {
	return w.Status != "" && w.Status != interpreter.Running && (w.Until.IsZero() || w.Until.After(now))
}

// Equal reports whether both say the same.
func (w WaitReport) Equal(other WaitReport) bool {
	return w.Status == other.Status && w.Until.Equal(other.Until)
}
