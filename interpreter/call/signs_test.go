package call_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/watermark"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
)

// endedBy plays a call of a step with the given lines, whose pages answer with the data, and returns its result.
func endedBy(t *testing.T, lines string, pages ...any) interpreter.CallResult {
	t.Helper()
	c := &callCase{visit: 1, body: "workflow:\n  - step: fetch\n    tool: http\n    url: http://x/\n" + lines}
	machine := c.call(t)
	for _, data := range pages {
		require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
		machine.ApplyOutcome(interpreter.Outcome{Data: data, Meta: interpreter.ToolMeta{Status: http.StatusOK}}, tables.Started)
	}
	for machine.Next(tables.Started).Kind == call.DoSink {
		machine.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, tables.Started)
	}
	ended := machine.Next(tables.Started)
	require.Equal(t, call.DoFinish, ended.Kind)
	return ended.Result
}

// TestAnswersThatSayTheyFailed: a member that says so, and that nobody reads, is a warning.
func TestAnswersThatSayTheyFailed(t *testing.T) {
	t.Parallel()
	type row = map[string]any
	const reads = "    retry:\n      - {when: \"{{ response.errors }}\", then: {fail: partial}}\n"
	rows := []any{row{"id": 1, "error": "declined"}}
	for _, test := range []struct {
		lines  string
		answer any
		member string
	}{
		{"", row{"data": row{"items": rows}, "errors": []any{row{"message": "a shard is away"}}}, "response.errors"},
		{"", row{"items": rows, "errors": true}, "response.errors"},
		{"", row{"items": rows, "errors": []any{}}, ""},
		{"", row{"items": rows, "errors": false, "error": nil, "ok": true}, ""},
		{"", row{"ok": false, "error": "ratelimited"}, "response.error"},
		{"", row{"success": false, "items": rows}, "response.success"},
		{"", row{"error": row{"code": 429}}, "response.error"},
		{"", row{"error": "declined", "id": 7}, ""},
		{"", row{"error": "slow", "items": rows}, "response.error"},
		{"", row{"FailedRecordCount": 2, "RequestResponses": rows}, "response.FailedRecordCount"},
		{"", row{"incomplete_results": true, "items": rows}, "response.incomplete_results"},
		{"", row{"error": row{"code": 500}, "data": nil}, "response.error"},
		{"", row{"error": "quota", "data": []any{}, "count": 0}, "response.error"},
		{"", row{"error": "no data", "data": []any{}, "page": 2}, ""},
		{"", row{"status": "error", "message": "quota", "data": []any{}}, "response.status"},
		{"", row{"status": "failed", "id": 7}, ""},
		{"", row{"status": "success", "data": nil}, ""},
		{"", row{"status": "REQUEST_DENIED", "error_message": "no key", "results": []any{}}, "response.error_message"},
		{"", row{"code": 401, "msg": "token expired", "data": nil}, "response.code"},
		{"", row{"code": 0, "msg": "ok", "data": nil}, ""},
		{"", row{"code": 200, "data": []any{}}, ""},
		{"", row{"errcode": 40001, "errmsg": "invalid credential"}, "response.errcode"},
		{"", row{"errcode": 0, "errmsg": "ok"}, ""},
		{"", row{"code": 404, "name": "not found"}, ""},
		{"", rows, ""},
		{"    next: [{when: fetch.errors, step: other}]\n  - step: other\n    tool: http\n    url: http://x/\n", row{"items": rows, "errors": true}, ""},
		{reads, row{"items": rows, "errors": []any{}}, ""},
	} {
		result := endedBy(t, test.lines, test.answer)
		if test.member == "" {
			require.Empty(t, result.Warnings, "%v", test.answer)
			continue
		}
		require.Len(t, result.Warnings, 1, "%v", test.answer)
		require.Contains(t, result.Warnings[0], "the response has "+test.member+", which no condition uses")
	}
	of := &callCase{visit: 1, body: "workflow:\n  - step: fetch\n    tool: playbook\n    path: child.yaml\n"}
	machine := of.call(t)
	require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
	machine.ApplyOutcome(interpreter.Outcome{Data: row{"errors": []any{row{"index": 1}}}}, tables.Started)
	require.Empty(t, machine.Next(tables.Started).Result.Warnings, "of a child run, whose status says whether it failed")
	require.Equal(t, interpreter.StatusError, endedBy(t, reads, row{"items": rows, "errors": true}).Status)
	for condition, answer := range map[string]row{
		"response.error":             {"error": "quota", "data": nil},
		"not response.ok":            {"ok": false},
		"response.status == 'error'": {"status": "error", "data": nil},
		"response.code >= 400":       {"code": 401, "data": nil},
		"response.errcode":           {"errcode": 40001},
	} {
		require.Contains(t, endedBy(t, "", answer).Warnings[0], "write a policy with when: \"{{ "+condition+" }}\"")
	}
}

