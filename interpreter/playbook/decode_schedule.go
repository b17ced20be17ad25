package playbook

import (
	"time"

	"gopkg.in/yaml.v3"
)

var scheduleSection = sectionOf(section{name: "schedule", prefix: "schedule."}, []keyOf[Schedule]{
	accept(key{name: "cron", doc: "times by the calendar: minute, hour, day of the month, month, day of the week; or a list of such"},
		as(WordNames, func(d *decoder, w written, s *Schedule) { d.cron(w.node, s) })),
	accept(key{name: "every", doc: "in place of `cron`: the time between two runs, in whole seconds"},
		asLimit(func(s *Schedule, v time.Duration) { s.Every = v })),
	accept(key{name: "offset", doc: "moves the times of `every`"}, asDuration(func(s *Schedule, v time.Duration) { s.Offset = v })),
	accept(key{name: "zone", doc: "time zone, such as `Europe/Berlin`; default UTC"}, asName(func(s *Schedule, name string) { s.Zone = name })),
	accept(key{name: "jitter", doc: "each run is put off by up to this, at random"},
		asDuration(func(s *Schedule, v time.Duration) { s.Jitter = v })),
	accept(key{name: "overlap", doc: "while the previous run is open: `skip` (default), `buffer-one`, `buffer-all`, `cancel-other`, `terminate-other` or `allow`"},
		asOneOf(func(s *Schedule, overlap string) { s.Overlap = overlap }, Overlaps...).or(Overlaps[0])),
	accept(key{name: "catch_up", doc: "how old a time may be that the server was away for; default the server's, a year"},
		asLimit(func(s *Schedule, v time.Duration) { s.CatchUp = v })),
	accept(key{name: "start", doc: "no run before this time"}, asName(func(s *Schedule, text string) { s.Start = text })),
	accept(key{name: "end", doc: "no run after this time"}, asName(func(s *Schedule, text string) { s.End = text })),
})

func (*Schedule) section() *section { return scheduleSection }

func (s *Schedule) decode(d *decoder, f *fields, where at) bool {
	*s = Schedule{Pos: f.pos, Words: f.words}
	before := len(d.found)
	d.words(f, s, where)
	return len(d.found) == before // rules speak of what could be read
}

// cron reads one text or a list of them.
func (d *decoder) cron(n *yaml.Node, s *Schedule) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		if text, ok := d.name(item, "schedule.cron"); ok {
			s.Cron, s.Places = append(s.Cron, text), append(s.Places, position(item))
		}
	}
}
