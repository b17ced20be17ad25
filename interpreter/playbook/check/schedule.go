package check

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	clocks "reprise/interpreter/cron"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// checkSchedule reports a schedule that a server would not accept, or that would not do what it says.
func checkSchedule(c *checker) {
	s := c.pb.Schedule
	if s == nil {
		return
	}
	problems := ScheduleProblems(s, c.options.Zone)
	if !c.options.Now.IsZero() {
		problems = append(problems, ClockProblems(s, c.options.Now, c.options.Now.AddDate(1, 0, 0))...)
	}
	for _, problem := range problems {
		pos, name, severity := s.Words.Place(problem.Word, s.Pos), "schedule", source.Error
		if problem.Word != "" {
			name += "." + problem.Word
		}
		if problem.Word == "cron" && problem.Index < len(s.Places) {
			pos = s.Places[problem.Index]
		}
		if problem.Warning {
			severity = source.Warning
		}
		c.AddProblem(severity, pos, problem.Code, name+" "+problem.Message)
	}
}

// The bounds of a schedule. Temporal supports no shorter interval between two runs, and no shorter catch-up period.
// Runs more often than shortEvery are rarely intended: each costs a start and leaves a history.
const (
	leastEvery   = time.Second
	shortEvery   = 10 * time.Second
	leastCatchUp = 10 * time.Second
	// maxCron bounds the lines of schedule.cron: each becomes calendars in the schedule, which Temporal evaluates
	// for each of its times.
	maxCron = 100
)

// ScheduleProblem is a problem of a schedule from any source.
type ScheduleProblem struct {
	Word    string // of the section schedule; "" for the schedule as a whole
	Index   int    // index in Cron
	Code    string
	Message string // follows the name of the word
	Warning bool
}

// ScheduleProblems returns the problems of a schedule. zone returns an error for names that are not time zones; nil
// accepts all.
func ScheduleProblems(s *playbook.Schedule, zone func(string) error) []ScheduleProblem {
	return slices.Concat(timesProblems(s), offsetProblems(s), catchUpProblems(s), zoneProblems(s, zone), cronProblems(s), momentProblems(s))
}

// scheduleProblem returns a single problem of a word.
func scheduleProblem(word, code, format string, args ...any) []ScheduleProblem {
	return []ScheduleProblem{{Word: word, Code: code, Message: fmt.Sprintf(format, args...)}}
}

func timesProblems(s *playbook.Schedule) []ScheduleProblem {
	switch {
	case len(s.Cron) == 0 && s.Every == 0:
		return scheduleProblem("", playbook.CodeMissingKey, "has no times: it needs \"cron\" or \"every\"")
	case len(s.Cron) > 0 && s.Every > 0:
		return scheduleProblem("every", playbook.CodeConflict, "cannot be combined with \"cron\": use either calendar times or equal intervals")
	case s.Every > 0 && (s.Every < leastEvery || s.Every%time.Second != 0):
		return scheduleProblem("every", playbook.CodeBounds, "must be whole seconds, not %s", s.Every)
	case s.Every > 0 && s.Every < shortEvery:
		return []ScheduleProblem{{Word: "every", Code: codeShortInterval, Warning: true, Message: fmt.Sprintf(
			"starts a run every %s, %d a day; to wait for something new, use one run with a policy that polls",
			s.Every, 24*time.Hour/s.Every)}}
	}
	return nil
}

func offsetProblems(s *playbook.Schedule) []ScheduleProblem {
	switch {
	case s.Offset > 0 && s.Every == 0:
		return scheduleProblem("offset", playbook.CodeMissingKey, "needs \"every\", whose times it shifts")
	case s.Offset%time.Second != 0:
		return scheduleProblem("offset", playbook.CodeBounds, "must be whole seconds, not %s", s.Offset)
	case s.Offset > 0 && s.Offset >= s.Every:
		return scheduleProblem("offset", playbook.CodeBounds, "must be less than \"every\", which is %s, not %s", s.Every, s.Offset)
	}
	return nil
}

func catchUpProblems(s *playbook.Schedule) []ScheduleProblem {
	if s.CatchUp > 0 && s.CatchUp < leastCatchUp {
		return scheduleProblem("catch_up", playbook.CodeBounds, "must be at least %s, not %s", leastCatchUp, s.CatchUp)
	}
	return nil
}

func zoneProblems(s *playbook.Schedule, known func(string) error) []ScheduleProblem {
	if s.Zone != "" && known != nil && known(s.Zone) != nil {
		return scheduleProblem("zone", playbook.CodeWrongValue, "%q is not a time zone, such as Europe/Berlin or UTC", playbook.ShortenText(s.Zone))
	}
	return nil
}

