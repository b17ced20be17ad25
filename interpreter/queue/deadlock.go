package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// Runs can deadlock: a run holds a slot and waits for the end of a child run, which waits in the queue for that
// slot. Each queue knows the parents of its waiting runs and the slots that these hold. So all queues of a circle
// can be found from any one of them.

// Victim is the run that must fail so that others get their slots; kept in workflow history. It is zero if no run
// waits forever.
type Victim struct {
	Member
	// Why says who waits for whom.
	Why string `json:"why,omitempty"`
}

// Deadlock is a run that waits forever in a queue, and the holder of the slot that it waits for.
type Deadlock struct {
	Queue  string // workflow ID
	Run    Member
	Since  time.Time
	Holder Member // it holds its slot in In until the run has ended
	In     string
}

// Equal reports whether two deadlocks are the same.
func (w Deadlock) Equal(other Deadlock) bool {
	return w.Queue == other.Queue && w.Run == other.Run && w.Since.Equal(other.Since) && w.Holder == other.Holder && w.In == other.In
}

// ParentQueues returns the workflow IDs of the queues in which the parents of waiting runs have slots.
func (q *Queue) ParentQueues() []string {
	var queues []string
	for _, entry := range q.Waiting {
		for _, parent := range entry.Parents {
			queues = lists.AddUnique(queues, parent.Queue)
		}
	}
	return queues
}

// isStuck reports whether a slot of the queue can only become free when a run ends that itself waits in a queue.
func (q *Queue) isStuck(queues map[string]Queue) bool {
	if len(q.Holders) < max(q.Limit, 1) || q.countReplacing() > 0 {
		return false
	}
	id := q.Name.WorkflowID()
	return !slices.ContainsFunc(q.Holders, func(holder Entry) bool {
		return holder.Leaving || len(waitsOfChildren(queues, id, holder.WorkflowID)) == 0
	})
}

// waitsOfChildren returns the waiting runs whose parent is run, which holds a slot in the queue id.
func waitsOfChildren(queues map[string]Queue, id, run string) []Deadlock {
	var waits []Deadlock
	for _, other := range playbook.SortedKeys(queues) {
		for _, entry := range queues[other].Waiting {
			if slices.Contains(entry.Parents, Holding{Run: run, Queue: id}) {
				waits = append(waits, Deadlock{Queue: other, Run: entry.Member, Since: entry.Since, In: id})
			}
		}
	}
	return waits
}

// FindDeadlocks returns the runs that wait for each other forever, the newest first. queues has queues by workflow
// ID; slots of queues not in it are assumed to become free.
func FindDeadlocks(queues map[string]Queue) []Deadlock {
	stuck := map[string]Queue{}
	maps.Copy(stuck, queues)
	for before := -1; before != len(stuck); {
		before = len(stuck)
		for _, id := range playbook.SortedKeys(stuck) {
			if queue := stuck[id]; !queue.isStuck(stuck) {
				delete(stuck, id)
			}
		}
	}
	var waits []Deadlock
	for _, id := range playbook.SortedKeys(stuck) {
		for _, holder := range stuck[id].Holders {
			for _, wait := range waitsOfChildren(stuck, id, holder.WorkflowID) {
				wait.Holder = holder.Member
				waits = append(waits, wait)
			}
		}
	}
	slices.SortStableFunc(waits, func(x, y Deadlock) int { return y.Since.Compare(x.Since) })
	return waits
}

// ChooseVictim returns the run that must fail, and its queue: the newest one in a circle, so that all queues choose the
// same. It is zero without a circle.
func ChooseVictim(waits []Deadlock, queues map[string]Queue) (victim Victim, queue string) {
	for _, wait := range waits {
		if circle := shortestCircle(wait, waits); circle != nil {
			return Victim{Member: wait.Run, Why: circleText(circle, queues)}, wait.Queue
		}
	}
	return Victim{}, ""
}

// shortestCircle returns the shortest path of waits from first back to itself; nil if there is none. Each wait of the
// circle is in the queue that holds up the next one's slot.
func shortestCircle(first Deadlock, waits []Deadlock) []Deadlock {
	paths := [][]Deadlock{{first}}
	seen := map[string]bool{}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		at := path[len(path)-1].Queue
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

// shownCircle bounds the description of a circle in a failure, in bytes.
const shownCircle = 2000

// circleText describes who waits for whom, beginning with the first wait of a circle.
func circleText(circle []Deadlock, queues map[string]Queue) string {
	var b strings.Builder
	for _, next := range circle[1:] {
		fmt.Fprintf(&b, "it waits for %s, which waits for the end of %s, which is queued under %q, where ",
			next.Holder.WorkflowID, next.Run.WorkflowID, queues[next.Queue].Name.Key)
	}
	fmt.Fprintf(&b, "it waits for %s, which waits for the end of this run", circle[0].Holder.WorkflowID)
	text := b.String()
	if len(text) > shownCircle {
		text = strings.ToValidUTF8(text[:shownCircle], "") + "…"
	}
	return text
}

// RefuseVictim makes a waiting run fail because it would wait forever.
func (q *Queue) RefuseVictim(now time.Time, victim Victim) {
	if q.stateOf(victim.Member) != Queued {
		return
	}
	q.Messages = append(q.Messages, Message{
		To: victim.Member, Decision: Decision{RunID: victim.RunID, Queue: q.Name.WorkflowID(), Visit: victim.Visit, State: Deadlocked, Why: victim.Why},
	})
	q.Remove(now, victim.Member)
}