// TestAnswersThatAreNotReadyYet: a status 202 without rows is a warning where somebody gets the rows, and nobody reads the status.
func TestAnswersThatAreNotReadyYet(t *testing.T) {
	t.Parallel()
	type row = map[string]any
	const sink = "    sink: {tool: sqlite, path: a.db, table: t}\n"
	for _, test := range []struct {
		lines  string
		status int
		answer any
		warns  bool
	}{
		{sink, http.StatusAccepted, []any{}, true},
		{"    rows: data\n" + sink, http.StatusAccepted, row{"state": "pending", "data": []any{}}, true},
		{sink, http.StatusOK, []any{}, false},
		{sink, http.StatusAccepted, []any{row{"id": 1}}, false},
		{"", http.StatusAccepted, []any{}, false},
		{"    retry: [{when: this.meta.status == 500, then: {delay: 1}}]\n" + sink, http.StatusAccepted, []any{}, false},
	} {
		c := &callCase{visit: 1, body: "workflow:\n  - step: fetch\n    tool: http\n    url: http://x/\n" + test.lines}
		machine := c.call(t)
		require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
		machine.ApplyOutcome(interpreter.Outcome{Data: test.answer, Meta: interpreter.ToolMeta{Status: test.status}}, tables.Started)
		for machine.Next(tables.Started).Kind == call.DoSink {
			machine.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, tables.Started)
		}
		warnings := strings.Join(machine.Next(tables.Started).Result.Warnings, "")
		require.Equal(t, test.warns, strings.Contains(warnings, "the status 202 (accepted), which no condition uses"), "%v: %s", test, warnings)
	}
}

// TestRowsWithMore: rows whose own list goes on are a warning, once, where a sink writes the list or the playbook names it.
func TestRowsWithMore(t *testing.T) {
	t.Parallel()
	type row = map[string]any
	answer := row{"data": []any{row{"id": 1, "comments": row{"data": []any{row{"id": 7}}, "has_more": true}}}}
	const sink = "    rows: data\n    sink: {tool: sqlite, path: a.db, table: t}\n"
	for lines, warns := range map[string]bool{
		sink: true,
		"    rows: data\n    sink: {tool: sqlite, path: a.db, table: t, exclude: [comments]}\n":                    false,
		"    rows: data\n    sink: {tool: sqlite, path: a.db, table: t, args: {id: \"{{ map(result, .id) }}\"}}\n": false,
		"    retry: [{when: \"{{ any(response.data, .comments.has_more) }}\", then: {fail: more}}]\n":              false,
		"": false,
	} {
		c := &callCase{visit: 1, body: "workflow:\n  - step: fetch\n    tool: http\n    url: http://x/\n" + lines}
		machine := c.call(t)
		require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
		machine.ApplyOutcome(interpreter.Outcome{Data: answer, Meta: interpreter.ToolMeta{Status: http.StatusOK}}, tables.Started)
		for machine.Next(tables.Started).Kind == call.DoSink {
			machine.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, tables.Started)
		}
		warnings := strings.Join(machine.Next(tables.Started).Result.Warnings, "")
		require.Equal(t, warns, strings.Contains(warnings, "rows have comments.has_more, which no expression uses"), "%s: %s", lines, warnings)
	}
}

// TestTextInPlaceOfRows: a page that is a text is no page without rows, although collect is optional.
func TestTextInPlaceOfRows(t *testing.T) {
	t.Parallel()
	const lines = "    collect: {path: data, optional: true}\n"
	warnings := endedBy(t, lines, "<html>log in</html>").Warnings
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], `the page is a text without "data", which collect reads`)
	require.Empty(t, endedBy(t, lines, " ").Warnings)
	require.Empty(t, endedBy(t, lines, map[string]any{"more": false}).Warnings)
}

