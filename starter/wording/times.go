// Package wording describes times, schedules and cursors in words.
package wording

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// TimeInZone formats a time in a time zone, or in UTC if this machine does not know the zone.
func TimeInZone(at time.Time, zone string) string {
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	return at.In(location).Format("2006-01-02 15:04:05 MST")
}

// ShortTime formats a duration without units that are 0; "" for no duration.
func ShortTime(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return playbook.DurationText(d)
}

// TimesInWords describes when a schedule runs, without its time zone.
func TimesInWords(times *playbook.Schedule) string {
	var parts []string
	if times.Every > 0 {
		text := "every " + ShortTime(times.Every)
		if times.Offset > 0 {
			text += " at +" + ShortTime(times.Offset)
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

// cronInWords describes common cron lines in words, and returns others unchanged.
func cronInWords(line string) string {
	fields := strings.Fields(strings.ToLower(line))
	words := ""
	switch {
	case len(fields) == 1:
		words = strings.TrimPrefix(fields[0], "@")
	case len(fields) == 5 && fields[3] == "*":
		words = cronLine{minute: fields[0], hour: fields[1], day: fields[2], weekday: fields[4]}.lineWords()
	}
	return cmp.Or(words, "cron "+line)
}

// cronLine is a cron line without a month: it applies to every month.
type cronLine struct{ minute, hour, day, weekday string }

// lineWords describes a common line; "" for others.
func (c cronLine) lineWords() string {
	days := c.namedDays()
	switch {
	case days == "daily" && c.hour == "*":
		return c.withinHour()
	case days != "" && aNumber.MatchString(c.minute) && aNumber.MatchString(c.hour):
		return days + " at " + clockText(c.hour, c.minute)
	}
	return ""
}

// namedDays returns the days of the line in words; "" for uncommon ones.
func (c cronLine) namedDays() string {
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

// withinHour returns the minutes of a line for every hour, in words; "" for uncommon ones.
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

// namedDays replaces the numbers of weekdays by their names.
func namedDays(field string) string {
	return regexp.MustCompile(`\d`).ReplaceAllStringFunc(field, func(digit string) string {
		if n := int(digit[0] - '0'); n < len(weekdays) {
			return weekdays[n]
		}
		return digit
	})
}
