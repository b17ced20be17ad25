package interpreter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// TestAbsentMembers: what a result of a known shape does not have is told, and
// nothing is said of shapes that nobody knows.
func TestAbsentMembers(t *testing.T) {
	t.Parallel()
	book := tables.DecodeBody(t, `workflow:
  - step: fetch
    tool: http
    url: http://x
    loop: {collection: [1, 2], element: item}
    sink:
      tool: http
      url: http://x
      args: {a: "{{ result.data.x }}", b: "{{ result.stats.total }}", c: "{{ result.results[0].x }}", d: "{{ this.data.stats.totals }}"}
    vars: {v: "{{ result.rows }}", w: "{{ result['errors'] }}", x: "{{ fetch.none }}"}
    next: rows
  - step: rows
    tool: postgres
    auth: pg
    statement: SELECT 1 AS n
    args: {a: "{{ fetch.data }}", b: "{{ steps.fetch.data.dates }}", c: "{{ steps.fetch.status }}"}
    vars: {v: "{{ result.n }}", w: "{{ result[0].n }}"}
    next: look
  - step: look
    tool: python
    args: {a: "{{ rows.n }}", b: "{{ rows[0].n }}"}
    code: |
      def main(a, b):
          return a
    vars: {v: "{{ result.anything }}"}
    next: last
  - step: last
    tool: http
    url: "http://x/{{ look.anything }}"
    loop: {collection: "{{ fetch.items }}", element: rows}
    params: {a: "{{ rows.n }}"}
`)
	loop := interpreter.NewLoopResult(2).ExprValue()
	data := interpreter.Data{Steps: expression.Of(map[string]any{
		"fetch": map[string]any{"data": loop}, "rows": map[string]any{"data": []any{map[string]any{"n": 1}}},
		"look": map[string]any{"data": map[string]any{"a": 1}},
	})}
	ended := func(step string, result any) []string {
		return interpreter.AbsentAtEnd(book.Step(step), interpreter.CallResult{Status: "success", Data: expression.Of(result)})
	}
	require.Equal(t, []string{
		`result has no member "rows", so this is nil; its members are ["errors" "results" "stats"]`,
		`fetch has no member "none", so this is nil; its members are ["errors" "results" "stats"]`,
		`result has no member "data", so this is nil; its members are ["errors" "results" "stats"]`,
		`this.data.stats has no member "totals", so this is nil; its members are ["cancelled" "failed" "success" "total" "truncated"]`,
	}, ended("fetch", loop))
	require.Equal(t, []string{`result is a list of 1 and has no member "n", so this is nil`}, ended("rows", []any{map[string]any{"n": 1}}))
	require.Equal(t, []string{`result has no member "n", so this is nil; its members are ["rows_affected"]`},
		ended("rows", map[string]any{"rows_affected": 1}))
	require.Empty(t, ended("look", map[string]any{"a": 1}))
	require.Equal(t, []string{
		`fetch has no member "data", so this is nil; its members are ["errors" "results" "stats"]`,
		`fetch has no member "dates", so this is nil; its members are ["errors" "results" "stats"]`,
	}, interpreter.AbsentAtStart(book, book.Step("rows"), data))
	require.Equal(t, []string{`rows is a list of 1 and has no member "n", so this is nil`},
		interpreter.AbsentAtStart(book, book.Step("look"), data))
	require.Equal(t, []string{`fetch has no member "items", so this is nil; its members are ["errors" "results" "stats"]`},
		interpreter.AbsentAtStart(book, book.Step("last"), data))
	require.Empty(t, interpreter.AbsentAtStart(book, book.Step("last"), interpreter.Data{}))
	require.Empty(t, interpreter.AbsentAtEnd(book.Step("fetch"), interpreter.CallResult{Status: "error"}))
}

