package call_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

// TestRequestsAreComparedAsTheyAreSent has a call make one request, and next_call
// another. The guard takes them for the same one where the other side could not tell
// them apart.
func TestRequestsAreComparedAsTheyAreSent(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name, step, next string
		same             bool
	}{
		{"a param and a query", "tool: http, url: http://x/a, params: {page: 1}", "url: '?page=1'", true},
		{"a query and a param", "tool: http, url: 'http://x/a?page=1'", "params: {page: 1}", true},
		{"a number and its text", "tool: http, url: http://x/a, params: {page: 1}", "params: {page: '1'}", true},
		{"another page", "tool: http, url: http://x/a, params: {page: 1}", "url: '?page=2'", false},
		{"the order of params", "tool: http, url: 'http://x/a?b=2&a=1'", "url: 'http://x/a?a=1&b=2'", true},
		{"a param moved before the query", "tool: http, url: 'http://x/a?b=2', params: {a: 1}", "url: '?a=1&b=2'", true},
		{"values of one name", "tool: http, url: http://x/a, params: {t: [1, 2]}", "url: '?t=1&t=2'", true},
		{"the order of values of one name", "tool: http, url: http://x/a, params: {t: [1, 2]}", "url: '?t=2&t=1'", false},
		{"one value more", "tool: http, url: http://x/a, params: {t: [1, 1]}", "params: {t: [1]}", false},
		{"escapes of a query", "tool: http, url: http://x/a, params: {q: 'a b[]'}", "url: '?q=a%20b%5b%5d'", true},
		{"an escape that means something else", "tool: http, url: http://x/a, params: {q: 'a+b'}", "url: '?q=a+b'", false},
		{"an escaped name", "tool: http, url: http://x/a, params: {'page[n]': 1}", "url: '?page%5Bn%5D=1'", true},
		{"a fragment", "tool: http, url: http://x/a", "url: 'http://x/a#top'", true},
		{"an empty query", "tool: http, url: http://x/a", "url: 'http://x/a?'", true},
		{"an empty path", "tool: http, url: http://x", "url: 'http://x/'", true},
		{"the host in capitals", "tool: http, url: http://x/a", "url: 'HTTP://X/a'", true},
		{"the usual port", "tool: http, url: http://x/a", "url: 'http://x:80/a'", true},
		{"another port", "tool: http, url: http://x/a", "url: 'http://x:8080/a'", false},
		{"another scheme", "tool: http, url: http://x/a", "url: 'https://x/a'", false},
		{"the path in capitals", "tool: http, url: http://x/a", "url: 'http://x/A'", false},
		{"an escape of a path that needs none", "tool: http, url: http://x/~a", "url: 'http://x/%7ea'", true},
		{"an escaped slash", "tool: http, url: http://x/a/b", "url: 'http://x/a%2Fb'", false},
		{"dots in a path", "tool: http, url: http://x/a/b", "url: '../a/b'", true},
		{"the same path, of a connection", "tool: http, auth: crm, url: '/a?page=1'", "url: 'https://crm.example.com/a?page=1'", true},
		{"another path, of a connection", "tool: http, auth: crm, url: '/a?page=1'", "url: 'https://crm.example.com/a?page=2'", false},
		{"a param that is nil", "tool: http, url: http://x/a, params: {page: 1}", "params: {page: 1, size: null}", true},
		{"an empty list is no param", "tool: http, url: http://x/a, params: {t: []}", "params: {t: null}", true},
		{"the name of a header", "tool: http, url: http://x/a, headers: {X-Page: 1}", "headers: {x-page: '1'}", true},
		{"the value of a header", "tool: http, url: http://x/a, headers: {X-Page: 1}", "headers: {x-page: 2}", false},
		{"a header that says what is usual", "tool: http, url: http://x/a", "headers: {Accept: 'application/json, */*;q=0.5'}", true},
		{"spaces around a header", "tool: http, url: http://x/a, headers: {X-Page: a}", "headers: {X-Page: ' a '}", true},
		{"the default method", "tool: http, url: http://x/a", "method: get", true},
		{"another method", "tool: http, url: http://x/a", "method: POST", false},
		{"a body as text", "tool: http, url: http://x/a, method: POST, headers: {Content-Type: application/json}, body: {page: 1}", `body: '{"page":1}'`, true},
		{"a body of another type", "tool: http, url: http://x/a, method: POST, body: {page: 1}", `body: '{"page":1}'`, false},
		{"JSON tells 1 from its text", "tool: http, url: http://x/a, method: POST, body: {page: 1}", "body: {page: '1'}", false},
		{"the order of a body's keys", "tool: http, url: http://x/a, method: POST, body: {a: 1, b: 2}", "body: {b: 2, a: 1}", true},
		{"a form as text", "tool: http, url: http://x/a, method: POST, form: {a: 1, b: x y}, args: {n: 1}", "args: {n: 2}", true},
		{"a form", "tool: http, url: http://x/a, method: POST, form: {a: '{{ args.n }}'}, args: {n: 1}", "args: {n: '1'}", true},
		{"another form", "tool: http, url: http://x/a, method: POST, form: {a: '{{ args.n }}'}, args: {n: 1}", "args: {n: 2}", false},
		{"args that nothing uses", "tool: http, url: http://x/a, args: {n: 1}", "args: {n: 2}", true},
		{"args in a path", "tool: http, url: 'http://x/{{ args.n }}', args: {n: 1}", "args: {n: 2}", false},
		{"a parameter of postgres", "tool: postgres, auth: pg, statement: 'SELECT {{ args.n }}', args: {n: 1}", "args: {n: '1'}", true},
		{"another parameter of postgres", "tool: postgres, auth: pg, statement: 'SELECT {{ args.n }}', args: {n: 1}", "args: {n: 2}", false},
		{"nil and an empty text", "tool: postgres, auth: pg, statement: 'SELECT {{ args.n }}', args: {n: null}", "args: {n: ''}", false},
		{"args that a statement does not use", "tool: postgres, auth: pg, statement: 'SELECT {{ args.n }}', args: {n: 1}", "args: {m: 2}", true},
		{"a boolean of sqlite", "tool: sqlite, auth: db, statement: 'SELECT {{ args.n }}', args: {n: true}", "args: {n: 1}", true},
		{"sqlite tells 1 from its text", "tool: sqlite, auth: db, statement: 'SELECT {{ args.n }}', args: {n: 1}", "args: {n: '1'}", false},
		{"args of python", "tool: python, code: 'def main(n): pass', args: {n: 1}", "args: {n: 1}", true},
		{"python tells 1 from its text", "tool: python, code: 'def main(n): pass', args: {n: 1}", "args: {n: '1'}", false},
		{"a path of file", "tool: file, path: 'in/{{ args.n | raw }}.json', args: {n: a}", "args: {n: './a'}", true},
		{"another path of file", "tool: file, path: 'in/{{ args.n }}.json', args: {n: a}", "args: {n: b}", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.same, repeats(t, test.step, test.next))
		})
	}
}

// repeats reports whether the guard ends a call before the request that next_call
// makes of its first.
func repeats(t *testing.T, step, next string) bool {
	t.Helper()
	body := "workflow:\n  - {step: fetch, " + step + ", retry: [{when: response.more, then: {next_call: {" + next + "}, collect: {path: rows}}}]}\n"
	book := tables.DecodeBody(t, body)
	task := call.Task{Run: tables.Run, Visit: 1, Data: interpreter.Data{Workload: expression.Of(book.Workload)}}
	machine := task.BuildCall(book, book.Steps[0], call.Snapshot{}, func() float64 { return 0.5 })
	require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
	machine.ApplyOutcome(interpreter.Outcome{Data: map[string]any{"more": true, "rows": []any{1}}}, tables.Started.Add(time.Second))
	result := machine.Result()
	if result == nil {
		return false
	}
	require.NotNil(t, result.Error)
	require.Equal(t, interpreter.KindRepeat, result.Error.Kind, result.Error.Message)
	require.True(t, strings.Contains(result.Error.Message, "was already made"), result.Error.Message)
	return true
}
