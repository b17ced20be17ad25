package playbook

import (
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// Notices are those of a step that has ended, by how it did.
func (s *Step) Notices(failed bool) []*Sink {
	if failed {
		return sinksOf(s.OnFailure)
	}
	return sinksOf(s.OnSuccess)
}

// Notices are those of the playbook for an event, each with a place that says
// which event it is. on_success takes completed and partial_success, on_failure
// failed.
func (pb *Playbook) Notices(event string) []*Sink {
	var all []*Sink
	switch event {
	case EventCompleted, EventPartial:
		all = sinksOf(pb.OnSuccess)
	case EventFailed:
		all = sinksOf(pb.OnFailure)
	}
	for _, notice := range pb.Notify {
		if slices.Contains(notice.On, event) {
			sink := *notice.Sink
			sink.Place += "." + event
			all = append(all, &sink)
		}
	}
	return all
}

// Notifies reports whether anybody is told of an event.
func (pb *Playbook) Notifies(event string) bool {
	return slices.ContainsFunc(pb.Notify, func(n *Notice) bool { return slices.Contains(n.On, event) })
}

// OfNotice reports whether a place is that of a notice.
func OfNotice(place string) bool {
	owner, word, _ := strings.Cut(place, ".")
	word, _, _ = strings.Cut(word, ".")
	return owner == runPlace || word == "on_success" || word == "on_failure"
}

// OfRun reports whether a place belongs to the run and to no step.
func OfRun(place string) bool { return strings.HasPrefix(place, runPlace+".") }

func sinksOf(notices []*Notice) []*Sink {
	return lists.Map(notices, func(notice *Notice) *Sink { return notice.Sink })
}

// EndNodes are the values that are evaluated once the loop of a step has ended, by
// the sink on the step and its notices.
func (s *Step) EndNodes() []*Node { return append(s.StepSinkNodes(), s.NoticeNodes()...) }

// NoticeNodes are the values of the notices of a step.
func (s *Step) NoticeNodes() []*Node {
	var nodes []*Node
	for _, sink := range slices.Concat(s.Notices(false), s.Notices(true)) {
		nodes = append(nodes, sink.Action.nodes()...)
	}
	return slices.DeleteFunc(nodes, func(n *Node) bool { return n == nil })
}
