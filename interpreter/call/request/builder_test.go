package request_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

// source is the first step of a playbook with these lines.
func source(t *testing.T, lines string) request.Source {
	t.Helper()
	book := tables.DecodeBody(t, "workflow:\n  - step: send\n    tool: http\n    url: http://x/a\n"+lines)
	step := book.Steps[0]
	return request.Source{
		Book: book, Run: tables.Run, Step: step, Action: step.Action, Visit: 1,
		Scope: interpreter.NewScope(book, tables.Run, interpreter.Data{}),
	}
}

// first are a builder and the first request of a source.
func first(t *testing.T, of request.Source, m request.Moment) (request.Builder, request.Requests) {
	t.Helper()
	builder, requests := request.NewBuilder(of), request.Requests{}
	_, err := builder.StartRequest(&requests, m, tables.Started)
	require.NoError(t, err)
	return builder, requests
}

// TestKeys: all attempts of a request have one operation key. What is another request, or is read again, has another one.
func TestKeys(t *testing.T) {
	t.Parallel()
	of := source(t, "    method: POST\n    headers: {X: \"{{ attempt_key }}\"}\n")
	m := request.Moment{StartedAt: tables.Started, Page: 1}
	builder, requests := first(t, of, m)
	input := func(m request.Moment) interpreter.ToolInput {
		in, err := builder.AttemptInput(&requests, m, tables.Started)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"X": in.AttemptKey}, in.Fields["headers"].Data, "it is rendered anew")
		return in
	}
	one, m2 := input(m), m
	m2.Attempts++
	two := input(m2)
	require.Equal(t, one.OperationKey, two.OperationKey)
	require.Equal(t, one.OperationKey, two.IdempotencyKey)
	require.Equal(t, []string{one.OperationKey + ":1", one.OperationKey + ":2"}, []string{one.AttemptKey, two.AttemptKey})

	seen := map[string]bool{one.OperationKey: true}
	for name, change := range map[string]func(*request.Moment){
		"another page":  func(m *request.Moment) { m.Page++ },
		"a restart":     func(m *request.Moment) { m.Restarts++ },
		"another claim": func(m *request.Moment) { m.Claim = "claim" },
		"both":          func(m *request.Moment) { m.Claim, m.Restarts = "claim", 1 },
	} {
		other := m
		change(&other)
		key := builder.OperationKey(other)
		require.False(t, seen[key], name)
		seen[key] = true
		require.Equal(t, one.OperationKey, builder.OperationKey(m), "what was derived for another moment is forgotten")
	}
}

// TestNext: the request of the next page is not the one at hand yet, and one that was made before is found.
func TestNext(t *testing.T) {
	t.Parallel()
	of := source(t, "    params: {page: 1}\n    retry:\n"+
		"      - {when: \"{{ response.more }}\", then: {next_call: {params: {page: \"{{ response.next }}\"}}}}\n")
	then := &of.Step.Retry[0].Then
	m := request.Moment{StartedAt: tables.Started, Page: 2}
	builder, requests := first(t, of, m)
	next := func(page any) (request.Request, bool) {
		scope := builder.RequestScope(&requests.Request, m).With(map[string]any{"response": map[string]any{"next": page}})
		found, repeats, err := builder.NextRequest(&requests, m, then, scope, tables.NewBudget(), tables.Started)
		require.NoError(t, err)
		return found, repeats
	}
	two, repeats := next(2)
	require.False(t, repeats)
	require.Equal(t, "GET http://x/a?page=2", two.String())
	require.Equal(t, "GET http://x/a?page=1", requests.Request.String())
	requests.SetCurrent(two)
	_, repeats = next(1)
	require.True(t, repeats, "the first request")

	before := requests.Seen
	_, repeats = next(3)
	require.False(t, repeats)
	all := requests.Seen
	require.Equal(t, len(before), requests.DropKnown(before))
	requests.PrependFingerprints(before)
	require.Equal(t, all, requests.Seen, "what stays with another host is put before the rest again")
}

