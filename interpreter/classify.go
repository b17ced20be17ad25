package interpreter

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ClassifyHTTP gives the class of a response status of 400 or more
// (language.md, section error classes): rate_limited for 429 and for 403 and
// 503 that carry Retry-After, retryable for 408, 425 and the other 5xx, final
// for the rest.
func ClassifyHTTP(status int, hasRetryAfter bool) string {
	switch {
	case status == http.StatusTooManyRequests:
		return ClassRateLimited
	case hasRetryAfter && (status == http.StatusForbidden || status == http.StatusServiceUnavailable):
		return ClassRateLimited
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500:
		return ClassRetryable
	}
	return ClassFinal
}

// retryableStates are the SQLSTATE classes that may pass when tried again:
// connection exceptions, transaction rollbacks, insufficient resources and
// operator intervention (PostgreSQL manual, appendix A).
var retryableStates = []string{"08", "40", "53", "57"}

// protocolViolation is 08P01: a statement that takes no parameters was given
// some. It stands in the connection class and never passes by itself.
const protocolViolation = "08P01"

// ClassifySQLState gives the class of an SQLSTATE code.
func ClassifySQLState(code string) string {
	if code == protocolViolation {
		return ClassFinal
	}
	for _, prefix := range retryableStates {
		if strings.HasPrefix(code, prefix) {
			return ClassRetryable
		}
	}
	return ClassFinal
}

// epochFloor is where X-RateLimit-Reset stops being a number of seconds from
// now and becomes a point in time.
const epochFloor = 1e9

// RetryAfter reads how long a response asks its caller to wait: Retry-After in
// seconds or as an HTTP date (RFC 9110, section 10.2.3), else, for a
// rate-limited response, X-RateLimit-Reset. A time in the past is 0. Header
// names are lower case. The second result is false when nothing usable is
// there: garbage is not an instruction.
func RetryAfter(headers map[string]string, status int, now time.Time) (time.Duration, bool) {
	if text, found := headers["retry-after"]; found {
		if wait, ok := retryAfterValue(strings.TrimSpace(text), now); ok {
			return wait, true
		}
	}
	if status != http.StatusTooManyRequests {
		return 0, false
	}
	text, found := headers["x-ratelimit-reset"]
	if !found {
		return 0, false
	}
	seconds, ok := parseSeconds(strings.TrimSpace(text))
	if !ok {
		return 0, false
	}
	if seconds > epochFloor {
		seconds -= float64(now.UnixNano()) / float64(time.Second)
	}
	return asWait(seconds), true
}

func retryAfterValue(text string, now time.Time) (time.Duration, bool) {
	if seconds, ok := parseSeconds(text); ok {
		return asWait(seconds), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return asWait(at.Sub(now).Seconds()), true
}

func parseSeconds(text string) (float64, bool) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return 0, false
	}
	return seconds, true
}

// asWait turns seconds into a duration that neither is negative nor overflows.
func asWait(seconds float64) time.Duration {
	const longest = 365 * 24 * time.Hour
	switch {
	case seconds <= 0:
		return 0
	case seconds >= longest.Seconds():
		return longest
	}
	return time.Duration(seconds * float64(time.Second))
}
