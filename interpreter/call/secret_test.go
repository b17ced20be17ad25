package call_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/expression"
)

const secretSteps = `workload: {api: "https://api.test", id: 7}
workflow:
  - {step: login, tool: http, secret: true, url: https://api.test/token, next: use}
`

// sealedData is what a run has once login has ended.
var sealedData = interpreter.Data{
	Workload: expression.Of(map[string]any{"api": "https://api.test", "id": 7}),
	Steps: expression.Of(map[string]any{"login": map[string]any{
		"status": "success", "data": interpreter.SealResult("v1.k.text").Data, "meta": map[string]any{"status": 200},
	}}),
}

var opened = map[string]any{"login": map[string]any{"token": "tok/1 2", "n": 5}}

func secretCall(t *testing.T, step string, data interpreter.Data, args any) *call.Call {
	t.Helper()
	book := tables.DecodeBody(t, secretSteps+step)
	return call.New(call.Config{
		Source: request.Source{
			Book: book, Run: tables.Run, Step: book.Steps[1], Action: book.Steps[1].Action, Visit: 1,
			Scope: interpreter.NewScope(book, tables.Run, data), Args: args,
		},
		Sinks: sink.Sinks{Policies: book.Steps[1].Retry}, Random: func() float64 { return 0 },
	})
}

func reveal(t *testing.T, in interpreter.ToolInput) (interpreter.ToolInput, []any) {
	t.Helper()
	encoded, err := json.Marshal(in) // as history has it
	require.NoError(t, err)
	require.NotContains(t, string(encoded), "tok/1")
	var decoded interpreter.ToolInput
	require.NoError(t, json.Unmarshal(encoded, &decoded))
	var seen []any
	revealed, err := decoded.FillDeferred(opened, func(v any) { seen = append(seen, v) })
	require.NoError(t, err)
	again, err := json.Marshal(decoded)
	require.NoError(t, err)
	require.JSONEq(t, string(encoded), string(again), "the input of the attempt is left as it was")
	return revealed, seen
}

func fieldsOf(in interpreter.ToolInput) map[string]any {
	fields := map[string]any{}
	for name, value := range in.Fields {
		fields[name] = value.Data
	}
	return fields
}

// TestDeferredFields: what uses a sealed result has stars until the activity has
// opened it; everything else is worked out by the call.
func TestDeferredFields(t *testing.T) {
	t.Parallel()
	call := secretCall(t, `  - step: use
    tool: http
    url: "{{ api }}/x/{{ login.token }}/{{ id }}?t={{ steps.login.data.token }}&ok={{ steps.login.meta.status }}"
    headers: {Authorization: "Bearer {{ login['token'] }}", Key: "{{ operation_key }}-{{ login.n }}", Plain: "{{ id }}"}
    body: {list: [1, "{{ login.n + id }}", {deep: "{{ login }}"}], id: "{{ id }}"}
`, sealedData, nil)
	in := call.Next(tables.Started).Input
	require.Equal(t, "https://api.test/x/***/7?t=***&ok=200", in.Fields["url"].Data)
	require.Equal(t, "https://api.test", in.Origin)
	require.Equal(t, map[string]any{"Authorization": "***", "Key": "***", "Plain": 7}, in.Fields["headers"].Data)
	require.Equal(t, map[string]string{"login": "v1.k.text"}, in.Secret.Sealed)
	require.False(t, in.Secret.Seals)

	revealed, seen := reveal(t, in)
	require.Equal(t, `{"body":{"id":7,"list":[1,12,{"deep":{"n":5,"token":"tok/1 2"}}]},`+
		`"headers":{"Authorization":"Bearer tok/1 2","Key":"`+in.OperationKey+`-5","Plain":7},`+
		`"url":"https://api.test/x/tok%2F1%202/7?t=tok/1+2&ok=200"}`, tables.Encode(t, fieldsOf(revealed)))
	require.Contains(t, seen, "tok/1 2")
	require.NotContains(t, seen, 7)
	require.NotContains(t, seen, "https://api.test", "what is no secret is not masked")
}

