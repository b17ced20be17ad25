package interpreter

import (
	"encoding/json"
	"strings"

	"reprise/interpreter/source"
)

// WaitsForSlot describes an iteration that only waits for a slot in the window of its loop.
const WaitsForSlot = "waits for a slot in the loop's window"

// TimerMark says of a timer in a history which call waits by it, and why.
type TimerMark struct {
	Call   string `json:"call"` // the step, or the place of a sink
	Index  *int   `json:"index,omitempty"`
	Reason Reason `json:"reason,omitempty"`
	// Limits is the attempt that the timer bounds, where nothing waits by it.
	Limits int `json:"limits,omitempty"`
}

// markBegin is the beginning of a mark, after the text of a summary.
const markBegin = ` {"call":`

// mostSummary bounds the text before a mark, in characters: the server refuses summaries over
// 400 bytes, and with them the task of the workflow.
const mostSummary = 160

// Summary is a text for people followed by the mark. Temporal stores no other data of a timer.
func (m TimerMark) Summary(text string) string {
	mark, err := json.Marshal(m)
	if err != nil {
		return text // a struct of texts and numbers has no such error
	}
	return source.Cut(text, mostSummary) + " " + string(mark)
}

// ParseTimerMark reads the mark of a summary; false for a timer that has none.
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
