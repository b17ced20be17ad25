package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/terminal"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// overlapPolicies are Temporal's, in the order of playbook.Overlaps.
var overlapPolicies = []enums.ScheduleOverlapPolicy{
	enums.SCHEDULE_OVERLAP_POLICY_SKIP, enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL,
	enums.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER, enums.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER, enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
}

// overlapPolicy is the policy of a word that is known; "" leaves it to the schedule.
func overlapPolicy(word string) enums.ScheduleOverlapPolicy {
	if at := slices.Index(playbook.Overlaps, word); at >= 0 {
		return overlapPolicies[at]
	}
	return enums.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED
}

func overlapWord(policy enums.ScheduleOverlapPolicy) string {
	if at := slices.Index(overlapPolicies, policy); at >= 0 {
		return playbook.Overlaps[at]
	}
	return playbook.Overlaps[0] // the server's default
}

// serverCatchUp is the server's default.
const serverCatchUp = 365 * 24 * time.Hour

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
	flags.StringArrayVar(&f.cron, "cron", nil, `times by the calendar, such as "0 3 * * 1-5": minute, hour, day, month, day of the week; repeatable`)
	flags.DurationVar(&f.every, "every", 0, "in place of --cron: the time between two runs, such as 1h")
	flags.DurationVar(&f.offset, "offset", 0, "moves the times of --every, such as 15m")
	flags.StringVar(&f.zone, "zone", "", "time zone of --cron, --start and --end, such as Europe/Berlin; default UTC")
	flags.DurationVar(&f.jitter, "jitter", 0, "put each run off by up to this, at random")
	flags.StringVar(&f.overlap, "overlap", "", "while the previous run is open: "+overlapChoices+"; default "+playbook.Overlaps[0])
	flags.DurationVar(&f.catchUp, "catch-up-window", 0, "how old a time may be that the server was away for; default a year")
	flags.StringVar(&f.startsAt, "start", "", "no run before this time, such as 2026-01-31 or 2026-01-31T08:00:00Z")
	flags.StringVar(&f.endsAt, "end", "", "no run after this time")
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
	for _, problem := range times.Problems(knownZone) {
		switch {
		case problem.Word == "":
			wrong = append(wrong, "nothing says when to run: give --cron or --every, or the playbook a metadata.schedule")
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

// settled is times as the server returns them: with the defaults, and moments in UTC.
// The times must have passed checkTimes.
func settled(times *playbook.Schedule) *playbook.Schedule {
	all := *times
	all.Words, all.Places = nil, nil
	all.Zone, all.Overlap = cmp.Or(all.Zone, "UTC"), cmp.Or(all.Overlap, playbook.Overlaps[0])
	all.CatchUp = cmp.Or(all.CatchUp, serverCatchUp)
	zone, err := time.LoadLocation(all.Zone)
	if err != nil {
		zone = time.UTC
	}
	for _, moment := range []*string{&all.Start, &all.End} {
		if at, err := playbook.Moment(*moment, zone); err == nil && !at.IsZero() {
			*moment = at.UTC().Format(time.RFC3339)
		}
	}
	return &all
}

// specOf is the server's spec of settled times. The text of each line of cron goes
// along as its comment: the server keeps what it means, and not how it was written.
func specOf(times *playbook.Schedule) client.ScheduleSpec {
	spec := client.ScheduleSpec{Jitter: times.Jitter, TimeZoneName: times.Zone}
	for _, line := range times.Cron {
		spec.CronExpressions = append(spec.CronExpressions, line+" # "+line)
	}
	if times.Every > 0 {
		spec.Intervals = []client.ScheduleIntervalSpec{{Every: times.Every, Offset: times.Offset}}
	}
	spec.StartAt, _ = playbook.Moment(times.Start, time.UTC) // settled
	spec.EndAt, _ = playbook.Moment(times.End, time.UTC)
	return spec
}

// timesOf reads the times of a schedule as the server returns them, settled.
func timesOf(schedule client.Schedule) *playbook.Schedule {
	times := &playbook.Schedule{}
	if spec := schedule.Spec; spec != nil {
		times.Zone, times.Jitter = spec.TimeZoneName, spec.Jitter
		for _, calendar := range spec.Calendars {
			times.Cron = append(times.Cron, cmp.Or(calendar.Comment, cronOf(calendar)))
		}
		times.Cron = append(times.Cron, spec.CronExpressions...)
		for _, interval := range spec.Intervals {
			times.Every, times.Offset = interval.Every, interval.Offset
		}
		times.Start, times.End = momentText(spec.StartAt), momentText(spec.EndAt)
	}
	if policy := schedule.Policy; policy != nil {
		times.Overlap, times.CatchUp = overlapWord(policy.Overlap), policy.CatchupWindow
	}
	return settled(times)
}

func momentText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// cronOf is a calendar that somebody else has written, as a line of cron, without its
// seconds and years.
func cronOf(c client.ScheduleCalendarSpec) string {
	fields := []string{
		cronRanges(c.Minute, 0, 59), cronRanges(c.Hour, 0, 23), cronRanges(c.DayOfMonth, 1, 31), cronRanges(c.Month, 1, 12),
		cronRanges(c.DayOfWeek, 0, 6),
	}
	return strings.Join(fields, " ")
}

func cronRanges(ranges []client.ScheduleRange, least, most int) string {
	var parts []string
	for _, r := range ranges {
		end, step := max(r.End, r.Start), max(r.Step, 1)
		part := fmt.Sprintf("%d-%d", r.Start, end)
		switch {
		case r.Start == least && end == most:
			part = "*"
		case r.Start == end:
			part = fmt.Sprint(r.Start)
		}
		if step > 1 {
			part += fmt.Sprintf("/%d", step)
		}
		parts = append(parts, part)
	}
	return cmp.Or(strings.Join(parts, ","), "*")
}

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
		return "every " + step[1] + " minutes"
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
