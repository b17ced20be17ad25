package protocol

import (
	"fmt"
	"time"

	"reprise/interpreter"
)

const (
	// SlotSignal informs a loop that a child has released its slot, or requests one.
	SlotSignal = "slot"
)

// SlotRequest is the argument of SlotSignal: a child has released its slot or, with Now, requests one again. Kept
// in workflow history.
type SlotRequest struct {
	Index int  `json:"index"` // of the first iteration in the input of the child's current run
	Now   bool `json:"now,omitempty"`
	// Waiting is the number of the child's waiting iterations, and At when the first of them continues; zero if
	// only people end the waits.
	Waiting int       `json:"waiting"`
	At      time.Time `json:"at,omitzero"`
	// Ended is the number of its ended iterations, Failed the number of these that failed.
	Ended  int `json:"ended,omitempty"`
	Failed int `json:"failed,omitempty"`
	// Why is what the iteration that continues first waits for.
	Why string `json:"why,omitempty"`
}

// SlotGrant grants a slot to a child. Kept in workflow history.
type SlotGrant struct {
	MayRelease bool `json:"may_release,omitempty"` // whether the child may release it again
}

// MaxOpen bounds the open iterations of a loop (docs/concepts/loops.md): Temporal rejects more than 2,000 open
// children.
const MaxOpen = 500

// SharedWindow is the part of a loop's window that lingering shards use: shards that have nothing left to start,
// while the next shard begins. Kept in workflow history.
type SharedWindow struct {
	Slots int `json:"slots,omitempty"` // number of running batches
	Open  int `json:"open,omitempty"`  // number of open iterations, including waiting ones
}

// Plus returns the sum of two parts of a window.
func (s SharedWindow) Plus(other SharedWindow) SharedWindow {
	return SharedWindow{Slots: s.Slots + other.Slots, Open: s.Open + other.Open}
}

// FallsEnough reports whether use has fallen enough since the last report for another one: by a tenth of the loop's
// width, or by half.
func (s SharedWindow) FallsEnough(reported SharedWindow, width int) bool {
	return s != reported && (reported.Slots-s.Slots >= max(1, width/10) || reported.Open-s.Open >= MaxOpen/10 ||
		2*s.Slots <= reported.Slots || 2*s.Open <= reported.Open)
}

// Check returns an error for numbers that a loop cannot have.
func (s SharedWindow) Check() error {
	if s.Slots < 0 || s.Open < 0 || s.Slots > MaxOpen || s.Open > MaxOpen {
		return fmt.Errorf("%d slots and %d iterations that are shared", s.Slots, s.Open)
	}
	return nil
}

// LingerSignal informs a loop that one of its shards lingers.
const LingerSignal = "linger"

// SliceOf returns the selection of the elements from first up to end.
func (c *Subset) SliceOf(first, end int) *Subset {
	if c == nil {
		return nil
	}
	return &Subset{Indexes: c.Indexes[first:end], Size: c.Size}
}

// A child reports to its parent workflow when all of its work is waiting, so that lists show the run as waiting. A
// report costs some twenty events in three histories, so it is sent only for waits that last: when a long wait
// begins, or when a wait without a known end has lasted as long. If a wait ends at the reported time, nothing is
// sent, because the parent knows that time.

// WaitsSignal sends a WaitReport from a child to its parent workflow; kept in histories.
const WaitsSignal = "waits"

// WaitReport is the status of all open work of a child. Kept in workflow history.
// It is separate from SlotRequest because existing runs have sent both, and a replay compares the names of
// signals and their order.
type WaitReport struct {
	From   string             `json:"from,omitempty"`   // "" means running
	Status interpreter.Status `json:"status,omitempty"` // "" is running
	// Until is when the first wait for a retry ends; zero if that is not known.
	Until time.Time `json:"until,omitzero"`
}

// StillWaits reports whether, according to the report, the child still waits at now.
func (w WaitReport) StillWaits(now time.Time) bool {
	return w.Status != "" && w.Status != interpreter.Running && (w.Until.IsZero() || w.Until.After(now))
}

// Equal reports whether both say the same.
func (w WaitReport) Equal(other WaitReport) bool {
	return w.Status == other.Status && w.Until.Equal(other.Until)
}