// TestWhereThatNamesNothing: a member that no row has is a warning where no row is left.
func TestWhereThatNamesNothing(t *testing.T) {
	t.Parallel()
	type row = map[string]any
	pages := []any{[]any{row{"id": 1, "status": "open"}, row{"id": 2, "status": "done"}}}
	for where, says := range map[string]string{
		"row.statuss == 'open'":         "where excluded all 2 rows, and none has row.statuss; did you mean row.status?",
		"row.archived":                  "where excluded all 2 rows, and none has row.archived",
		"row.archived is defined":       "",
		"row.statuss != 'open'":         "where: no row has row.statuss; did you mean row.status?",
		"row.archived != 'open'":        "",
		"row.status == 'x'":             "",
		"row.id == 1 or row.archived":   "",
		"(row.archived or 0) == row.id": "where excluded all 2 rows, and none has row.archived",
	} {
		result := endedBy(t, "    where: \""+where+"\"\n", pages...)
		require.Equal(t, says == "", len(result.Warnings) == 0, "%s: %v", where, result.Warnings)
		require.Contains(t, strings.Join(result.Warnings, ""), says)
	}
	const paged = "    rows: data\n    where: row.archived\n    retry:\n      - {when: \"{{ response.more }}\", then: {next_call: {params: {page: 2}}}}\n"
	one, other := row{"more": true, "data": []any{row{"id": 1}}}, row{"more": false, "data": []any{row{"id": 2, "archived": true}}}
	require.Empty(t, endedBy(t, paged, one, other).Warnings)
	other["data"] = []any{row{"id": 2, "archived": false}}
	require.Empty(t, endedBy(t, paged, one, other).Warnings, "a row has it")
	other["data"] = []any{row{"id": 2}}
	require.Len(t, endedBy(t, paged, one, other).Warnings, 1)
}

// TestOffsetsThatSkipRows: an offset that is counted in pages leaves out rows of an API that gives fewer than are requested.
func TestOffsetsThatSkipRows(t *testing.T) {
	t.Parallel()
	page := func(ids ...any) any { return map[string]any{"data": ids, "limit": 2} }
	lines := func(params, next string) string {
		return "    params: {" + params + "}\n    rows: data\n    retry:\n      - {when: \"{{ len(response.data) > 0 }}\", then: {next_call: {params: {" + next + "}}}}\n"
	}
	const counted = "offset: \"{{ _retry.page * 4 }}\""
	skips := endedBy(t, lines("offset: 0, limit: 4", counted), page(1, 2), page(5, 6), page(9), page())
	require.Len(t, skips.Warnings, 1, "the first of two")
	require.Contains(t, skips.Warnings[0], "page 1 had 2 rows, but offset advanced by 4, and more pages followed: the rows in between are missing")
	require.Empty(t, endedBy(t, lines("offset: 0, limit: 4", counted), page(1, 2, 3, 4), page(5, 6), page()).Warnings, "a short last page")
	require.Empty(t, endedBy(t, lines("offset: 0", "offset: \"{{ len(pages) }}\""), page(1, 2), page(3, 4), page()).Warnings)
	require.Empty(t, endedBy(t, lines("offset: 0", "offset: \"{{ response.data[-1] + 1 }}\""), page(1, 7), page(9), page()).Warnings, "the response says where")
	const day = "from: \"{{ _retry.page * 86400 }}\""
	require.Empty(t, endedBy(t, lines("from: 0", day), page(1, 7), page(9), page()).Warnings, "a time")
	require.Len(t, endedBy(t, lines("start: 0, rows: 9", "start: \"{{ _retry.page * 9 }}\""), page(1, 7), page(9), page()).Warnings, 1)
}

