package timetable

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"reprise/interpreter/playbook"
)

// DescribeSchedule describes the times of a schedule for people: "daily at 03:00, Europe/Berlin". Complicated cron lines are
// returned unchanged.
func DescribeSchedule(times *playbook.Schedule) string {
	var all []string
	for _, line := range times.Cron {
		all = append(all, lineWords(line))
	}
	if times.Every > 0 {
		text := "every " + playbook.DurationText(times.Every)
		if times.Offset > 0 {
			text += ", " + playbook.DurationText(times.Offset) + " later"
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return "never"
	}
	text := strings.Join(all, "; ")
	if len(times.Cron) > 0 && times.Zone != "" {
		text += ", " + times.Zone
	}
	return text
}

// named maps cron's names to lines.
var named = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *",
}

var (
	steps = regexp.MustCompile(`^\*/(\d{1,2})$`)
	days  = map[string]time.Weekday{
		"0": time.Sunday, "1": time.Monday, "2": time.Tuesday, "3": time.Wednesday, "4": time.Thursday, "5": time.Friday, "6": time.Saturday, "7": time.Sunday,
		"SUN": time.Sunday, "MON": time.Monday, "TUE": time.Tuesday, "WED": time.Wednesday, "THU": time.Thursday, "FRI": time.Friday, "SAT": time.Saturday,
	}
)

// everyText describes a field that matches every so many units: "every 5 minutes". It returns "" for others, and for steps that do
// not divide the whole: these begin again with each hour or day.
func everyText(field, unit string, whole int) string {
	n := 1
	if step := steps.FindStringSubmatch(field); step != nil {
		n, _ = strconv.Atoi(step[1]) // digits
	} else if field != "*" {
		return ""
	}
	switch {
	case n == 0 || whole%n != 0:
		return ""
	case n == 1:
		return "every " + unit
	}
	return fmt.Sprintf("every %d %ss", n, unit)
}

// lineWords describes a cron line in words.
func lineWords(line string) string {
	text := line
	if full := named[strings.ToLower(strings.TrimSpace(line))]; full != "" {
		text = full
	}
	fields := strings.Fields(text)
	const all = 5
	if len(fields) != all || fields[3] != "*" {
		return line
	}
	minute, hour, day, weekday := fields[0], fields[1], fields[2], fields[4]
	const minutes, hours = 60, 24
	if hour == "*" && day == "*" && weekday == "*" {
		if text := everyText(minute, "minute", minutes); text != "" {
			return text
		}
	}
	at, isNumber := strconv.Atoi(minute)
	if isNumber != nil {
		return line
	}
	if text := everyText(hour, "hour", hours); hour != "*" && text != "" && day == "*" && weekday == "*" {
		return fmt.Sprintf("%s at :%02d", text, at)
	}
	if hour == "*" && day == "*" && weekday == "*" {
		return fmt.Sprintf("hourly at :%02d", at)
	}
	of, isNumber := strconv.Atoi(hour)
	if isNumber != nil {
		return line
	}
	clock := fmt.Sprintf("%02d:%02d", of, at)
	switch on, isDay := days[strings.ToUpper(weekday)]; {
	case day == "*" && weekday == "*":
		return "daily at " + clock
	case day == "*" && isDay:
		return "weekly on " + on.String() + " at " + clock
	case day == "*" && (weekday == "1-5" || strings.EqualFold(weekday, "MON-FRI")):
		return "Monday to Friday at " + clock
	case weekday == "*":
		if n, err := strconv.Atoi(day); err == nil {
			return fmt.Sprintf("monthly on day %d at %s", n, clock)
		}
	}
	return line
}
