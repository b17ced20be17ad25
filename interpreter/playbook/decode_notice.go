package playbook

import (
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// The events for which notify sends notices.
const (
	EventCompleted = "completed"
	EventPartial   = "partial_success"
	EventFailed    = "failed"
	EventCancelled = "cancelled"
	EventPaused    = "paused"
	EventExhausted = "exhausted"
	EventLate      = "late"
)

// NoticeEvents returns all events.
func NoticeEvents() []string {
	return []string{EventCompleted, EventPartial, EventFailed, EventCancelled, EventPaused, EventExhausted, EventLate}
}

// runPlace is the place of what belongs to the run rather than a step. It is a word of the language, so no step has
// this name.
const runPlace = "run"

// noticeWords are the words of every notice.
var noticeWords = withCall((*Notice).action, []keyOf[Notice]{
	acceptKey(key{name: "tool", older: []string{"type"}, doc: "the tool that sends the notice; default `http`"}, asPart[Notice](WordTool)),
	acceptKey(key{name: "retry", doc: "policies for failures of the notice itself"},
		asRetry(func(n *Notice, policies []*Policy) { n.Sink.Action.Retry = policies })),
	acceptKey(key{name: "args", doc: "values passed to the tool instead of the default content of a notice", nullable: true}, readThrough((*Notice).action, argsKey.into)),
})

// noticeSection is the section of on_success and on_failure.
var noticeSection = sectionOf(section{name: "notice", called: "a notice", open: true, fields: olderFields}, noticeWords)

var notifySection = sectionOf(section{name: "notify", called: "an entry of notify", open: true, fields: olderFields}, append([]keyOf[Notice]{
	acceptKey(key{name: "on", doc: "the events to report, one name or a list: " + eventNames(), required: "on: [failed, late]"},
		readAs(WordChoices, func(d *decoder, w written, n *Notice) { n.On = readEvents(d, w.node) }).also(NoticeEvents()...)),
}, noticeWords...))

func eventNames() string {
	return strings.Join(lists.Map(NoticeEvents(), func(name string) string { return "`" + name + "`" }), ", ")
}

func (n *Notice) action() *Action { return n.Sink.Action }

// readsNotices is the part of a decoder that reads notices. Steps depend only on it, so that notices can be in
// steps, and steps in a call of a notice: see inner.
type readsNotices interface {
	readNotices(w written, s *section) []*Notice
}

// asNotices reads a notice, or a list of them.
func asNotices[T any](s *section, set func(*T, []*Notice)) reader[T] {
	return readAs(WordSome, func(d *decoder, w written, into *T) {
		set(into, readsNotices(d).readNotices(w, s))
	}).of(s)
}

func (d *decoder) readNotices(w written, s *section) []*Notice {
	return readSome(d, w, func(item *yaml.Node, place string) *Notice { return readNotice(d, item, s, place) })
}

func readNotice(d *decoder, n *yaml.Node, s *section, place string) *Notice {
	f, ok := d.readFields(readOlderNotice(d, n), s, s.sectionTitle())
	if !ok {
		return nil
	}
	notice := &Notice{Sink: &Sink{Pos: f.pos, Place: place, Action: readAction(d, f, f.path)}}
	isMisspelt := func(field restField) bool { return expression.Suggest(field.spelt, []string{"tool"}) != "" }
	if f.getValue("tool") == nil && !slices.ContainsFunc(f.rest, isMisspelt) {
		notice.Sink.Action.Tool = &Node{Pos: f.pos, Raw: NoticeTool, Value: NoticeTool, constant: true}
	}
	d.readWords(f, notice, at{place: place, tool: literalTool(notice.Sink.Action)})
	return notice
}

// readOlderNotice rewrites {kind: Webhook, params: {url, verb}} to the present form of a
// notice, with a warning; other forms are unchanged.
func readOlderNotice(d *decoder, n *yaml.Node) *yaml.Node {
	newer, kind := OlderRequest(n)
	if newer == nil || d.broken[n] {
		return n
	}
	d.Warnf(positionOf(kind), codeLegacyWord, "kind: %s with params is an older form; write {url: …, method: POST} without them, or run starter migrate", ShortenText(kind.Value))
	return newer
}

// readEvents reads the names of events.
func readEvents(d *decoder, n *yaml.Node) []string {
	items := oneOrMore(n)
	if len(items) == 0 {
		d.Errorf(positionOf(n), codeEmpty, "on has no events; they are %s", JoinNames(NoticeEvents()))
	}
	var events []string
	for _, item := range items {
		event := d.readChoice(item, "an event of on", NoticeEvents()...)
		if event != "" && slices.Contains(events, event) {
			d.Errorf(positionOf(item), CodeDuplicateKey, "on has %q twice; keep one of them", event)
			continue
		}
		if event != "" {
			events = append(events, event)
		}
	}
	return events
}

var expectSection = sectionOf(section{name: "expect", prefix: "expect."}, []keyOf[Playbook]{
	acceptKey(key{name: "within", doc: "how long a run is expected to take; a run that takes longer is late", required: "within: 30m"},
		asInterval(func(p *Playbook, v time.Duration) { p.Expect = v })),
})

func readExpect(d *decoder, w written, pb *Playbook) {
	f, ok := d.readFields(w.node, expectSection, expectSection.sectionTitle())
	if ok {
		pb.ExpectPos = f.pos
		d.readWords(f, pb, at{})
	}
}

// Notices returns the notices of a step that has failed or succeeded.
func (s *Step) Notices(failed bool) []*Sink {
	if failed {
		return noticeSinks(s.OnFailure)
	}
	return noticeSinks(s.OnSuccess)
}

// Notices returns the notices of the playbook for an event, each with a place that includes the event. on_success
// applies to completed and partial_success, on_failure to failed.
func (pb *Playbook) Notices(event string) []*Sink {
	var all []*Sink
	switch event {
	case EventCompleted, EventPartial:
		all = noticeSinks(pb.OnSuccess)
	case EventFailed:
		all = noticeSinks(pb.OnFailure)
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

// HasNotice reports whether there is a notice for an event.
func (pb *Playbook) HasNotice(event string) bool {
	return slices.ContainsFunc(pb.Notify, func(n *Notice) bool { return slices.Contains(n.On, event) })
}

// IsNoticePlace reports whether a place belongs to a notice.
func IsNoticePlace(place string) bool {
	owner, word, _ := strings.Cut(place, ".")
	word, _, _ = strings.Cut(word, ".")
	return owner == runPlace || word == "on_success" || word == "on_failure"
}

// IsRunPlace reports whether a place belongs to the run rather than a step.
func IsRunPlace(place string) bool { return strings.HasPrefix(place, runPlace+".") }

func noticeSinks(notices []*Notice) []*Sink {
	return lists.Map(notices, func(notice *Notice) *Sink { return notice.Sink })
}

// EndNodes returns the values that are evaluated once the loop of a step has ended, by the step's sinks and
// notices.
func (s *Step) EndNodes() []*Node { return append(s.StepSinkNodes(), s.NoticeNodes()...) }

// NoticeNodes returns the values in the notices of a step.
func (s *Step) NoticeNodes() []*Node {
	var nodes []*Node
	for _, sink := range slices.Concat(s.Notices(false), s.Notices(true)) {
		nodes = append(nodes, sink.Action.ValueNodes()...)
	}
	return slices.DeleteFunc(nodes, func(n *Node) bool { return n == nil })
}
