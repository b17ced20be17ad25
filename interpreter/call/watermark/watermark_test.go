package watermark_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/watermark"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// stepWith is a step with these words in its incremental section, and lines of the step behind it.
func stepWith(t *testing.T, words, lines string) *watermark.StatefulStep {
	t.Helper()
	book := tables.DecodeBody(t, "workflow:\n  - step: fetch\n    tool: http\n    url: http://x\n    incremental: {cursor_path: at, initial_value: 10, type: integer"+
		words+"}\n    sink: {tool: file, path: a}\n"+lines)
	step := book.Steps[0]
	return watermark.StepOf(&request.Source{Book: book, Run: tables.Run, Step: step, Visit: 1}, step.Retry, len(step.Sinks) > 0)
}

func claimed(t *testing.T, step *watermark.StatefulStep, found any) *watermark.Watermark {
	t.Helper()
	own, err := step.NewWatermark(watermark.Pending{Name: "s", Group: "g"}, "holder", incremental.ClaimedState{Watermark: cursor(t, found)}, tables.Started)
	require.NoError(t, err)
	return own
}

func cursor(t *testing.T, value any) incremental.Cursor {
	t.Helper()
	if value == nil {
		return incremental.Cursor{}
	}
	parsed, err := incremental.Parse("integer", value)
	require.NoError(t, err)
	return parsed
}

func rows(values ...any) []any {
	all := make([]any, len(values))
	for i, value := range values {
		if all[i] = map[string]any{"at": value}; value == nil {
			all[i] = map[string]any{"id": i}
		}
	}
	return all
}

// TestRead: the largest cursor of all pages counts, rows without one only where the author says so, and rows out of
// order end the call.
func TestRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		words   string
		pages   [][]any
		largest any
		early   int
		failure string
	}{
		"pages":           {"", [][]any{rows(11, 13), rows(12)}, 13, 0, ""},
		"below the value": {"", [][]any{rows(9, 13), rows(8)}, 13, 2, ""},
		"a row lacks it":  {"", [][]any{rows(11, nil)}, nil, 0, "row 2 has no at"},
		"included":        {", on_missing: include", [][]any{rows(11, nil)}, 11, 0, ""},
		"no list":         {", on_missing: exclude", [][]any{rows(nil)}, nil, 0, "the page is a single value, not a list"},
		"of another type": {"", [][]any{rows("x")}, nil, 0, "set `type`"},
		"ascending":       {", row_order: asc", [][]any{rows(11, 12), rows(12, 13)}, 13, 0, ""},
		"out of order":    {", row_order: asc", [][]any{rows(11, 12), rows(11)}, 12, 0, "the source does not sort as `row_order: asc` says"},
		"within the lag":  {", row_order: asc, lag: 1", [][]any{rows(11, 12), rows(11)}, 12, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := stepWith(t, test.words, "")
			own := claimed(t, step, nil)
			var failure *interpreter.ErrorObject
			for _, page := range test.pages {
				before := *own
				next, failed := own.Read(step.Section, page, tables.Started)
				require.Equal(t, before, *own, "it is replaced and never changed")
				own, failure = next, failed
			}
			if test.failure != "" {
				require.NotNil(t, failure)
				require.Equal(t, interpreter.KindIncremental, failure.Kind)
				require.Contains(t, failure.Message, test.failure)
			} else {
				require.Nil(t, failure)
			}
			require.Equal(t, cursor(t, test.largest), own.Largest)
			require.Equal(t, test.early, own.Early)
		})
	}
}