// TestTotalsThatShrink: rows that disappear while pages by number are read move others to pages that were read before.
func TestTotalsThatShrink(t *testing.T) {
	t.Parallel()
	page := func(total int, ids ...any) any { return map[string]any{"total": total, "data": ids} }
	const paged = "    rows: data\n    retry:\n      - {when: \"{{ len(response.data) > 0 }}\", then: {next_call: {params: {page: \"{{ _retry.page + 1 }}\"}}}}\n"
	shrunk := endedBy(t, paged, page(6, 1, 2), page(5, 4, 5), page(4))
	require.Len(t, shrunk.Warnings, 1)
	require.Contains(t, shrunk.Warnings[0], "the call read 4 rows, but an earlier page stated 6 (the last one 4)")
	require.Equal(t, interpreter.StatusSuccess, shrunk.Status)
	require.Empty(t, endedBy(t, paged, page(6, 1, 2), page(5, 3, 4), page(5, 5, 6), page(5)).Warnings)
	require.Empty(t, endedBy(t, paged, page(4, 1, 2), page(4, 3, 4), page(4)).Warnings)
}

// TestPagesCountedFromTheOtherEnd: a condition that takes one page from the total loses the last page if pages are numbered from 1,
// and a request that begins with page 1 loses the first if they are numbered from 0.
func TestPagesCountedFromTheOtherEnd(t *testing.T) {
	t.Parallel()
	page := func(number int, ids ...any) any {
		return map[string]any{"meta": map[string]any{"page": number, "total_pages": 3}, "data": ids}
	}
	lines := func(condition string) string {
		return "    rows: data\n    retry:\n      - {when: \"{{ " + condition + " }}\", then: {next_call: {params: {page: \"{{ response.meta.page + 1 }}\"}}}}\n"
	}
	const says = "response.meta.total_pages is 3, but 2 pages were read: the last page is missing if pages are numbered from 1, and the first one if from 0; in the `when` of policy 1 (line "
	for _, test := range []struct {
		condition string
		pages     []any
		says      string
	}{
		{"response.meta.page < response.meta.total_pages - 1", []any{page(1, 1, 2), page(2, 3, 4)}, says},
		{"response.meta.page + 1 < response.meta.total_pages", []any{page(1, 1, 2), page(2, 3, 4)}, says},
		{"response.meta.page < response.meta.total_pages - 1", []any{page(0, 1, 2), page(1, 3, 4), page(2, 5)}, ""},
		{"response.meta.page + 1 <= response.meta.total_pages", []any{page(1, 1, 2), page(2, 3, 4), page(3, 5)}, ""},
		{"response.meta.page < response.meta.total_pages and response.meta.page < 2", []any{page(1, 1, 2), page(2, 3, 4)}, ""},
		{"response.meta.page < response.meta.total_pages - 1", []any{page(2, 1, 2)}, ""},
	} {
		warnings := endedBy(t, lines(test.condition), test.pages...).Warnings
		if test.says == "" {
			require.Empty(t, warnings, "%v", test)
			continue
		}
		require.Len(t, warnings, 1, "%v", test)
		require.Contains(t, warnings[0], test.says)
	}
}

