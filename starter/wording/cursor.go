package wording

import (
	"reprise/internal/base/terminal"
	"reprise/interpreter/expression"
)

// mostCursor is how much of a cursor is shown, in characters: a token may be long.
const mostCursor = 200

// CursorText is a cursor for people.
func CursorText(cursor expression.Value) string {
	if cursor.Data == nil {
		return "-"
	}
	return terminal.Shorten(expression.Text(cursor.Data), mostCursor)
}
