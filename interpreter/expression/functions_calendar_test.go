package expression_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// evaluated gives the result of an expression, or the message of its error, as text.
func evaluated(t *testing.T, source string) string {
	t.Helper()
	program, problems := expression.Compile(source)
	if len(problems) > 0 {
		return problems[0].Message
	}
	now := time.Date(2026, time.March, 29, 0, 30, 15, 250e6, time.UTC)
	value, err := program.Eval(expression.MapScope{"zone": "Mars/Base", "amount": "1d2"}, expression.NewBudget(expression.DecisionLimits, now))
	if err != nil {
		return err.Error()
	}
	text, err := expression.Encode(value)
	require.NoError(t, err)
	return string(text)
}

// TestCalendar counts in days and months, over the changes of the clocks and the ends of
// months.
func TestCalendar(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		// Moments, whatever the zone.
		`add_time("2026-03-01", "-24h")`:             `"2026-02-28T00:00:00Z"`,
		`add_time("2026-03-01T12:00:00Z", "90s")`:    `"2026-03-01T12:01:30Z"`,
		`add_time("2026-03-01T12:00:00Z", "250ms")`:  `"2026-03-01T12:00:00.25Z"`,
		`add_time("2026-03-01T12:00:00Z", 90)`:       `"2026-03-01T12:01:30Z"`,
		`add_time("2026-03-01T12:00:00Z", -0.5)`:     `"2026-03-01T11:59:59.5Z"`,
		`add_time(now(), "1d12h")`:                   `"2026-03-30T12:30:15.25Z"`,
		`date(unix(now()) - duration('24h'))`:        `"2026-03-28T00:30:15.25Z"`,
		`date(unix("2026-03-29") - duration('24h'))`: `"2026-03-28T00:00:00Z"`,
		`add_time("2026-01-31", "1mo")`:              `"2026-02-28T00:00:00Z"`,
		`add_time("2024-02-29", "1y")`:               `"2025-02-28T00:00:00Z"`,
		`add_time("2026-03-31", "-1mo")`:             `"2026-02-28T00:00:00Z"`,
		`add_time("2026-01-31", "1mo1d")`:            `"2026-03-01T00:00:00Z"`,
		`add_time("2026-01-01", "2w")`:               `"2026-01-15T00:00:00Z"`,
		`add_time("2026-01-01", "-1y")`:              `"2025-01-01T00:00:00Z"`,
		// A day of 23 hours, and one of 25.
		`add_time("2026-03-28T11:00:00Z", "1d", "Europe/Berlin")`:     `"2026-03-29T10:00:00Z"`,
		`add_time("2026-03-28T11:00:00Z", "24h", "Europe/Berlin")`:    `"2026-03-29T11:00:00Z"`,
		`add_time("2026-10-24T10:00:00Z", "1d", "Europe/Berlin")`:     `"2026-10-25T11:00:00Z"`,
		`add_time("2026-03-28T01:30:00Z", "1d", "Europe/Berlin")`:     `"2026-03-29T01:30:00Z"`, // 02:30 is left out: 03:30
		`add_time("2026-10-24T00:30:00Z", "1d", "Europe/Berlin")`:     `"2026-10-25T00:30:00Z"`, // 02:30 twice: the first
		`add_time("2026-11-01T04:00:00Z", "-1d", "America/New_York")`: `"2026-10-31T04:00:00Z"`,

		`start_of("2026-03-29T22:30:15.5Z", "minute")`:                 `"2026-03-29T22:30:00Z"`,
		`start_of("2026-03-29T22:30:15Z", "hour", "Asia/Kolkata")`:     `"2026-03-29T22:30:00Z"`,
		`start_of("2026-03-29T22:30:15Z", "day")`:                      `"2026-03-29T00:00:00Z"`,
		`start_of("2026-03-29T22:30:15Z", "day", "Europe/Berlin")`:     `"2026-03-29T22:00:00Z"`,
		`start_of("2026-03-29T21:30:15Z", "day", "Europe/Berlin")`:     `"2026-03-28T23:00:00Z"`,
		`start_of("2026-03-29T22:30:15Z", "week")`:                     `"2026-03-23T00:00:00Z"`,
		`start_of("2026-03-30T00:00:00Z", "week")`:                     `"2026-03-30T00:00:00Z"`,
		`start_of("2026-03-31T22:30:15Z", "month", "Europe/Berlin")`:   `"2026-03-31T22:00:00Z"`,
		`start_of("2026-05-31", "quarter")`:                            `"2026-04-01T00:00:00Z"`,
		`start_of("2026-05-31", "year", "UTC")`:                        `"2026-01-01T00:00:00Z"`,
		`start_of("2018-11-04T12:00:00Z", "day", "America/Sao_Paulo")`: `"2018-11-04T03:00:00Z"`, // midnight is left out: 01:00

		`format_time("2026-03-29T22:30:15Z", "2006-01-02")`:                        `"2026-03-29"`,
		`format_time("2026-03-29T22:30:15Z", "02.01.2006 15:04", "Europe/Berlin")`: `"30.03.2026 00:30"`,
		`format_time(0, "2006")`:                                 `"1970"`,
		`format_time(0, "2006-01-02 15:04", "America/New_York")`: `"1969-12-31 19:00"`,

		`date("2026-10-26", nil, "America/New_York")`:                               `"2026-10-26T04:00:00Z"`,
		`date(" 2026-03-29 02:30:00", nil, "Europe/Berlin")`:                        `"2026-03-29T01:30:00Z"`, // left out: 03:30
		`date("2026-10-25 02:30", nil, "Europe/Berlin")`:                            `"2026-10-25T00:30:00Z"`, // twice: the first
		`date("2026-10-26T00:00:00-05:00", nil, "Europe/Berlin")`:                   `"2026-10-26T05:00:00Z"`,
		`date("Sun, 01 Mar 2026 12:00:00 GMT", nil, "Europe/Berlin")`:               `"2026-03-01T12:00:00Z"`,
		`date("26.10.2026 09:00", "02.01.2006 15:04", "Europe/Berlin")`:             `"2026-10-26T08:00:00Z"`,
		`date("26.10.2026 09:00 +0200", "02.01.2006 15:04 -0700", "Europe/Berlin")`: `"2026-10-26T07:00:00Z"`,
		`date(0, nil, "Europe/Berlin")`:                                             `"1970-01-01T00:00:00Z"`,
		`date("2026-10-26", nil)`:                                                   `"2026-10-26T00:00:00Z"`,
		`date("2026-10-26", nil, "UTC")`:                                            `"2026-10-26T00:00:00Z"`,

		`time_range("2026-03-28", "2026-03-30", "1d")`:                                      `["2026-03-28T00:00:00Z","2026-03-29T00:00:00Z"]`,
		`time_range("2026-03-28T23:00:00Z", "2026-03-30T22:00:00Z", "1d", "Europe/Berlin")`: `["2026-03-28T23:00:00Z","2026-03-29T22:00:00Z"]`,
		`time_range("2026-01-31", "2026-05-01", "1mo")`:                                     `["2026-01-31T00:00:00Z","2026-02-28T00:00:00Z","2026-03-31T00:00:00Z","2026-04-30T00:00:00Z"]`,
		`time_range("2026-01-01", "2026-01-01", "1h")`:                                      `[]`,
		`len(time_range("2026-01-01", "2026-01-02", "15m"))`:                                `96`,
		`len(time_range("0001-01-01", "9999-01-01", "2000000h"))`:                           `44`,
	} {
		require.Equal(t, want, evaluated(t, source), source)
	}
}

