package incremental

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// Bounds of what a Keeper keeps. One that continues as new has to fit into one payload.
const (
	// MaxStates is how many states a group has: all of them are in one payload, and a state for
	// each customer makes any number.
	MaxStates = 10_000
	// maxWeight bounds the bytes of states, as weight counts them: no fewer than a Snapshot
	// takes. Temporal refuses a payload over 2 MB, and the states could never be read again.
	maxWeight = 1_640_000
	// maxHistoryWeight bounds the bytes of the changes that are kept, counted in the same way;
	// the oldest are forgotten first.
	maxHistoryWeight = 200_000
	// MaxChanges is how many changes are kept of all states, for people to see.
	MaxChanges = 1000
	// MaxChangesOfOne bounds the changes stored for one state, so that a state that moves each
	// minute does not displace those of others.
	MaxChangesOfOne = 100
	// RangeSize is how many states a Range gives at most.
	RangeSize = 500
)

// Keeper keeps the states of a group by the rules of the databases: who holds a state, where its
// watermark is, and which write was the last. It knows no clock and no server; StateWorkflow is
// around it.
type Keeper struct {
	states  []keptState // in the order of their names
	changes []StateChange
	shared  map[string]int // how many states have each text that many may share
	// weight and historyWeight are the total sizes of states and changes.
	weight, historyWeight int
}

// keptState is a state; kept in workflow history.
type keptState struct {
	Name      string `json:"name"`
	Watermark Cursor `json:"watermark,omitzero"`
	// Found is the watermark when the holder claimed the state, and Holder a digest of it; ""
	// for nobody.
	Found  Cursor         `json:"found,omitzero"`
	Holder string         `json:"holder,omitempty"`
	Run    string         `json:"run,omitempty"`
	Number int            `json:"number,omitempty"` // of the holder's last write
	Rows   int64          `json:"rows,omitempty"`
	Source SourceIdentity `json:"source,omitzero"` // with a digest of its fingerprint
	Tables []string       `json:"tables,omitzero"` // those of State
	At     time.Time      `json:"at,omitzero"`
	// MoveResult says that the holder has moved it.
	Moved bool `json:"moved,omitempty"`
}

// sharedTexts are the texts that many states have: once they are compressed, they take their bytes once.
func (s *keptState) sharedTexts() [2]string { return [2]string{s.Run, strings.Join(s.Tables, " ")} }

// byteWeight is how many bytes the state takes, without what it shares.
func (s *keptState) byteWeight() int {
	const numbers, path = 24, 8
	weight := numbers + len(s.Name) + len(s.Holder) + len(s.Source.Fingerprint) + min(len(s.Source.CursorPath), path)
	for _, cursor := range []Cursor{s.Watermark, s.Found} {
		weight += cursor.byteWeight()
	}
	return weight
}

func (c Cursor) byteWeight() int {
	if c.IsZero() {
		return 0
	}
	return len(c.Text()) + len(c.Position)
}

// Text is the cursor for people.
func (c Cursor) Text() string {
	if c.IsZero() {
		return ""
	}
	return expression.Text(c.Value.Data)
}

// byteWeight is how many bytes the change takes.
func (c StateChange) byteWeight() int {
	const numbers = 48
	return numbers + len(c.Name) + len(c.By) + len(c.Note) + c.From.byteWeight() + c.To.byteWeight()
}

// digestText stands for a text of any length.
func digestText(text string) string {
	if text == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(expression.Sum(text)[:HashLength])
}

func (k *Keeper) findState(name string) (at int, found bool) {
	return slices.BinarySearchFunc(k.states, name, func(s keptState, name string) int { return strings.Compare(s.Name, name) })
}

// getState is the state of a name, a new one where there is none.
func (k *Keeper) getState(name string) (s keptState, found bool) {
	at, found := k.findState(name)
	if !found {
		return keptState{Name: name}, false
	}
	return k.states[at], true
}

