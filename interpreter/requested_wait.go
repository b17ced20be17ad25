package interpreter

import (
	"fmt"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/ratelimit"
)

// ReadWait reads what retry_after gives, by the headers of the answer whose clock it
// means. Nil and an empty text are no wait, and so are one of nothing and a time that is
// over; unread says what cannot be read.
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
		return 0, fmt.Sprintf("retry_after is the text %s, expected %s", ratelimit.ShownWait(text), ratelimit.WaitForms)
	}
	return wait, ""
}
