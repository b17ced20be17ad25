package interpreter_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/ratelimit"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const none = time.Duration(-1)
	epoch := "1767323105" // 60 s after now
	for _, row := range []struct {
		name    string
		status  int
		headers map[string]string
		want    time.Duration
	}{
		{"nothing", 429, nil, none},
		{"seconds", 429, map[string]string{"retry-after": "3"}, 3 * time.Second},
		{"spaces", 429, map[string]string{"retry-after": " 3 "}, 3 * time.Second},
		{"zero", 503, map[string]string{"retry-after": "0"}, none},
		{"fractions, as some send them", 429, map[string]string{"retry-after": "1.5"}, 1500 * time.Millisecond},
		{"negative is past", 429, map[string]string{"retry-after": "-5"}, none},
		{"date", 429, map[string]string{"retry-after": "Fri, 02 Jan 2026 03:05:05 GMT"}, time.Minute},
		{"date in the form of RFC 850", 429, map[string]string{"retry-after": "Friday, 02-Jan-26 03:05:05 GMT"}, time.Minute},
		{"date in the form of asctime", 429, map[string]string{"retry-after": "Fri Jan  2 03:05:05 2026"}, time.Minute},
		{"past date", 503, map[string]string{"retry-after": "Thu, 01 Jan 2026 00:00:00 GMT"}, none},
		{"far date", 503, map[string]string{"retry-after": "Fri, 02 Jan 2326 03:04:05 GMT"}, 365 * 24 * time.Hour},
		{"absurd", 429, map[string]string{"retry-after": "99999999999999999999"}, 365 * 24 * time.Hour},
		{"beyond numbers", 429, map[string]string{"retry-after": "1e999"}, 365 * 24 * time.Hour},
		{"since 1970", 429, map[string]string{"retry-after": epoch}, time.Minute},
		{"milliseconds since 1970", 429, map[string]string{"retry-after": epoch + "250"}, time.Minute + 250*time.Millisecond},
		{"RFC 3339", 503, map[string]string{"retry-after": "2026-01-02T04:05:05+01:00"}, time.Minute},
		{"RFC 3339 with a space", 503, map[string]string{"retry-after": "2026-01-02 03:05:05.5Z"}, time.Minute + 500*time.Millisecond},
		{"a date with an offset", 503, map[string]string{"retry-after": "Fri, 02 Jan 2026 04:05:05 +0100"}, time.Minute},
		{"a time without a zone", 503, map[string]string{"retry-after": "2026-01-02T04:05:05"}, none},
		{"a duration", 429, map[string]string{"retry-after": "1m30s"}, 90 * time.Second},
		{"two headers", 429, map[string]string{"retry-after": "3, 7"}, 7 * time.Second},
		{"two headers, of which one cannot be read", 429, map[string]string{"retry-after": "soon, 7"}, 7 * time.Second},
		{"two headers with dates", 429, map[string]string{"retry-after": "Fri, 02 Jan 2026 03:05:05 GMT, Friday, 02-Jan-26 03:06:05 GMT"}, 2 * time.Minute},
		{"nothing leaves it to a reset", 429, map[string]string{"retry-after": "0", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "60"}, time.Minute},
		{"a reset that is over leaves it to the next", 429, map[string]string{"x-ratelimit-reset": "1500000000", "ratelimit": `"a";r=0;t=9`}, 9 * time.Second},
		{"Retry-After-Ms", 429, map[string]string{"retry-after-ms": "1500"}, 1500 * time.Millisecond},
		{"Retry-After-Ms since 1970", 429, map[string]string{"retry-after-ms": epoch + "000"}, time.Minute},
		{"Retry-After-Ms of another status", 500, map[string]string{"retry-after-ms": "1500"}, none},
		{"Retry-After goes before Retry-After-Ms", 429, map[string]string{"retry-after": "2", "retry-after-ms": "1500"}, 2 * time.Second},
		{"Okta and X", 429, map[string]string{"x-rate-limit-remaining": "0", "x-rate-limit-reset": epoch}, time.Minute},
		{"Okta and X, with something left", 429, map[string]string{"x-rate-limit-remaining": "9", "x-rate-limit-reset": epoch}, none},
		{"Discord", 429, map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "1.337"}, 1337 * time.Millisecond},
		{"Discord, with something left", 429, map[string]string{"x-ratelimit-remaining": "2", "x-ratelimit-reset-after": "1.337"}, none},
		{"reset in milliseconds", 429, map[string]string{"x-ratelimit-reset": epoch + "000"}, time.Minute},
		{"reset with a fraction", 429, map[string]string{"x-ratelimit-reset": epoch + ".5"}, time.Minute + 500*time.Millisecond},
		{"reset as RFC 3339", 429, map[string]string{"x-ratelimit-reset": "2026-01-02T03:05:05Z"}, time.Minute},
		{"reset as an HTTP date", 429, map[string]string{"ratelimit-reset": "Fri, 02 Jan 2026 03:05:05 GMT"}, time.Minute},
		{"garbage", 429, map[string]string{"retry-after": "soon"}, none},
		{"empty", 429, map[string]string{"retry-after": ""}, none},
		{"NaN", 429, map[string]string{"retry-after": "NaN"}, none},
		{"infinity", 429, map[string]string{"retry-after": "Inf"}, none},
		{"a 500 may say it too", 500, map[string]string{"retry-after": "7"}, 7 * time.Second},
		{"reset in seconds", 429, map[string]string{"x-ratelimit-reset": "60"}, time.Minute},
		{"reset as a time", 429, map[string]string{"x-ratelimit-reset": epoch}, time.Minute},
		{"reset in the past", 429, map[string]string{"x-ratelimit-reset": "1500000000"}, none},
		{"reset at the edge is seconds", 429, map[string]string{"x-ratelimit-reset": "1000000000"}, 365 * 24 * time.Hour},
		{"reset garbage", 429, map[string]string{"x-ratelimit-reset": "tomorrow"}, none},
		{"retry-after comes first", 429, map[string]string{"retry-after": "2", "x-ratelimit-reset": "60"}, 2 * time.Second},
		{"garbage leaves it to reset", 429, map[string]string{"retry-after": "soon", "x-ratelimit-reset": "60"}, time.Minute},
		{"reset of a response that is not about rates", 500, map[string]string{"x-ratelimit-reset": "60"}, none},
		{"github", 403, map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": epoch}, time.Minute},
		{"forbidden, with something left", 403, map[string]string{"x-ratelimit-remaining": "4999", "x-ratelimit-reset": epoch}, none},
		{"too many, with something left", 429, map[string]string{"x-ratelimit-remaining": "1", "x-ratelimit-reset": "60"}, none},
		{"retry-after, with something left", 403, map[string]string{"retry-after": "2", "x-ratelimit-remaining": "1", "x-ratelimit-reset": "60"}, 2 * time.Second},
		{"unavailable", 503, map[string]string{"x-ratelimit-reset": "60"}, time.Minute},
		{"a count that cannot be read is not told", 503, map[string]string{"x-ratelimit-remaining": "few", "x-ratelimit-reset": "60"}, time.Minute},
		{"a debt", 403, map[string]string{"x-ratelimit-remaining": "-3", "x-ratelimit-reset": "60"}, time.Minute},
		{"reset of another refusal", 401, map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": "60"}, none},
		{"the first drafts", 429, map[string]string{"ratelimit-remaining": "0", "ratelimit-reset": "60"}, time.Minute},
		{"what has something left leaves it to the others", 429, map[string]string{
			"x-ratelimit-remaining": "5", "x-ratelimit-reset": "60", "ratelimit": `"burst";r=0;t=4`,
		}, 4 * time.Second},
		{"draft 07", 429, map[string]string{"ratelimit": "limit=100, remaining=0, reset=30"}, 30 * time.Second},
		{"draft 07, with something left", 429, map[string]string{"ratelimit": "limit=100, remaining=7, reset=30"}, none},
		{"draft 07 with semicolons", 403, map[string]string{"ratelimit": "limit=100;remaining=0;reset=30"}, 30 * time.Second},
		{"structured", 429, map[string]string{"ratelimit": `"default";r=0;t=30`}, 30 * time.Second},
		{"structured, with spaces", 503, map[string]string{"ratelimit": ` "default" ; r=0 ; t=30 `}, 30 * time.Second},
		{"structured, with something left", 429, map[string]string{"ratelimit": `"default";r=3;t=30`}, none},
		{"structured without a count", 429, map[string]string{"ratelimit": `"default";t=30`}, 30 * time.Second},
		{"structured, another status", 500, map[string]string{"ratelimit": `"default";r=0;t=30`}, none},
		{"the limit that is used up", 429, map[string]string{"ratelimit": `"day";r=900;t=40000, "second";r=0;t=1`}, time.Second},
		{"of several the longest", 429, map[string]string{"ratelimit": `"second";r=0;t=1, "day";r=0;t=600, "hour";r=0;t=60`}, 10 * time.Minute},
		{"what is told goes first", 429, map[string]string{"ratelimit": `"a";t=600, "b";r=0;t=60, "c";t=700`}, time.Minute},
		{"names with separators", 429, map[string]string{"ratelimit": `"a,b;r=1;\"t=9";r=0;t=30`}, 30 * time.Second},
		{"no time but a window", 429, map[string]string{"ratelimit": `"hour";r=0`, "ratelimit-policy": `"day";q=9;w=86400, "hour";q=3;w=3600`}, time.Hour},
		{"no time and no window", 429, map[string]string{"ratelimit": `"hour";r=0`, "ratelimit-policy": `"day";q=9;w=86400`}, none},
		{"a policy alone says nothing", 429, map[string]string{"ratelimit-policy": `"day";q=9;w=86400`}, none},
		{"structured garbage", 429, map[string]string{"ratelimit": `;;,"`}, none},
		{"structured, not of our time", 429, map[string]string{"ratelimit": `"default";r=0;t=x`}, none},
		{"structured, in the past", 429, map[string]string{"ratelimit": `"default";r=0;t=-3`}, none},
	} {
		wait, told := ratelimit.RetryAfter(row.headers, row.status, tables.Started)
		require.Equal(t, row.want != none, told, row.name)
		if told {
			require.InDelta(t, row.want, wait, float64(time.Microsecond), row.name)
		}
	}
}