// putState replaces a state, or adds one; false where that is more than is kept.
func (k *Keeper) putState(next keptState) bool {
	at, found := k.findState(next.Name)
	weight, before := k.weight+next.byteWeight(), keptState{}
	if found {
		before = k.states[at]
		weight -= before.byteWeight()
	}
	for _, text := range next.sharedTexts() {
		if k.shared[text] == 0 {
			weight += len(text)
		}
	}
	if weight > max(maxWeight, k.weight) || !found && len(k.states) >= MaxStates {
		return false
	}
	if found {
		k.states[at] = next
	} else {
		k.states = slices.Insert(k.states, at, next)
	}
	k.weight = weight
	k.countShared(next, 1)
	if found {
		k.countShared(before, -1)
	}
	return true
}

// countShared counts the states that share their texts with this one. The bytes of a text were counted with the first.
func (k *Keeper) countShared(s keptState, by int) {
	if k.shared == nil {
		k.shared = map[string]int{}
	}
	for _, text := range s.sharedTexts() {
		if k.shared[text] += by; k.shared[text] == 0 {
			delete(k.shared, text)
			k.weight -= len(text)
		}
	}
}

// removeState forgets a state.
func (k *Keeper) removeState(s keptState) {
	at, _ := k.findState(s.Name)
	k.states = slices.Delete(k.states, at, at+1)
	k.weight -= s.byteWeight()
	k.countShared(s, -1)
}

// DigestIdentity is a source as a Keeper keeps it.
func (s SourceIdentity) DigestIdentity() SourceIdentity {
	s.Fingerprint = digestText(s.Fingerprint)
	return s
}

// Claim makes a call hold a state, or says why it cannot.
func (k *Keeper) Claim(claim Claim, now time.Time) ClaimedState {
	s, found := k.getState(claim.Name)
	claim.Holder, claim.Source = digestText(claim.Holder), claim.Source.DigestIdentity()
	decision, _ := s.stateEntry().DecideClaim(claim, nil, now) // only targets fail
	switch {
	case decision.Refused != nil:
		return ClaimedState{Refused: decision.Refused}
	case decision.Repeated:
		return ClaimedState{Watermark: decision.Entry.Found}
	}
	if !found {
		decision.Entry.MovedAt = now
	}
	if !k.putState(stateOf(decision.Entry)) {
		return ClaimedState{Refused: k.refuseFull()}
	}
	k.recordChanges(decision.Changes...)
	return ClaimedState{Watermark: decision.Entry.Watermark}
}

func (k *Keeper) refuseFull() *Refusal {
	return &Refusal{Type: TypeFull, Message: fmt.Sprintf(
		"Temporal keeps at most %d states of a step with %d bytes in all, and there are %d with %d bytes; "+
			"write to a table of postgres or sqlite, which stores any number of states beside its rows", MaxStates, maxWeight, len(k.states), k.weight)}
}

// ApplyWrite applies a write to its state, or says why it is refused. One that was applied before
// changes nothing.
func (k *Keeper) ApplyWrite(write StateWrite, now time.Time) *Refusal {
	s, found := k.getState(write.Name)
	if !found {
		return notHeld("the state %q was forgotten while its rows were written", write.Name)
	}
	entry := s.stateEntry()
	write.Holder = digestText(write.Holder)
	switch entry.StandingOf(write) {
	case StandingSet:
		return notHeld("the state %q was set by a person while its rows were written", s.Name)
	case StandingSameRun:
		return notHeld("another iteration of this run has claimed the state %q: two elements of the loop share it. "+
			"Remove duplicate elements, or use what distinguishes them in the name of the state", s.Name)
	case StandingOther:
		return notHeld("the state %q is now held by another call, of the run %s", s.Name, s.Run)
	case StandingAhead:
		return notHeld("write %d of the state %q comes out of order, behind write %d", write.Number, s.Name, entry.Last)
	case StandingNext:
		if !k.putState(stateOf(entry.ApplyWrite(write, now))) {
			return k.refuseFull()
		}
	case StandingApplied, StandingBehind: // there are no rows to be written again
	}
	return nil
}

func notHeld(format string, args ...any) *Refusal {
	return &Refusal{Type: TypeMoved, Message: fmt.Sprintf(format, args...)}
}

// Undo restores the watermark that the write's call had found, whether or not the write was applied. If the write
// arrives later, it is refused. States that another call holds or a person has set are left unchanged.
func (k *Keeper) Undo(write StateWrite, now time.Time) {
	s, found := k.getState(write.Name)
	if found && s.Holder == digestText(write.Holder) {
		k.putState(stateOf(s.stateEntry().UndoWrite(write, now)))
	}
}

