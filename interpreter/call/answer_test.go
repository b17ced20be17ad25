package call_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

// awaited is a call of these lines of a step whose first attempt has been sent.
func awaited(t *testing.T, step string) *call.Call {
	t.Helper()
	c := &callCase{visit: 1, body: "workflow:\n  - step: ask\n" + step}
	machine := c.call(t)
	require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
	machine.ApplyOutcome(interpreter.Outcome{}, tables.Started)
	require.NotNil(t, machine.View().Awaited)
	return machine
}

const (
	webhook  = "    tool: webhook\n    on_start: {url: http://x/}\n    on_cancel: {url: http://y/, method: DELETE}\n"
	approval = "    tool: approval\n    message: Load?\n    form: {ticket: {type: text, required: true}}\n"
)

// An attempt that is awaited has not failed; the failure of the one before was reported.
func TestNoFailureWhileAwaited(t *testing.T) {
	t.Parallel()
	call := awaited(t, webhook+"    retry: 3\n")
	require.Nil(t, call.View().FailedAttempt())
	call.AcceptAnswer(interpreter.Answer{Verb: interpreter.AnswerFail, Message: "no"}, tables.Started)
	_ = call.ApplyAnswer(tables.Started)
	require.NotNil(t, call.View().FailedAttempt())
	call.EndWait()
	call.Next(tables.Started)
	call.ApplyOutcome(interpreter.Outcome{}, tables.Started)
	require.NotNil(t, call.View().Awaited)
	require.Nil(t, call.View().FailedAttempt())
}

// The other side tells the cancel of an attempt from its begin.
func TestCancelHasItsOwnKey(t *testing.T) {
	t.Parallel()
	call := awaited(t, webhook)
	input, told := call.View().CancelRequest(tables.Started)
	require.True(t, told)
	require.Equal(t, "on_cancel", input.Sends)
	require.Equal(t, input.AttemptKey+":on_cancel", input.IdempotencyKey)
	_, told = awaited(t, approval).View().CancelRequest(tables.Started)
	require.False(t, told)
}

