package interpreter

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Runs wait for each other for ever where every turn of some lines is with a run that
// waits for the end of one which is queued in those lines. Each line knows who of its
// queue has runs above and what turns those have, so that all lines which matter are
// found from any of them.

// LineVictim is the run by whose failure others get their turns; kept in workflow
// history. It is zero where nobody waits for ever.
type LineVictim struct {
	Member
	// Why says who waits for whom.
	Why string `json:"why,omitempty"`
}

// LineWait is a run that waits for ever, in a line, and the turn that waits for it.
type LineWait struct {
	Line   string // workflow ID
	Member Member
	Since  time.Time
	Holder Member // it has its turn in In until the member has ended
	In     string
}

// Equal reports whether two waits are the same one.
func (w LineWait) Equal(other LineWait) bool {
	return w.Line == other.Line && w.Member == other.Member && w.Since.Equal(other.Since) && w.Holder == other.Holder && w.In == other.In
}

// Above are the workflow IDs of the lines in which runs have turns that wait for
// members of the line's queue.
func (l *Line) Above() []string {
	var lines []string
	for _, member := range l.Queue {
		for _, above := range member.Above {
			if !slices.Contains(lines, above.Line) {
				lines = append(lines, above.Line)
			}
		}
	}
	return lines
}

// stuck reports whether nothing frees a turn of the line but the end of a run that
// waits in lines.
func (l *Line) stuck(lines map[string]Line) bool {
	if len(l.Holders) < max(l.Limit, 1) || l.replacing() > 0 {
		return false
	}
	id := l.Name.ID()
	return !slices.ContainsFunc(l.Holders, func(holder LineMember) bool {
		return holder.Leaving || len(waitsBelow(lines, id, holder.WorkflowID)) == 0
	})
}

// waitsBelow finds the members of queues for which a run waits that has its turn in a
// line.
func waitsBelow(lines map[string]Line, id, run string) []LineWait {
	var waits []LineWait
	for _, other := range sortedKeys(lines) {
		for _, member := range lines[other].Queue {
			if slices.Contains(member.Above, LineHolding{Run: run, Line: id}) {
				waits = append(waits, LineWait{Line: other, Member: member.Member, Since: member.Since, In: id})
			}
		}
	}
	return waits
}

// EndlessWaits finds the runs that wait for each other for ever, the newest first.
// lines are by their workflow IDs; of one that is left out it is taken that its turns
// come free.
func EndlessWaits(lines map[string]Line) []LineWait {
	stuck := map[string]Line{}
	for id, line := range lines {
		stuck[id] = line
	}
	for before := -1; before != len(stuck); {
		before = len(stuck)
		for _, id := range sortedKeys(stuck) {
			if line := stuck[id]; !line.stuck(stuck) {
				delete(stuck, id)
			}
		}
	}
	var waits []LineWait
	for _, id := range sortedKeys(stuck) {
		for _, holder := range stuck[id].Holders {
			for _, wait := range waitsBelow(stuck, id, holder.WorkflowID) {
				wait.Holder = holder.Member
				waits = append(waits, wait)
			}
		}
	}
	slices.SortStableFunc(waits, func(x, y LineWait) int { return y.Since.Compare(x.Since) })
	return waits
}

// VictimOf is which of some endless waits is to fail: the newest that is in a circle,
// so that all lines name the same. It is zero where the lines have none.
func VictimOf(waits []LineWait, lines map[string]Line) (victim LineVictim, line string) {
	for _, wait := range waits {
		if circle := circleOf(wait, waits); circle != nil {
			return LineVictim{Member: wait.Member, Why: circleText(circle, lines)}, wait.Line
		}
	}
	return LineVictim{}, ""
}

// circleOf follows a wait until it comes back to itself, the shortest way; nil where
// it does not. Each of the circle waits in the line in which the next has its turn
// held up.
func circleOf(first LineWait, waits []LineWait) []LineWait {
	paths := [][]LineWait{{first}}
	seen := map[string]bool{}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		at := path[len(path)-1].Line
		if at == first.In {
			return path
		}
		if seen[at] {
			continue
		}
		seen[at] = true
		for _, wait := range waits {
			if wait.In == at {
				paths = append(paths, append(slices.Clone(path), wait))
			}
		}
	}
	return nil
}

// maxCircleText bounds what a failure says of a circle, in bytes.
const maxCircleText = 2000

// circleText says who waits for whom, seen from the first of a circle.
func circleText(circle []LineWait, lines map[string]Line) string {
	var b strings.Builder
	for _, next := range circle[1:] {
		fmt.Fprintf(&b, "it waits for %s, which waits for the end of %s, which is queued under %q, where ",
			next.Holder.WorkflowID, next.Member.WorkflowID, lines[next.Line].Name.Key)
	}
	fmt.Fprintf(&b, "it waits for %s, which waits for the end of this run", circle[0].Holder.WorkflowID)
	text := b.String()
	if len(text) > maxCircleText {
		text = strings.ToValidUTF8(text[:maxCircleText], "") + "…"
	}
	return text
}

// Refuse has a run of the queue fail that would wait for ever.
func (l *Line) Refuse(now time.Time, victim LineVictim) {
	if l.state(victim.Member) != LineQueued {
		return
	}
	l.Messages = append(l.Messages, LineMessage{
		To: victim.Member, Answer: LineAnswer{RunID: victim.RunID, State: LineCircle, Why: victim.Why},
	})
	l.Gone(now, victim.Member)
}