// TestTotalsOfPagesThatNobodyCollects: rows are counted where they are written page by page or become elements, and a total is
// compared with them also if a condition has read that the last page came.
func TestTotalsOfPagesThatNobodyCollects(t *testing.T) {
	t.Parallel()
	type row = map[string]any
	page := func(number int, ids ...any) any {
		return row{"total": 6, "page": number, "pages": 3, "data": ids}
	}
	const (
		filled  = "    retry:\n      - {when: \"{{ len(response.data) > 0 }}\", then: {next_call: {params: {page: \"{{ _retry.page + 1 }}\"}}%s}}\n"
		counted = "    retry:\n      - {when: \"{{ response.page < response.pages }}\", then: {next_call: {params: {page: \"{{ _retry.page + 1 }}\"}}%s}}\n"
		flagged = "    rows: data\n    retry:\n      - {when: \"{{ response.more }}\", then: {next_call: {params: {page: \"{{ _retry.page + 1 }}\"}}%s}}\n"
		written = ", per_iteration: {sink: {tool: sqlite, path: a.db, table: t}}"
	)
	more := func(more bool, ids ...any) any { return row{"total": 6, "more": more, "data": ids} }
	for _, test := range []struct {
		lines string
		pages []any
		says  string
	}{
		{fmt.Sprintf("    rows: data\n"+filled, written), []any{page(1, 1, 2), row{"total": 6, "data": []any{}}}, "response.total is 6, but 2 rows were read"},
		{fmt.Sprintf("    rows: data\n"+counted, ""), []any{page(1, 1, 2), page(2), page(3, 5, 6)}, "response.total is 6, but the 3 pages up to the last one had only 4 rows"},
		{fmt.Sprintf("    rows: data\n"+counted, written), []any{page(1, 1, 2), page(2), page(3, 5, 6)}, "response.total is 6, but the 3 pages up to the last one had only 4 rows"},
		{fmt.Sprintf("    rows: data\n"+counted, written), []any{page(1, 1, 2), page(2, 3, 4), page(3, 5, 6)}, ""},
		{fmt.Sprintf("    rows: data\n    where: row != 3\n"+counted, written), []any{page(1, 1, 2), page(2, 3, 4), page(3, 5, 6)}, ""},
		{fmt.Sprintf(counted, written), []any{page(1, 1, 2), page(2), page(3, 5, 6)}, ""}, // each page is one row
		{fmt.Sprintf(flagged, written), []any{more(true, 1, 2), more(true, 3), more(false, 5, 6)}, "response.total is 6, but the 3 pages up to the last one had only 5 rows, and page 2 had fewer than others"},
		{fmt.Sprintf(flagged, ""), []any{more(true, 1), more(true, 2, 3), more(false, 4)}, "response.total is 6, but the 3 pages up to the last one had only 4 rows, and page 1 had fewer than others"},
		{fmt.Sprintf(flagged, written), []any{more(true, 1, 2), more(true, 3), more(false, 4, 5, 6)}, ""},
		{fmt.Sprintf(flagged, written), []any{more(true, 1, 2), more(true, 3, 4), more(false, 5)}, ""}, // the total may count other rows
		{fmt.Sprintf("    where: row != 3\n"+flagged, written), []any{more(true, 1, 2), more(true, 3, 4), more(false, 5)}, ""},
		{"    rows: data\n    retry:\n      - {when: \"{{ response.more and len(pages) < response.total }}\", then: {collect: {}, next_call: {params: {page: 2}}}}\n", []any{more(true, 1, 2), more(false, 3)}, ""},
	} {
		c := &callCase{visit: 1, body: "workflow:\n  - step: fetch\n    tool: http\n    url: http://x/\n" + test.lines}
		machine := c.call(t)
		for _, data := range test.pages {
			for machine.Next(tables.Started).Kind == call.DoSink {
				machine.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, tables.Started)
			}
			require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
			machine.ApplyOutcome(interpreter.Outcome{Data: data, Meta: interpreter.ToolMeta{Status: http.StatusOK, Rows: &interpreter.Rows{}}}, tables.Started)
		}
		for machine.Next(tables.Started).Kind == call.DoSink {
			machine.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, tables.Started)
		}
		warnings := strings.Join(machine.Next(tables.Started).Result.Warnings, "")
		require.Contains(t, warnings, test.says, "%v", test)
		require.Equal(t, test.says == "", warnings == "", "%v: %s", test, warnings)
	}
}

// TestRowsThatMoveToTheNextPage: a row that comes again because the source got another one is a warning where it is written twice.
func TestRowsThatMoveToTheNextPage(t *testing.T) {
	t.Parallel()
	page := func(ids ...int) any {
		rows := lists.Map(ids, func(id int) any { return map[string]any{"_id": id, "v": "x"} })
		return map[string]any{"more": len(ids) > 1, "data": rows}
	}
	unnamed := map[string]any{"more": true, "data": []any{map[string]any{"v": 1}}}
	const (
		paged = "    rows: data\n    retry:\n      - {when: \"{{ response.more }}\", then: {next_call: {params: {page: \"{{ _retry.page + 1 }}\"}}}}\n"
		file  = "    sink: {tool: file, path: rows.csv}\n"
		table = "    sink: {tool: sqlite, path: a.db, table: t%s}\n"
		moved = "page 2 begins with a row from the end of page 1 (_id %d), so rows moved while the pages were read"
	)
	twice := []any{page(9, 8, 7), page(7, 6, 5), page(5)}
	for _, test := range []struct {
		lines string
		pages []any
		says  string
	}{
		{paged + file, twice, fmt.Sprintf(moved, 7)},
		{paged + file, []any{page(9, 8, 7, 6), page(8, 7, 6, 5), page(4)}, fmt.Sprintf(moved, 8)},
		{paged + "    sink: {tool: http, method: POST, url: http://y/}\n", twice, fmt.Sprintf(moved, 7)},
		{paged + fmt.Sprintf(table, ""), twice, fmt.Sprintf(moved, 7)},
		{paged + fmt.Sprintf(table, ", mode: upsert, key: _id"), twice, ""},
		{paged, twice, ""},
		{paged + file, []any{page(9, 8), page(7, 9), page(6)}, ""},
		{paged + file, []any{unnamed, map[string]any{"more": true, "at": 2, "data": unnamed["data"]}, page()}, "had the same rows as the page before"},
		{paged + file, []any{map[string]any{"more": true, "data": []any{1, map[string]any{"v": 1}}}, unnamed, page()}, ""},
	} {
		warnings := endedBy(t, test.lines, test.pages...).Warnings
		require.Contains(t, strings.Join(warnings, ""), test.says, "%v", test)
		require.Equal(t, test.says != "", len(warnings) == 1, "%v: %v", test, warnings)
	}
}

