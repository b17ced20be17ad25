package interpreter

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// AwaitedDetails describes, for display, an attempt that a person or another system answers.
type AwaitedDetails struct {
	Attempt int       `json:"attempt"`
	Since   time.Time `json:"since"`
	// Until is the deadline, zero for none; progress extends it.
	Until time.Time `json:"until,omitzero"`
	// Done, Total and Message are the latest reported progress; a Total of 0 means unknown. Reported is the time of
	// that report, zero for none.
	Done     int64     `json:"done,omitempty"`
	Total    int64     `json:"total,omitempty"`
	Message  string    `json:"message,omitempty"`
	Reported time.Time `json:"reported,omitzero"`
	// Approval is the question to people; nil for tool webhook.
	Approval *playbook.Approval `json:"approval,omitempty"`
}

// Progress describes the reported progress in a few words; "" before the first report.
func (a *AwaitedDetails) Progress() string {
	if a.Reported.IsZero() {
		return ""
	}
	return (&ReportedProgress{Done: a.Done, Total: a.Total, Message: a.Message}).String()
}

// Question returns the first line of the question to people, "" for none. Values in it are shortened and contain no
// line breaks, so that the author's own words remain visible.
func (a *AwaitedDetails) Question() string {
	const shownValue = 32 // runes
	if a.Approval == nil {
		return ""
	}
	var asked strings.Builder
	for _, piece := range a.Approval.MessageParts() {
		text := piece.Text
		if piece.IsData {
			text = source.ShortenMiddle(strings.Join(strings.Fields(source.ReadableText(text)), " "), shownValue)
		} else if asked.Len() == 0 {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
		line, _, more := strings.Cut(text, "\n")
		if asked.WriteString(line); more {
			break
		}
	}
	return strings.TrimSpace(strings.TrimLeft(asked.String(), "#"))
}

// AnswerCommand returns the verb of the command that answers, and its argument after the names of the run and step:
// an option, the first if there are several.
func (a *AwaitedDetails) AnswerCommand() (verb, option string) {
	switch {
	case a.Approval == nil:
		return "complete", ""
	case slices.Contains(a.Approval.Options, playbook.OptionApprove):
		return "approve", ""
	}
	return "approve", a.Approval.Options[0]
}
