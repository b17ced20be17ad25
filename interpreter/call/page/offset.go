package page

import (
	"fmt"
	"net/url"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// An offset that is counted in pages leaves out rows if the API gives fewer per page than the policy counts: many cap what a request asks
// for. That the next page has rows shows that this was not the last one.

// SkippedRows describes a request whose offset is behind rows that the page before it did not have. Kept with the state of the call.
type SkippedRows struct {
	Param string `json:"param"`
	By    int    `json:"by"`   // how far the offset moved
	Rows  int    `json:"rows"` // what the page had
	Page  int    `json:"page"` // number of that page
	// Reported says that a page with rows has followed, and a warning was given: later pages of the call give no other.
	Reported bool `json:"reported,omitempty"`
}

var (
	// offsetNames are the names of parameters that count rows.
	offsetNames = []string{"offset", "skip", "startat", "startindex", "startrow", "firstresult"}
	// startNames may also be those of times, unless the request names as many rows.
	startNames = []string{"start", "from"}
	sizeNames  = []string{"limit", "rows", "size", "pagesize", "perpage", "count", "maxresults", "num", "take", "top"}
)

// NoteOffset compares the parameters of two requests of a call that follow each other, of which the first had rows. Only an offset that
// the policy computes without reading the response is compared: a response may know better.
func (p *Pages) NoteOffset(next *playbook.NextCall, before, after any, rows, number int) {
	if p.Skipped != nil && p.Skipped.Reported {
		return
	}
	p.Skipped = nil
	if next.Params == nil || rows <= 0 {
		return
	}
	for _, entry := range next.Params.Entries {
		if !entry.Value.UsesAny("_retry") || entry.Value.UsesAny("response", "page", "pages", "this", "result", "data") {
			continue
		}
		from, isFrom := totalOf(expression.MapMember(before, entry.Key)).(int)
		to, isTo := totalOf(expression.MapMember(after, entry.Key)).(int)
		by := to - from
		if !isFrom || !isTo || by <= rows {
			continue
		}
		if name := plainName([]any{entry.Key}); slices.Contains(offsetNames, name) || slices.Contains(startNames, name) && namesSize(after, by) {
			p.Skipped = &SkippedRows{Param: entry.Key, By: by, Rows: rows, Page: number}
		}
	}
}

// namesSize reports whether a parameter requests that many rows.
func namesSize(params any, rows int) bool {
	object, _ := params.(map[string]any)
	return slices.ContainsFunc(playbook.SortedKeys(object), func(key string) bool {
		return slices.Contains(sizeNames, plainName([]any{key})) && totalOf(object[key]) == rows
	})
}

// SkippedText describes rows that the request of a page with rows has left out; "" for none, and if it has described some before.
func (p *Pages) SkippedText(rows int) string {
	skipped := p.Skipped
	if skipped == nil || skipped.Reported || rows <= 0 {
		return ""
	}
	reported := *skipped
	reported.Reported = true
	p.Skipped = &reported
	return fmt.Sprintf("page %d had %d rows, but %s advanced by %d, and more pages followed: the rows in between are missing. The API may return fewer rows than requested, "+
		"so advance by the number of rows that arrived, such as len(pages)", skipped.Page, skipped.Rows, skipped.Param, skipped.By)
}

// numberNames are the names of parameters that number pages.
var numberNames = []string{"page", "pageno", "pagenum", "pagenumber", "pageindex", "currentpage"}

// CountingParam returns the parameter by which a request counts the pages or rows before those that it wants: one of its params or body, or of
// the query of its url. "" for none. Such a page begins elsewhere once rows before it have gone.
func CountingParam(fields map[string]expression.Value) string {
	places := []any{fields[playbook.FieldParams].Data, fields[playbook.FieldBody].Data}
	if text, isText := fields[playbook.FieldURL].Data.(string); isText {
		if at, err := url.Parse(text); err == nil {
			query := map[string]any{}
			given := at.Query()
			for _, name := range playbook.SortedKeys(given) {
				query[name] = given.Get(name)
			}
			places = append(places, query)
		}
	}
	for _, place := range places {
		object, _ := place.(map[string]any)
		for _, key := range playbook.SortedKeys(object) {
			name := plainName([]any{key})
			if _, counts := totalOf(object[key]).(int); counts && (slices.Contains(offsetNames, name) || slices.Contains(numberNames, name)) {
				return key
			}
		}
	}
	return ""
}
