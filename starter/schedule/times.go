package schedule

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/starter/cli"
	"reprise/starter/wording"
)

// timeFlags are the flags for the times of a schedule.
type timeFlags struct {
	cron                            []string
	every, offset, jitter, catchUp  time.Duration
	zone, overlap, startsAt, endsAt string
	given                           func(flag string) bool
}

// flagOf maps each key of metadata.schedule to the flag that sets it.
var flagOf = map[string]string{
	"cron": "--cron", "every": "--every", "offset": "--offset", "zone": "--zone", "jitter": "--jitter", "overlap": "--overlap",
	"catch_up": "--catch-up-window", "start": "--start", "end": "--end",
}

var overlapChoices = strings.Join(playbook.Overlaps, ", ")

func (f *timeFlags) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVar(&f.cron, "cron", nil, `calendar times, such as "0 3 * * 1-5": minute, hour, day of month, month, day of week; repeatable`)
	flags.DurationVar(&f.every, "every", 0, "instead of --cron: the time between two runs, such as 1h")
	flags.DurationVar(&f.offset, "offset", 0, "shift of the times of --every, such as 15m")
	flags.StringVar(&f.zone, "zone", "", "time zone of --cron, --start and --end, such as Europe/Berlin; default: UTC")
	flags.DurationVar(&f.jitter, "jitter", 0, "delay each run by a random time up to this")
	flags.StringVar(&f.overlap, "overlap", "", "what happens if the previous run is still open: "+overlapChoices+"; default "+playbook.Overlaps[0])
	flags.DurationVar(&f.catchUp, "catch-up-window", 0, "after an outage of the server, start runs that were due at most this long ago; default: a year")
	flags.StringVar(&f.startsAt, "start", "", "start no run before this time, such as 2026-01-31 or 2026-01-31T08:00:00Z")
	flags.StringVar(&f.endsAt, "end", "", "start no run after this time")
	f.given = flags.Changed
}

// layOver returns a copy of base with the values of the flags.
func (f *timeFlags) layOver(base *playbook.Schedule) *playbook.Schedule {
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

// checkFlags rejects flags that are invalid whatever the playbook is.
func (f *timeFlags) checkFlags() error {
	for _, flag := range []struct {
		name  string
		given time.Duration
		least time.Duration
	}{
		{"every", f.every, 1}, {"offset", f.offset, 0}, {"jitter", f.jitter, 0}, {"catch-up-window", f.catchUp, 1},
	} {
		if f.given(flag.name) && flag.given < flag.least {
			return cli.UsageError("--%s %s is too short", flag.name, flag.given)
		}
	}
	if f.given("overlap") {
		return cli.CheckChoice("--overlap", f.overlap, playbook.Overlaps)
	}
	return nil
}

// checkTimes rejects impossible times, naming their flags, and warns about suspicious ones.
func checkTimes(streams cli.Streams, times *playbook.Schedule) error {
	var wrong []string
	now := time.Now()
	for _, problem := range append(check.ScheduleProblems(times, cli.KnownZone), check.ClockProblems(times, now, now.AddDate(1, 0, 0))...) {
		switch {
		case problem.Word == "":
			wrong = append(wrong, "when to run is missing: use --cron or --every, or add metadata.schedule to the playbook")
		case problem.Warning:
			streams.Notef("%s", terminal.PaperOf(streams.Err).PaintWarning("warning: "+flagOf[problem.Word]+" "+flagWords.Replace(problem.Message)))
		default:
			wrong = append(wrong, flagOf[problem.Word]+" "+flagWords.Replace(problem.Message))
		}
	}
	if len(wrong) > 0 {
		return cli.UsageError("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// flagWords replaces words of the language by the names of flags in a message.
var flagWords = func() *strings.Replacer {
	var pairs []string
	for word, flag := range flagOf {
		pairs = append(pairs, `"`+word+`"`, flag)
	}
	return strings.NewReplacer(pairs...)
}()

// timeLines returns the times of a schedule as lines of metadata.schedule.
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
	add("every", wording.ShortTime(times.Every))
	add("offset", wording.ShortTime(times.Offset))
	add("zone", times.Zone)
	add("jitter", wording.ShortTime(times.Jitter))
	add("overlap", times.Overlap)
	add("catch_up", wording.ShortTime(times.CatchUp))
	add("start", times.Start)
	add("end", times.End)
	return lines
}