// TestEndMove: the watermark moves behind a call that has read everything, and back where its rows came out of order.
func TestEndMove(t *testing.T) {
	t.Parallel()
	step := stepWith(t, "", "")
	read := func(found any, values ...any) *watermark.Watermark {
		own, failure := claimed(t, step, found).Read(step.Section, rows(values...), tables.Started)
		require.Nil(t, failure)
		return own
	}
	move := func(own *watermark.Watermark, end watermark.End) *incremental.Move {
		to, err := step.EndMove(own, end)
		require.NoError(t, err)
		return to
	}
	require.Equal(t, &incremental.Move{To: cursor(t, 12), Rows: 2}, move(read(nil, 11, 12), watermark.End{}))
	require.Nil(t, move(read(nil), watermark.End{}), "nothing was read")
	require.Nil(t, move(read(nil, 11), watermark.End{Incomplete: true}))
	require.Equal(t, &incremental.Move{To: cursor(t, 20), Rows: 1}, move(read(20, 15), watermark.End{}), "it stays, and counts its rows")
	require.Nil(t, move(read(nil, 11), watermark.End{Failure: &interpreter.ErrorObject{Kind: interpreter.KindHTTP}}))

	order := watermark.StateError(incremental.TypeOrder, "out of order")
	moved := read(15, 16).AfterMove(&incremental.Move{To: cursor(t, 16)})
	require.Equal(t, &incremental.Move{To: cursor(t, 15), Back: true}, move(moved, watermark.End{Failure: order}))
	require.Nil(t, move(read(15, 16), watermark.End{Failure: order}), "it has not moved")
}

// TestClaim: what a call reads again, from elsewhere or under another claim, has other keys.
func TestClaim(t *testing.T) {
	t.Parallel()
	step := stepWith(t, ", lag: 2", "")
	var none *watermark.Watermark
	require.Empty(t, none.ClaimKey(3))
	require.Nil(t, none.AfterRestart(step.Section, true))

	own := claimed(t, step, 20)
	require.Equal(t, map[string]any{"value": 18, "watermark": 20}, step.ExprValue(own), "less the lag")
	require.Equal(t, map[string]any{"value": 10, "watermark": nil}, step.ExprValue(nil), "before it is claimed")
	require.NotEqual(t, own.ClaimKey(0), own.ClaimKey(1))
	require.NotEqual(t, own.ClaimKey(0), claimed(t, step, 21).ClaimKey(0))

	read, _ := own.Read(step.Section, rows(25), tables.Started)
	again := read.AfterMove(nil).AfterRestart(step.Section, true)
	require.Equal(t, 1, again.Writes, "what is written stays written")
	require.Zero(t, again.Rows)
	require.Equal(t, expression.Of(10), again.Value.Value, "everything is read again")
}

// TestUnclaimed: each element of a loop has a state of its own, by a name of the element.
func TestUnclaimed(t *testing.T) {
	t.Parallel()
	step := stepWith(t, "", "    loop: {collection: [shop], element: shop, sink: {tool: file, path: b}}\n")
	named := func(element any) (string, error) {
		of := *step
		source := *step.Source
		source.Scope = interpreter.NewScope(source.Book, tables.Run, interpreter.Data{}).WithElement("shop", element, interpreter.ElementPosition{Size: 1})
		of.Source = &source
		pending, err := of.PendingClaim(tables.Started)
		return pending.Name, err
	}
	name, err := named("north")
	require.NoError(t, err)
	require.Equal(t, "table/fetch/north", name)
	_, err = named(map[string]any{"id": 1})
	require.ErrorContains(t, err, "the elements are maps, which cannot be part of a name")
}