// TestMergeByOfRequests: two requests that give fields of the same rows give one list of whole rows; one without a partner is
// kept, with a warning.
func TestMergeByOfRequests(t *testing.T) {
	t.Parallel()
	type row = map[string]any
	const step = "    params: {fields: a}\n    rows: data\n    retry:\n      - when: \"{{ _retry.page == 1 }}\"\n" +
		"        then: {next_call: {params: {fields: b}}, collect: {merge_by: id}}\n"
	first := row{"data": []any{row{"id": 1, "a": 1}, row{"id": 2, "a": 2}}}
	whole := endedBy(t, step, first, row{"data": []any{row{"id": 2, "b": 4}, row{"id": 1, "b": 3}}})
	require.Empty(t, whole.Warnings)
	require.Equal(t, []any{row{"id": 1, "a": 1, "b": 3}, row{"id": 2, "a": 2, "b": 4}}, whole.Data.Data)
	alone := endedBy(t, step, first, row{"data": []any{row{"id": 1, "b": 3}}})
	require.Equal(t, []string{"step fetch: merge_by: 1 of 2 rows occurred less often than others and may lack fields; the first is id 2"}, alone.Warnings)
	require.Equal(t, []any{row{"id": 1, "a": 1, "b": 3}, row{"id": 2, "a": 2}}, alone.Data.Data)
}

// TestOlderRowsOfAKey: a sink that keeps the last row of a key has a warning where that is not the newest.
func TestOlderRowsOfAKey(t *testing.T) {
	t.Parallel()
	type row = map[string]any
	const step = "    params: {since: \"{{ incremental.value }}\"}\n    incremental: {cursor_path: at, initial_value: \"2024-01-01\"}\n    sink: {tool: sqlite, path: a.db, table: t, mode: upsert, key: id"
	older := []any{row{"id": 1, "at": "2024-01-06"}, row{"id": 2, "at": "2024-01-04"}, row{"id": 1, "at": "2024-01-05"}}
	newer := []any{older[2], older[1], older[0]}
	for _, test := range []struct {
		sink string
		rows []any
		n    int
	}{{"}\n", older, 1}, {"}\n", newer, 0}, {", sequence_by: at}\n", older, 0}, {"}\n", []any{row{"at": "2024-01-06"}, row{"at": "2024-01-05"}}, 0}} {
		c := &callCase{visit: 1, body: "workflow:\n  - step: fetch\n    tool: http\n    url: http://x/\n" + step + test.sink}
		config := c.call(t).Config()
		own := (&watermark.Watermark{}).CountOlder(config.Step.Incremental, test.rows, config.Book.UnsequencedKey(config.Step))
		require.Equal(t, test.n, own.Older, "%v", test)
		require.Len(t, own.Warnings(config.Step.Incremental, "step fetch", false, ""), test.n)
	}
}

// TestPagesBehind: a page that has an older row than an earlier page is behind, until the next one.
func TestPagesBehind(t *testing.T) {
	t.Parallel()
	const step = "    params: {since: \"{{ incremental.value }}\"}\n    incremental: {cursor_path: at, initial_value: \"2024-01-01\"}\n"
	c := &callCase{visit: 1, body: "workflow:\n  - step: fetch\n    tool: http\n    url: http://x/\n" + step}
	section := c.call(t).Config().Step.Incremental
	own := &watermark.Watermark{}
	for _, page := range []struct {
		at     []string
		behind bool
	}{{[]string{"2024-01-06", "2024-01-04"}, false}, {[]string{"2024-01-06", "2024-01-05"}, true}, {[]string{"2024-01-06"}, false}, {[]string{"2024-01-08"}, false}, {[]string{"2024-01-07"}, true}} {
		rows := make([]any, len(page.at))
		for i, at := range page.at {
			rows[i] = map[string]any{"id": 1, "at": at}
		}
		next, failure := own.Read(section, rows, tables.Started)
		require.Nil(t, failure)
		require.Equal(t, page.behind, next.Behind, "%v", page.at)
		own = next
	}
}