// TestRetryAfterByTheAnswersClock: a point in time counts from when the answer says
// that it was made, whatever the clock of this machine shows.
func TestRetryAfterByTheAnswersClock(t *testing.T) {
	t.Parallel()
	answered := tables.Started.Add(-17 * time.Hour) // their clock
	date, epoch := answered.Format(http.TimeFormat), answered.Add(8*time.Second).Unix()
	for name, row := range map[string]struct {
		headers map[string]string
		want    time.Duration
	}{
		"date":               {map[string]string{"retry-after": answered.Add(8 * time.Second).Format(http.TimeFormat)}, 8 * time.Second},
		"seconds":            {map[string]string{"retry-after": "8"}, 8 * time.Second},
		"reset as a time":    {map[string]string{"x-ratelimit-reset": strconv.FormatInt(epoch, 10)}, 8 * time.Second},
		"the first drafts":   {map[string]string{"ratelimit-reset": strconv.FormatInt(epoch, 10)}, 8 * time.Second},
		"draft 07":           {map[string]string{"ratelimit": fmt.Sprintf("limit=9, remaining=0, reset=%d", epoch)}, 8 * time.Second},
		"structured":         {map[string]string{"ratelimit": fmt.Sprintf(`"default";r=0;t=%d`, epoch)}, 8 * time.Second},
		"kept by a cache":    {map[string]string{"age": "3", "retry-after": answered.Add(8 * time.Second).Format(http.TimeFormat)}, 5 * time.Second},
		"an age of nonsense": {map[string]string{"age": "-3", "retry-after": answered.Add(8 * time.Second).Format(http.TimeFormat)}, 8 * time.Second},
	} {
		row.headers["date"] = date
		wait, told := ratelimit.RetryAfter(row.headers, http.StatusTooManyRequests, tables.Started)
		require.True(t, told, name)
		require.InDelta(t, row.want, wait, float64(time.Microsecond), name)
	}
	_, told := ratelimit.RetryAfter(map[string]string{
		"date": date, "retry-after": answered.Add(-time.Second).Format(http.TimeFormat),
	}, http.StatusTooManyRequests, tables.Started)
	require.False(t, told, "it is over by their clock")
	for _, unusable := range []string{"", "yesterday", date + ", " + date} {
		wait, told := ratelimit.RetryAfter(map[string]string{
			"date": unusable, "retry-after": tables.Started.Add(8 * time.Second).Format(http.TimeFormat),
		}, http.StatusTooManyRequests, tables.Started)
		require.True(t, told, unusable)
		require.Equal(t, 8*time.Second, wait, "without a date of theirs the clock here counts: %q", unusable)
	}
}

