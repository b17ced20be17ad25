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

// MaxWorkflowID is the maximum length of a workflow ID, in bytes. Temporal rejects a longer one, and for a child in
// a way that leaves its parent hanging.
const MaxWorkflowID = 1000

// SuffixedID returns the ID of a workflow that belongs to another one: the other's ID and a suffix. If that exceeds
// the maximum, a digest replaces the end of the other's ID.
func SuffixedID(id, suffix string) string {
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

// RunID returns the workflow ID of the run that a task belongs to.
func RunID(task Task) string { return cmp.Or(task.ID, task.Run.WorkflowID) }

// ChildID returns the ID of a task's child workflow: its loop or its call or, with a suffix, a part of that loop.
// Clients find children by these IDs.
func ChildID(task Task, suffix string) string {
	return SuffixedID(RunID(task), fmt.Sprintf("/%s#%d%s", task.Step, task.Visit, suffix))
}

// BatchID returns the ID of the child of a loop whose batch begins with iteration first.
func BatchID(task Task, first int) string { return ChildID(task, fmt.Sprintf("/%d", first)) }

// IterationID returns the ID of the child that runs an iteration of a task's loop. size is the size of the
// collection; chosen selects the elements of the loop or shard, nil for all. It returns false if no element has the
// index.
func IterationID(task Task, loop *playbook.Loop, size int, chosen *Subset, index int) (string, bool) {
	position, found := index, index >= 0 && index < size
	if chosen != nil {
		position, found = slices.BinarySearch(chosen.Indexes, index)
	}
	if !found {
		return "", false
	}
	first := position - position%loop.BatchSize(size)
	if chosen != nil {
		first = chosen.Indexes[first]
	}
	return BatchID(task, first), true
}

// PlayID returns the workflow ID of the run that an attempt starts.
func PlayID(task Task, in interpreter.ToolInput) string {
	return ChildID(task, fmt.Sprintf("%s!%d", IndexSuffix(in), in.Attempt))
}

// IndexSuffix returns the suffix that identifies an iteration in IDs, "" outside of a loop.
func IndexSuffix(in interpreter.ToolInput) string {
	if in.Index == nil {
		return ""
	}
	return fmt.Sprintf("/%d", *in.Index)
}

// RoundID returns the workflow ID of a run's nth reprocess. Everybody who starts it uses this ID, so that Temporal
// starts it only once.
func RoundID(workflowID, runID string, n int) string {
	return SuffixedID(workflowID, fmt.Sprintf("/reprocess-%s-%d", runID[max(0, len(runID)-roundIDLength):], n))
}

// roundIDLength is the length of the part of a run ID, from its end, that distinguishes reprocesses with one
// workflow ID: the end is random, the beginning is the time.
const roundIDLength = 12

// VisitName returns the name of a visit of a step in the queue of its state.
func VisitName(step string, visit int) string { return fmt.Sprintf("%s#%d", step, visit) }
