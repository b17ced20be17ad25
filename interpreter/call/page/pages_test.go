package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter/call/page"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// policies are those of a step whose retry has these lines.
func by(t *testing.T, lines string) page.Collecting {
	t.Helper()
	step := tables.DecodeBody(t, "workflow:\n  - step: fetch\n    tool: http\n    url: http://x\n"+lines).Steps[0]
	return page.Collecting{Policies: step.Retry, Step: step.PagesCollect()}
}

func policies(t *testing.T, lines string) page.Policies {
	t.Helper()
	return tables.DecodeBody(t, "workflow:\n  - step: fetch\n    tool: http\n    url: http://x\n    retry:\n"+lines).Steps[0].Retry
}

func collecting(how string) string {
	return "      - {when: \"{{ response.more }}\", then: {next_call: {params: {page: 2}}, collect: {" + how + "}}}\n"
}

var (
	another = retry.Decision{Ruling: retry.RulingRepeats, Policy: 1}
	ends    = retry.Decision{Ruling: retry.RulingStands}
)

// TestAdd: pages are collected by the policy that they match, and the last one by the collect used last.
func TestAdd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ how, first, last, contributed, collected string }{
		"append":            {"path: rows", `{"rows": [1, 2]}`, `{"rows": [3]}`, `[3]`, `[1,2,3]`},
		"append one":        {"path: row", `{"row": 1}`, `{"row": {"a": 2}}`, `{"a":2}`, `[1,{"a":2}]`},
		"replace":           {"path: rows, strategy: replace", `{"rows": [1]}`, `{"rows": [2]}`, `[2]`, `[2]`},
		"merge":             {"strategy: merge", `{"a": 1, "b": 1}`, `{"b": 2}`, `{"b":2}`, `{"a":1,"b":2}`},
		"a page has none":   {"path: rows, optional: true", `{"rows": [1]}`, `{}`, `null`, `[1]`},
		"no page has any":   {"path: rows, optional: true", `{}`, `{}`, `null`, `[]`},
		"no body":           {"path: rows", `{"rows": [1]}`, `null`, `null`, `[1]`},
		"no bodies":         {"path: rows", `null`, `null`, `null`, `[]`},
		"no body, whole":    {"strategy: append", `[1]`, `null`, `null`, `[1]`},
		"no body, replace":  {"strategy: replace", `[1]`, `null`, `null`, `[1]`},
		"no body, merge":    {"strategy: merge, path: a", `{"a": {"b": 1}}`, `null`, `null`, `{"b":1}`},
		"one without a key": {"path: rows, strategy: replace, optional: true", `{"rows": [1]}`, `{}`, `null`, `[1]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of, pages := by(t, "    retry:\n"+collecting(test.how)), page.Pages{}
			_, err := pages.CollectPage(of, another, expression.Of(tables.Value(t, test.first)), page.Extraction{})
			require.NoError(t, err)
			contributed, err := pages.CollectPage(of, ends, expression.Of(tables.Value(t, test.last)), page.Extraction{})
			require.NoError(t, err)
			require.JSONEq(t, test.contributed, tables.Encode(t, contributed.Data))
			data, collects := pages.CollectedResult(of)
			require.True(t, collects)
			require.JSONEq(t, test.collected, tables.Encode(t, data))
		})
	}
	pages := page.Pages{}
	_, err := pages.CollectPage(by(t, "    retry:\n"+collecting("path: rows")), another, expression.Of(map[string]any{"row": 1}), page.Extraction{})
	require.ErrorContains(t, err, `collect: the page has no "rows" (it has "row")`)
	selected, err := pages.CollectPage(by(t, "    retry:\n"+collecting("path: rows")), another, expression.Of(map[string]any{"rows": []any{1, 2}}), page.Extraction{Select: func(rows any) (any, error) {
		return rows.([]any)[:1], nil
	}})
	require.NoError(t, err)
	require.Equal(t, []any{1}, selected.Data)
	require.Equal(t, []any{1}, pages.Collected.Data)
}

// TestRepeats: a page is compared with the one before it alone.
// TestCollectorOfAPage: each page is collected by its policy, else by the step, and the page that ends the call by what was used last,
// else by the first policy that collects, else by the step.
func TestCollectorOfAPage(t *testing.T) {
	t.Parallel()
	const (
		own    = "      - {when: \"{{ response.a }}\", then: {next_call: {params: {page: 2}}, collect: {path: own}}}\n"
		none   = "      - {when: \"{{ response.b }}\", then: {next_call: {params: {page: 3}}}}\n"
		sink   = "      - {when: \"{{ response.b }}\", then: {next_call: {params: {page: 3}}, per_page: {sink: {tool: file, path: a}}}}\n"
		ending = 0
	)
	for name, test := range map[string]struct {
		step, policies string
		matched        []int // the policy of each page, of the last too
		want           string
	}{
		"no policies":                     {"collect: {path: step}", "", []int{ending}, `["step 1"]`},
		"a policy has none":               {"collect: {path: step}", none, []int{1, 1, ending}, `["step 1","step 2","step 3"]`},
		"each its own":                    {"collect: {path: step}", own + none, []int{1, 2, ending}, `["own 1","step 2","step 3"]`},
		"the policy was last":             {"collect: {path: step}", own + none, []int{2, 1, ending}, `["step 1","own 2","own 3"]`},
		"one page is the first policy's":  {"collect: {path: step}", own + none, []int{ending}, `["own 1"]`},
		"one page, and a policy has none": {"collect: {path: step}", none, []int{ending}, `["step 1"]`},
		"pages that a policy writes":      {"collect: {path: step}", sink, []int{1, ending}, `["step 1","step 2"]`},
		"replace":                         {"collect: {path: step, strategy: replace}", none, []int{1, ending}, `"step 2"`},
		"rows":                            {"rows: rows", none, []int{1, ending}, `[1,2]`},
		"rows of some policies":           {"rows: rows", strings.ReplaceAll(own, "path: own", "strategy: append") + none, []int{1, 2, ending}, `[1,2,3]`},
		"rows that replace":               {"rows: rows", strings.ReplaceAll(own, "path: own", "strategy: replace") + none, []int{1, 2, ending}, `[3]`},
		"where":                           {"where: row.id", none, []int{1, ending}, `[{"own":"own 1","rows":[1],"step":"step 1"},{"own":"own 2","rows":[2],"step":"step 2"}]`},
		"rows without pages":              {"rows: rows", "", []int{ending}, ""},
		"rows that a policy writes":       {"rows: rows", sink, []int{1, ending}, ""},
		"neither":                         {"desc: none", none, []int{1, ending}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			retries := ""
			if test.policies != "" {
				retries = "    retry:\n" + test.policies
			}
			of, pages := by(t, "    "+test.step+"\n"+retries), page.Pages{}
			for i, policy := range test.matched {
				decision := retry.Decision{Ruling: retry.RulingRepeats, Policy: policy}
				if policy == ending {
					decision = ends
				}
				_, err := pages.CollectPage(of, decision, expression.Of(tables.Value(t, fmt.Sprintf(`{"own": "own %[1]d", "step": "step %[1]d", "rows": [%[1]d]}`, i+1))), extraction(t, test.step))
				require.NoError(t, err)
			}
			data, collects := pages.CollectedResult(of)
			require.Equal(t, test.want != "", collects)
			if collects {
				require.JSONEq(t, test.want, tables.Encode(t, data))
			}
		})
	}
}

// extraction is that of a step which has a line.
func extraction(t *testing.T, line string) page.Extraction {
	t.Helper()
	return page.Extraction{Rows: tables.DecodeBody(t, "workflow:\n  - step: fetch\n    tool: http\n    url: http://x\n    "+line+"\n").Steps[0].Rows}
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	pages := page.Pages{}
	for i, want := range []struct {
		page    any
		repeats bool
	}{{1, false}, {2, false}, {2, true}, {1, false}, {nil, false}, {nil, true}} {
		require.Equal(t, want.repeats, pages.IsRepeatedPage(want.page), "page %d", i)
	}
}

// TestSameRows: pages whose rows are those of the page before are counted, whatever else they say.
func TestSameRows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pages []string
		same  int
	}{
		{[]string{`[{"id": 1}]`, `[{"id": 1}]`, `[{"id": 2}]`, `[{"id": 1}]`}, 1},
		{[]string{`{"at": 1, "rows": [1, 2]}`, `{"at": 2, "rows": [1, 2]}`, `{"at": 3, "rows": [1, 2]}`}, 2},
		{[]string{`{"meta": {"at": 1, "tags": ["x"]}, "data": {"rows": [1, 2]}}`, `{"meta": {"at": 2, "tags": ["y"]}, "data": {"rows": [1, 2]}}`}, 1},
		{[]string{`{"at": 1, "rows": []}`, `{"at": 2, "rows": []}`}, 0},
		{[]string{`[]`, `[]`, `null`, `null`, `{}`, `{}`}, 0},
		{[]string{`[1]`, `[]`, `[1]`}, 0},
	} {
		pages := page.Pages{}
		for _, one := range test.pages {
			pages.CompareRows(tables.Value(t, one))
		}
		require.Equal(t, test.same, pages.SameRows, "%s", test.pages)
	}
	pages := page.Pages{}
	pages.CompareRows(tables.Value(t, `[1]`))
	pages.StartSlice()
	pages.CompareRows(tables.Value(t, `[1]`))
	require.Zero(t, pages.SameRows, "of another slice")
}

// TestWrittenBy: the page that ends a call goes to the sink of the policy that paged last, else the first.
func TestWrittenBy(t *testing.T) {
	t.Parallel()
	const sink = "per_page: {sink: {tool: file, path: a}}"
	of := policies(t, "      - {when: \"{{ response.a }}\", then: {next_call: {params: {p: 1}}, "+sink+"}}\n"+
		"      - {when: \"{{ response.b }}\", then: {next_call: {params: {p: 2}}, "+sink+"}}\n"+
		"      - {when: \"{{ response.c }}\", then: {next_call: {params: {p: 3}}}}\n")
	repeats := func(policy int) retry.Decision { return retry.Decision{Ruling: retry.RulingRepeats, Policy: policy} }
	pages := page.Pages{}
	require.Equal(t, 1, pages.SinkPolicy(of, ends), "the first")
	require.Equal(t, 2, pages.SinkPolicy(of, repeats(2)))
	require.Zero(t, pages.SinkPolicy(of, repeats(3)), "it writes no pages")
	require.Equal(t, 2, pages.SinkPolicy(of, ends), "the one used last")
	none := page.Pages{}
	require.Zero(t, none.SinkPolicy(nil, ends))
}

// TestWriters: the sink of a policy gets the result where the policy pages, collects, or has matched.
func TestWriters(t *testing.T) {
	t.Parallel()
	const sink = "sink: {tool: file, path: a}"
	of := policies(t, "      - {when: \"{{ response.a }}\", then: {next_call: {params: {p: 1}}, "+sink+"}}\n"+
		"      - {when: \"{{ not response.ready }}\", then: {max_attempts: 3, "+sink+"}}\n")
	pages := page.Pages{}
	require.Equal(t, []int{1}, pages.SinkPolicies(of))
	pages.RecordMatches(2, 2)
	pages.RecordMatches(2)
	require.Equal(t, []int{2}, pages.Matched)
	require.Equal(t, []int{1, 2}, pages.SinkPolicies(of))
}

// TestCutShort: a last page without what the ones before had is suspicious, unless it has rows.
func TestCutShort(t *testing.T) {
	t.Parallel()
	of := policies(t, collecting("path: rows"))
	pages := page.Pages{}
	require.Empty(t, pages.CutShort(of, nil, nil), "no page asked for more")
	pages.RecordPaging(of[0], map[string]any{"more": true, "rows": []any{1}})
	require.Contains(t, pages.CutShort(of, map[string]any{}, nil), "lacks response.more")
	require.Contains(t, pages.CutShort(of, nil, nil), "lacks response.more, by which policy 1 requested more pages before")
	require.Empty(t, pages.CutShort(of, map[string]any{"more": false}, []any{}))
	require.Empty(t, pages.CutShort(of, map[string]any{"rows": []any{2}}, []any{2}), "it has rows")
}

// TestUncompared: a policy that compares what the only page does not have never pages, which is suspicious
// unless its condition says that the member may be missing.
func TestUncompared(t *testing.T) {
	t.Parallel()
	first := map[string]any{"rows": []any{1}, "meta": map[string]any{"page": 1, "pages": 3}}
	for condition, lacks := range map[string]string{
		"response.meta.page < response.meta.total":                `has no response.meta.total, which policy 1 compares to request the next page (it has "meta", "rows")`,
		"response.page < response.meta.pages":                     "has no response.page",
		"response.meta.page > response.meta.pages":                "",
		"response.meta.page < (response.meta.total | default(1))": "",
		"response.more and response.page < response.pages":        "",
		"response.rows[5].id > 3":                                 "",
		"response.next":                                           "",
		"response.next == 'more'":                                 "",
		"response.next is defined and response.next > 3":          "",
		"(response.total ?? 0) > response.meta.page":              "",
		"response?.total > response.meta.page":                    "",
		"(response.total if response.meta else 1) > 0":            "",
		// What only looks like a comparison, or like a part that allows for a missing member, is none.
		"response.meta.total > len('x ?? y or none')":                    "has no response.meta.total",
		"response.meta.total > response.meta['page'] + len('default()')": "has no response.meta.total",
		"response.get > 1":     "has no response.get",
		"response.next == '>'": "",
	} {
		of := policies(t, "      - {when: \"{{ "+condition+" }}\", then: {next_call: {params: {p: 1}}, collect: {path: rows}}}\n")
		pages := page.Pages{}
		got := pages.MissingMember(of, first)
		require.Contains(t, got, lacks, condition)
		require.Equal(t, lacks == "", got == "", condition)
		pages.RecordPaging(of[0], first)
		require.Empty(t, pages.MissingMember(of, first), "it has asked for more")
	}
	of := policies(t, "      - {when: \"{{ response.page < response.pages }}\", then: {max_attempts: 3}}\n")
	require.Empty(t, new(page.Pages).MissingMember(of, first), "a poll")
}

// TestMisspeltMember: a condition for the next page that names a member which the only page lacks, while it has one that is certainly
// meant, ends the call with its first page.
func TestMisspeltMember(t *testing.T) {
	t.Parallel()
	first := map[string]any{"rows": []any{1}, "has_more": true, "text": "x", "meta": map[string]any{"next": "a"}}
	for condition, says := range map[string]string{
		"response.has_mre":                        `has no response.has_mre, which policy 1 names to request the next page; it has "has_more"`,
		"response.hasMore":                        `has no response.hasMore, which policy 1 names to request the next page; it has "has_more"`,
		"response.meta.nxt":                       `has no response.meta.nxt, which policy 1 names to request the next page; it has "next"`,
		"response.hasMore and len(page) > 0":      "it has",
		"response.has_more":                       "",
		"response.next":                           "", // which is not text
		"response.cursor":                         "",
		"response.hasMore or response.has_more":   "",
		"response.hasMore is defined":             "",
		"(response.hasMore ?? false) or not page": "",
	} {
		of := policies(t, "      - {when: \"{{ "+condition+" }}\", then: {next_call: {params: {p: 1}}, collect: {path: rows}}}\n")
		pages := page.Pages{}
		got := pages.MisspeltMember(of, first)
		require.Contains(t, got, says, condition)
		require.Equal(t, says == "", got == "", condition)
		pages.RecordPaging(of[0], first)
		require.Empty(t, pages.MisspeltMember(of, first), "it has asked for more")
	}
}

// TestOptionalPathsThatAreWrong: an optional path that a page lacks is right, unless the page has a name that is certainly meant, or no page
// has the path and there are rows elsewhere.
func TestOptionalPathsThatAreWrong(t *testing.T) {
	t.Parallel()
	nested := map[string]any{"data": map[string]any{"items": []any{1}, "rows": []any{}}}
	for _, c := range []struct {
		path string
		last any
		says string
	}{
		{"data.itms", nested, `the page has no "data.itms", which collect reads; it has "items", so nothing is collected from it`},
		{"dta.items", nested, `the page has no "dta.items", which collect reads; it has "data", so nothing is collected from it`},
		{"data.items", nested, ""},
		{"data.rows", nested, ""},
		{"data.items[0].id", []any{}, ""},
		{"results", nested, `no page has "results", which collect reads, although the last page has a list in response.data.items, so nothing was collected`},
		{"data.*.id", []any{1}, `no page has "data.*.id", which collect reads, although the last page is a list, so nothing was collected`},
		{"results", map[string]any{"results": nil, "tags": []any{1}}, ""},
		{"results", map[string]any{"tags": []any{}}, ""},
		{"results", nil, ""},
	} {
		pages := &page.Pages{}
		require.Equal(t, c.says, pages.LacksPath(&playbook.Collect{Path: c.path, Optional: true, Strategy: playbook.Append}, nil, c.last), c.path)
		require.Empty(t, pages.LacksPath(&playbook.Collect{Path: c.path, Strategy: playbook.Append}, nil, c.last), "it is an error")
	}
	pages := &page.Pages{Collected: expression.Of([]any{1})}
	require.Empty(t, pages.LacksPath(&playbook.Collect{Path: "results", Optional: true, Strategy: playbook.Append}, nil, nested), "an earlier page had it")
	require.Empty(t, pages.LacksPath(nil, nil, nested))
	rows := &playbook.RowPath{Text: "results", Keys: []any{"results"}}
	require.Contains(t, pages.LacksPath(&playbook.Collect{Optional: true}, &playbook.RowPath{Text: "dta", Keys: []any{"dta"}}, nested), `it has "data"`)
	require.Contains(t, (&page.Pages{}).LacksPath(&playbook.Collect{Optional: true, Strategy: playbook.Append}, rows, []any{1}), `no page has "results"`)
}

// TestMembersThatMayBeLeftOut: whether an API may leave out a member on the last page is read from what the condition
// tests, not from words in its text.
func TestMembersThatMayBeLeftOut(t *testing.T) {
	t.Parallel()
	for condition, lacks := range map[string]bool{
		"response.more": true,
		"response.more and response.kind != 'none'":         true,
		"response.more and not none(response.rows, # == 0)": true,
		"response.more and response.null != 1":              true,
		"response.more is defined":                          false,
		"response.more == nil ? false : response.more":      false,
		"response.more ?? false":                            false,
		"response.more | default(false)":                    false,
	} {
		of := policies(t, "      - {when: \"{{ "+condition+" }}\", then: {next_call: {params: {p: 1}}, collect: {path: rows}}}\n")
		pages := page.Pages{}
		pages.RecordPaging(of[0], map[string]any{"more": true, "rows": []any{1}})
		last := pages.CutShort(of, map[string]any{"at": 1, "rows": []any{}}, []any{})
		require.Equal(t, lacks, last != "", "%s: %s", condition, last)
	}
}

// TestBelowPageSize: an only page of as many rows as APIs give at most, where a policy waits for more, may be the first of many.
func TestBelowPageSize(t *testing.T) {
	t.Parallel()
	for condition, warns := range map[string]map[int]bool{
		"len(response.rows) == 1000":               {0: false, 7: false, 99: false, 100: true, 101: false, 500: true, 1000: false, 2000: false},
		"len(response.rows) >= size":               {100: true, 37: false, 1000: false},
		"len(response.rows) > 0":                   {0: false, 100: false},
		"response.more":                            {100: false},
		"response.rows | length == size":           {50: true},
		"len(response.rows) == 500 and not failed": {50: true},
	} {
		for rows, warned := range warns {
			of := policies(t, "      - {when: \"{{ "+condition+" }}\", then: {next_call: {params: {p: 1}}, collect: {path: rows}}}\n")
			body := map[string]any{"rows": make([]any, rows), "more": false}
			scope := expression.MapScope{"response": body, "size": 1000, "failed": false}
			pages := page.Pages{}
			got := pages.BelowPageSize(of, func() expression.Scope { return scope }, expression.NewBudget(expression.DecisionLimits, time.Unix(0, 0)))
			require.Equal(t, warned, got != "", "%s of %d: %s", condition, rows, got)
			pages.RecordPaging(of[0], body)
			require.Empty(t, pages.BelowPageSize(of, func() expression.Scope { return scope }, expression.NewBudget(expression.DecisionLimits, time.Unix(0, 0))), "it has asked for more")
		}
	}
	of := policies(t, "      - {when: \"{{ len(response.rows) == 1000 }}\", then: {max_attempts: 3}}\n")
	scope := expression.MapScope{"response": map[string]any{"rows": make([]any, 100)}}
	require.Empty(t, new(page.Pages).BelowPageSize(of, func() expression.Scope { return scope }, expression.NewBudget(expression.DecisionLimits, time.Unix(0, 0))), "a poll")
}

// TestTravel: what one host collects is the same wherever parts of it are left behind.
func TestTravel(t *testing.T) {
	t.Parallel()
	of := by(t, "    retry:\n"+collecting("path: rows"))
	add := func(pages *page.Pages, from, to int) {
		for n := from; n < to; n++ {
			_, err := pages.CollectPage(of, another, expression.Of(map[string]any{"rows": []any{n}}), page.Extraction{})
			require.NoError(t, err)
		}
	}
	for before := range 4 {
		for mark := before; mark < 6; mark++ {
			t.Run(fmt.Sprintf("%d here, marked at %d", before, mark), func(t *testing.T) {
				t.Parallel()
				workflow, whole := page.Pages{}, page.Pages{}
				add(&whole, 0, 8)
				add(&workflow, 0, before)

				activity := workflow // the rest is collected elsewhere
				activity.Detach(of)
				require.Equal(t, before > 0, activity.Detached == before && activity.Detached > 0)
				add(&activity, before, mark)
				marked := activity
				require.Equal(t, mark, activity.CountElements())
				add(&activity, mark, 8)

				noted := activity // what a ledger has of it
				if activity.CountElements() > 0 && mark > 0 {
					require.True(t, noted.DropFirst(of, mark))
					require.Len(t, noted.Collected.Data, 8-mark)
					require.True(t, noted.PrependFirst(&marked, mark))
					noted.Attach(&workflow)
					require.Equal(t, whole.Collected, noted.Collected)
				}

				activity.Attach(&workflow)
				require.Equal(t, whole.Collected, activity.Collected)
				require.Zero(t, activity.Detached)
			})
		}
	}
	ahead := page.Pages{}
	require.False(t, ahead.PrependFirst(&page.Pages{}, 1), "there is less here than the entry says")
	replaced := page.Pages{Collected: expression.Of([]any{1})}
	replaced.Detach(by(t, "    retry:\n"+collecting("path: rows, strategy: replace")))
	require.Equal(t, []any{1}, replaced.Collected.Data, "a page that replaces the others goes along")
}

// TestAnswersThatAreParts: the status 206 or a header Content-Range says that there are more rows.
func TestAnswersThatAreParts(t *testing.T) {
	t.Parallel()
	pages := policies(t, "      - when: \"{{ len(page) == 2 }}\"\n        then: {next_call: {headers: {Range: \"items={{ _retry.page * 2 }}-\"}}, collect: {path: rows}}\n")
	for _, c := range []struct {
		status int
		header string
		paged  bool
		read   bool
		says   string
	}{
		{206, "", false, false, "the response has the status 206 (partial content), which no condition uses: there are more pages"},
		{206, "", true, false, ""},
		{206, "", false, true, ""},
		{200, "", false, false, ""},
		{206, "items 0-24/573", false, false, "the response has a header Content-Range of items 0-24/573, which no condition uses: there are more pages"},
		{200, "0-24/573", false, false, "the response has a header Content-Range of 0-24/573, which no condition uses"},
		{206, "0-24/573", true, false, "the response has a header Content-Range of 0-24/573, which no condition uses: there are more pages; use it in the `when` of policy 1"},
		{206, "0-24/573", true, true, ""},
		{206, "items 550-572/573", true, false, ""},
		{206, "items 0-24/*", true, false, ""},
		{206, "items 0-24/*", false, false, "the response has the status 206"},
		{206, "id ab..cd", false, false, "the response has the status 206"},
	} {
		unread := page.Unread{Answer: []any{}, Rows: 25, Status: c.status, Headers: map[string]string{"content-range": c.header}, LinksRead: c.read}
		if c.paged {
			unread.Policies = pages
		}
		if c.says == "" {
			require.Empty(t, unread.Warning(), "%+v", c)
			continue
		}
		require.Contains(t, unread.Warning(), c.says, "%+v", c)
	}
}

// TestEmptyPagesThatLeadOn: a page without rows ends a call in silence only if it leads nowhere. A cursor there is often that of the end.
func TestEmptyPagesThatLeadOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		next any
		says string
	}{
		{"next", "https://api.example.com/rows?page=3", "the response has response.next, which no condition uses: there are more pages"},
		{"nextPageToken", "a1", "the response has response.nextPageToken, which no condition uses"},
		{"@odata.nextLink", "https://api.example.com/rows?skip=9", "which no condition uses: there are more pages"},
		{"next", nil, ""},
		{"nextPageToken", "", ""},
		{"cursor", "a1", ""},
		{"next_cursor", "a1", ""},
	} {
		unread := page.Unread{Answer: map[string]any{"rows": []any{}, c.name: c.next}, Rows: 25, Status: 200}
		if c.says == "" {
			require.Empty(t, unread.Warning(), "%+v", c)
			continue
		}
		require.Contains(t, unread.Warning(), c.says, "%+v", c)
	}
}

// TestSignsOfMorePages: what APIs put beside their rows, or into headers, to say that there are more pages.
func TestSignsOfMorePages(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	rows := []any{object{"id": 1}, object{"id": 2}}
	for name, c := range map[string]struct {
		answer  object
		headers map[string]string
		pages   int
		says    string
	}{
		"last page by number":      {object{"data": rows, "meta": object{"current_page": 1, "last_page": 9}}, nil, 1, "response.meta.last_page is 9, but 1 page was read, and no condition uses it: there are more pages; write a policy with when: \"{{ _retry.page < response.meta.last_page }}\""},
		"pages from 0":             {object{"content": rows, "page": object{"number": 0, "totalPages": "7"}}, nil, 1, "response.page.totalPages is 7, but 1 page was read"},
		"all pages":                {object{"data": rows, "total_pages": 3}, nil, 3, ""},
		"the last page by request": {object{"data": rows, "total_pages": 3, "page": 3}, nil, 1, ""},
		"pages of a list":          {object{"data": rows, "pages": 3, "page": 1}, nil, 1, "response.pages is 3"},
		"pages of a book":          {object{"chapters": rows, "pages": 300}, nil, 1, ""},
		"no rows":                  {object{"data": []any{}, "total_pages": 3}, nil, 1, ""},
		"an empty page between":    {object{"data": []any{}, "total_pages": 3}, nil, 2, "response.total_pages is 3, but 2 pages were read"},
		"an empty page behind":     {object{"data": []any{}, "total_pages": 3}, nil, 4, ""},
		"an empty page, in header": {object{"data": []any{}}, map[string]string{"x-total-pages": "3"}, 2, "the response has a header X-Total-Pages of 3, but 2 pages were read"},
		"not the last":             {object{"data": rows, "isLast": false}, nil, 1, "response.isLast is false, and no condition uses it: there are more pages; write a policy with when: \"{{ not response.isLast }}\""},
		"not the last, as text":    {object{"data": rows, "last": "false"}, nil, 1, "when: \"{{ response.last == 'false' }}\""},
		"the last":                 {object{"data": rows, "isLast": true, "totalPages": 9}, nil, 1, ""},
		"cut":                      {object{"tree": rows, "truncated": true}, nil, 1, "the response has response.truncated, which"},
		"a name with a sign":       {object{"value": rows, "@odata.nextLink": "/rows?skip=2"}, nil, 1, "when: \"{{ response['@odata.nextLink'] }}\""},
		"total in a header":        {object{"data": rows}, map[string]string{"x-total-count": "2506"}, 1, "the response has a header X-Total-Count of 2506, but 2 rows were read, which no condition uses: there are more pages; write a policy with when: \"{{ len(pages) < int(this.meta.headers['x-total-count']) }}\""},
		"total reached":            {object{"data": rows}, map[string]string{"x-total-count": "2"}, 1, ""},
		"pages in a header":        {object{"data": rows}, map[string]string{"x-wp-totalpages": "5"}, 1, "the response has a header X-Wp-Totalpages of 5, but 1 page was read"},
		"next page in a header":    {object{"data": rows}, map[string]string{"x-next-page": "2"}, 1, "the response has a header X-Next-Page of 2, which"},
		"no next page":             {object{"data": rows}, map[string]string{"x-next-page": ""}, 1, ""},
		"a header of something":    {object{"data": rows}, map[string]string{"x-ratelimit-total": "5000"}, 1, ""},
	} {
		says := page.Unread{Answer: c.answer, Rows: 2, Pages: c.pages, Status: 200, Headers: c.headers}.Warning()
		if c.says == "" {
			require.Empty(t, says, name)
			continue
		}
		require.Contains(t, says, c.says, name)
	}
}