// TestNextURL: an address of next_call is relative to the request before, also where only the worker knows where that began.
func TestNextURL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		url   string
		next  []string
		wants []string
	}{
		{"http://x/a/b?q=1", []string{"c", "/d", "?e=1", "//y/f"}, []string{"http://x/a/c", "http://x/d", "http://x/d?e=1", "http://y/f"}},
		{"items", []string{"?page=2", "?page=3"}, []string{"./items?page=2", "./items?page=3"}},
		{"/items?page=1", []string{"items?page=2", "./more", "sub/x", "../y/", "z"}, []string{"./items?page=2", "./more", "./sub/x", "./y/", "./y/z"}},
		{"a/items", []string{"../../v2/b", "../c"}, []string{"./../v2/b", "./../c"}},
		{"items", []string{"/base/v3/items?page=2", "items?page=3", "?page=4"}, []string{"/base/v3/items?page=2", "/base/v3/items?page=3", "/base/v3/items?page=4"}},
		{"items", []string{"it:ems"}, []string{"it:ems"}},
		{"items", []string{"./it:ems", "https://y/b"}, []string{"./it:ems", "https://y/b"}},
		{"/a%2Fb/c", []string{"d%2Fe"}, []string{"./a%2Fb/d%2Fe"}},
		{"/", []string{"?a=1"}, []string{"./?a=1"}},
	} {
		of := source(t, "    auth: api\n    retry:\n      - {when: true, then: {next_call: {url: \"{{ response.next }}\"}}}\n")
		of.Action.Field("url").Template, of.Action.Field("url").Value, of.Action.Field("url").Raw = nil, test.url, test.url
		m := request.Moment{StartedAt: tables.Started, Page: 2}
		builder, requests := first(t, of, m)
		for i, address := range test.next {
			scope := builder.RequestScope(&requests.Request, m).With(map[string]any{"response": map[string]any{"next": address}})
			next, _, err := builder.NextRequest(&requests, m, &of.Step.Retry[0].Then, scope, tables.NewBudget(), tables.Started)
			require.NoError(t, err)
			requests.SetCurrent(next)
			input, err := builder.AttemptInput(&requests, m, tables.Started)
			require.NoError(t, err)
			require.Equal(t, test.wants[i], input.Fields["url"].Data, "%+v", test)
			require.True(t, input.NextURL)
		}
	}
}

// TestPath: a value in the path of a file is one name there.
func TestPath(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path  string
		name  any
		wants string // "" for an error
		says  string
	}{
		{"out/{{ args.name }}.csv", "Acme", "out/Acme.csv", ""},
		{"out/{{ args.name }}.csv", "Jürgen & Co 1", "out/Jürgen & Co 1.csv", ""},
		{"out/{{ args.name }}.csv", "../connections.yaml", "out/..%2Fconnections.yaml.csv", ""},
		{"out/{{ args.name }}.csv", "a/b%2F", "out/a%2Fb%252F.csv", ""},
		{"{{ args.name }}/rows.csv", "/etc", "%2Fetc/rows.csv", ""},
		{"out/{{ args.name }}.csv", 7, "out/7.csv", ""},
		{"out/{{ args.name }}/{{ args.name }}", "..x", "out/..x/..x", ""},
		{"{{ args.name | raw }}/rows.csv", "a/b", "a/b/rows.csv", ""},
		{"{{ args.name }}", "a/b.csv", "a/b.csv", ""},
		{"rows.csv", "", "rows.csv", ""},
		{"out/{{ args.name }}/rows.csv", "..", "", `{{ args.name }} turns a name in a path into ".."`},
		{"out/.{{ args.name }}/rows.csv", ".", "", `{{ args.name }} turns a name in a path into ".."`},
		{"{{ args.name }}/rows.csv", ".", "", `{{ args.name }} turns a name in a path into "."`},
		{"out/{{ args.name }}.csv", "", "", "{{ args.name }} is empty; every part of a path needs a value"},
		{"out/{{ args.name }}.csv", nil, "", "{{ args.name }} is nil; every part of a path needs a value"},
		{"{{ args.name }}", nil, "", "{{ args.name }} is nil; every part of a path needs a value"},
	} {
		book := tables.DecodeBody(t, "workflow:\n  - step: send\n    tool: file\n    path: \""+test.path+"\"\n")
		of := request.Source{
			Book: book, Run: tables.Run, Step: book.Steps[0], Action: book.Steps[0].Action, Visit: 1,
			Scope: interpreter.NewScope(book, tables.Run, interpreter.Data{}), Args: map[string]any{"name": test.name},
		}
		builder, requests := request.NewBuilder(of), request.Requests{}
		_, err := builder.StartRequest(&requests, request.Moment{StartedAt: tables.Started, Page: 1}, tables.Started)
		if test.says != "" {
			require.ErrorContains(t, err, test.says, "%+v", test)
			continue
		}
		require.NoError(t, err, "%+v", test)
		require.Equal(t, test.wants, requests.Request.Fields["path"].Data, "%+v", test)
	}
}

// TestRestarted: a call that begins again has made no request, and the origin of its first one stays.
func TestRestarted(t *testing.T) {
	t.Parallel()
	m := request.Moment{StartedAt: tables.Started, Page: 1}
	builder, requests := first(t, source(t, "    auth: api\n"), m)
	require.Equal(t, "http://x", requests.Request.Origin)
	again := requests.AfterRestart()
	require.Empty(t, again.Seen)
	require.Empty(t, again.Request.Fields)
	_, err := builder.StartRequest(&again, m, tables.Started)
	require.NoError(t, err)
	require.Equal(t, "http://x", again.Request.Origin)
}