// TestUnreadWaits: a header that says how long to wait in another form is named.
func TestUnreadWaits(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		status  int
		headers map[string]string
		want    string // how it begins
	}{
		{"nothing", 429, nil, ""},
		{"all can be read", 429, map[string]string{"retry-after": "0", "x-ratelimit-reset": "-1"}, ""},
		{"a word", 500, map[string]string{"retry-after": "soon"}, `Retry-After is "soon", expected seconds, a duration`},
		{"a number of nothing", 429, map[string]string{"retry-after": "NaN"}, `Retry-After is "NaN", `},
		{"a reset", 429, map[string]string{"x-rate-limit-reset": "tomorrow"}, `X-Rate-Limit-Reset is "tomorrow", `},
		{"a reset of a status that is not about rates", 500, map[string]string{"x-rate-limit-reset": "tomorrow"}, ""},
		{"a reset with something left", 429, map[string]string{"ratelimit-remaining": "3", "ratelimit-reset": "tomorrow"}, ""},
		{"milliseconds", 503, map[string]string{"retry-after-ms": "1500 ms"}, `Retry-After-Ms is "1500 ms", `},
	} {
		got := ratelimit.UnreadHeader(row.headers, row.status)
		require.True(t, strings.HasPrefix(got, row.want) && (row.want != "") == (got != ""), "%s: %s", row.name, got)
	}
	require.Less(t, len(ratelimit.UnreadHeader(map[string]string{"retry-after": strings.Repeat("x", 1<<20)}, 429)), 400)
}

