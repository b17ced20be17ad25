package playbook

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron"
	"gopkg.in/yaml.v3"

	clocks "reprise/interpreter/cron"
	"reprise/interpreter/expression"
	"reprise/interpreter/source"
)

// Schedule says when a playbook runs by itself (docs/how-to/schedule.md).
// It says nothing of runs that are started otherwise.
type Schedule struct {
	Pos    source.Position
	Words  Words             // place of each word
	Cron   []string          // times by the calendar of Zone; none beside Every
	Places []source.Position // of Cron
	Every  time.Duration     // counted from the beginning of 1970, UTC; 0 for none
	Offset time.Duration     // added to the times of Every
	Zone   string            // of the IANA database, "" for UTC
	Jitter time.Duration     // each time is put off by up to this, at random
	// Overlap is one of Overlaps, what happens while the run before is open; "" is
	// the first.
	Overlap string
	// CatchUp is how old a time may be that the server has missed; 0 is its default.
	CatchUp    time.Duration
	Start, End string // first and last moment, see Moment; "" for none
}

// Overlaps are the words of overlap: what happens to a run that is due while the one
// before is open.
var Overlaps = []string{"skip", "buffer-one", "buffer-all", "cancel-other", "terminate-other", "allow"}

// The bounds of a schedule. Temporal knows no shorter time between two runs, and
// catches up at least what is this old. Runs more often than shortEvery are rarely
// meant: each costs a start and leaves a history.
const (
	leastEvery   = time.Second
	shortEvery   = 10 * time.Second
	leastCatchUp = 10 * time.Second
	maxCron      = 100
)

// ScheduleProblem is what is wrong with a schedule, whoever wrote it.
type ScheduleProblem struct {
	Word    string // of the section schedule; "" is the schedule as a whole
	Index   int    // of Cron
	Code    string
	Message string // follows the name of the word
	Warning bool
}

// Problems finds what is wrong with a schedule. zone refuses names that are no time
// zones; nil takes all.
func (s *Schedule) Problems(zone func(string) error) []ScheduleProblem {
	return slices.Concat(s.timesProblems(), s.offsetProblems(), s.catchUpProblems(), s.zoneProblems(zone), s.cronProblems(), s.momentProblems())
}

// scheduleProblem is the only problem of a word.
func scheduleProblem(word, code, format string, args ...any) []ScheduleProblem {
	return []ScheduleProblem{{Word: word, Code: code, Message: fmt.Sprintf(format, args...)}}
}

func (s *Schedule) timesProblems() []ScheduleProblem {
	switch {
	case len(s.Cron) == 0 && s.Every == 0:
		return scheduleProblem("", codeMissingKey, "says no times: it needs \"cron\" or \"every\"")
	case len(s.Cron) > 0 && s.Every > 0:
		return scheduleProblem("every", codeConflict, "is beside \"cron\": times are those of a calendar, or come in equal steps; write one of them")
	case s.Every > 0 && (s.Every < leastEvery || s.Every%time.Second != 0):
		return scheduleProblem("every", codeBounds, "must be whole seconds, not %s", s.Every)
	case s.Every > 0 && s.Every < shortEvery:
		return []ScheduleProblem{{Word: "every", Code: codeShortInterval, Warning: true, Message: fmt.Sprintf(
			"starts a run every %s, %d a day; runs that poll for something new can wait in one run, with a policy that polls",
			s.Every, 24*time.Hour/s.Every)}}
	}
	return nil
}

func (s *Schedule) offsetProblems() []ScheduleProblem {
	switch {
	case s.Offset > 0 && s.Every == 0:
		return scheduleProblem("offset", codeMissingKey, "needs \"every\", whose times it moves")
	case s.Offset%time.Second != 0:
		return scheduleProblem("offset", codeBounds, "must be whole seconds, not %s", s.Offset)
	case s.Offset > 0 && s.Offset >= s.Every:
		return scheduleProblem("offset", codeBounds, "must be less than \"every\", which is %s, not %s", s.Every, s.Offset)
	}
	return nil
}

func (s *Schedule) catchUpProblems() []ScheduleProblem {
	if s.CatchUp > 0 && s.CatchUp < leastCatchUp {
		return scheduleProblem("catch_up", codeBounds, "must be at least %s, not %s", leastCatchUp, s.CatchUp)
	}
	return nil
}

func (s *Schedule) zoneProblems(known func(string) error) []ScheduleProblem {
	if s.Zone != "" && known != nil && known(s.Zone) != nil {
		return scheduleProblem("zone", codeWrongValue, "%q is no time zone, expected a name such as Europe/Berlin or UTC", shorten(s.Zone))
	}
	return nil
}

func (s *Schedule) cronProblems() []ScheduleProblem {
	var found []ScheduleProblem
	if len(s.Cron) > maxCron {
		return scheduleProblem("cron", codeTooLarge, "has %d entries; at most %d are read", len(s.Cron), maxCron)
	}
	for i, text := range s.Cron {
		if err := checkCron(text); err != nil {
			found = append(found, ScheduleProblem{
				Word: "cron", Index: i, Code: codeCron, Message: fmt.Sprintf("%q cannot be read: %v", shorten(text), err),
			})
			continue
		}
		found = append(found, unevenProblems(i, text)...)
		if bothDays(text) {
			found = append(found, ScheduleProblem{Word: "cron", Index: i, Code: codeCronDays, Warning: true, Message: fmt.Sprintf(
				"%q names days of the month and of the week: it means those days that are both, where other programs take either", shorten(text))})
		}
	}
	return found
}

