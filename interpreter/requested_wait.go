package interpreter

import (
	"fmt"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/ratelimit"
)

// ReadWait parses the value of retry_after, relative to the Date header of the response if it has one. Nil, an
// empty text, zero and past times mean no wait; unread says why the value cannot be parsed.
func ReadWait(value any, headers map[string]string, now time.Time) (wait time.Duration, unread string) {
	switch value.(type) {
	case nil:
		return 0, ""
	case bool, []any, map[string]any:
		return 0, fmt.Sprintf("retry_after is a %s, expected %s", expression.TypeName(value), ratelimit.WaitForms)
	}
	text := strings.TrimSpace(expression.Text(value))
	wait, readable := ratelimit.ParseWait(text, ratelimit.AnsweredAt(headers, now))
	if !readable && text != "" {
		return 0, fmt.Sprintf("retry_after is the text %s, expected %s", ratelimit.QuoteWait(text), ratelimit.WaitForms)
	}
	return wait, ""
}