func TestLimited(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		headers map[string]string
		want    bool
	}{
		{"nothing", nil, false},
		{"retry-after", map[string]string{"retry-after": "3"}, true},
		{"garbage", map[string]string{"retry-after": "soon"}, false},
		{"a wait of nothing", map[string]string{"retry-after": "0"}, true},
		{"Okta and X", map[string]string{"x-rate-limit-remaining": "0", "x-rate-limit-reset": "60"}, true},
		{"Discord", map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "60"}, true},
		{"Retry-After-Ms", map[string]string{"retry-after-ms": "60"}, true},
		{"a reset that is over", map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": "-3"}, true},
		{"used up", map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": "60"}, true},
		{"used up without a reset", map[string]string{"x-ratelimit-remaining": "0"}, false},
		{"something left", map[string]string{"x-ratelimit-remaining": "1", "x-ratelimit-reset": "60"}, false},
		{"a reset alone, as forbidden pages have it", map[string]string{"x-ratelimit-reset": "60"}, false},
		{"the first drafts", map[string]string{"ratelimit-remaining": "0", "ratelimit-reset": "60"}, true},
		{"draft 07", map[string]string{"ratelimit": "limit=100, remaining=0, reset=30"}, true},
		{"structured", map[string]string{"ratelimit": `"default";r=0;t=30`}, true},
		{"structured without a count", map[string]string{"ratelimit": `"default";t=30`}, false},
	} {
		require.Equal(t, row.want, ratelimit.IsLimited(row.headers), row.name)
	}
}