// TestCalendarRefused names what would work. What is written is refused before a run.
// It passes mostCalendar.
func TestCalendarRefused(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`duration("1d")`:                      `duration: cannot read the string "1d", because days, weeks, months and years differ in length; add it to a time with add_time(t, "1d"), or write hours: 24h`,
		`"2w" | duration`:                     `duration: cannot read the string "2w", because days`,
		`duration("1 day")`:                   `duration: cannot read the string "1 day"; expected a duration such as 500ms, 90s or 1h30m`,
		`add_time(now(), "1 day")`:            `add_time: "1 day" is not an amount of time; amounts are 90s, 30m, 24h, 7d, 2w, 1mo, 1y`,
		`add_time(now(), "1.5d")`:             `add_time: 1.5d is not a whole number of days, weeks, months or years`,
		`add_time(now(), "9000y")`:            `the year 11026 is not between 0 and 9999`,
		`add_time(now(), "4000001d")`:         `add_time: 4000001d is too long to be added to a time`,
		`add_time(now(), amount)`:             `add_time: "1d2" is not an amount of time`,
		`add_time(now(), nil)`:                `add_time needs an amount such as -24h, 7d or 1mo, not nil`,
		`add_time(nil, "1d")`:                 `add_time needs text such as 2006-01-02T15:04:05Z, or seconds since 1970, not nil`,
		`start_of(now(), "days")`:             `start_of: "days" is not a unit; the units are minute, hour, day, week, month, quarter, year`,
		`start_of(now(), "day", "Mars/Base")`: `start_of: there is no time zone "Mars/Base"; use a name such as Europe/Berlin or UTC`,
		`start_of(now(), "day", zone)`:        `start_of: there is no time zone "Mars/Base"`,
		`start_of(now(), "day", 2)`:           `start_of needs the name of a zone, such as Europe/Berlin, not a number`,
		`format_time(now(), "YYYY-MM-DD")`:    `format_time: the layout "YYYY-MM-DD" shows no time; write it with the parts of 2006-01-02T15:04:05`,
		`format_time(now(), "%Y-%m-%d")`:      `format_time: the layout "%Y-%m-%d" is one of strftime; write "2006-01-02"`,
		`format_time(now(), "%Y-%Q")`:         `format_time: the layout "%Y-%Q" shows no time`,
		`time_range(now(), now(), "-1d")`:     `time_range: the step must be positive, such`,
		`start_of("2026-10-26", "day", "America/New_York")`: `start_of: the string "2026-10-26" has no offset from UTC, so its day in America/New_York is uncertain; ` +
			`write date(…) around it if it is UTC, or date(…, nil, "America/New_York") if it is local time there`,
		`add_time("2026-10-26 09:00", "1d", "Europe/London")`:          `add_time: the string "2026-10-26 09:00" has no offset`,
		`format_time("2026-10-26T09:00:00", "15:04", "Europe/Berlin")`: `has no offset from UTC`,
		`time_range(now(), "2026-10-26", "1d", "Europe/Berlin")`:       `time_range: the string "2026-10-26" has no offset`,
		`date("9999-12-31 23:00", nil, "America/New_York")`:            `date: the year 10000 is not between 0 and 9999`,
		`date("2026-10-26", nil, "Mars/Base")`:                         `date: there is no time zone "Mars/Base"`,
		`time_range(now(), now(), 0)`:                                  `time_range: the step must be positive, such`,
		`len(time_range("1000-01-01", "9000-01-01", "1s"))`:            `the expressions of one decision may`,
		`timedelta(days)`: `"timedelta" is not a function here; write add_time(t, "-1d")`,
	} {
		require.Contains(t, evaluated(t, source), want, source)
	}
}

// TestBoundsOfFunctions passes maxSeconds, mostTimeText and mostDigits.
func TestBoundsOfFunctions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 101)
	for source, want := range map[string]string{
		`add_time(now(), 9000000001)`:        `add_time: 9000000001 seconds are too long to be added to a time`,
		`add_time(now(), 9000000001.5)`:      `seconds are too long to be added to a time`,
		`add_time(now(), "` + long + `d")`:   `is not an amount of time`,
		`format_time(now(), "` + long + `")`: `a layout has at most 100 characters`,
		`round(1.5, 1000000000)`:             `1.5`,
		`round(1.5, -1000000000)`:            `0`,
	} {
		require.Contains(t, evaluated(t, source), want, source)
	}
}
