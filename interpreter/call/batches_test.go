package call_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call"
)

// sourceOf is the call of the source of a loop, with the lines that it has.
func sourceOf(t *testing.T, lines string) *call.Call {
	t.Helper()
	book := tables.DecodeBody(t, "workflow:\n  - step: visit\n    tool: http\n    url: http://x\n    loop:\n      source:\n        tool: file\n        path: a.csv\n"+lines)
	task := call.Task{Run: tables.Run, Visit: 1, Limits: interpreter.RunLimits{CollectsRows: true}}
	return task.BuildCall(book, book.Step("visit.source"), call.Snapshot{}, func() float64 { return 0 })
}

// TestSourceReadsOn: behind a batch of a file follows the request of the next one, also after a failure, and whatever host has the call between them.
func TestSourceReadsOn(t *testing.T) {
	t.Parallel()
	machine := sourceOf(t, "        batch: 2\n        rows: data.items\n        retry: [{when: \"{{ error.class == 'retryable' }}\", then: {max_attempts: 2, initial_delay: 0}}]\n")
	now := tables.Started
	next := func() interpreter.ToolInput {
		encoded, err := json.Marshal(machine.View().Snapshot())
		require.NoError(t, err)
		machine = sourceOf(t, "        batch: 2\n        rows: data.items\n        retry: [{when: \"{{ error.class == 'retryable' }}\", then: {max_attempts: 2, initial_delay: 0}}]\n")
		require.NoError(t, json.Unmarshal(encoded, machine.State()))
		command := machine.Next(now)
		for command.Kind == call.DoWait {
			machine.EndWait()
			command = machine.Next(now)
		}
		require.Equal(t, call.DoAttempt, command.Kind)
		return command.Input
	}
	answer := func(behind *interpreter.SourcePlace, rows ...any) {
		page := map[string]any{"data": map[string]any{"items": rows}}
		machine.ApplyOutcome(interpreter.Outcome{Data: page, Meta: interpreter.ToolMeta{Next: behind}}, now)
	}
	fail := func() {
		machine.ApplyOutcome(interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Message: "away"}}, now)
	}
	first, second := &interpreter.SourcePlace{Source: "a", Rows: 2, Offset: 9, Line: 3}, &interpreter.SourcePlace{Source: "a", Rows: 4}
	require.Equal(t, &interpreter.RowBatch{Path: []string{"data", "items"}}, next().Batch)
	answer(first, 1, 1)
	require.Equal(t, []any{1, 1}, machine.RemoveElements())
	require.True(t, machine.View().FetchesPage())
	in := next()
	require.Equal(t, &interpreter.RowBatch{After: first, Path: []string{"data", "items"}}, in.Batch)
	require.Equal(t, 2, in.Page)
	fail()
	require.Equal(t, first, next().Batch.After)
	answer(second, 1, 1)
	require.Equal(t, second, next().Batch.After)
	fail()
	require.Equal(t, second, next().Batch.After, "each page has its attempts")
	answer(nil, 5)
	require.Equal(t, []any{1, 1, 5}, machine.RemoveElements())
	require.Equal(t, call.DoFinish, machine.Next(now).Kind)
	result := machine.Result()
	require.Equal(t, interpreter.StatusSuccess, result.Status)
	require.Empty(t, result.Warnings)
	require.Equal(t, 3, result.Meta.Pages)
}

// TestBatchPath: which sources read a file in batches, and where it has its rows.
func TestBatchPath(t *testing.T) {
	t.Parallel()
	for lines, path := range map[string][]string{
		"":                                      nil,
		"        rows: data.items\n":            {"data", "items"},
		"        rows: data.items[*].node\n":    {"data", "items"},
		"        collect: {path: data.items}\n": {"data", "items"},
		"        where: \"{{ row.id > 1 }}\"\n": nil,
		"        batch: 5\n        retry: [{when: \"{{ len(response) == 0 }}\", then: {fail: none}}]\n": nil,
		"        retry: [{when: \"{{ error is defined }}\", then: {max_attempts: 3}}]\n":                nil,
		"no: \n        rows: data[0]\n": nil,
		"no: \n        retry: [{when: \"{{ len(response) == 0 }}\", then: {fail: none}}]\n":                                       nil,
		"no: \n        retry: [{when: \"{{ now() > '2' }}\", then: {max_attempts: 3, next_call: {args: {n: 1}}, collect: {}}}]\n": nil,
	} {
		reads := true
		if rest, refused := strings.CutPrefix(lines, "no: \n"); refused {
			reads, lines = false, rest
		}
		batch := sourceOf(t, lines).Next(tables.Started).Input.Batch
		require.Equal(t, reads, batch != nil, lines)
		if reads {
			require.Equal(t, path, batch.Path, lines)
		}
	}
	book := tables.DecodeBody(t, "workflow:\n  - step: read\n    tool: file\n    path: a.csv\n")
	task := call.Task{Run: tables.Run, Visit: 1, Limits: interpreter.RunLimits{CollectsRows: true}}
	require.Nil(t, task.BuildCall(book, book.Steps[0], call.Snapshot{}, nil).Next(tables.Started).Input.Batch)
}

// TestWholeAnswerEnds: an answer without a place, as workers gave before there were batches, is the whole file.
func TestWholeAnswerEnds(t *testing.T) {
	t.Parallel()
	machine := sourceOf(t, "")
	require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
	machine.ApplyOutcome(interpreter.Outcome{Data: []any{1, 2}}, tables.Started)
	require.Equal(t, call.DoFinish, machine.Next(tables.Started).Kind)
	require.Equal(t, []any{1, 2}, machine.RemoveElements())
}
