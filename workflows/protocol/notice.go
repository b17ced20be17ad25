package protocol

import (
	"reprise/interpreter/call"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// NewsSignal passes news from a child of a run to its parent workflow; kept in
// histories.
const NewsSignal = "news"

// UnsentNotice is a notice of the run that is to be sent in its next history; kept in
// workflow history.
type UnsentNotice struct {
	Place string `json:"place"` // see Playbook.Notices
	// Number is the number of the news: see RunState.Notified.
	Number int           `json:"number"`
	News   call.News     `json:"news"`
	Call   call.Snapshot `json:"call"`
}

// Notice finds the notice in its playbook, nil where it has none such.
func (u UnsentNotice) Notice(book *playbook.Playbook) *playbook.Sink {
	return lists.First(book.Notices(u.News.Event), func(notice *playbook.Sink) bool { return notice.Place == u.Place })
}
