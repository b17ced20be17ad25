package ratelimit

import (
	"iter"
	"net/http"
	"strings"
	"time"
)

// RetryAfter returns how long a response asks its client to wait, false if it does not: according to Retry-After
// (RFC 9110, section 10.2.3) or, for a status with which servers reject too many requests, the headers with the
// reset time of an exhausted limit. A header with a wait of 0, such as a time in the past, is ignored. Header names
// are lower case; received is when the response arrived, by the clock of this machine.
func RetryAfter(headers map[string]string, status int, received time.Time) (time.Duration, bool) {
	now := AnsweredAt(headers, received)
	for requested := range requestedWaits(headers, status, now) {
		if requested.wait > 0 {
			return requested.wait, true
		}
	}
	return 0, false
}

// UnreadHeader describes a header with a wait in an unknown format; "" for none.
func UnreadHeader(headers map[string]string, status int) string {
	for requested := range requestedWaits(headers, status, time.Time{}) {
		if !requested.readable {
			return http.CanonicalHeaderKey(requested.header) + " is " + QuoteWait(requested.text) + ", expected " + WaitForms
		}
	}
	return ""
}

// IsLimited reports whether a response was rejected because a limit is exhausted, whatever its status: it has
// Retry-After, or a remaining count of 0 with a reset time.
func IsLimited(headers map[string]string) bool {
	for requested := range requestedWaits(headers, http.StatusTooManyRequests, time.Time{}) {
		if requested.readable && requested.spent {
			return true
		}
	}
	return false
}

// AnsweredAt returns the time of a response by the clock of its sender, which also applies to times in it and may
// differ from the clock of this machine. Date says when the response was made, Age how long caches have stored it
// since (RFC 9110, section 6.6.1; RFC 9111, section 5.1).
func AnsweredAt(headers map[string]string, received time.Time) time.Time {
	made, err := http.ParseTime(strings.TrimSpace(headers["date"]))
	if err != nil {
		return received
	}
	age, _ := parseNumber(headers["age"])
	return made.Add(ToDuration(age))
}

// requestedWait is the wait that one header requests.
type requestedWait struct {
	header, text string
	wait         time.Duration
	readable     bool
	spent        bool // the limit is known to be exhausted
}

// resetHeaders are pairs of headers: the remaining part of a limit, and its reset time.
var resetHeaders = []struct{ left, reset string }{
	{"", "retry-after-ms"},
	{"x-ratelimit-remaining", "x-ratelimit-reset"},
	{"x-rate-limit-remaining", "x-rate-limit-reset"}, // Okta, X
	{"x-ratelimit-remaining", "x-ratelimit-reset-after"},
	{"ratelimit-remaining", "ratelimit-reset"}, // the first drafts of the IETF
}

// requestedWaits iterates over the headers of a response that may request a wait, by precedence. A limit that is
// not exhausted is not the reason for a rejection.
func requestedWaits(headers map[string]string, status int, now time.Time) iter.Seq[requestedWait] {
	return func(yield func(requestedWait) bool) {
		if text := headers["retry-after"]; text != "" {
			wait, readable := parseWaits(text, now, time.Second)
			if !yield(requestedWait{header: "retry-after", text: text, wait: wait, readable: readable, spent: true}) {
				return
			}
		}
		switch status {
		case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		default:
			return
		}
		for _, header := range resetHeaders {
			if requested, ok := resetWait(headers, header.left, header.reset, now); ok && !yield(requested) {
				return
			}
		}
		if reset, ok := rateLimitField(headers["ratelimit"], headers["ratelimit-policy"], now); ok {
			yield(requestedWait{header: "ratelimit", wait: reset.wait, readable: true, spent: reset.spent})
		}
	}
}

func resetWait(headers map[string]string, leftIn, header string, now time.Time) (requestedWait, bool) {
	text := headers[header]
	left, known := parseNumber(headers[leftIn])
	if text == "" || known && left > 0 {
		return requestedWait{}, false
	}
	unit := time.Second
	if leftIn == "" {
		unit, known = time.Millisecond, true
	}
	wait, readable := parseWaits(text, now, unit)
	return requestedWait{header: header, text: text, wait: wait, readable: readable, spent: known}, true
}

// reset is the time at which a limit is renewed. spent says that it is known to be exhausted.
type reset struct {
	wait  time.Duration
	spent bool
}

// rateLimitField parses Limit: `"default";r=0;t=30`, several of them, or `limit=10, remaining=0, reset=30` of draft
// 07. If an exhausted limit has no reset time, that is after the window w of its policy. Of several limits, the
// longest wait counts.
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
		wait := numberedWait(seconds, now, time.Second)
		if !ok || known && !found.spent || wait > found.wait {
			found, ok = reset{wait: wait, spent: known}, true
		}
	}
	return found, ok
}

// windowOf returns the length in seconds of the window of a policy.
func windowOf(name, policies string) (float64, bool) {
	for other, item := range rateLimitItems(policies) {
		if window, ok := item["w"]; ok && other == name {
			return window, true
		}
	}
	return 0, false
}

// rateLimitItems iterates over the items of a field with their parameters. The members of draft 07 form one item
// without a name, and get the letters of later drafts.
func rateLimitItems(field string) iter.Seq2[string, map[string]float64] {
	return func(yield func(string, map[string]float64) bool) {
		older := map[string]float64{}
		for _, text := range splitUnquoted(field, ',') {
			name, item := "", map[string]float64{}
			for i, part := range splitUnquoted(text, ';') {
				part = strings.TrimSpace(part)
				key, value, isPair := strings.Cut(part, "=")
				key = strings.ToLower(strings.TrimSpace(key))
				switch number, ok := parseNumber(value); {
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

// splitUnquoted splits a text at separators outside of quotes.
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
