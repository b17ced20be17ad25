package page_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/call/page"
)

// TestInnerPages: a list within a row that goes on is found by the names that APIs use, and what describes the page itself,
// or a column of the row, is not taken for one. It passes mostInnerRows and mostInnerLevels.
func TestInnerPages(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	few := []any{object{"id": 1}}
	deep := any(object{"comments": object{"data": few, "has_more": true}})
	for range 6 {
		deep = []any{object{"below": deep}}
	}
	many := make([]any, 1001)
	for i := range many {
		many[i] = object{"id": i}
	}
	many[1000] = object{"comments": object{"data": few, "has_more": true}}
	for name, c := range map[string]struct {
		row  any
		want string
	}{
		"GraphQL":              {object{"comments": object{"nodes": few, "pageInfo": object{"hasNextPage": true, "endCursor": "x"}}}, "comments.pageInfo.hasNextPage"},
		"GraphQL, the end":     {object{"comments": object{"nodes": few, "pageInfo": object{"hasNextPage": false, "endCursor": "x"}}}, ""},
		"Stripe":               {object{"refunds": object{"data": few, "has_more": true, "url": "/v1/refunds"}}, "refunds.has_more"},
		"Stripe, the end":      {object{"refunds": object{"data": few, "has_more": false, "url": "/v1/refunds"}}, ""},
		"Graph API":            {object{"comments": object{"data": few, "paging": object{"cursors": object{"after": "x"}, "next": "https://x/"}}}, "comments.paging.next"},
		"Graph API, the end":   {object{"comments": object{"data": few, "paging": object{"cursors": object{"after": "x"}}}}, ""},
		"JSON:API":             {object{"items": object{"data": few, "links": object{"next": "https://x/"}}}, "items.links.next"},
		"OData":                {object{"Orders": few, "Orders@odata.nextLink": "https://x/"}, "Orders@odata.nextLink"},
		"Salesforce":           {object{"Contacts": object{"records": few, "done": false, "nextRecordsUrl": "/q"}}, "Contacts.nextRecordsUrl"},
		"below another list":   {object{"tasks": []any{object{"notes": object{"items": few, "nextPageToken": "x"}}}}, "notes.nextPageToken"},
		"no list":              {object{"more": object{"has_more": true}}, ""},
		"a column":             {object{"text": object{"tags": []any{"a"}, "truncated": true}}, ""},
		"a number":             {object{"queue": object{"jobs": few, "next": 7}}, ""},
		"deeper than rows are": {deep, ""},
	} {
		got := ""
		for _, inner := range page.InnerPages(object{"data": []any{c.row}, "has_more": true}) {
			got += inner.Path()
		}
		require.Equal(t, c.want, got, name)
	}
	require.Empty(t, page.InnerPages(many))
	require.Len(t, page.InnerPages(many[1:]), 1)
	require.Empty(t, page.InnerPages(object{"data": few, "has_more": true}), "that of the response")
}

// TestInnerPagesThatAreRead: expressions and Python name field and sign on a line, the query of GraphQL does not count.
func TestInnerPagesThatAreRead(t *testing.T) {
	t.Parallel()
	inner := page.InnerPage{Field: "comments", Sign: "pageInfo.hasNextPage"}
	for text, want := range map[string]string{
		`query: "{ issues { nodes { comments(first: 10) { nodes { id } pageInfo { hasNextPage } } } } }"`: "false true",
		`in: "{{ filter(issues, .comments.pageInfo.hasNextPage) }}"`:                                      "true true",
		`if row.get("comments", {}).get("pageInfo", {}).get("hasNextPage"):`:                              "true true",
		`sink: {tool: sqlite, path: a.db, table: t, exclude: [comments]}`:                                 "true true",
		"children: {comments: comments}":                                                                  "false true",
		`args: {id: "{{ row.id }}"}`:                                                                      "false false",
	} {
		require.Equal(t, want, fmt.Sprint(inner.IsRead([]byte(text)), inner.IsNamed([]byte(text))), text)
	}
}