func (s *Schedule) momentProblems() []ScheduleProblem {
	var found []ScheduleProblem
	for _, one := range []struct{ word, text string }{{"start", s.Start}, {"end", s.End}} {
		if _, err := Moment(one.text, time.UTC); err != nil {
			found = append(found, ScheduleProblem{Word: one.word, Code: codeWrongValue, Message: err.Error()})
		}
	}
	if len(found) > 0 || s.Start == "" || s.End == "" {
		return found
	}
	start, _ := Moment(s.Start, time.UTC) // read above
	end, _ := Moment(s.End, time.UTC)
	if !end.After(start) {
		return scheduleProblem("end", codeBounds, "must be after \"start\", which is %s, not %s", s.Start, s.End)
	}
	return nil
}

// ClockProblems says what becomes of times in the nights, from one moment to another, in which the
// clocks of the zone move: of each line the first that is left out, and the first that comes twice.
func (s *Schedule) ClockProblems(from, to time.Time) []ScheduleProblem {
	zone, err := expression.Zone(s.Zone)
	if err != nil {
		return nil // Problems says so
	}
	var found []ScheduleProblem
	for i, text := range s.Cron {
		line, err := clocks.Parse(text)
		if err != nil {
			continue
		}
		var told [2]bool // of moves forward, and back
		for _, move := range clocks.Transitions(zone, from, to) {
			what := line.At(move)
			if at := map[bool]int{true: 1}[move.Forward()]; what != "" && !told[at] {
				told[at] = true
				found = append(found, ScheduleProblem{Word: "cron", Index: i, Code: codeCronClocks, Warning: true, Message: fmt.Sprintf(
					"%q: on %s the clocks of %s %s", shorten(text), move.From().Format(time.DateOnly), s.Zone, what)})
			}
		}
	}
	return found
}

// unevenProblems says which steps are none: they begin anew with each hour or day.
func unevenProblems(i int, text string) []ScheduleProblem {
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return nil
	}
	var found []ScheduleProblem
	for at, one := range []struct {
		of   int
		unit string
	}{{60, "minute"}, {24, "hour"}} {
		n, isStep := strings.CutPrefix(fields[at], "*/")
		step, err := strconv.Atoi(n)
		if !isStep || err != nil || step < 1 || one.of%step == 0 {
			continue
		}
		last := (one.of - 1) / step * step
		every, over := strconv.Itoa(step)+one.unit[:1], map[string]string{"minute": "hour", "hour": "day"}[one.unit]
		found = append(found, ScheduleProblem{Word: "cron", Index: i, Code: codeCronStep, Warning: true, Message: fmt.Sprintf(
			"%q begins anew with each %s: behind %s %d the next one is %s 0, %s later; \"every\": %s keeps equal steps",
			shorten(text), over, one.unit, last, one.unit, countOf(one.of-last, one.unit), every)})
	}
	return found
}

func countOf(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// Moment reads a date, a date with a time, or a time with its offset from UTC; what
// names no offset is meant in zone. No text is the zero time.
func Moment(text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time, expected such as 2026-01-31, 2026-01-31 08:00 or 2026-01-31T08:00:00Z", shorten(text))
}

// shorthands are the words that stand for a line of cron.
var shorthands = regexp.MustCompile(`^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$`)

// cronField is what Temporal and the parser of checkCron read alike.
var cronField = regexp.MustCompile(`^(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?(,(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?)*$`)

const cronForm = "expected minute, hour, day of the month, month and day of the week, such as \"0 3 * * 1-5\""

// checkCron reads a line of cron as far as to know that Temporal can.
func checkCron(text string) error {
	const most = 200
	switch {
	case len(text) > most:
		return fmt.Errorf("it has %d bytes, more than %d", len(text), most)
	case strings.HasPrefix(text, "@every"):
		return errors.New(`what comes in equal steps is "every"`)
	case strings.Contains(text, "TZ="):
		return errors.New(`the time zone is "zone"`)
	case shorthands.MatchString(text):
		return nil
	}
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return fmt.Errorf("it has %d fields, %s", len(fields), cronForm)
	}
	for _, field := range fields {
		if !cronField.MatchString(field) {
			return fmt.Errorf("the field %q has something else than numbers, names, ranges and steps, such as 1-5, mon, */15 or 8,12", shorten(field))
		}
	}
	read, err := cron.ParseStandard(text)
	if err != nil {
		return errors.New(lowerFirst(source.Cut(err.Error(), most)))
	}
	if !bothDays(text) && read.Next(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return errors.New("no month has such a day")
	}
	return nil
}

// bothDays reports whether a line names days of the month and days of the week.
func bothDays(text string) bool {
	fields := strings.Fields(text)
	return len(fields) == 5 && !strings.HasPrefix(fields[2], "*") && !strings.HasPrefix(fields[4], "*")
}

func lowerFirst(text string) string {
	if text == "" {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}

var scheduleSection = sectionOf(section{name: "schedule", prefix: "schedule."}, []keyOf[Schedule]{
	accept(key{name: "cron", doc: "times by the calendar: minute, hour, day of the month, month, day of the week; or a list of such"},
		as(WordNames, func(d *decoder, w written, s *Schedule) { d.cron(w.node, s) })),
	accept(key{name: "every", doc: "in place of `cron`: the time between two runs, in whole seconds"},
		asInterval(func(s *Schedule, v time.Duration) { s.Every = v })),
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