// TestSinkThatPublishes: a write of rows has them, and one that publishes staged rows has none.
func TestSinkThatPublishes(t *testing.T) {
	t.Parallel()
	of := source(t, "    args: {a: 1}\n")
	m := request.Moment{StartedAt: tables.Started, Page: 1}
	input := func(sink request.SinkWrite) interpreter.ToolInput {
		of.Sink = &sink
		builder, requests := first(t, of, m)
		in, err := builder.AttemptInput(&requests, m, tables.Started)
		require.NoError(t, err)
		return in
	}
	rows := request.SinkWrite{Place: "send.sink", Page: 1, Result: []any{1}}
	writes := input(rows)
	require.NotNil(t, writes.Args)
	rows.Staging = &interpreter.Staging{ID: "x", Do: interpreter.StagingPublish}
	publishes := input(rows)
	require.Nil(t, publishes.Args)
	require.Nil(t, publishes.Result)
	require.NotEqual(t, writes.OperationKey, publishes.OperationKey)
}

// TestShapeOfRows: what a sink makes of its rows goes along with what its expressions name, but for the rows themselves.
func TestShapeOfRows(t *testing.T) {
	t.Parallel()
	book := tables.DecodeBody(t, `workload: {src: crm, other: x}
workflow:
  - step: fetch
    tool: http
    url: http://x
    sink: {tool: file, path: rows, fields: {a: "{{ src }}", n: "{{ len(result) }}", b: 1, op: "{{ operation_key }}", s: "{{ this.status }}"}, exclude: [x]}
`)
	step := book.Steps[0]
	scope := interpreter.NewScope(book, tables.Run, interpreter.Data{Workload: expression.Of(book.Workload)})
	rows := []any{map[string]any{"x": 1}}
	of := request.Source{
		Book: book, Run: tables.Run, Step: step, Action: step.Sinks[0].Action, Visit: 1,
		Scope: scope.With(map[string]any{"result": rows, "this": map[string]any{"status": "success", "data": rows}}),
		Sink:  &request.SinkWrite{Place: step.Sinks[0].Place, Page: 1, Result: rows},
	}
	m := request.Moment{StartedAt: tables.Started, Page: 1}
	input := func() interpreter.ToolInput {
		builder, requests := first(t, of, m)
		in, err := builder.AttemptInput(&requests, m, tables.Started)
		require.NoError(t, err)
		return in
	}
	in := input()
	require.Equal(t, rows, in.SinkRows(), "they are not changed here")
	require.Equal(t, map[string]any{"src": "crm", "operation_key": in.OperationKey, "this": map[string]any{"status": "success"}}, in.Shape.Scope.Data)
	require.Equal(t, []string{"x"}, in.Shape.Exclude)
	require.Equal(t, tables.Started, in.Shape.Now)
	require.Len(t, in.Shape.Fields, 5)
	require.Equal(t, "{{ src }}", in.Shape.Fields[0].Template)
	require.NotZero(t, in.Shape.Fields[0].Places.PositionAt(3).Line)

	of.Sink.Staging = &interpreter.Staging{Do: interpreter.StagingPublish}
	require.Nil(t, input().Shape, "it has no rows")
}

