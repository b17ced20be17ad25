package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
)

// timeFlags say when a schedule runs.
type timeFlags struct {
	cron                            []string
	every, offset, jitter, catchUp  time.Duration
	zone, overlap, startsAt, endsAt string
	given                           func(flag string) bool
}

// flagOf are the flags of the words of metadata.schedule.
var flagOf = map[string]string{
	"cron": "--cron", "every": "--every", "offset": "--offset", "zone": "--zone", "jitter": "--jitter", "overlap": "--overlap",
	"catch_up": "--catch-up-window", "start": "--start", "end": "--end",
}

var overlapChoices = strings.Join(playbook.Overlaps, ", ")

func (f *timeFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVar(&f.cron, "cron", nil, `calendar times, such as "0 3 * * 1-5": minute, hour, day of month, month, day of week; repeatable`)
	flags.DurationVar(&f.every, "every", 0, "instead of --cron: the time between two runs, such as 1h")
	flags.DurationVar(&f.offset, "offset", 0, "shift of the times of --every, such as 15m")
	flags.StringVar(&f.zone, "zone", "", "time zone of --cron, --start and --end, such as Europe/Berlin; default: UTC")
	flags.DurationVar(&f.jitter, "jitter", 0, "delay each run by a random time up to this")
	flags.StringVar(&f.overlap, "overlap", "", "what happens if the previous run is still open: "+overlapChoices+"; default "+playbook.Overlaps[0])
	flags.DurationVar(&f.catchUp, "catch-up-window", 0, "how late a run may still start if the server was down at its time; default: a year")
	flags.StringVar(&f.startsAt, "start", "", "start no run before this time, such as 2026-01-31 or 2026-01-31T08:00:00Z")
	flags.StringVar(&f.endsAt, "end", "", "start no run after this time")
	f.given = flags.Changed
}

// over lays the flags over what a playbook or the schedule says, which stays as it is.
func (f *timeFlags) over(base *playbook.Schedule) *playbook.Schedule {
	merged := playbook.Schedule{}
	if base != nil {
		merged = *base
	}
	switch {
	case f.given("cron") && !f.given("every"):
		merged.Every, merged.Offset = 0, 0
	case f.given("every") && !f.given("cron"):
		merged.Cron = nil
	}
	if f.given("cron") {
		merged.Cron = f.cron
	}
	for _, flag := range []struct {
		name  string
		given time.Duration
		into  *time.Duration
	}{
		{"every", f.every, &merged.Every},
		{"offset", f.offset, &merged.Offset},
		{"jitter", f.jitter, &merged.Jitter},
		{"catch-up-window", f.catchUp, &merged.CatchUp},
	} {
		if f.given(flag.name) {
			*flag.into = flag.given
		}
	}
	for _, flag := range []struct {
		name, given string
		into        *string
	}{
		{"zone", f.zone, &merged.Zone},
		{"overlap", f.overlap, &merged.Overlap},
		{"start", f.startsAt, &merged.Start},
		{"end", f.endsAt, &merged.End},
	} {
		if f.given(flag.name) {
			*flag.into = flag.given
		}
	}
	return &merged
}

// check refuses flags that no playbook is needed for.
func (f *timeFlags) check() error {
	for _, flag := range []struct {
		name  string
		given time.Duration
		least time.Duration
	}{
		{"every", f.every, 1}, {"offset", f.offset, 0}, {"jitter", f.jitter, 0}, {"catch-up-window", f.catchUp, 1},
	} {
		if f.given(flag.name) && flag.given < flag.least {
			return usageError("--%s %s is too short", flag.name, flag.given)
		}
	}
	if f.given("overlap") {
		return choice("--overlap", f.overlap, playbook.Overlaps)
	}
	return nil
}