// TestAbout: whatever a request uses of workload and element distinguishes its source, wherever it is written; what
// differs from run to run does not.
func TestAbout(t *testing.T) {
	t.Parallel()
	about := func(lines string, workload map[string]any, element any, value int) string {
		book := tables.DecodeBody(t, "workload: {shop: a, other: b}\nworkflow:\n  - step: fetch\n    loop: {collection: [e], element: e}\n"+
			"    incremental: {cursor_path: at, initial_value: 10, type: integer}\n    "+strings.ReplaceAll(lines, "\n", "\n    ")+"\n")
		scope := interpreter.NewScope(book, tables.Run, interpreter.Data{Workload: expression.Of(workload)}).
			WithElement("e", element, interpreter.ElementPosition{Size: 1}).
			With(map[string]any{"incremental": map[string]any{"value": value}, "attempt_key": value})
		step := watermark.StepOf(&request.Source{Book: book, Run: tables.Run, Step: book.Steps[0], Visit: 1}, nil, false)
		return step.SourceOf(book.Steps[0].Action, scope, tables.Started).Fingerprint
	}
	for name, lines := range map[string]string{
		"param":           "tool: http\nurl: http://x\nparams: {shop: \"{{ shop }}\", since: \"{{ incremental.value }}\"}",
		"path":            "tool: http\nurl: \"http://x/{{ shop }}\"\nparams: {since: \"{{ incremental.value }}\"}",
		"query":           "tool: http\nurl: \"http://x?shop={{ shop }}&since={{ incremental.value }}\"",
		"one text":        "tool: http\nurl: http://x\nparams: {q: \"shop:{{ shop }} at>{{ incremental.value }}\"}",
		"one expression":  "tool: http\nurl: http://x\nparams: {q: \"{{ workload.shop + incremental.value }}\"}",
		"header":          "tool: http\nurl: http://x\nheaders: {X-Shop: \"{{ shop }}\", X-Key: \"{{ attempt_key }}\"}",
		"statement":       "tool: postgres\nauth: pg\nstatement: \"SELECT at FROM t WHERE shop = {{ shop }} AND at >= {{ incremental.value }}\"",
		"statement alone": "tool: sqlite\npath: a.db\nstatement: \"SELECT at FROM t WHERE shop = {{ shop }}\"",
		"args":            "tool: python\nargs: {shop: \"{{ shop }}\", since: \"{{ incremental.value }}\"}\ncode: |\n  def main(**args):\n      return []",
		"auth":            "tool: postgres\nauth: \"{{ shop }}\"\nstatement: \"SELECT at FROM t WHERE at >= {{ incremental.value }}\"",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := func(shop, other string, value int) string {
				return about(lines, map[string]any{"shop": shop, "other": other}, "e", value)
			}
			require.NotEqual(t, of("a", "b", 1), of("c", "b", 1), "of another shop")
			require.Equal(t, of("a", "b", 1), of("a", "b", 1))
			require.Equal(t, of("a", "b", 1), of("a", "c", 1), "what the request does not use")
			if name != "path" {
				require.Equal(t, of("a", "b", 1), of("a", "b", 2), "from run to run")
			}
			ofElement := strings.ReplaceAll(strings.ReplaceAll(lines, "workload.shop", "e"), "{{ shop }}", "{{ e }}")
			require.NotEqual(t, about(ofElement, nil, "e", 1), about(ofElement, nil, "f", 1), "of another element")
		})
	}
}

// TestAboutWithoutQuery: a parameter that is the same for all sources makes no other one of a URL that names the workload.
func TestAboutWithoutQuery(t *testing.T) {
	t.Parallel()
	about := func(url string) string {
		book := tables.DecodeBody(t, "workload: {api: http://x, shop: a}\nworkflow:\n  - step: fetch\n    incremental: {cursor_path: at, initial_value: 10, type: integer}\n"+
			"    tool: http\n    url: \""+url+"\"\n")
		scope := interpreter.NewScope(book, tables.Run, interpreter.Data{Workload: expression.Of(book.Workload)}).
			With(map[string]any{"incremental": map[string]any{"value": 1}})
		step := watermark.StepOf(&request.Source{Book: book, Run: tables.Run, Step: book.Steps[0], Visit: 1}, nil, false)
		return step.SourceOf(book.Steps[0].Action, scope, tables.Started).Fingerprint
	}
	plain := about("{{ api }}/{{ shop }}/items")
	for _, url := range []string{"?limit=5", "?since={{ incremental.value }}", "?limit=5&since={{ incremental.value }}", "#top"} {
		require.Equal(t, plain, about("{{ api }}/{{ shop }}/items"+url), url)
	}
	require.NotEqual(t, plain, about("{{ api }}/{{ shop }}/items?of={{ shop }}"))
	require.NotEqual(t, plain, about("{{ api }}/{{ shop }}/others?limit=5"))
}

