package protocol

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"unicode/utf8"

	"reprise/interpreter"
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

// RunID is the workflow ID of the run that a task belongs to.
func RunID(task Task) string { return cmp.Or(task.ID, task.Run.WorkflowID) }

// ChildID is the ID of a child that a task has: its loop or its call, with a
// suffix that of a shard of the loop. Children are found by it.
func ChildID(task Task, suffix string) string {
	return IDWithin(RunID(task), fmt.Sprintf("/%s#%d%s", task.Step, task.Visit, suffix))
}

// BatchID is the ID of the child of a loop whose batch begins with iteration first.
func BatchID(task Task, first int) string { return ChildID(task, fmt.Sprintf("/%d", first)) }

// IterationID is the ID of the child that has an iteration of a task's loop. size is the size
// of the collection; chosen selects the elements of the loop or shard, nil for all. It returns
// false if no element has the index.
func IterationID(task Task, loop *playbook.Loop, size int, chosen *Subset, index int) (string, bool) {
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
	return BatchID(task, first), true
}

// PlayID is the workflow ID of the run that an attempt starts.
func PlayID(task Task, in interpreter.ToolInput) string {
	return ChildID(task, fmt.Sprintf("%s!%d", IndexSuffix(in), in.Attempt))
}

// IndexSuffix is the end of the ID of what belongs to an iteration, "" outside of a loop.
func IndexSuffix(in interpreter.ToolInput) string {
	if in.Index == nil {
		return ""
	}
	return fmt.Sprintf("/%d", *in.Index)
}

// RoundID is the workflow ID of a run's nth reprocess: the same for all that start it,
// so that Temporal starts it once.
func RoundID(workflowID, runID string, n int) string {
	return IDWithin(workflowID, fmt.Sprintf("/reprocess-%s-%d", runID[max(0, len(runID)-roundIDLength):], n))
}

// roundIDLength is how much of the end of a run ID distinguishes reprocesses with one workflow
// ID: the end is random, the beginning is the time.
const roundIDLength = 12

// VisitName is the name by which the queue of a state knows a visit of a step.
func VisitName(step string, visit int) string { return fmt.Sprintf("%s#%d", step, visit) }
