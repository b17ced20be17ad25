package timetable

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"reprise/internal/base/terminal"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// DescribeSchedule describes the times of a schedule with their zone: "daily at 03:00, Europe/Berlin".
func DescribeSchedule(times *playbook.Schedule) string {
	text := TimesInWords(times)
	if len(times.Cron) > 0 && times.Zone != "" {
		text += ", " + times.Zone
	}
	return text
}

// named maps cron's names to lines.
var named = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * sun", "@monthly": "0 0 1 * *",
}

// TimesInWords describes when a schedule runs, without its time zone.
func TimesInWords(times *playbook.Schedule) string {
	var parts []string
	if times.Every > 0 {
		text := "every " + playbook.DurationText(times.Every)
		if times.Offset > 0 {
			text += " at +" + playbook.DurationText(times.Offset)
		}
		parts = append(parts, text)
	}
	parts = append(parts, lists.Map(times.Cron, cronInWords)...)
	return cmp.Or(strings.Join(parts, "; "), "never")
}

var (
	aNumber  = regexp.MustCompile(`^\d+$`)
	eachStep = regexp.MustCompile(`^\*/(\d+)$`)
	someDays = regexp.MustCompile(`^[0-9a-z,-]+$`)
)

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// cronInWords describes common cron lines in words, and returns others unchanged.
func cronInWords(line string) string {
	text := strings.ToLower(strings.TrimSpace(line))
	fields := strings.Fields(cmp.Or(named[text], text))
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
	case days == "daily" && eachStep.MatchString(c.hour) && aNumber.MatchString(c.minute):
		return everyHours(eachStep.FindStringSubmatch(c.hour)[1], c.minute)
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
		switch n, err := strconv.Atoi(step[1]); {
		case err == nil && n == 1:
			return "every minute"
		case err == nil && n > 0 && 60%n == 0:
			return "every " + terminal.Count(n, "minute")
		}
		return "" // it begins anew with each hour
	}
	if aNumber.MatchString(c.minute) {
		return fmt.Sprintf("hourly at :%02s", c.minute)
	}
	return ""
}

// everyHours describes a line for every so many hours; "" if they do not divide a day, since they begin again with each.
func everyHours(hours, minute string) string {
	switch n, err := strconv.Atoi(hours); {
	case err != nil || n == 0 || 24%n != 0:
		return ""
	case n == 1:
		return fmt.Sprintf("hourly at :%02s", minute)
	default:
		return fmt.Sprintf("every %d hours at :%02s", n, minute)
	}
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