// What is too large is refused where it comes in.
// It passes maxAnswerText, maxAnswerBy and maxDetails.
func TestAnswerSizes(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("x", n) }
	call := awaited(t, webhook)
	for _, c := range []struct {
		answer interpreter.Answer
		want   string
	}{
		{interpreter.Answer{Verb: interpreter.AnswerComplete, Result: expression.Of(text(interpreter.MaxInlinePayload))}, "an answer may have 1900000 bytes"},
		{interpreter.Answer{Verb: interpreter.AnswerComplete, Result: expression.Of(text(1_800_000))}, ""},
		{interpreter.Answer{Verb: interpreter.AnswerFail, Message: text(4097)}, "a message or a comment may have 4096 bytes"},
		{interpreter.Answer{Verb: interpreter.AnswerFail, Message: text(4096)}, ""},
		{interpreter.Answer{Verb: interpreter.AnswerFail, Message: "no", Details: expression.Of(text(17_000))}, "details may have 16384 bytes"},
		{interpreter.Answer{Verb: interpreter.AnswerComplete, By: text(501)}, "500 bytes each"},
		{interpreter.Answer{Verb: interpreter.AnswerComplete, ID: text(501)}, "500 bytes each"},
		{interpreter.Answer{Verb: interpreter.AnswerProgress, Message: text(4097)}, "a message or a comment may have 4096 bytes"},
	} {
		err := call.View().CheckAnswer(c.answer)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
	deep := `{"verb":"complete","result":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}"
	require.ErrorContains(t, json.Unmarshal([]byte(deep), new(interpreter.Answer)), "nested more than 1000 deep")
	require.ErrorContains(t, json.Unmarshal([]byte(`{"verb":"complete","form":[1]}`), new(interpreter.Answer)), "form must be a map, not a list")
}

// Whatever is said in whatever order: an attempt has one outcome, which is the first
// answer to it or that none came in time, and the policy counts each.
func TestAnswersInAnyOrder(t *testing.T) {
	t.Parallel()
	ended := map[string]int{}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		most := 1 + rng.IntN(4)
		c := &callCase{visit: 1, random: 0.5, body: fmt.Sprintf(`workflow:
  - step: ask
    tool: webhook
    timeout: 30s
    on_start: {url: http://x/}
    retry: {max_retries: %d, initial_delay_secs: 1}
`, most)}
		machine, now := c.call(t), tables.Started
		outcomes := map[int][]string{} // by attempt
		say := func(sent bool) {
			answer := []interpreter.Answer{
				{Verb: interpreter.AnswerComplete, Result: expression.Of(rng.IntN(9))},
				{Verb: interpreter.AnswerFail, Message: "no"},
				{Verb: interpreter.AnswerProgress, Done: 1},
			}[rng.IntN(3)]
			attempt := machine.State().Attempts + 1
			answer.Attempt = []int{attempt, attempt + 1, max(attempt-1, 1)}[rng.IntN(3)]
			if !machine.View().IsAddressed(answer.AnswerTo, sent) || machine.View().CheckAnswer(answer) != nil {
				return
			}
			require.Equal(t, attempt, answer.Attempt, "seed %d", seed)
			require.Equal(t, attempt, machine.AcceptAnswer(answer, now).Attempt)
			if answer.Verb != interpreter.AnswerProgress {
				outcomes[attempt] = append(outcomes[attempt], string(answer.Verb))
			}
		}
		for !machine.Finished() {
			now = now.Add(time.Second)
			if rng.IntN(2) == 0 { // another process goes on
				text, err := json.Marshal(*machine.State())
				require.NoError(t, err)
				machine = c.call(t)
				require.NoError(t, json.Unmarshal(text, machine.State()))
			}
			command := machine.Next(now)
			switch command.Kind {
			case call.DoAttempt:
				say(true)
				answered, outcome := machine.View().HasAnswer(), interpreter.Outcome{}
				if rng.IntN(3) == 0 {
					outcome.Err = &interpreter.ErrorObject{Kind: interpreter.KindWebhookFailure, Class: interpreter.ClassRetryable}
					if !answered {
						outcomes[command.Input.Attempt] = append(outcomes[command.Input.Attempt], "not sent")
					}
				}
				machine.ApplyOutcome(outcome, now)
				require.Equal(t, answered, machine.View().HasAnswer(), "seed %d", seed)
			case call.DoAwait:
				say(false)
				if rng.IntN(4) == 0 && !machine.View().HasAnswer() {
					now = machine.View().Awaited.Until
					outcomes[machine.View().Attempt] = append(outcomes[machine.View().Attempt], "silence")
					_ = machine.ApplyAnswer(now)
				} else if machine.View().HasAnswer() {
					_ = machine.ApplyAnswer(now)
				}
			case call.DoWait:
				say(false)
				now = now.Add(command.Wait.Delay)
				machine.EndWait()
			default:
				require.Fail(t, "it asks for something else")
			}
		}
		say(false)
		result := machine.Result()
		require.Len(t, outcomes, result.Meta.Attempts, "seed %d", seed)
		for attempt := 1; attempt <= result.Meta.Attempts; attempt++ {
			require.Len(t, outcomes[attempt], 1, "seed %d: attempt %d", seed, attempt)
			last := attempt == result.Meta.Attempts
			require.Equal(t, last && !result.Failed(), outcomes[attempt][0] == "complete", "seed %d", seed)
		}
		if result.Failed() {
			require.Equal(t, most+1, result.Meta.Attempts, "seed %d", seed)
			require.True(t, result.Error.Exhausted)
		}
		ended[outcomes[result.Meta.Attempts][0]]++
	}
	for _, how := range []string{"complete", "fail", "silence", "not sent"} {
		require.Greater(t, ended[how], 5, "%v", ended)
	}
}

// A page with an empty body has no rows; unless its status says so, there is a warning, because its rows may be lost.
func TestPagesWithoutABody(t *testing.T) {
	t.Parallel()
	for status, warnings := range map[int]int{200: 1, 202: 1, 206: 1, 204: 0, 205: 0} {
		c := &callCase{visit: 1, body: "workflow:\n  - step: fetch\n    tool: http\n    url: http://x/\n    retry:\n" +
			"      - {when: \"{{ response.next }}\", then: {next_call: {params: {cursor: \"{{ response.next }}\"}}, collect: {path: rows}}}\n"}
		machine := c.call(t)
		require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
		first := map[string]any{"rows": []any{1}, "next": "a"}
		machine.ApplyOutcome(interpreter.Outcome{Data: first, Meta: interpreter.ToolMeta{Status: 200}}, tables.Started)
		require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
		machine.ApplyOutcome(interpreter.Outcome{Meta: interpreter.ToolMeta{Status: status, Headers: map[string]string{"content-length": "0"}}}, tables.Started)
		ended := machine.Next(tables.Started).Result
		require.Equal(t, []any{1}, ended.Data.Data)
		require.Equal(t, interpreter.StatusSuccess, ended.Status)
		require.Len(t, ended.Warnings, warnings)
	}
}

// An empty body that the tool has warned about already has no second warning.
func TestEmptyBodyIsNotedOnce(t *testing.T) {
	t.Parallel()
	const noted = "GET http://x/ returned HTTP 200 with an empty body, which counts as no rows, although its Content-Type is application/json"
	c := &callCase{visit: 1, body: "workflow:\n  - step: fetch\n    tool: http\n    url: http://x/\n    retry:\n" +
		"      - {when: \"{{ response.next }}\", then: {next_call: {params: {cursor: \"{{ response.next }}\"}}, collect: {path: rows}}}\n"}
	machine := c.call(t)
	require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
	machine.ApplyOutcome(interpreter.Outcome{Meta: interpreter.ToolMeta{
		Status: 200, Headers: map[string]string{"content-length": "0", "content-type": "application/json"}, Notes: []string{noted},
	}}, tables.Started)
	require.Equal(t, []string{"step fetch: " + noted}, machine.Next(tables.Started).Result.Warnings)
}