func cronProblems(s *playbook.Schedule) []ScheduleProblem {
	var found []ScheduleProblem
	if len(s.Cron) > maxCron {
		return scheduleProblem("cron", playbook.CodeTooLarge, "has %d entries; at most %d are read", len(s.Cron), maxCron)
	}
	for i, text := range s.Cron {
		if err := checkCron(text); err != nil {
			found = append(found, ScheduleProblem{
				Word: "cron", Index: i, Code: codeCron, Message: fmt.Sprintf("%q is not a valid schedule: %v", playbook.ShortenText(text), err),
			})
			continue
		}
		found = append(found, unevenProblems(i, text)...)
		if bothDays(text) {
			found = append(found, ScheduleProblem{Word: "cron", Index: i, Code: codeCronDays, Warning: true, Message: fmt.Sprintf(
				"%q names both days of the month and days of the week: here both must match, while most other programs accept either", playbook.ShortenText(text))})
		}
	}
	return found
}

func momentProblems(s *playbook.Schedule) []ScheduleProblem {
	var found []ScheduleProblem
	for _, one := range []struct{ word, text string }{{"start", s.Start}, {"end", s.End}} {
		if _, err := playbook.ParseMoment(one.text, time.UTC); err != nil {
			found = append(found, ScheduleProblem{Word: one.word, Code: playbook.CodeWrongValue, Message: err.Error()})
		}
	}
	if len(found) > 0 || s.Start == "" || s.End == "" {
		return found
	}
	start, _ := playbook.ParseMoment(s.Start, time.UTC) // already checked
	end, _ := playbook.ParseMoment(s.End, time.UTC)
	if !end.After(start) {
		return scheduleProblem("end", playbook.CodeBounds, "must be after \"start\", which is %s, not %s", s.Start, s.End)
	}
	return nil
}

// ClockProblems describes what happens to times of a schedule when the zone's clocks change, within an interval:
// for each line, the first time that is skipped and the first that is repeated.
func ClockProblems(s *playbook.Schedule, from, to time.Time) []ScheduleProblem {
	zone, err := expression.LoadZone(s.Zone)
	if err != nil {
		return nil // the other problems include that
	}
	var found []ScheduleProblem
	for i, text := range s.Cron {
		line, err := clocks.Parse(text)
		if err != nil {
			continue
		}
		var told [2]bool // of transitions forward, and back
		for _, move := range clocks.Transitions(zone, from, to) {
			what := line.DescribeEffect(move)
			if at := map[bool]int{true: 1}[move.SkipsTimes()]; what != "" && !told[at] {
				told[at] = true
				found = append(found, ScheduleProblem{Word: "cron", Index: i, Code: codeCronClocks, Warning: true, Message: fmt.Sprintf(
					"%q: on %s the clocks of %s %s", playbook.ShortenText(text), move.LocalStart().Format(time.DateOnly), s.Zone, what)})
			}
		}
	}
	return found
}

// unevenProblems warns about steps in cron fields that restart with each hour or day and so are uneven.
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
			"%q starts over with each %s: after %s %d the next run is at %s 0, %s later; for equal intervals, use every: %s",
			playbook.ShortenText(text), over, one.unit, last, one.unit, countText(one.of-last, one.unit), every)})
	}
	return found
}

func countText(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// shorthands matches words for whole lines of cron.
var shorthands = regexp.MustCompile(`^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$`)

// cronField matches fields that Temporal and checkCron interpret in the same way.
var cronField = regexp.MustCompile(`^(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?(,(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?)*$`)

const cronForm = "expected minute, hour, day of month, month and day of week, such as \"0 3 * * 1-5\""

// checkCron returns an error for a line of cron that Temporal cannot parse.
func checkCron(text string) error {
	const most = 200
	switch {
	case len(text) > most:
		return fmt.Errorf("it has %d bytes, more than %d", len(text), most)
	case strings.HasPrefix(text, "@every"):
		return errors.New(`for equal intervals, use "every"`)
	case strings.Contains(text, "TZ="):
		return errors.New(`set the time zone in "zone"`)
	case shorthands.MatchString(text):
		return nil
	}
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return fmt.Errorf("it has %d fields, %s", len(fields), cronForm)
	}
	for _, field := range fields {
		if !cronField.MatchString(field) {
			return fmt.Errorf("the field %q may contain only numbers, names, ranges and steps, such as 1-5, mon, */15 or 8,12", playbook.ShortenText(field))
		}
	}
	read, err := cron.ParseStandard(text)
	if err != nil {
		return errors.New(source.CutText(err.Error(), most))
	}
	if !bothDays(text) && read.Next(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return errors.New("no month has this day")
	}
	return nil
}

// bothDays reports whether a line names both days of the month and days of the week.
func bothDays(text string) bool {
	fields := strings.Fields(text)
	return len(fields) == 5 && !strings.HasPrefix(fields[2], "*") && !strings.HasPrefix(fields[4], "*")
}
