package await_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
)

// question is that of an approval with these fields.
func question(t *testing.T, fields map[string]any) *await.Question {
	t.Helper()
	book := tables.DecodeBody(t, "workflow:\n  - {step: ask, tool: approval, message: \"Load?\"}\n")
	rendered := request.Request{Fields: map[string]expression.Value{"message": expression.Of("Load?")}}
	for name, value := range fields {
		rendered.Fields[name] = expression.Of(value)
	}
	return await.NewQuestion("ask", book.Steps[0].Action, &rendered)
}

// TestOutcome: an answer is consumed, and without one the time of the attempt is over.
func TestOutcome(t *testing.T) {
	t.Parallel()
	now, no := tables.Started, false
	awaited := await.NewAnswerWait(now, time.Hour)
	for name, test := range map[string]struct {
		answers  await.Answers
		question *await.Question
		data     any
		kind     interpreter.Kind
		class    interpreter.Class
		message  string
	}{
		"a result": {
			answers: await.Answers{Answer: &interpreter.Answer{Verb: interpreter.AnswerComplete, Result: expression.Of(7)}}, data: 7,
		},
		"a failure": {
			answers: await.Answers{Answer: &interpreter.Answer{Verb: interpreter.AnswerFail, Message: "no"}},
			kind:    interpreter.KindExplicit, class: interpreter.ClassRetryable, message: "no",
		},
		"a final failure": {
			answers: await.Answers{Answer: &interpreter.Answer{Verb: interpreter.AnswerFail, Message: "no", Retryable: &no}},
			kind:    interpreter.KindExplicit, class: interpreter.ClassFinal, message: "no",
		},
		"nothing": {
			kind: interpreter.KindTimeout, class: interpreter.ClassRetryable, message: `step "ask": no answer within 1h0m0s`,
		},
		"nothing since a report": {
			answers: await.Answers{Reported: &interpreter.ReportedProgress{Message: "half", At: now.Add(time.Minute)}},
			kind:    interpreter.KindTimeout, class: interpreter.ClassRetryable, message: `step "ask": no answer within 1h0m0s of the last report: 0 done, half`,
		},
		"no choice, which fails": {
			question: question(t, nil), kind: interpreter.KindTimeout, class: interpreter.ClassRetryable, message: `step "ask": no answer within 1h0m0s`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := test.answers
			outcome := answers.ConsumeAnswer("ask", test.question, awaited, now.Add(time.Hour))
			require.Nil(t, answers.Answer)
			if test.kind == "" {
				require.Nil(t, outcome.Err)
				require.Equal(t, test.data, outcome.Data)
				return
			}
			require.Equal(t, test.kind, outcome.Err.Kind)
			require.Equal(t, test.class, outcome.Err.Class)
			require.Equal(t, test.message, outcome.Err.Message)
		})
	}
}

// TestChoice: an approval ends with the option of its answer, and without one with that of on_timeout.
func TestChoice(t *testing.T) {
	t.Parallel()
	late := question(t, map[string]any{"on_timeout": "reject"})
	answers := await.Answers{}
	require.Empty(t, answers.ChosenOption(nil))
	require.Empty(t, answers.ChosenOption(question(t, nil)))
	require.Equal(t, "reject", answers.ChosenOption(late))

	answers.Accept(interpreter.Answer{Verb: interpreter.AnswerComplete, Option: "approve", By: "ann"}, nil, tables.Started)
	require.Equal(t, "approve", answers.ChosenOption(late))
	outcome := answers.ConsumeAnswer("ask", late, await.NewAnswerWait(tables.Started, 0), tables.Started)
	require.Equal(t, map[string]any{"option": "approve", "by": "ann", "comment": nil, "at": "2026-01-02T03:04:05Z"}, outcome.Data)

	outcome = answers.ConsumeAnswer("ask", late, await.NewAnswerWait(tables.Started, time.Hour), tables.Started.Add(time.Hour))
	require.Equal(t, "reject", outcome.Data.(map[string]any)["option"])
	require.Equal(t, "nobody answered in time", outcome.Data.(map[string]any)["comment"])
}

// TestCheck: an option answers an approval and nothing else does.
func TestCheck(t *testing.T) {
	t.Parallel()
	approval := question(t, nil)
	complete := interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "ask"}, Verb: interpreter.AnswerComplete}
	option, unknown, result := complete, complete, complete
	option.Option, unknown.Option, result.Result = "approve", "later", expression.Of(1)
	require.NoError(t, await.CheckAnswer(option, "ask", approval, interpreter.RunLimits{}))
	require.ErrorContains(t, await.CheckAnswer(unknown, "ask", approval, interpreter.RunLimits{}), `the options of step ask are approve, reject, not "later"`)
	require.ErrorContains(t, await.CheckAnswer(result, "ask", approval, interpreter.RunLimits{}), "answer it with an option, not with a result")
	require.NoError(t, await.CheckAnswer(result, "ask", nil, interpreter.RunLimits{}))
	require.ErrorContains(t, await.CheckAnswer(option, "ask", nil, interpreter.RunLimits{}), "step ask does not ask for an approval")
}

// TestProgress: a report gives an attempt its whole time again, where it has a limit.
func TestProgress(t *testing.T) {
	t.Parallel()
	answers, later := await.Answers{}, tables.Started.Add(time.Minute)
	report := interpreter.Answer{Verb: interpreter.AnswerProgress, Message: "half"}
	require.Nil(t, answers.Accept(report, await.NewAnswerWait(tables.Started, 0), later))
	require.Nil(t, answers.Accept(report, nil, later), "nobody awaits it yet")
	extended := answers.Accept(report, await.NewAnswerWait(tables.Started, time.Hour), later)
	require.Equal(t, later.Add(time.Hour), extended.Until)
	require.Equal(t, tables.Started, extended.Since)
	require.Nil(t, answers.Answer)
	require.Equal(t, "awaits an answer until 2026-01-02T04:05:05Z: 0 done, half", extended.DescribeWait(answers.Reported).Summary)
}