// TestRequestsFromTheLastRow: a request that continues from a value that rows share may leave out rows, or return one twice.
func TestRequestsFromTheLastRow(t *testing.T) {
	t.Parallel()
	at := func(id int, at string) any {
		return map[string]any{"id": id, "at": at, "of": map[string]any{"time": at}}
	}
	page := func(rows ...any) any { return map[string]any{"data": rows, "more": len(rows) > 1, "next": "b"} }
	const (
		pages   = "    rows: data\n    retry:\n      - {when: \"{{ response.more }}\", then: {next_call: {%s}}}\n"
		insert  = "    sink: {tool: sqlite, path: a.db, table: t%s}\n"
		upsert  = ", mode: upsert, key: id"
		byTime  = `params: {after: "{{ response.data[-1].at }}"}`
		missing = "the request for page %d continues from the %s of the last row (%s), but several rows have the same"
		twice   = "page 2 begins with the last row of page 1, because the source includes the %s"
	)
	tied, apart := page(at(1, "a"), at(2, "b"), at(3, "b")), page(at(1, "a"), at(2, "b"))
	for _, test := range []struct {
		next, sink string
		pages      []any
		want       string
	}{
		{byTime, upsert, []any{tied, page(at(4, "c"))}, fmt.Sprintf(missing, 2, "at", "b")},
		{`body: {query: {after: "{{ last(response.data).of.time }}"}}`, upsert, []any{tied, page(at(4, "c"))}, fmt.Sprintf(missing, 2, "of.time", "b")},
		{`params: {before: "{{ min(map(page.data, .at)) }}"}`, upsert, []any{page(at(3, "c"), at(2, "b"), at(1, "b")), page(at(4, "a"))}, fmt.Sprintf(missing, 2, "at", "b")},
		{byTime, upsert, []any{page(at(1, "a"), at(2, "a"), at(3, "b")), page(at(5, "c"))}, fmt.Sprintf(missing, 2, "at", "b")},
		{byTime, upsert, []any{tied, page(at(3, "b"), at(4, "c")), page(at(5, "d"))}, fmt.Sprintf(missing, 3, "at", "c")},
		{byTime, upsert, []any{tied, page(at(3, "b"), at(4, "c")), page(at(4, "c"))}, ""},
		{byTime, upsert, []any{apart, page(at(4, "c"))}, ""},
		{byTime, upsert, []any{apart, page(at(2, "b"))}, ""},
		{byTime, upsert, []any{tied, page()}, ""},
		{byTime, "", []any{apart, page(at(2, "b"))}, fmt.Sprintf(twice, "at")},
		{`params: {after: "{{ response.next }}"}`, "", []any{tied, page(at(4, "c"))}, ""},
		{`params: {after: "{{ response.data[-1].id }}"}`, "", []any{tied, page(at(4, "c"))}, ""},
		{`params: {offset: "{{ len(response.data) }}"}`, upsert, []any{page(at(7, "3"), at(8, "3"), at(9, "3")), page(at(4, "c"))}, ""},
	} {
		result := endedBy(t, fmt.Sprintf(pages, test.next)+fmt.Sprintf(insert, test.sink), test.pages...)
		if test.want == "" {
			require.Empty(t, result.Warnings, "%v", test)
			continue
		}
		require.Len(t, result.Warnings, 1, "%v", test)
		require.Contains(t, result.Warnings[0], test.want)
	}
}