func TestClassifyHTTP(t *testing.T) {
	t.Parallel()
	for status := 400; status < 600; status++ {
		for _, told := range []bool{false, true} {
			want := interpreter.ClassFinal
			switch {
			case status == 429, told && (status == 403 || status == 503):
				want = interpreter.ClassRateLimited
			case status == 408, status == 425, status >= 500:
				want = interpreter.ClassRetryable
			}
			require.Equal(t, want, interpreter.ClassifyHTTP(status, told), "%d %s, told %v", status, http.StatusText(status), told)
		}
	}
}

func TestClassifySQLState(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]interpreter.Class{
		"08000": interpreter.ClassRetryable, // connection_exception
		"08006": interpreter.ClassRetryable, // connection_failure
		"08P01": interpreter.ClassFinal,     // protocol_violation
		"40001": interpreter.ClassRetryable, // serialization_failure
		"40P01": interpreter.ClassRetryable, // deadlock_detected
		"53300": interpreter.ClassRetryable, // too_many_connections
		"25P03": interpreter.ClassRetryable, // idle_in_transaction_session_timeout
		"57P01": interpreter.ClassRetryable, // admin_shutdown
		"57014": interpreter.ClassRetryable, // query_canceled
		"23505": interpreter.ClassFinal,     // unique_violation
		"42601": interpreter.ClassFinal,     // syntax_error
		"22012": interpreter.ClassFinal,     // division_by_zero
		"28P01": interpreter.ClassFinal,     // invalid_password
		"":      interpreter.ClassFinal,
		"0":     interpreter.ClassFinal,
	} {
		require.Equal(t, want, interpreter.ClassifySQLState(state), state)
	}
}

// TestKindsThatEndACall lists which errors no policy is asked about, by playing
// each against a policy that takes everything.
func TestKindsThatEndACall(t *testing.T) {
	t.Parallel()
	final := []interpreter.Kind{
		interpreter.KindExpression, interpreter.KindPayloadTooLarge, interpreter.KindSink,
		interpreter.KindCancelled, interpreter.KindRepeat,
	}
	asked := []interpreter.Kind{
		interpreter.KindHTTP, interpreter.KindTimeout, interpreter.KindConnection, interpreter.KindTool,
		interpreter.KindExplicit, interpreter.KindWorkerLost,
	}
	book := tables.DecodeBody(t, "workflow:\n  - {step: a, tool: http, url: http://x, retry: [{when: \"{{ true }}\", then: {max_attempts: 2}}]}\n")
	for _, kind := range slices.Concat(final, asked) {
		step := book.Steps[0]
		machine := call.New(call.Config{
			Source: request.Source{
				Book: book, Run: tables.Run, Step: step, Action: step.Action, Visit: 1, Scope: interpreter.NewScope(book, tables.Run, interpreter.Data{}),
			},
			Sinks: sink.Sinks{Policies: step.Retry}, Random: func() float64 { return 0 },
		})
		require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
		machine.ApplyOutcome(interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: kind, Class: interpreter.ClassRetryable}}, tables.Started)
		want := call.DoWait
		if slices.Contains(final, kind) {
			want = call.DoFinish
		}
		require.Equal(t, want, machine.Next(tables.Started).Kind, kind)
	}
}
