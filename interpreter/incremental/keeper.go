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

// Bounds of a Keeper. Its snapshot has to fit into one payload when it continues as new.
const (
	// MaxStates bounds the states of a group: all of them are in one payload, and a loop over customers may make
	// any number.
	MaxStates = 10_000
	// maxWeight bounds the size of states, as byteWeight counts it, in bytes: an upper bound for that of a
	// Snapshot. Temporal rejects payloads over 2 MB, and the states could never be read again.
	maxWeight = 1_640_000
	// maxHistoryWeight bounds the size of the stored changes, counted in the same way; the oldest are dropped
	// first.
	maxHistoryWeight = 200_000
	// MaxChanges bounds the stored changes of all states, which people can list.
	MaxChanges = 1000
	// MaxChangesOfOne bounds the changes stored for one state, so that a state that moves each
	// minute does not displace those of others.
	MaxChangesOfOne = 100
	// RangeSize bounds the states in the result of a NameRange.
	RangeSize = 500
)

// Keeper keeps the states of a group by the same rules as the databases: who holds a state, its watermark, and its
// last write. It has no clock and no server; StateWorkflow connects it to these.
type Keeper struct {
	states  []keptState // sorted by name
	changes []StateChange
	shared  map[string]int // number of states with each shared text
	// weight and historyWeight are the total sizes of states and changes.
	weight, historyWeight int
}

// keptState is a state in its stored form; kept in workflow history.
type keptState struct {
	Name      string `json:"name"`
	Watermark Cursor `json:"watermark,omitzero"`
	// Found is the watermark when the holder claimed the state, and Holder a digest of the holder's key; "" for
	// none.
	Found  Cursor         `json:"found,omitzero"`
	Holder string         `json:"holder,omitempty"`
	Run    string         `json:"run,omitempty"`
	Number int            `json:"number,omitempty"` // number of the holder's last write
	Rows   int64          `json:"rows,omitempty"`
	Source SourceIdentity `json:"source,omitzero"` // with a digest of its fingerprint
	Tables []string       `json:"tables,omitzero"` // as in State
	At     time.Time      `json:"at,omitzero"`
	// Claimed is when Run claimed the state, in Unix seconds: the states of a loop have similar ones, so these are
	// compressed well.
	Claimed int64 `json:"claimed,omitempty"`
	// Moved says that the holder has moved the watermark.
	Moved bool `json:"moved,omitempty"`
}

// sharedTexts returns texts that many states have in common, whose bytes count once because a snapshot is
// compressed.
func (s *keptState) sharedTexts() [2]string { return [2]string{s.Run, strings.Join(s.Tables, " ")} }

// byteWeight returns the size of the state in bytes, without shared texts.
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

// Text returns the cursor for display.
func (c Cursor) Text() string {
	if c.IsZero() {
		return ""
	}
	return expression.Text(c.Value.Data)
}

// byteWeight returns the size of the change in bytes.
func (c StateChange) byteWeight() int {
	const numbers = 48
	return numbers + len(c.Name) + len(c.By) + len(c.Note) + c.From.byteWeight() + c.To.byteWeight()
}

// digestText returns a digest that replaces a text of any length.
func digestText(text string) string {
	if text == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(expression.DigestBytes(text)[:HashLength])
}

func (k *Keeper) findState(name string) (at int, found bool) {
	return slices.BinarySearchFunc(k.states, name, func(s keptState, name string) int { return strings.Compare(s.Name, name) })
}

// getState returns the state with a name; a new one if there is none.
func (k *Keeper) getState(name string) (s keptState, found bool) {
	at, found := k.findState(name)
	if !found {
		return keptState{Name: name}, false
	}
	return k.states[at], true
}

// putState stores a state; it returns false if that would exceed the bounds.
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

// countShared adds by to the number of states that share their texts with s. The bytes of a text count with the
// first state that has it.
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

// removeState deletes a state.
func (k *Keeper) removeState(s keptState) {
	at, _ := k.findState(s.Name)
	k.states = slices.Delete(k.states, at, at+1)
	k.weight -= s.byteWeight()
	k.countShared(s, -1)
}

