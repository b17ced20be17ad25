package expression

import (
	"slices"
	"strings"
	"time"
)

// strftimeParts maps the directives of strftime to layouts of package time.
var strftimeParts = map[string]string{
	"Y": "2006", "y": "06", "m": "01", "-m": "1", "b": "Jan", "h": "Jan", "B": "January", "d": "02", "-d": "2", "e": "_2", "j": "002",
	"a": "Mon", "A": "Monday", "H": "15", "I": "03", "-I": "3", "p": "PM", "M": "04", "-M": "4", "S": "05", "-S": "5", "z": "-0700", ":z": "-07:00",
	"F": "2006-01-02", "T": "15:04:05", "D": "01/02/06", "R": "15:04", "%": "%",
	"f": "000000", "_ms": "000", // behind a point or a comma
}

// LayoutOfStrftime converts a strftime format, such as %d/%m/%Y, to a layout of Go's package time. ok is false if
// the text is not a strftime format, or has a directive or text that a layout cannot express.
func LayoutOfStrftime(form string) (layout string, ok bool) {
	const longest = 100
	if !strings.Contains(form, "%") || len(form) > longest {
		return "", false
	}
	var parts []string // alternately text and layouts
	text, rest, found := strings.Cut(form, "%")
	for parts = append(parts, text); found; parts = append(parts, text) {
		part := strftimePart(rest)
		if part == "" {
			return "", false
		}
		parts = append(parts, strftimeParts[part])
		text, rest, found = strings.Cut(rest[len(part):], "%")
	}
	layout = strings.Join(parts, "")
	return layout, !slices.ContainsFunc(layoutSamples, func(at time.Time) bool { return at.Format(layout) != shownIn(parts, at) })
}

// strftimePart returns the strftime directive that a text starts with, or "".
func strftimePart(text string) string {
	for _, length := range []int{len("_ms"), len("-d"), len("d")} {
		if _, known := strftimeParts[text[:min(length, len(text))]]; known {
			return text[:min(length, len(text))]
		}
	}
	return ""
}

// layoutSamples differ in every part of a time.
var layoutSamples = []time.Time{
	time.Date(2001, time.February, 3, 4, 5, 6, 7_008_009, time.UTC),
	time.Date(2012, time.November, 24, 23, 34, 45, 567_891_234, time.FixedZone("", 2*60*60)),
}

// shownIn formats a time with each of the layouts in parts separately, and joins the results with the text between
// them.
func shownIn(parts []string, at time.Time) string {
	var out strings.Builder
	for i, part := range parts {
		switch {
		case i%2 == 0 || part == "%":
			out.WriteString(part)
		case strings.Trim(part, "0") == "": // fractions of a second; in package time the layout includes the point
			out.WriteString(strings.TrimPrefix(at.Format("."+part), "."))
		default:
			out.WriteString(at.Format(part))
		}
	}
	return out.String()
}