// TestMembersOfTexts: a member, by name, of a text, number or boolean is nil, which is
// nearly always a body that was not read as JSON. The warning has the place.
func TestMembersOfTexts(t *testing.T) {
	t.Parallel()
	book := tables.DecodeBody(t, `workflow:
  - step: fetch
    tool: http
    url: http://x
    retry:
      - when: response.next is defined
        then: {next_call: {url: "{{ response.next }}"}, collect: {strategy: append}}
    vars: {n: "{{ len(result.rows) }}", m: "{{ result[0] }}", o: "{{ this.data.rows }}", p: "{{ result.get('x') }}"}
    next: look
  - step: look
    tool: http
    url: "http://x/{{ fetch.rows[0].id }}"
    body: [{n: "{{ steps.fetch.data.total }}"}]
    loop: {collection: "{{ fetch.ids }}", element: id}
    next: [{when: "{{ fetch.more }}", then: check}]
  - step: check
    next: [{when: "{{ odd.deep.more }}", then: odd}, {else: odd}]
  - step: odd
    tool: postgres
    auth: pg
    statement: SELECT {{ fetch.rows }}
output: {rows: "{{ len(fetch.rows) }}", all: "{{ fetch }}"}
`)
	ended := func(result any) []string {
		return interpreter.AbsentAtEnd(book.Step("fetch"), interpreter.CallResult{Status: "success", Data: expression.Of(result)})
	}
	const unread = "; where it is JSON, fromJSON reads it"
	require.Equal(t, []string{
		`result is text and has no member "rows", so this is nil (line 11, column 23)` + unread,
		`this.data is text and has no member "rows", so this is nil (line 11, column 70)` + unread,
		`response is text and has no member "next", so this is nil (line 9, column 15)` + unread,
	}, ended(`{"rows": []}`))
	require.Equal(t, []string{`response is text and has no member "next", so this is nil (line 9, column 15)` + unread}, ended([]any{`{"rows": []}`}))
	require.Empty(t, ended([]any{map[string]any{"rows": 1}}))
	require.Empty(t, ended(map[string]any{"rows": []any{}}))
	require.Empty(t, ended(nil))
	require.Equal(t, []string{
		`result is a number and has no member "rows", so this is nil (line 11, column 23)`,
		`this.data is a number and has no member "rows", so this is nil (line 11, column 70)`,
		`response is a number and has no member "next", so this is nil (line 9, column 15)`,
	}, ended(3))
	of := func(fetch any) interpreter.Data {
		return interpreter.Data{Steps: expression.Of(map[string]any{
			"fetch": map[string]any{"data": fetch}, "odd": map[string]any{"data": map[string]any{"deep": true}},
		})}
	}
	text := of(`{"rows": []}`)
	require.Equal(t, []string{
		`fetch is text and has no member "rows", so this is nil (line 15, column 23)` + unread,
		`fetch is text and has no member "total", so this is nil (line 16, column 20)` + unread,
		`fetch is text and has no member "more", so this is nil (line 18, column 23)` + unread,
		`fetch is text and has no member "ids", so this is nil (line 17, column 28)` + unread,
	}, interpreter.AbsentAtStart(book, book.Step("look"), text))
	require.Equal(t, []string{`odd.deep is a boolean and has no member "more", so this is nil (line 20, column 23)`},
		interpreter.AbsentAtStart(book, book.Step("check"), text))
	require.Equal(t, []string{`fetch is text and has no member "rows", so this is nil (line 24, column 26)` + unread},
		interpreter.AbsentAtStart(book, book.Step("odd"), text))
	require.Equal(t, []string{`fetch is text and has no member "rows", so this is nil (line 25, column 24)` + unread},
		interpreter.AbsentInOutput(book, text))
	require.Empty(t, interpreter.AbsentInOutput(book, of(map[string]any{"rows": []any{}})))
	require.Empty(t, interpreter.AbsentInOutput(book, interpreter.Data{}))
}

// TestRowsAreNoAnswers: where parts of pages are collected, the last of them says nothing of what the last answer has.
func TestRowsAreNoAnswers(t *testing.T) {
	t.Parallel()
	book := tables.DecodeBody(t, `workflow:
  - step: fetch
    tool: http
    url: http://x
    retry:
      - when: "{{ response.next }}"
        then: {next_call: {params: {cursor: "{{ response.next }}"}}, collect: {path: ids}}
`)
	for _, last := range []any{7, "p7", true} {
		require.Empty(t, interpreter.AbsentAtEnd(book.Steps[0], interpreter.CallResult{Status: "success", Data: expression.Of([]any{last})}))
	}
}

// TestRowsOfAnAnswerThatHasNone: a sink whose rows are a path that the answer does not have writes nothing, which a warning says: the
// answer may be an error with status 200.
func TestRowsOfAnAnswerThatHasNone(t *testing.T) {
	t.Parallel()
	absent := func(args string, result any) []string {
		book := tables.DecodeBody(t, `workflow:
  - step: fetch
    tool: http
    url: http://x
    sink: {tool: sqlite, auth: "sqlite:x.db", table: rows, args: "{{ `+args+` }}"}
`)
		return interpreter.AbsentInSinks(book.Step("fetch").Sinks, result)
	}
	failed := map[string]any{"error": "rate limited", "meta": map[string]any{"page": 1}}
	for _, args := range []string{
		"result.data", "this.data.data", "result['data']", "result.data.items",
		"map(result.data, {id: row.id})", "filter(result.data, #.id > 1)", "result.data[:10]", "flatten(result.data)",
	} {
		found := absent(args, failed)
		require.Len(t, found, 1, args)
		require.Regexp(t, `^(result|this\.data) has no member "data", so nothing is written \(line 8, column \d+\); its members are \["error" "meta"\]$`, found[0])
	}
	require.Equal(t, []string{`result.meta has no member "rows", so nothing is written (line 8, column 68); its members are ["page"]`}, absent("result.meta.rows", failed))
	for _, args := range []string{"result?.data", "result.data ?? []", "result.get('data')", "'data' in result ? result.data : []", "result.data || []", "result.meta", "result.error", "result", "default(result.data, [])"} {
		require.Empty(t, absent(args, failed), args)
	}
	for _, result := range []any{map[string]any{"data": nil}, map[string]any{"data": []any{}}, nil, []any{}} {
		require.Empty(t, absent("result.data", result), "%v", result)
	}
}