// DigestIdentity returns the source in the form that a Keeper stores.
func (s SourceIdentity) DigestIdentity() SourceIdentity {
	s.Fingerprint = digestText(s.Fingerprint)
	return s
}

// Claim lets a call hold a state, or returns why it cannot.
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

// ApplyWrite applies a write to its state, or returns why it is refused. A write that was already applied changes
// nothing.
func (k *Keeper) ApplyWrite(write StateWrite, now time.Time) *Refusal {
	s, found := k.getState(write.Name)
	if !found {
		return refuseNotHeld("the state %q was forgotten while its rows were written", write.Name)
	}
	entry := s.stateEntry()
	write.Holder = digestText(write.Holder)
	switch entry.CompareWrite(write) {
	case StandingSet:
		return refuseNotHeld("the state %q was set by a person while its rows were written", s.Name)
	case StandingSameRun:
		return refuseNotHeld("another iteration of this run has claimed the state %q: two elements of the loop share it. "+
			"Remove duplicate elements, or use what distinguishes them in the name of the state", s.Name)
	case StandingOther:
		return refuseNotHeld("the state %q is now held by another call, of the run %s", s.Name, s.Run)
	case StandingAhead:
		return refuseNotHeld("write %d of the state %q comes out of order, behind write %d", write.Number, s.Name, entry.Last)
	case StandingNext:
		if !k.putState(stateOf(entry.ApplyWrite(write, now))) {
			return k.refuseFull()
		}
	case StandingApplied, StandingBehind: // a workflow has no rows that must be written again
	}
	return nil
}

func refuseNotHeld(format string, args ...any) *Refusal {
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

// MoveAll applies writes independently of each other.
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

// Set changes a state for a person, after which nobody holds it. A zero To deletes it.
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

// Remove forgets those states that are unchanged since they were listed, and returns their names.
func (k *Keeper) Remove(removal Removal, now time.Time) []string {
	removed := []string{}
	for _, listed := range removal.States {
		if s, found := k.getState(listed.Name); found && listed.IsUnchanged(s.shownState()) {
			k.Set(removal.ChangeOf(listed), now)
			removed = append(removed, listed.Name)
		}
	}
	return removed
}

// recordChanges stores changes, and drops the oldest ones beyond the bounds.
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

// States returns the states of a range.
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

// shownState returns the state for display.
func (s *keptState) shownState() State {
	state := s.stateEntry().State
	if state.Watermark.IsZero() {
		state.MovedAt = time.Time{}
	}
	return state
}

// stateEntry converts the stored state to the form that the rules of states use.
func (s *keptState) stateEntry() StateEntry {
	entry := StateEntry{
		State: State{Name: s.Name, Watermark: s.Watermark, Source: s.Source, Run: s.Run, Rows: s.Rows, Tables: s.Tables, MovedAt: s.At},
		Found: s.Watermark, Holder: s.Holder, Last: s.Number,
	}
	if s.Claimed != 0 {
		entry.ClaimedAt = time.Unix(s.Claimed, 0).UTC()
	}
	if s.Moved {
		entry.Found = s.Found
	}
	return entry
}

// stateOf converts an entry to the stored form.
func stateOf(e StateEntry) keptState {
	_, moved := e.HolderChange()
	s := keptState{
		Name: e.Name, Watermark: e.Watermark, Found: e.Found, Holder: e.Holder, Run: e.Run, Number: e.Last, Rows: e.Rows,
		Source: e.Source, Tables: e.Tables, At: e.MovedAt, Moved: moved,
	}
	if e.Holder == "" {
		s.Found = Cursor{}
	}
	if !e.ClaimedAt.IsZero() {
		s.Claimed = e.ClaimedAt.Unix()
	}
	return s
}

// History returns the changes of a state, oldest first. The moves of one call are a single change.
func (k *Keeper) History(name string) []StateChange {
	changes := append([]StateChange{}, lists.Filter(k.changes, func(change StateChange) bool { return change.Name == name })...)
	s, _ := k.getState(name)
	if change, moved := s.stateEntry().HolderChange(); moved {
		changes = append(changes, change)
	}
	return changes
}

// Len returns the number of states.
func (k *Keeper) Len() int { return len(k.states) }
