package ratelimit

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A wait is given as seconds from now, or as a time since 1970 in seconds or milliseconds. Numbers from
// epochSeconds on are times in seconds, those from epochMilliseconds on times in milliseconds.
const (
	epochSeconds      = 1e9
	epochMilliseconds = 1e12
)

// WaitForms describes what ParseWait accepts, for messages.
const WaitForms = "seconds, a duration such as 90s, an HTTP date, an RFC 3339 time, or seconds or milliseconds since 1970"

// shownWait bounds the part of an unparsable wait that a message shows, in bytes.
const shownWait = 100

// QuoteWait returns an unparsable wait for messages.
func QuoteWait(text string) string {
	if len(text) <= shownWait {
		return strconv.Quote(text)
	}
	return strconv.Quote(strings.ToValidUTF8(text[:shownWait], "")) + "…"
}

// ParseWait parses a wait; WaitForms describes the formats. A negative wait and a time in the past give 0.
func ParseWait(text string, now time.Time) (time.Duration, bool) {
	return parseWait(text, now, time.Second)
}

// parseWaits parses the wait in a header, which may be several headers joined by commas: the longest readable one
// counts.
func parseWaits(text string, now time.Time, unit time.Duration) (longest time.Duration, readable bool) {
	if wait, ok := parseWait(text, now, unit); ok {
		return wait, true
	}
	parts := strings.Split(text, ",")
	for i, part := range parts {
		wait, ok := parseWait(part, now, unit)
		if !ok && i+1 < len(parts) {
			wait, ok = parseWait(part+","+parts[i+1], now, unit) // an HTTP date has a comma
		}
		if ok {
			longest, readable = max(longest, wait), true
		}
	}
	return longest, readable
}

func parseWait(text string, now time.Time, unit time.Duration) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	if number, ok := parseNumber(text); ok {
		return numberedWait(number, now, unit), true
	}
	if wait, err := time.ParseDuration(text); err == nil {
		return ToDuration(wait.Seconds()), true
	}
	at, err := http.ParseTime(text)
	for _, layout := range []string{time.RFC1123Z, time.RFC3339, "2006-01-02 15:04:05Z07:00"} {
		if err == nil {
			break
		}
		at, err = time.Parse(layout, text)
	}
	return ToDuration(at.Sub(now).Seconds()), err == nil
}

func numberedWait(number float64, now time.Time, unit time.Duration) time.Duration {
	switch sinceEpoch := float64(now.UnixNano()) / float64(time.Second); {
	case number > epochMilliseconds:
		return ToDuration(number/1000 - sinceEpoch)
	case number > epochSeconds && unit == time.Second:
		return ToDuration(number - sinceEpoch)
	}
	return ToDuration(number * unit.Seconds())
}

// parseNumber parses a decimal number, which may overflow to infinity.
func parseNumber(text string) (float64, bool) {
	number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if errors.Is(err, strconv.ErrRange) {
		return number, true
	}
	return number, err == nil && !math.IsNaN(number) && !math.IsInf(number, 0)
}

// ToDuration converts seconds to a duration; it is never negative and does not overflow.
func ToDuration(seconds float64) time.Duration {
	const longest = 365 * 24 * time.Hour
	switch {
	case seconds <= 0:
		return 0
	case seconds >= longest.Seconds():
		return longest
	}
	return time.Duration(seconds * float64(time.Second))
}
