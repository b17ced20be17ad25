package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"reprise/interpreter/playbook"
)

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
	for _, line := range times.Cron {
		parts = append(parts, cronInWords(line))
	}
	if len(parts) == 0 {
		return "never"
	}
	return strings.Join(parts, ", ")
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
	if len(fields) == 1 {
		return strings.TrimPrefix(fields[0], "@")
	}
	if len(fields) != 5 || fields[3] != "*" {
		return "cron " + line
	}
	minute, hour, day, weekday := fields[0], fields[1], fields[2], fields[4]
	everyDay := day == "*" && weekday == "*"
	step := eachStep.FindStringSubmatch(minute)
	switch {
	case minute == "*" && hour == "*" && everyDay:
		return "every minute"
	case step != nil && hour == "*" && everyDay:
		return "every " + step[1] + " minutes"
	case aNumber.MatchString(minute) && hour == "*" && everyDay:
		return fmt.Sprintf("hourly at :%02s", minute)
	case !aNumber.MatchString(minute) || !aNumber.MatchString(hour):
		return "cron " + line
	}
	at := clockText(hour, minute)
	switch {
	case everyDay:
		return "daily at " + at
	case day == "*" && someDays.MatchString(weekday):
		return namedDays(weekday) + " at " + at
	case weekday == "*" && aNumber.MatchString(day):
		return "monthly on day " + day + " at " + at
	}
	return "cron " + line
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