// TestArgsThatMapManyRows: a mapping that is too much for a decision is made by the attempts, of the list that is given to it. What a
// decision may do is done here, as is all of runs that began before attempts did that.
func TestArgsThatMapManyRows(t *testing.T) {
	t.Parallel()
	book := tables.DecodeBody(t, `workload: {src: crm}
workflow:
  - step: fetch
    tool: http
    url: http://x
    sink:
      tool: file
      path: rows
      args: "{{ map(result, {'id': .id, 'from': src, 'key': operation_key, 'of': {'x': .x, 'all': [.x, .x]}}) }}"
`)
	step := book.Steps[0]
	input := func(n int, maps bool) (interpreter.ToolInput, error) {
		rows := make([]any, n)
		for i := range rows {
			rows[i] = map[string]any{"id": i, "x": "x"}
		}
		scope := interpreter.NewScope(book, tables.Run, interpreter.Data{Workload: expression.Of(book.Workload)})
		of := request.Source{
			Book: book, Run: tables.Run, Step: step, Action: step.Sinks[0].Action, Visit: 1, Scope: scope.With(map[string]any{"result": rows}),
			Sink: &request.SinkWrite{Place: step.Sinks[0].Place, Page: 1, Result: rows, MapsRows: maps},
		}
		m := request.Moment{StartedAt: tables.Started, Page: 1}
		builder, requests := request.NewBuilder(of), request.Requests{}
		if _, err := builder.StartRequest(&requests, m, tables.Started); err != nil {
			return interpreter.ToolInput{}, err
		}
		encoded, err := json.Marshal(requests) // as in history
		require.NoError(t, err)
		requests = request.Requests{}
		require.NoError(t, json.Unmarshal(encoded, &requests))
		builder = request.NewBuilder(of)
		return builder.AttemptInput(&requests, m, tables.Started)
	}
	few, err := input(10, true)
	require.NoError(t, err)
	require.Nil(t, few.Shape)
	many, err := input(40_000, true)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"src": "crm", "operation_key": many.OperationKey}, many.Shape.Scope.Data)
	require.Len(t, many.SinkRows(), 40_000)
	rows, err := many.ShapeRows(func(rows int, part func(from, to int) ([]string, error)) ([]string, error) { return part(0, rows) })
	require.NoError(t, err)
	first := rows.Args.Data.([]any)[0].(map[string]any)
	want := few.SinkRows()[0].(map[string]any)
	require.Equal(t, want, first)
	_, err = input(40_000, false)
	require.ErrorContains(t, err, "the expressions of one decision may")
}

// TestArgsNoteAbsentMembers: a member that args name of mapped rows and that none of them has is noted, with its place.
func TestArgsNoteAbsentMembers(t *testing.T) {
	t.Parallel()
	rows := []any{map[string]any{"id": 1, "name": nil}, map[string]any{"id": 2}}
	for args, note := range map[string]string{
		"{{ map(result, {'id': .id, 'n': .nam}) }}":               "no element has .nam; did you mean .name? (line 11, column 47)",
		"{{ map(result, {'is it?': .nick}) }}":                    "args: no row has #.nick (line 11, column 41)",
		"{{ map(result, {'id': .id, 'n': .name}) }}":              "", // a row has it
		"{{ map(result, {'id': .id, 'n': upper(.nick or '')}) }}": "",
		"{{ map(filter(result, .id > 2), {'n': .nam}) }}":         "", // there are none
	} {
		book := tables.DecodeBody(t, "workflow:\n  - step: fetch\n    tool: http\n    url: http://x\n    sink:\n      tool: file\n      path: rows\n      args: \""+args+"\"\n")
		step := book.Steps[0]
		builder, requests := request.NewBuilder(request.Source{
			Book: book, Run: tables.Run, Step: step, Action: step.Sinks[0].Action, Visit: 1,
			Scope: interpreter.NewScope(book, tables.Run, interpreter.Data{}).With(map[string]any{"result": rows}),
			Sink:  &request.SinkWrite{Place: step.Sinks[0].Place, Page: 1, Result: rows, MapsRows: true},
		}), request.Requests{}
		notes, err := builder.StartRequest(&requests, request.Moment{StartedAt: tables.Started, Page: 1}, tables.Started)
		require.NoError(t, err)
		require.Equal(t, note, strings.Join(notes, "; "), args)
	}
}

// TestArgsOfNothingWriteNothing: what args make nothing of is not written in its own form, whatever a state of the
// step has to know of the page.
func TestArgsOfNothingWriteNothing(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{"{{ nil }}": 0, "{{ [] }}": 0, "{{ result }}": 2, "{{ result[0] }}": 1} {
		book := tables.DecodeBody(t, `workflow:
  - step: fetch
    tool: http
    url: http://x
    incremental: {cursor_path: at, initial_value: 0}
    sink: {tool: sqlite, auth: shop, table: orders, key: id, args: "`+args+`"}
`)
		step := book.Steps[0]
		rows := []any{map[string]any{"id": 1, "at": 1}, map[string]any{"id": 2, "at": 2}}
		scope := interpreter.NewScope(book, tables.Run, interpreter.Data{})
		builder := request.NewBuilder(request.Source{
			Book: book, Run: tables.Run, Step: step, Action: step.Sinks[0].Action, Visit: 1, Scope: scope.With(map[string]any{"result": rows}),
			Sink: &request.SinkWrite{Place: step.Sinks[0].Place, Page: 1, Result: rows, State: &incremental.StateWrite{Rows: &incremental.RowIdentity{}}},
		})
		m, requests := request.Moment{StartedAt: tables.Started, Page: 1}, request.Requests{}
		_, err := builder.StartRequest(&requests, m, tables.Started)
		require.NoError(t, err)
		input, err := builder.AttemptInput(&requests, m, tables.Started)
		require.NoError(t, err)
		require.Len(t, input.SinkRows(), want, args)
	}
}
