package workflows

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"unicode/utf8"

	"reprise/interpreter/playbook"
)

// MaxWorkflowID is how many bytes a workflow ID may have. Temporal refuses a
// longer one, and for a child in a way that leaves its parent hanging.
const MaxWorkflowID = 1000

// IDWithin is the ID of a workflow that belongs to another: the other's ID and a
// suffix. Where that is longer than Temporal accepts, a digest replaces the end
// of the other's ID.
func IDWithin(id, suffix string) string {
	if len(id)+len(suffix) <= MaxWorkflowID {
		return id + suffix
	}
	const digits = 32 // 128 bits
	digest := sha256.Sum256([]byte(id))
	room := max(MaxWorkflowID-len(suffix)-1-digits, 0)
	for room > 0 && !utf8.RuneStart(id[room]) {
		room--
	}
	return id[:room] + "~" + hex.EncodeToString(digest[:])[:digits] + suffix
}

// runID is the workflow ID of the run that a task belongs to.
func runID(task Task) string { return cmp.Or(task.ID, task.Run.WorkflowID) }

// childID is the ID of a child that a task has: its loop or its call, with a
// suffix that of a shard of the loop. Children are found by it.
func childID(task Task, suffix string) string {
	return IDWithin(runID(task), fmt.Sprintf("/%s#%d%s", task.Step, task.Visit, suffix))
}

// iterationID is the ID of the child of a loop that begins with an iteration.
func iterationID(task Task, first int) string { return childID(task, fmt.Sprintf("/%d", first)) }

// IterationID is the ID of the child in which an iteration of a task's loop is. size is
// that of the collection, of which the loop, or the shard of it that is meant, has the
// chosen elements; all, where that is nil. It is false for an index of no such element.
func IterationID(task Task, loop *playbook.Loop, size int, chosen *Chosen, index int) (string, bool) {
	position, found := index, index >= 0 && index < size
	if chosen != nil {
		position, found = slices.BinarySearch(chosen.Indexes, index)
	}
	if !found {
		return "", false
	}
	first := position - position%loop.BatchOf(size)
	if chosen != nil {
		first = chosen.Indexes[first]
	}
	return iterationID(task, first), true
}
