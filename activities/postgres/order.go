package postgres

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/interpreter/incremental"
)

// textualTypes are types of texts that the server compares by a rule of their own.
var textualTypes = []string{"character", `"char"`, "name", "citext"}

// isTextual reports whether a type is a text type, in whatever schema an extension has created
// it.
func isTextual(name string) bool {
	name, _, _ = strings.Cut(name, "(")
	return slices.Contains(textualTypes, name[strings.LastIndexByte(name, '.')+1:])
}

// Regular expressions of times in the forms that expressions read: the extended and the basic one of ISO 8601, and that of HTTP. Each gives
// year, month, day, hour, minute, second, fraction, Z, sign, and hours, minutes and seconds of the offset.
const (
	offsetPattern   = `(?: *(?:(Z)|([+-])(\d\d)(?::?(\d\d)(?::(\d\d))?)?)| +(?:UTC))?`
	extendedPattern = `^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?:[T ] *([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d+))?)?` + offsetPattern + `)?$`
	basicPattern    = `^(\d{4})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])T *([01]\d|2[0-3])([0-5]\d)(?:([0-5]\d)(?:[.,](\d+))?)?` + offsetPattern + `$`
	httpPattern     = `^[A-Z][a-z]{2}, (\d\d) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (\d{4}) (\d\d):(\d\d):(\d\d) (?:GMT|([+-])(\d\d)(\d\d))$`
)

// instantExpression is SQL that converts a text to seconds since 1970, as numeric, which keeps all digits; NULL if
// the text is no time.
func instantExpression(text string, offset int) string {
	const (
		fromHTTP = `(SELECT ARRAY[h[3], (strpos('JanFebMarAprMayJunJulAugSepOctNovDec', h[2]) / 3 + 1)::text, h[1], h[4], h[5], h[6], NULL, ` +
			`CASE WHEN h[7] IS NULL THEN 'Z' END, h[7], h[8], h[9], NULL] FROM regexp_match(s, '` + httpPattern + `') AS h)`
		parts    = `coalesce(regexp_match(s, '` + extendedPattern + `'), regexp_match(s, '` + basicPattern + `'), ` + fromHTTP + `)`
		whole    = `extract(epoch FROM timestamp '2000-01-01' + make_interval(m[1]::int - 2000, m[2]::int - 1, 0, m[3]::int - 1, coalesce(m[4], '0')::int, coalesce(m[5], '0')::int, coalesce(m[6], '0')::int))::numeric`
		fraction = `('0.' || coalesce(m[7], '0'))::numeric`
		east     = `(m[9] || '1')::int * (m[10]::int * 3600 + coalesce(m[11], '0')::int * 60 + coalesce(m[12], '0')::int)`
	)
	return `(SELECT ` + whole + ` + ` + fraction + ` - CASE WHEN m[9] IS NOT NULL THEN ` + east + ` WHEN m[8] IS NOT NULL OR s ~ 'UTC$' THEN 0 ELSE ` +
		strconv.Itoa(offset) + ` END FROM (SELECT btrim(` + text + `::text)) AS given (s), LATERAL (SELECT ` + parts + `) AS read (m))`
}

// instantLiteral returns a time as instantExpression gives it.
func instantLiteral(at time.Time) string {
	nanoseconds := strconv.Itoa(at.Nanosecond())
	return "(" + strconv.FormatInt(at.Unix(), 10) + " + 0." + strings.Repeat("0", len("000000000")-len(nanoseconds)) + nanoseconds + ")"
}

// notOlderCondition compares texts as cursors, as sqltool.CompareCursors does.
func notOlderCondition(given, there string, as incremental.CursorType) string {
	byCodePoints := given + `::text COLLATE "C" >= ` + there + `::text COLLATE "C"`
	switch as {
	case incremental.Text:
		return byCodePoints
	case incremental.Integer:
		const number = `'^-?[0-9]+(\.[0-9]+)?$'`
		return "CASE WHEN " + given + "::text ~ " + number + " AND " + there + "::text ~ " + number + " THEN " +
			given + "::text::numeric >= " + there + "::text::numeric ELSE " + byCodePoints + " END"
	default:
		return "coalesce(" + instantExpression(given, 0) + " >= " + instantExpression(there, 0) + ", " + byCodePoints + ")"
	}
}
