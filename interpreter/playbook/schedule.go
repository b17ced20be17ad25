package playbook

import (
	"fmt"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
)

// Schedule says when runs of a playbook start automatically (docs/how-to/schedule.md). It does not restrict other
// runs.
type Schedule struct {
	Pos    source.Position
	Words  Words             // position of each word
	Cron   []string          // calendar times in Zone; empty with Every
	Places []source.Position // positions of Cron
	Every  time.Duration     // interval, counted from the beginning of 1970, UTC; 0 for none
	Offset time.Duration     // added to the times of Every
	Zone   string            // name in the IANA database, "" for UTC
	Jitter time.Duration     // each time is delayed by a random part of it
	// Overlap is one of Overlaps: what happens while the previous run is open; "" means the first.
	Overlap string
	// CatchUp is how long ago a missed time may be for its run to start; 0 is the server's default.
	CatchUp    time.Duration
	Start, End string // first and last time, see ParseMoment; "" for none
}

// Overlaps are the values of overlap: what happens to a run that is due while the previous one is open.
var Overlaps = []string{"skip", "buffer-one", "buffer-all", "cancel-other", "terminate-other", "allow"}

// ParseMoment parses a date, a date with a time, or a time with its offset from UTC; without an offset it is in zone. An
// empty text gives the zero time.
func ParseMoment(text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time, such as 2026-01-31, 2026-01-31 08:00 or 2026-01-31T08:00:00Z", ShortenText(text))
}

var scheduleSection = sectionOf(section{name: "schedule", prefix: "schedule."}, []keyOf[Schedule]{
	acceptKey(key{name: "cron", doc: "calendar times as minute, hour, day of month, month, day of week; one line or a list"},
		readAs(WordNames, func(d *decoder, w written, s *Schedule) { readCron(d, w.node, s) })),
	acceptKey(key{name: "every", doc: "instead of `cron`: the time between two runs, in whole seconds"},
		asInterval(func(s *Schedule, v time.Duration) { s.Every = v })),
	acceptKey(key{name: "offset", doc: "shifts the times of `every`"}, asDuration(func(s *Schedule, v time.Duration) { s.Offset = v })),
	acceptKey(key{name: "zone", doc: "time zone, such as `Europe/Berlin`; default UTC"}, asName(func(s *Schedule, name string) { s.Zone = name })),
	acceptKey(key{name: "jitter", doc: "delays each run by a random time up to this"},
		asDuration(func(s *Schedule, v time.Duration) { s.Jitter = v })),
	acceptKey(key{name: "overlap", doc: "what happens when the previous run is still open: `skip` (default), `buffer-one`, `buffer-all`, `cancel-other`, `terminate-other` or `allow`"},
		asOneOf(func(s *Schedule, overlap string) { s.Overlap = overlap }, Overlaps...).or(Overlaps[0])),
	acceptKey(key{name: "catch_up", doc: "how late a run may still start if the server was down at its time; default: a year, as the server has it"},
		asLimit(func(s *Schedule, v time.Duration) { s.CatchUp = v })),
	acceptKey(key{name: "start", doc: "the time before which no run starts"}, asName(func(s *Schedule, text string) { s.Start = text })),
	acceptKey(key{name: "end", doc: "the time after which no run starts"}, asName(func(s *Schedule, text string) { s.End = text })),
})

func (*Schedule) section() *section { return scheduleSection }

func (s *Schedule) decode(d *decoder, f *fields, where at) bool {
	*s = Schedule{Pos: f.pos, Words: f.words}
	before := len(d.Found)
	d.readWords(f, s, where)
	return len(d.Found) == before // rules check only valid values
}

// readCron reads one text or a list of them.
func readCron(d *decoder, n *yaml.Node, s *Schedule) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		if text, ok := d.readName(item, "schedule.cron"); ok {
			s.Cron, s.Places = append(s.Cron, text), append(s.Places, positionOf(item))
		}
	}
}
