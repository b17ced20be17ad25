package chaos_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// ended is how the run says that an item ended.
type ended struct {
	result   map[string]any // of one that went well
	failure  string         // the message of one that did not
	attempts int            // 0 where the run does not tell
}

// checkAnswers: each attempt has one outcome, which is the answer that was taken
// first; attempts are as many as the policies say; every element is there once.
func (r *answersRound) checkAnswers(result protocol.Result) {
	r.t.Helper()
	require.Empty(r.t, r.other.trouble)
	items := r.endings(result)
	require.Len(r.t, items, len(r.plans))
	for item, end := range items {
		attempts := r.other.attemptsOf(item)
		require.NotEmpty(r.t, attempts, "item %d was never begun", item)
		r.attempts += len(attempts)
		number := 0
		for i, at := range attempts {
			if missing := at.attempt - number - 1; missing != 0 { // its request got nowhere in time
				require.Positive(r.t, missing, r.other.story(item, end))
				require.NotZero(r.t, i, r.other.story(item, end))
				require.GreaterOrEqual(r.t, at.arrived.Sub(attempts[i-1].arrived), time.Duration(missing)*(answerTimeout+answerDelay),
					"attempt %d of item %d came without those before it\n%s", at.attempt, item, r.other.story(item, end))
			}
			number = at.attempt
			var next *begun
			if i+1 < len(attempts) {
				next = attempts[i+1]
			}
			if wrong := r.other.account(at, next, end); wrong != "" {
				require.Fail(r.t, fmt.Sprintf("item %d, attempt %d: %s\n%s", item, at.attempt, wrong, r.other.story(item, end)))
			}
		}
		if end.attempts > 0 {
			require.Equal(r.t, number, end.attempts, r.other.story(item, end))
		}
	}
	r.checkHalts()
}

// endings are those of all items as the run tells them.
func (r *answersRound) endings(result protocol.Result) []ended {
	r.t.Helper()
	var given struct {
		Results []map[string]any `json:"results"`
	}
	text, err := json.Marshal(result.Result)
	require.NoError(r.t, err)
	require.NoError(r.t, json.Unmarshal(text, &given), "%.2000s\n%+v", text, result.Error)
	items := make([]ended, len(given.Results))
	for i, one := range given.Results {
		items[i].result = one
	}
	loop := result.Steps[len(result.Steps)-1].Loop
	if r.form.loop == "" {
		require.Equal(r.t, interpreter.Completed, result.Status, "%+v", result.Error)
		return items
	}
	require.NotNil(r.t, loop)
	failed := len(loop.Errors)
	require.Equal(r.t, interpreter.LoopStats{Total: len(r.plans), Success: len(r.plans) - failed, Failed: failed}, loop.Stats)
	for _, failure := range loop.Errors {
		require.Nil(r.t, items[failure.Index].result, "item %d failed and has a result", failure.Index)
		items[failure.Index].failure = failure.Error.Message
		if !r.form.inner {
			items[failure.Index].attempts = failure.Attempts
		}
	}
	for i, item := range items {
		require.True(r.t, item.result != nil || item.failure != "", "item %d has neither result nor failure", i)
	}
	return items
}