func TestDeferredStatementsAndArgs(t *testing.T) {
	t.Parallel()
	in := secretCall(t, `  - {step: use, tool: postgres, auth: pg, statement: "SELECT {{ id }}, '<{{ login.token }}>', {{ login.n }}"}`+"\n",
		sealedData, nil).Next(tables.Started).Input
	require.Equal(t, []any{7, "***", "***"}, dataOf(in.Params))
	revealed, _ := reveal(t, in)
	require.Equal(t, `[7,"<tok/1 2>",5]`, tables.Encode(t, dataOf(revealed.Params)))

	python := "  - {step: use, tool: python, args: {token: \"{{ login.token }}\", n: \"{{ id }}\"}, code: \"def main(token, n): pass\"}\n"
	in = secretCall(t, python, sealedData, nil).Next(tables.Started).Input
	require.Equal(t, map[string]any{"token": "***", "n": 7}, in.Args.Data)
	revealed, _ = reveal(t, in)
	require.Equal(t, `{"n":7,"token":"tok/1 2"}`, tables.Encode(t, revealed.Args.Data))

	in = secretCall(t, python, sealedData, map[string]any{"token": "of the route"}).Next(tables.Started).Input
	require.Nil(t, in.Secret, "args of the route are laid over it")
	require.Equal(t, "of the route", in.Args.Data.(map[string]any)["token"])

	in = secretCall(t, python, interpreter.Data{}, nil).Next(tables.Started).Input
	require.Nil(t, in.Secret, "a step that has not run has no secret")
	require.Nil(t, in.Args.Data.(map[string]any)["token"])
}

func dataOf(values []expression.Value) []any {
	all := make([]any, len(values))
	for i, value := range values {
		all[i] = value.Data
	}
	return all
}

// TestPagesHaveWhatIsDeferred: next_call replaces and removes single keys; what
// stays secret stays deferred, and requests that differ in it are different.
func TestPagesHaveWhatIsDeferred(t *testing.T) {
	t.Parallel()
	call := secretCall(t, `  - step: use
    tool: http
    url: "{{ api }}/x"
    headers: {authorization: "{{ login.token }}", Other: "{{ login.n }}"}
    params: {page: 1, token: "{{ login.token }}"}
    retry:
      - when: response.more
        then: {next_call: {params: {page: "{{ response.page }}"}, headers: {AUTHORIZATION: null}, body: plain}, collect: {}}
`, sealedData, nil)
	first := call.Next(tables.Started).Input
	require.Len(t, first.Secret.Deferred, 3)
	call.ApplyOutcome(interpreter.Outcome{Data: map[string]any{"more": true, "page": 2}}, tables.Started)
	second := call.Next(tables.Started).Input
	revealed, _ := reveal(t, second)
	require.Equal(t, `{"body":"plain","headers":{"Other":5},"params":{"page":2,"token":"tok/1 2"},"url":"https://api.test/x"}`,
		tables.Encode(t, fieldsOf(revealed)))
	require.Len(t, first.Secret.Deferred, 3, "the attempt before is left as it was")
}

// TestSealedResultsGoNowhereElse: what the door has refused fails where it would
// get there, and nothing below the result is captured.
func TestSealedResultsGoNowhereElse(t *testing.T) {
	t.Parallel()
	book := tables.DecodeBody(t, secretSteps+"  - {step: use, tool: http, url: \"{{ login.token }}{{ steps.login.data.a.b }}\"}\n")
	require.ErrorContains(t, interpreter.RefuseSealed(book, "the output", map[string]any{"a": []any{interpreter.SealResult("x").Data}}),
		"the output would contain the result of a secret step")
	require.NoError(t, interpreter.RefuseSealed(book, "the output", map[string]any{"a": []any{"x"}}))

	captured := interpreter.CaptureData(book, sealedData, book.CallNodes(book.Steps[1]))
	require.Equal(t, `{"login":{"data":{"$sealed":"v1.k.text"}}}`, tables.Encode(t, captured.Steps.Data))

	machine := secretCall(t, "  - {step: use, tool: http, url: \"{{ login.token }}/x\"}\n", sealedData, nil)
	require.Equal(t, call.DoFinish, machine.Next(tables.Started).Kind)
	require.Contains(t, machine.Result().Error.Message, "a secret cannot be the host of a URL")
}
