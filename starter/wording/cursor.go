package wording

import (
	"reprise/internal/base/terminal"
	"reprise/interpreter/expression"
)

// shownCursor bounds how much of a cursor is shown, in characters: a token may be long.
const shownCursor = 200

// CursorText returns a cursor for people.
func CursorText(cursor expression.Value) string {
	if cursor.Data == nil {
		return "-"
	}
	return terminal.Shorten(expression.Text(cursor.Data), shownCursor)
}