func (o *otherSystem) attemptsOf(item int) []*begun {
	var all []*begun
	for _, one := range o.order {
		if one.item == item {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(x, y *begun) int { return x.attempt - y.attempt })
	return all
}

// account says what is wrong with an attempt, "" for nothing. next is the attempt
// after it, nil for the last one.
func (o *otherSystem) account(at, next *begun, end ended) string {
	var taken *saying
	since := at.arrived // when its time began, at the earliest
	maybe := map[int]*saying{}
	for _, s := range o.said {
		if s.item != at.item || s.attempt != at.attempt {
			continue
		}
		switch {
		case s.verb == interpreter.AnswerProgress:
			if s.became == wasTaken && s.began.After(since) {
				since = s.began
			}
		case s.became == wasTaken && taken != nil && taken.n != s.n:
			return fmt.Sprintf("two answers were taken, %d and %d", taken.n, s.n)
		case s.became == wasRefused:
		default:
			if maybe[s.n] == nil || s.began.Before(maybe[s.n].began) {
				maybe[s.n] = s
			}
			if s.became == wasTaken {
				taken = s
			}
		}
	}
	if taken != nil {
		taken = maybe[taken.n] // the first time it was said
		maybe = map[int]*saying{taken.n: taken}
	}
	if next == nil {
		return o.last(at, taken, maybe, end)
	}
	waited := func(from time.Time) bool { return !next.arrived.Before(from.Add(answerDelay)) }
	for _, s := range maybe {
		if s.verb == interpreter.AnswerFail && !s.final && waited(s.began) {
			return ""
		}
	}
	switch {
	case taken != nil:
		return fmt.Sprintf("%s %d was taken, and another attempt came %s after it was said", taken.verb, taken.n, next.arrived.Sub(taken.began))
	case at.status != http.StatusAccepted && waited(at.arrived), waited(since.Add(answerTimeout)):
		return ""
	}
	return fmt.Sprintf("another attempt came %s after its time began, for no reason", next.arrived.Sub(since))
}

// last is account for the last attempt of an item.
func (o *otherSystem) last(at *begun, taken *saying, maybe map[int]*saying, end ended) string {
	if end.result != nil {
		n, _ := end.result["n"].(float64)
		s := maybe[int(n)]
		if s == nil || s.verb != interpreter.AnswerComplete {
			return fmt.Sprintf("the result is answer %v, which was not taken", end.result["n"])
		}
		want, _ := json.Marshal(map[string]any{"item": s.item, "attempt": s.attempt, "n": s.n})
		delete(end.result, "ballast")
		if got, _ := json.Marshal(end.result); string(got) != string(want) {
			return fmt.Sprintf("the result is %s, not %s", got, want)
		}
		return ""
	}
	if o.refuses[at.item] && strings.Contains(end.failure, "404") {
		for _, s := range maybe {
			if s.verb == interpreter.AnswerComplete && o.answers[at.item][s.n] {
				return ""
			}
		}
		return "it was to confirm an answer that was not taken"
	}
	for _, s := range maybe {
		if s.verb == interpreter.AnswerFail && strings.Contains(end.failure, s.message()) && (s.final || at.attempt == o.most) {
			return ""
		}
	}
	switch {
	case taken != nil:
		return fmt.Sprintf("%s %d was taken, and the item failed: %s", taken.verb, taken.n, end.failure)
	case at.attempt < o.most:
		return "the item failed before its last attempt: " + end.failure
	case strings.Contains(end.failure, " says "):
		return "the item failed with an answer that was not taken: " + end.failure
	}
	return ""
}

// story is all that was said of an item, for people.
func (o *otherSystem) story(item int, end ended) string {
	var text strings.Builder
	at := func(t time.Time) string { return t.Format("15:04:05.000") }
	for _, one := range o.attemptsOf(item) {
		fmt.Fprintf(&text, "  %s attempt %d begins (%d times, answered %d); plan %+v\n", at(one.arrived), one.attempt, one.times, one.status,
			o.planOf(item, one.attempt))
	}
	for _, s := range o.said {
		if s.item == item {
			fmt.Fprintf(&text, "  %s to %s attempt %d: %s %d final %t: %s (%s)\n", at(s.began), at(s.ended), s.attempt, s.verb, s.n, s.final, s.became, s.how)
		}
	}
	fmt.Fprintf(&text, "  ended as %+v", end)
	return text.String()
}

// tally is how often answers became what, for people.
func (o *otherSystem) tally() map[string]int {
	count := map[string]int{}
	for _, s := range o.said {
		count[s.became]++
	}
	return count
}

// wentOn counts the histories that go on in another one.
func wentOn(histories []testenv.RunHistory) (n int) {
	for _, history := range histories {
		if history.Ending() == "ContinuedAsNew" {
			n++
		}
	}
	return n
}

// checkHalts: what was paused began no attempt.
func (r *answersRound) checkHalts() {
	r.t.Helper()
	for _, h := range r.other.halts {
		for _, one := range r.other.order {
			require.False(r.t, one.arrived.After(h.from.Add(heldWithin+slack)) && one.arrived.Before(h.to),
				"item %d, attempt %d began %s after %q was paused", one.item, one.attempt, one.arrived.Sub(h.from), h.step)
		}
	}
}

// checkMarks: histories say once of every attempt that was awaited how it ended.
func (r *answersRound) checkMarks(histories []testenv.RunHistory) {
	r.t.Helper()
	over := map[string]int{}
	for _, history := range histories {
		for _, event := range history.History.GetEvents() {
			if event.GetEventType() != enumspb.EVENT_TYPE_MARKER_RECORDED {
				continue
			}
			var mark protocol.AnswerMark
			payload := event.GetMarkerRecordedEventAttributes().GetDetails()["data"].GetPayloads()
			if len(payload) > 0 && converter.GetDefaultDataConverter().FromPayload(payload[len(payload)-1], &mark) == nil && mark.Over {
				over[mark.Key]++
			}
		}
	}
	awaited := 0
	for _, one := range r.other.order {
		if one.status == http.StatusAccepted {
			awaited++
		}
	}
	for key, n := range over {
		require.Equal(r.t, 1, n, "ends of attempt %s", key)
	}
	require.GreaterOrEqual(r.t, len(over), awaited, "attempts whose end is in a history")
}

// playbook is the round's.
func (r *answersRound) playbook() string {
	switch {
	case r.form.loop == "":
		return visitsText
	case r.form.inner:
		inner := strings.ReplaceAll("    "+strings.TrimSuffix(strings.ReplaceAll(askText, "\n", "\n    "), "    "), "    \n", "\n")
		return strings.NewReplacer("LOOP", r.form.loop, "INNER\n", inner+"        next: confirm\n").Replace(nestedText)
	}
	return strings.ReplaceAll(elementsText, "LOOP", r.form.loop)
}
