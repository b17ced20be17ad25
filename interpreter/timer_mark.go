package interpreter

import (
	"encoding/json"
	"strings"

	"reprise/interpreter/source"
)

// WaitsForSlot describes an iteration that only waits for a slot in the window of its loop.
const WaitsForSlot = "waits for a slot in the loop's window"

// TimerMark identifies the call that waits for a timer in a history, and why.
type TimerMark struct {
	Call   string `json:"call"` // the step, or the place of a sink
	Index  *int   `json:"index,omitempty"`
	Reason Reason `json:"reason,omitempty"`
	// Limits is the number of the attempt whose time the timer limits, if no call waits for the timer.
	Limits int `json:"limits,omitempty"`
}

// markBegin is the beginning of a mark, which follows the text of a summary.
const markBegin = ` {"call":`

// mostSummary bounds the text before a mark, in characters: the server rejects a workflow task with a summary over
// 400 bytes.
const mostSummary = 160

// MarkSummary returns a text for people followed by the mark. The summary is the only data of a timer that Temporal
// stores.
func (m TimerMark) MarkSummary(text string) string {
	mark, err := json.Marshal(m)
	if err != nil {
		return text // a struct of texts and numbers has no such error
	}
	return source.CutText(text, mostSummary) + " " + string(mark)
}

// ParseTimerMark returns the mark in a summary; false if it has none.
func ParseTimerMark(summary string) (TimerMark, bool) {
	at := strings.LastIndex(summary, markBegin)
	if at < 0 {
		return TimerMark{}, false
	}
	var mark TimerMark
	if err := json.Unmarshal([]byte(summary[at:]), &mark); err != nil {
		return TimerMark{}, false
	}
	return mark, mark.Reason.IsKnown() || mark.Limits > 0
}