// TestClaimedKey: a sink that inserts knows rows by its own key, where the step names none.
func TestClaimedKey(t *testing.T) {
	t.Parallel()
	for words, expected := range map[string][]string{
		"key: id":                         {"id"},
		"key: [id, day]":                  {"id", "day"},
		"mode: insert_or_ignore, key: id": {"id"},
		"mode: insert":                    nil,
	} {
		book := tables.DecodeBody(t, "workflow:\n  - step: fetch\n    incremental: {cursor_path: at, initial_value: 10, type: integer}\n"+
			"    tool: http\n    url: http://x\n    sink: {tool: sqlite, path: a.db, table: t, "+words+"}\n")
		scope := interpreter.NewScope(book, tables.Run, interpreter.Data{})
		step := watermark.StepOf(&request.Source{Book: book, Run: tables.Run, Step: book.Steps[0], Visit: 1, Scope: scope}, nil, false)
		claim := step.ClaimRequest(watermark.Pending{Name: "s"}, "holder", incremental.SourceIdentity{}, tables.Started).Claim
		require.Equal(t, expected, claim.Key, words)
		require.True(t, claim.Inserts, words)
	}
}

// TestTokenThatStays: rows that came with a token come again as long as the source gives the same one, or none; what is
// known of them is forgotten only once the token is another.
func TestTokenThatStays(t *testing.T) {
	t.Parallel()
	book := tables.DecodeBody(t, "workflow:\n  - step: fetch\n    tool: http\n    url: http://x\n    incremental: {token: \"{{ response.next }}\"}\n"+
		"    sink: {tool: sqlite, path: a.db, table: t}\n")
	step := watermark.StepOf(&request.Source{
		Book: book, Run: tables.Run, Step: book.Steps[0], Visit: 1,
		Scope: interpreter.NewScope(book, tables.Run, interpreter.Data{}),
	}, nil, true)
	for name, test := range map[string]struct {
		found, given any
		moves, sweep bool
	}{
		"first":     {nil, "a", true, true},
		"another":   {"a", "b", true, true},
		"same":      {"a", "a", true, false},
		"none":      {"a", nil, false, false},
		"empty":     {"a", "", false, false},
		"same list": {[]any{1}, []any{1}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := incremental.Cursor{Value: expression.Of(test.found)}
			claimed, err := step.NewWatermark(watermark.Pending{Name: "s"}, "holder", incremental.ClaimedState{Watermark: found}, tables.Started)
			require.NoError(t, err)
			own, failure := claimed.Read(step.Section, rows(1), tables.Started)
			require.Nil(t, failure)
			move, err := step.EndMove(own, watermark.End{Scope: func() *interpreter.Scope {
				return step.Scope.With(map[string]any{"response": map[string]any{"next": test.given}})
			}})
			require.NoError(t, err)
			require.Equal(t, test.moves, move != nil)
			write := step.Write(own, step.Step.Sinks[0], move, true, tables.Started)
			require.NotNil(t, write)
			require.Equal(t, test.sweep, write.Rows.Sweep)
			require.Equal(t, test.sweep, write.Rows.Floor != nil)
		})
	}
}

// TestReachedBeforeAPage: the write of a page says where the pages before it have ended, as rows there may come in both.
func TestReachedBeforeAPage(t *testing.T) {
	t.Parallel()
	for order, reached := range map[string][]any{"asc": {12, 13}, "none": {nil, nil}} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			book := tables.DecodeBody(t, "workflow:\n  - step: fetch\n    tool: http\n    url: http://x\n"+
				"    incremental: {cursor_path: at, initial_value: 10, type: integer, row_order: "+order+"}\n"+
				"    retry:\n      - when: \"{{ response.more }}\"\n        then: {max_attempts: 9, next_call: {params: {page: 2}}, "+
				"collect: {path: rows, strategy: replace}, per_iteration: {sink: {tool: sqlite, path: a.db, table: t}}}\n")
			step := watermark.StepOf(&request.Source{
				Book: book, Run: tables.Run, Step: book.Steps[0], Visit: 1, Scope: interpreter.NewScope(book, tables.Run, interpreter.Data{}),
			}, book.Steps[0].Retry, false)
			own := claimed(t, step, 12)
			for page, before := range reached {
				read, failure := own.Read(step.Section, rows(12+page, 13+page), tables.Started)
				require.Nil(t, failure)
				move := step.PageMove(read)
				write := step.Write(read, book.Steps[0].Retry[0].Then.PageSinks[0], move, false, tables.Started)
				require.NotNil(t, write)
				require.Equal(t, cursor(t, before).Position, write.Rows.Reached)
				own = read.AfterMove(move)
			}
		})
	}
}

