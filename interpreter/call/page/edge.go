package page

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// A policy may continue from a value of the last row instead of a cursor that the API gives. If rows share such values, a source that
// returns only rows behind the last one skips further rows with its value; one that includes it returns the last row twice.

// Edge describes the last row of a page, from which the current request continues. Kept with the state of the call.
type Edge struct {
	List  []string `json:"list,omitempty"` // path of the list of rows in a page
	Field []string `json:"field"`          // path of the value in a row
	Value string   `json:"value"`
	Row   string   `json:"row"` // digest of the last row
	Page  int      `json:"page"`
	// Shared says that some rows that follow each other have the same value.
	Shared bool `json:"shared,omitempty"`
	// Reported says that a warning was given: later pages of the call give no other.
	Reported bool `json:"reported,omitempty"`
}

// lastRow matches expressions that take a value from the last row, or from the largest or smallest of all.
var lastRow = regexp.MustCompile(`-\s*1\s*\]|\b(?:last|max|min)\b`)

// NoteEdge notes the row from which the next request continues, if its parameters or its body have a value of that row. page is the
// response, params and body those of the next request, and number that of the page.
func (p *Pages) NoteEdge(next *playbook.NextCall, page, params, body any, number int) {
	before := p.Edge
	if before != nil && before.Reported {
		return
	}
	p.Edge = nil
	edge := findEdge(next.Params, params, page)
	if edge == nil {
		edge = findEdge(next.Body, body, page)
	}
	if edge == nil {
		return
	}
	edge.Shared = edge.Shared || before != nil && before.Shared && slices.Equal(before.Field, edge.Field)
	edge.Page, p.Edge = number, edge
}

// findEdge returns the row of which a template in a node gave the value; nil for none.
func findEdge(node *playbook.Node, value, page any) *Edge {
	if node == nil {
		return nil
	}
	for _, entry := range node.Entries {
		if edge := findEdge(entry.Value, expression.MapMember(value, entry.Key), page); edge != nil {
			return edge
		}
	}
	if node.Template == nil || !lastRow.MatchString(node.Raw) {
		return nil
	}
	text := expression.Text(value)
	if text == "" {
		return nil
	}
	for _, ref := range node.Template.Refs() {
		path := playbook.ConstantMembers(ref.Path)
		rows := listAt(page, path)
		if ref.Root != "response" && ref.Root != "page" || len(rows) == 0 {
			continue
		}
		last := rows[len(rows)-1]
		field := fieldWith(last, text, wordsOf(node.Raw))
		if field == nil {
			continue
		}
		edge := &Edge{List: path, Field: field, Value: text, Row: expression.ShortDigest(last)}
		for i := 1; i < len(rows) && !edge.Shared; i++ {
			edge.Shared = edge.valueOf(rows[i-1]) == edge.valueOf(rows[i])
		}
		return edge
	}
	return nil
}

// listAt returns the list at a path, nil if there is none.
func listAt(page any, path []string) []any {
	list, _ := expression.FollowKeys(page, keysOf(path))
	rows, _ := list.([]any)
	return rows
}

func keysOf(path []string) []any {
	keys := make([]any, len(path))
	for i, key := range path {
		keys[i] = key
	}
	return keys
}

// fieldWith returns the path of the value in a row that has the text and that one of the names leads to; nil for none.
func fieldWith(row any, text string, names []string) []string {
	object, _ := row.(map[string]any)
	for _, key := range playbook.SortedKeys(object) {
		if !slices.Contains(names, key) {
			continue
		}
		switch value := object[key].(type) {
		case map[string]any:
			if inner := fieldWith(value, text, names); inner != nil {
				return append([]string{key}, inner...)
			}
		case bool, []any, nil:
		default:
			if expression.Text(value) == text {
				return []string{key}
			}
		}
	}
	return nil
}

// wordsOf returns the names in an expression, and other words.
func wordsOf(expr string) []string {
	return strings.FieldsFunc(expr, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func (e *Edge) valueOf(row any) string {
	value, _ := expression.FollowKeys(row, keysOf(e.Field))
	return expression.Text(value)
}

// EdgeText describes rows that may be missing, or that are written twice, at the beginning of a page whose request continued from
// the last row; "" for none. inserts says that a sink writes equal rows twice.
func (p *Pages) EdgeText(page any, inserts bool) string {
	edge := p.Edge
	if edge == nil || edge.Reported {
		return ""
	}
	rows := listAt(page, edge.List)
	if len(rows) == 0 {
		return ""
	}
	field, text := strings.Join(edge.Field, "."), ""
	switch {
	case inserts && expression.ShortDigest(rows[0]) == edge.Row:
		text = fmt.Sprintf("page %d begins with the last row of page %d, because the source includes the %s from which a request continues: such rows are written twice; "+
			"use mode: upsert with a key", edge.Page+1, edge.Page, field)
	case edge.Shared && edge.valueOf(rows[0]) != edge.Value:
		text = fmt.Sprintf("the request for page %d continues from the %s of the last row (%s), but several rows have the same %s, and the page begins behind it: further rows with this value may be missing; "+
			"continue from a value that no two rows share, such as an ID", edge.Page+1, field, playbook.ShortenText(edge.Value), field)
	default:
		return ""
	}
	reported := *edge
	reported.Reported = true
	p.Edge = &reported
	return text
}

// PolledRows describes rows in the responses of polls, which are not collected. Kept with the state of the call.
type PolledRows struct {
	Polls int    `json:"polls"`
	Row   string `json:"row"` // digest of the first row of the last such response
}

// NotePoll notes the rows of a response after which the same request is sent again.
func (p *Pages) NotePoll(rows []any) {
	if len(rows) == 0 {
		return
	}
	polled := PolledRows{Polls: 1, Row: expression.ShortDigest(rows[0])}
	if p.Polled != nil {
		polled.Polls += p.Polled.Polls
	}
	p.Polled = &polled
}

// PolledText describes rows of polls that no page has; "" for none. rows are those of a page, and ends says that it is the last one.
// A job that runs may return a part of the rows that it has in the end.
func (p *Pages) PolledText(rows []any, ends bool) string {
	if p.Polled == nil {
		return ""
	}
	if slices.ContainsFunc(rows, func(row any) bool { return expression.ShortDigest(row) == p.Polled.Row }) {
		p.Polled = nil
		return ""
	}
	if !ends {
		return ""
	}
	responses := "1 earlier response"
	if p.Polled.Polls > 1 {
		responses = fmt.Sprintf("%d earlier responses", p.Polled.Polls)
	}
	return responses + " had rows that no page has, because a policy without next_call does not collect responses; " +
		"if each response is a page, add next_call: {params: {}} and allow_repeat: true"
}
