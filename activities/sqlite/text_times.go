package sqlite

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"reprise/activities/sqltool"
	"reprise/interpreter/lists"
)

// SQLite has no type for times: it compares the texts, character by character. "2024-05-01T00:00:00Z" is behind all times of that day
// that are written with a space, so a statement that compares the two reads the wrong day.

var (
	timeWithT     = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d`)
	timeWithSpace = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d`)
	// comparedParam matches a parameter that is compared by order.
	comparedParam = regexp.MustCompile(`(?i)(?:[<>]=?|\bbetween|\band)\s*\?`)
	// convertsTimes matches a function that gives times in one form.
	convertsTimes = regexp.MustCompile(`(?i)\b(?:datetime|date|time|julianday|unixepoch|strftime|timediff|replace|substr|substring)\s*\(`)
)

// textTimeNotes returns a note if a statement compares times of two forms. declared are the columns that the driver reads as times,
// so that their values do not show how they are stored.
func textTimeNotes(ctx context.Context, conn *guardedConn, query *sqltool.BoundStatement, rows []any, declared []string) []string {
	at := slices.IndexFunc(query.Values, func(value any) bool {
		text, isText := value.(string)
		return isText && timeWithT.MatchString(text)
	})
	if at < 0 || len(rows) == 0 || query.Parsed.Verb() != "select" {
		return nil
	}
	statement := query.Parsed.NumberParams(query.Values, true, false).Text
	first, isMap := rows[0].(map[string]any)
	if !isMap || !comparedParam.MatchString(statement) || convertsTimes.MatchString(statement) {
		return nil
	}
	for _, column := range slices.Sorted(maps.Keys(first)) {
		stored, _ := first[column].(string)
		if slices.Contains(declared, column) {
			stored = storedText(ctx, conn, query, column)
		}
		if timeWithSpace.MatchString(stored) {
			return []string{fmt.Sprintf("SQLite compares times as texts, and %q is behind all times of its day that are written like %q, as column %s has them: "+
				"rows may be missing, or be those of another day; compare datetime(%s) with datetime({{ … }})", query.Values[at], stored, column, column)}
		}
	}
	return nil
}

// storedText returns a value of the first row as it is stored; "" if it cannot be read.
func storedText(ctx context.Context, conn *guardedConn, query *sqltool.BoundStatement, column string) (text string) {
	numbered := query.Parsed.NumberParams(query.Values, true, false)
	args := lists.Map(numbered.Order, func(index int) any { return typedParameter(query.Values[index]) })
	quoted := `"` + strings.ReplaceAll(column, `"`, `""`) + `"`
	if err := conn.queryRow(ctx, "SELECT "+quoted+" || '' FROM ("+strings.TrimRight(numbered.Text, "; \n\t")+"\n) LIMIT 1", args, &text); err != nil {
		return ""
	}
	return text
}
