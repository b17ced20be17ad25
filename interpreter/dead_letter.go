package interpreter

import "reprise/interpreter/playbook"

// DeadLetterSink is where a step's failed iterations are written; nil for
// nowhere.
func DeadLetterSink(step *playbook.Step) *playbook.Sink {
	if step.Loop == nil {
		return nil
	}
	return step.Loop.DeadLetter
}

// Unwritten warns of a failure that comes after, or instead of, the sinks of its
// iteration.
func Unwritten(step *playbook.Step) []string {
	if DeadLetterSink(step) == nil {
		return nil
	}
	return []string{"its failure is not written to the sink of loop.dead_letter; starter dead-letters lists it"}
}