// TestPollsWithRows: rows of the responses of polls are not collected, so they must be in the last response.
func TestPollsWithRows(t *testing.T) {
	t.Parallel()
	type row = map[string]any
	const polls = "    %s\n    retry:\n      - {when: \"{{ response.more }}\", then: {delay: 0}}\n      - {when: \"{{ response.further }}\", then: {next_call: {params: {page: 2}}}}\n"
	answer := func(more bool, ids ...any) any {
		return row{"more": more, "data": lists.Map(ids, func(id any) any { return row{"id": id} }), "logs": []any{more}}
	}
	for _, test := range []struct {
		rows  string
		pages []any
		polls int
	}{
		{"rows: data", []any{answer(true, 1), answer(true, 2), answer(false, 3)}, 2},
		{"rows: data", []any{answer(true, 1), answer(false)}, 1},
		{"collect: {path: data}", []any{answer(true, 1), answer(false)}, 1},
		{"rows: data", []any{answer(true, 1), answer(true, 1, 2), answer(false, 0, 1, 2)}, 0},
		{"rows: data", []any{answer(true), answer(false, 1)}, 0},
		{"rows: data", []any{answer(true, 1), row{"further": true, "data": []any{row{"id": 1}}}, answer(false, 2)}, 0},
		{"rows: data", []any{row{"more": true}, answer(false, 1)}, 0},
		{"desc: a job", []any{answer(true, 1), answer(false)}, 0},
	} {
		result := endedBy(t, fmt.Sprintf(polls, test.rows), test.pages...)
		if test.polls == 0 {
			require.Empty(t, result.Warnings, "%v", test)
			continue
		}
		require.Len(t, result.Warnings, 1, "%v", test)
		require.Contains(t, result.Warnings[0], source.Count(test.polls, "earlier response")+" had rows that no page has")
	}
}

// TestElementsThatFailed: a response may say of each element whether it failed, as that of a bulk request.
func TestElementsThatFailed(t *testing.T) {
	t.Parallel()
	type row = map[string]any
	ok, bad := row{"id": 1, "status": 201}, row{"id": 2, "status": 422, "error": row{"message": "no name"}}
	const sink = "    sink: {tool: http, method: POST, url: http://x/bulk, body: \"{{ result }}\"}\n"
	for _, test := range []struct {
		lines  string
		status int
		answer any
		want   string
	}{
		{"", http.StatusMultiStatus, row{"results": []any{ok, bad}}, "1 element failed in response.results"},
		{"", http.StatusMultiStatus, []any{row{"code": "404"}, row{"success": false}}, "2 elements failed in response"},
		{"", http.StatusMultiStatus, []any{ok, ok}, ""},
		{"", http.StatusOK, row{"results": []any{ok, bad}}, ""},
		{"    next: [{when: \"{{ any(send.results, .status >= 400) }}\", step: other}]\n  - step: other\n    tool: http\n    url: http://x/\n", http.StatusMultiStatus, row{"results": []any{ok, bad}}, ""},
		{sink, http.StatusOK, row{"results": []any{ok, bad}}, "1 element failed in response.results"},
		{sink, http.StatusOK, []any{row{"success": true, "errors": []any{}}, row{"success": false, "errors": []any{"locked"}}}, "1 element failed in response"},
		{sink, http.StatusOK, []any{row{"index": ok}, row{"index": bad}}, "1 element failed in response"},
		{sink, http.StatusOK, []any{row{"id": 7, "status": 404}, row{"id": 8, "error": "seen"}}, ""},
		{sink, http.StatusMultiStatus, []any{row{"id": 7, "status": 404}}, "1 element failed in response"},
	} {
		c := &callCase{visit: 1, body: "workflow:\n  - step: send\n    tool: http\n    url: http://x/\n" + test.lines}
		machine := c.call(t)
		answer := interpreter.Outcome{Data: test.answer, Meta: interpreter.ToolMeta{Status: test.status}}
		if test.lines == sink {
			machine.ApplyOutcome(interpreter.Outcome{Data: []any{}, Meta: interpreter.ToolMeta{Status: http.StatusOK}}, tables.Started)
			machine = machine.Next(tables.Started).Sink
		}
		require.Equal(t, call.DoAttempt, machine.Next(tables.Started).Kind)
		machine.ApplyOutcome(answer, tables.Started)
		warnings := machine.Next(tables.Started).Result.Warnings
		if test.want == "" {
			require.Empty(t, warnings, "%v", test)
			continue
		}
		require.Len(t, warnings, 1, "%v", test)
		require.Contains(t, warnings[0], test.want)
	}
}