// checkTimes refuses times that make no sense, with the names of the flags; of what
// they mean it warns.
func (a *app) checkTimes(times *playbook.Schedule) error {
	var wrong []string
	now := time.Now()
	for _, problem := range append(check.ScheduleProblems(times, knownZone), check.ClockProblems(times, now, now.AddDate(1, 0, 0))...) {
		switch {
		case problem.Word == "":
			wrong = append(wrong, "when to run is missing: use --cron or --every, or add metadata.schedule to the playbook")
		case problem.Warning:
			a.notef("%s", terminal.PaperOf(a.Err).Warning("warning: "+flagOf[problem.Word]+" "+flagWords.Replace(problem.Message)))
		default:
			wrong = append(wrong, flagOf[problem.Word]+" "+flagWords.Replace(problem.Message))
		}
	}
	if len(wrong) > 0 {
		return usageError("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// flagWords says flags where a message names words of the language.
var flagWords = func() *strings.Replacer {
	var pairs []string
	for word, flag := range flagOf {
		pairs = append(pairs, `"`+word+`"`, flag)
	}
	return strings.NewReplacer(pairs...)
}()

// lines are settled times as metadata.schedule would write them.
func timeLines(times *playbook.Schedule) []string {
	var lines []string
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	for _, line := range times.Cron {
		add("cron", line)
	}
	add("every", shortTime(times.Every))
	add("offset", shortTime(times.Offset))
	add("zone", times.Zone)
	add("jitter", shortTime(times.Jitter))
	add("overlap", times.Overlap)
	add("catch_up", shortTime(times.CatchUp))
	add("start", times.Start)
	add("end", times.End)
	return lines
}

// shortTime is a duration without units that are 0; "" for none.
func shortTime(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return playbook.DurationText(d)
}

// timesInWords says when a schedule runs, without its zone.
func timesInWords(times *playbook.Schedule) string {
	var parts []string
	if times.Every > 0 {
		text := "every " + shortTime(times.Every)
		if times.Offset > 0 {
			text += " at +" + shortTime(times.Offset)
		}
		parts = append(parts, text)
	}
	parts = append(parts, lists.Map(times.Cron, cronInWords)...)
	return cmp.Or(strings.Join(parts, ", "), "never")
}

var (
	aNumber  = regexp.MustCompile(`^\d+$`)
	eachStep = regexp.MustCompile(`^\*/(\d+)$`)
	someDays = regexp.MustCompile(`^[0-9a-z,-]+$`)
)

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// cronInWords says the common lines of cron in words, and the others as they are.
func cronInWords(line string) string {
	fields := strings.Fields(strings.ToLower(line))
	words := ""
	switch {
	case len(fields) == 1:
		words = strings.TrimPrefix(fields[0], "@")
	case len(fields) == 5 && fields[3] == "*":
		words = cronLine{minute: fields[0], hour: fields[1], day: fields[2], weekday: fields[4]}.words()
	}
	return cmp.Or(words, "cron "+line)
}

// cronLine is a line of cron for every month.
type cronLine struct{ minute, hour, day, weekday string }

// words are "" for a line that is not a common one.
func (c cronLine) words() string {
	days := c.days()
	switch {
	case days == "daily" && c.hour == "*":
		return c.withinHour()
	case days != "" && aNumber.MatchString(c.minute) && aNumber.MatchString(c.hour):
		return days + " at " + clockText(c.hour, c.minute)
	}
	return ""
}

// days are the days that it names.
func (c cronLine) days() string {
	switch {
	case c.day == "*" && c.weekday == "*":
		return "daily"
	case c.day == "*" && someDays.MatchString(c.weekday):
		return namedDays(c.weekday)
	case c.weekday == "*" && aNumber.MatchString(c.day):
		return "monthly on day " + c.day
	}
	return ""
}

// withinHour are the minutes of every hour that it names.
func (c cronLine) withinHour() string {
	if c.minute == "*" {
		return "every minute"
	}
	if step := eachStep.FindStringSubmatch(c.minute); step != nil {
		if n, err := strconv.Atoi(step[1]); err == nil && n > 0 && 60%n == 0 {
			return "every " + terminal.Count(n, "minute")
		}
		return "" // it begins anew with each hour
	}
	if aNumber.MatchString(c.minute) {
		return fmt.Sprintf("hourly at :%02s", c.minute)
	}
	return ""
}

func clockText(hour, minute string) string {
	h, _ := strconv.Atoi(hour) // digits
	m, _ := strconv.Atoi(minute)
	return fmt.Sprintf("%02d:%02d", h, m)
}

// namedDays names the days of the week that numbers stand for.
func namedDays(field string) string {
	return regexp.MustCompile(`\d`).ReplaceAllStringFunc(field, func(digit string) string {
		if n := int(digit[0] - '0'); n < len(weekdays) {
			return weekdays[n]
		}
		return digit
	})
}
