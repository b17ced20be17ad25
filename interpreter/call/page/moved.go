package page

import (
	"fmt"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// A source that gets a row while pages are read moves others to the next page, where they come again. A row that has an ID and
// equals one at the end of the page before is such a row.

// PageEnd describes the rows at the end of the previous page. Kept with the state of the call.
type PageEnd struct {
	Rows []string `json:"rows,omitempty"` // digests of those that have an ID
	Page int      `json:"page"`
	// Reported says that a warning was given: later pages of the call give no other.
	Reported bool `json:"reported,omitempty"`
}

// idNames are the names of members that distinguish rows.
var idNames = []string{"id", "uuid", "guid", "key", "sysid", "objectid"}

// MovedText describes a row with which a page begins although the page before ended with it; "" for none. It notes the rows at
// the end of this page for the next one. contribution is what the page contributed, and number that of the page.
func (p *Pages) MovedText(contribution any, number int) string {
	before := p.End
	if before != nil && before.Reported {
		return ""
	}
	rows, _ := contribution.([]any)
	if len(rows) == 0 {
		p.End = nil
		return ""
	}
	text := ""
	if id := rowID(rows[0]); id != "" && before != nil && slices.Contains(before.Rows, expression.ShortDigest(rows[0])) {
		text = fmt.Sprintf("page %d begins with a row from the end of page %d (%s), so rows moved while the pages were read, or the pages overlap: such rows come twice; "+
			"request a stable order, or write them with mode: upsert and a key", number, before.Page, playbook.ShortenText(id))
	}
	p.End = &PageEnd{Page: number, Reported: text != ""}
	for _, row := range rows[max(0, len(rows)-comparedRows):] {
		if text == "" && rowID(row) != "" {
			p.End.Rows = append(p.End.Rows, expression.ShortDigest(row))
		}
	}
	return text
}

// rowID returns the name and the value of the member that distinguishes a row from others; "" if it has none.
func rowID(row any) string {
	object, _ := row.(map[string]any)
	for _, key := range playbook.SortedKeys(object) {
		if !slices.Contains(idNames, plainName([]any{key})) {
			continue
		}
		switch value := object[key].(type) {
		case nil, bool, []any, map[string]any:
		default:
			if text := expression.Text(value); text != "" {
				return key + " " + text
			}
		}
	}
	return ""
}