// TestEqualCursors: of two forms of one instant the first is kept, within a page and of several.
func TestEqualCursors(t *testing.T) {
	t.Parallel()
	section := &playbook.Incremental{CursorPath: "at", Type: incremental.Time, Ascending: true}
	own := &watermark.Watermark{}
	for _, page := range [][]any{rows("2024-01-01", "2024-01-01T00:00:00Z"), rows("2024-01-01T01:00:00+01:00")} {
		var failure *interpreter.ErrorObject
		own, failure = own.Read(section, page, tables.Started)
		require.Nil(t, failure)
		require.Equal(t, expression.Of("2024-01-01"), own.Largest.Value)
		require.Equal(t, expression.Of("2024-01-01"), own.Newest.Value)
	}
}

// TestNoRowHasTheCursor: rows without a cursor are written where the author says so, but a call whose rows do not even have its member
// probably has the wrong cursor_path.
func TestNoRowHasTheCursor(t *testing.T) {
	t.Parallel()
	step := stepWith(t, ", on_missing: include", "")
	null := []any{map[string]any{"at": nil}}
	for name, test := range map[string]struct {
		pages [][]any
		warns bool
	}{
		"none":        {[][]any{rows(nil, nil), rows(nil)}, true},
		"one has it":  {[][]any{rows(nil, nil), rows(11)}, false},
		"one is null": {[][]any{rows(nil), null}, false},
		"no rows":     {[][]any{rows()}, false},
	} {
		own := claimed(t, step, nil)
		for _, page := range test.pages {
			next, failure := own.Read(step.Section, page, tables.Started)
			require.Nil(t, failure, name)
			own = next
		}
		warnings := own.Warnings(step.Section, "step fetch", false, "")
		require.Equal(t, test.warns, len(warnings) > 0, name)
		if test.warns {
			require.Equal(t, []string{"step fetch: no row has at, so the watermark has not moved; check cursor_path"}, warnings)
		}
	}
}

// TestUnitsAreMixed: numbers of seconds beside those of milliseconds are a warning, because the watermark passes all of the former.
func TestUnitsAreMixed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		as, format string
		found      any
		pages      [][]any
		mixed      string
	}{
		"in one page":    {"integer", "", nil, [][]any{rows(1700000000, "1700000000000", 1700000000001)}, "1 in seconds, 2 in milliseconds"},
		"in two pages":   {"integer", "", nil, [][]any{rows(1700000000000000), rows(1700000000000)}, "1 in milliseconds, 1 in microseconds"},
		"of a time":      {"time", "%ms", nil, [][]any{rows(1700000000000, 1700000000)}, "1 in seconds, 1 in milliseconds"},
		"the watermark":  {"integer", "", 1700000000000, [][]any{rows(1700000000)}, "1 in seconds, 1 in milliseconds"},
		"no rows":        {"integer", "", 1700000000000, [][]any{rows()}, ""},
		"one unit":       {"integer", "", 1700000000, [][]any{rows(1700000000, 1700000001, 1699999999)}, ""},
		"other numbers":  {"integer", "", nil, [][]any{rows(1, 1700000000, -1700000000000, 12, 5000000000)}, ""},
		"very large ids": {"integer", "", nil, [][]any{rows(1<<62, 1<<61)}, ""},
	} {
		step := stepWith(t, "", "")
		own := claimed(t, step, test.found)
		section := *step.Section
		section.Type, section.Format = incremental.CursorType(test.as), test.format
		for _, page := range test.pages {
			next, failure := own.Read(&section, page, tables.Started)
			require.Nil(t, failure, name)
			own = next
		}
		warnings := strings.Join(own.Warnings(&section, "step fetch", false, ""), "\n")
		require.Equal(t, test.mixed != "", strings.Contains(warnings, "step fetch: the rows and the watermark before them have at in several units ("+test.mixed+"), and the watermark is the largest number"), "%s: %s", name, warnings)
	}
}
