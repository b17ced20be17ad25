package protocol

import (
	"reprise/interpreter/call"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// NewsSignal sends news from a child of a run to its parent workflow; kept in histories.
const NewsSignal = "news"

// UnsentNotice is a notice that the run sends in its next history; kept in workflow history.
type UnsentNotice struct {
	Place string `json:"place"` // place of the notice, see Playbook.Notices
	// Number is the number of the news: see RunState.Notified.
	Number int           `json:"number"`
	News   call.News     `json:"news"`
	Call   call.Snapshot `json:"call"`
}

// FindNotice returns the notice from the playbook, nil if it has none at that place.
func (u UnsentNotice) FindNotice(book *playbook.Playbook) *playbook.Sink {
	return lists.First(book.Notices(u.News.Event), func(notice *playbook.Sink) bool { return notice.Place == u.Place })
}