// MoveAll applies writes, each by itself.
func (k *Keeper) MoveAll(writes []StateWrite, now time.Time) MoveResult {
	moved, refused := MoveResult{Refused: make([]*Refusal, len(writes))}, false
	for i, write := range writes {
		moved.Refused[i] = k.ApplyWrite(write, now)
		refused = refused || moved.Refused[i] != nil
	}
	if !refused {
		return MoveResult{}
	}
	return moved
}

// Set changes a state for a person: nobody holds it then. A zero To forgets it.
func (k *Keeper) Set(change StateChange, now time.Time) *Refusal {
	s, found := k.getState(change.Name)
	next, changes := s.stateEntry().Set(change, now)
	switch {
	case !change.To.IsZero():
		if !k.putState(stateOf(next)) {
			return k.refuseFull()
		}
	case found:
		k.removeState(s)
	default:
		return nil
	}
	k.recordChanges(changes...)
	return nil
}

// recordChanges keeps changes, and drops those that are too many.
func (k *Keeper) recordChanges(changes ...StateChange) {
	for _, change := range changes {
		k.recordOne(change)
	}
}

func (k *Keeper) recordOne(change StateChange) {
	of := 0
	for _, other := range k.changes {
		if other.Name == change.Name {
			of++
		}
	}
	for i := 0; of >= MaxChangesOfOne; i++ {
		if k.changes[i].Name == change.Name {
			k.dropAt(i)
			break
		}
	}
	k.changes = append(k.changes, change)
	k.historyWeight += change.byteWeight()
	for len(k.changes) > MaxChanges || k.historyWeight > maxHistoryWeight && len(k.changes) > 1 {
		k.dropAt(0)
	}
}

func (k *Keeper) dropAt(at int) {
	k.historyWeight -= k.changes[at].byteWeight()
	k.changes = slices.Delete(k.changes, at, at+1)
}

// States are the states of a range.
func (k *Keeper) States(within NameRange) []State {
	states, most := []State{}, RangeSize
	if within.Most > 0 {
		most = min(within.Most, RangeSize)
	}
	at, _ := k.findState(max(within.Prefix, within.After))
	for ; at < len(k.states) && len(states) < most; at++ {
		s := k.states[at]
		if s.Name <= within.After && within.After != "" {
			continue
		}
		if !strings.HasPrefix(s.Name, within.Prefix) {
			break
		}
		states = append(states, s.shownState())
	}
	return states
}

// shownState is the state as people see it.
func (s *keptState) shownState() State {
	state := s.stateEntry().State
	if state.Watermark.IsZero() {
		state.MovedAt = time.Time{}
	}
	return state
}

// stateEntry converts a kept state to the form that the rules of states work on.
func (s *keptState) stateEntry() StateEntry {
	entry := StateEntry{
		State: State{Name: s.Name, Watermark: s.Watermark, Source: s.Source, Run: s.Run, Rows: s.Rows, Tables: s.Tables, MovedAt: s.At},
		Found: s.Watermark, Holder: s.Holder, Last: s.Number,
	}
	if s.Moved {
		entry.Found = s.Found
	}
	return entry
}

// stateOf returns the form in which the keeper stores an entry.
func stateOf(e StateEntry) keptState {
	_, moved := e.HolderChange()
	s := keptState{
		Name: e.Name, Watermark: e.Watermark, Found: e.Found, Holder: e.Holder, Run: e.Run, Number: e.Last, Rows: e.Rows,
		Source: e.Source, Tables: e.Tables, At: e.MovedAt, Moved: moved,
	}
	if e.Holder == "" {
		s.Found = Cursor{}
	}
	return s
}

// History are the changes of a state, the oldest first. The moves of one call are one.
func (k *Keeper) History(name string) []StateChange {
	changes := append([]StateChange{}, lists.Filter(k.changes, func(change StateChange) bool { return change.Name == name })...)
	s, _ := k.getState(name)
	if change, moved := s.stateEntry().HolderChange(); moved {
		changes = append(changes, change)
	}
	return changes
}

// Len is how many states there are.
func (k *Keeper) Len() int { return len(k.states) }
