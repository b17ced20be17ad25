package ratelimit

import (
	"iter"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// epochFloor is where a reset stops being a number of seconds from now and
// becomes a point in time.
const epochFloor = 1e9

// RetryAfter reads how long a response asks its caller to wait: Retry-After in
// seconds or as an HTTP date (RFC 9110, section 10.2.3), else, with a status
// that servers refuse too many requests with, when a limit that is used up is
// reset. A time in the past is 0. Header names are lower case. The second
// result is false when nothing usable is there: garbage is not an instruction.
// received is when the response came, by the clock of this machine.
func RetryAfter(headers map[string]string, status int, received time.Time) (time.Duration, bool) {
	now := answered(headers, received)
	if wait, ok := retryAfterValue(headers["retry-after"], now); ok {
		return wait, true
	}
	switch status {
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		reset, ok := nextReset(headers, now)
		return reset.wait, ok
	}
	return 0, false
}

// answered is the time at which a response came, by the clock of who made it: the
// points in time that it names are by that clock too, which may be another one
// than that of this machine. Date says when it was made, Age for how long a cache
// has had it since (RFC 9110, section 6.6.1; RFC 9111, section 5.1).
func answered(headers map[string]string, received time.Time) time.Time {
	made, err := http.ParseTime(strings.TrimSpace(headers["date"]))
	if err != nil {
		return received
	}
	age, _ := parseSeconds(strings.TrimSpace(headers["age"]))
	return made.Add(Seconds(age))
}

// Limited reports whether a response says that it was refused because a limit is
// used up, whatever its status: by Retry-After, or by a remaining count of 0
// with a reset.
func Limited(headers map[string]string) bool {
	if _, ok := retryAfterValue(headers["retry-after"], time.Time{}); ok {
		return true
	}
	reset, ok := nextReset(headers, time.Time{})
	return ok && reset.spent
}

func retryAfterValue(text string, now time.Time) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	if seconds, ok := parseSeconds(text); ok {
		return Seconds(seconds), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return Seconds(at.Sub(now).Seconds()), true
}

// reset is when a limit begins anew. spent says that it is used up; else the
// response does not say.
type reset struct {
	wait  time.Duration
	spent bool
}

// nextReset reads X-Limit-Reset, Limit-Reset of the first drafts of the
// IETF, and Limit of the later ones. A limit of which something remains is
// not why a request was refused.
func nextReset(headers map[string]string, now time.Time) (reset, bool) {
	for _, prefix := range []string{"x-ratelimit-", "ratelimit-"} {
		seconds, ok := parseSeconds(strings.TrimSpace(headers[prefix+"reset"]))
		if !ok {
			continue
		}
		left, known := parseSeconds(strings.TrimSpace(headers[prefix+"remaining"]))
		if known && left > 0 {
			continue
		}
		return reset{wait: untilReset(seconds, now), spent: known}, true
	}
	return rateLimitField(headers["ratelimit"], headers["ratelimit-policy"], now)
}

func untilReset(seconds float64, now time.Time) time.Duration {
	if seconds > epochFloor {
		seconds -= float64(now.UnixNano()) / float64(time.Second)
	}
	return Seconds(seconds)
}

// rateLimitField reads Limit: `"default";r=0;t=30`, several of them, or
// `limit=10, remaining=0, reset=30` of draft 07. Where a limit that is used up
// does not say when, it is after the window w of its policy. Of several limits
// the one that takes longest counts.
func rateLimitField(field, policy string, now time.Time) (found reset, ok bool) {
	for name, item := range rateLimitItems(field) {
		left, known := item["r"]
		seconds, timed := item["t"]
		if !timed && known {
			seconds, timed = windowOf(name, policy)
		}
		if !timed || known && left > 0 || ok && found.spent && !known {
			continue
		}
		wait := untilReset(seconds, now)
		if !ok || known && !found.spent || wait > found.wait {
			found, ok = reset{wait: wait, spent: known}, true
		}
	}
	return found, ok
}

// windowOf is the length in seconds of the window of a policy.
func windowOf(name, policies string) (float64, bool) {
	for other, item := range rateLimitItems(policies) {
		if window, ok := item["w"]; ok && other == name {
			return window, true
		}
	}
	return 0, false
}

// rateLimitItems gives the items of a field with their parameters. The members
// of draft 07, which are one item without a name, have the letters of the later
// ones.
func rateLimitItems(field string) iter.Seq2[string, map[string]float64] {
	return func(yield func(string, map[string]float64) bool) {
		older := map[string]float64{}
		for _, text := range splitUnquoted(field, ',') {
			name, item := "", map[string]float64{}
			for i, part := range splitUnquoted(text, ';') {
				part = strings.TrimSpace(part)
				key, value, isPair := strings.Cut(part, "=")
				key = strings.ToLower(strings.TrimSpace(key))
				switch number, ok := parseSeconds(strings.TrimSpace(value)); {
				case i == 0 && (!isPair || strings.HasPrefix(part, `"`)):
					name = part
				case ok && key == "remaining":
					older["r"] = number
				case ok && key == "reset":
					older["t"] = number
				case ok:
					item[key] = number
				}
			}
			if name != "" && !yield(name, item) {
				return
			}
		}
		if len(older) > 0 {
			yield("", older)
		}
	}
}

// splitUnquoted splits a text where a separator is outside of quotes.
func splitUnquoted(text string, separator byte) []string {
	var parts []string
	quoted, start := false, 0
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == separator && !quoted:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

func parseSeconds(text string) (float64, bool) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return 0, false
	}
	return seconds, true
}

// Seconds turns seconds into a duration that neither is negative nor overflows.
func Seconds(seconds float64) time.Duration {
	const longest = 365 * 24 * time.Hour
	switch {
	case seconds <= 0:
		return 0
	case seconds >= longest.Seconds():
		return longest
	}
	return time.Duration(seconds * float64(time.Second))
}
