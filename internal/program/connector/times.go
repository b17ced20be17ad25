package connector

import (
	"regexp"
	"strings"
)

// isoDuration matches an ISO 8601 duration such as P30D or PT1H.
var isoDuration = regexp.MustCompile(`^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?$`)

// amountOf converts an ISO 8601 duration to an amount of add_time.
func amountOf(iso string) (string, error) {
	found := isoDuration.FindStringSubmatch(strings.TrimSpace(iso))
	if found == nil || iso == "P" || strings.HasSuffix(iso, "T") {
		_, err := unsupportedError("the duration %s", iso)
		return "", err
	}
	var b strings.Builder
	for i, unit := range []string{"y", "mo", "w", "d", "h", "m"} {
		if n := found[i+1]; n != "" && strings.Trim(n, "0") != "" {
			b.WriteString(strings.TrimLeft(n, "0") + unit)
		}
	}
	if seconds := strings.TrimLeft(found[7], "0"); seconds != "" || found[8] != "" {
		if fraction := strings.TrimRight(found[8], "0"); fraction != "" { // such as PT0.001S
			if seconds == "" {
				seconds = "0"
			}
			seconds += "." + fraction
		}
		if seconds != "" {
			b.WriteString(seconds + "s")
		}
	}
	return b.String(), nil
}

// plainFormat returns a time format in which a constant fraction of zeros is replaced by the milliseconds.
func plainFormat(format string) string { return strings.ReplaceAll(format, ".000Z", ".%_msZ") }

// isUsual reports whether `date` can parse times in a format without knowing it.
func isUsual(format string) bool {
	return strings.HasPrefix(format, "%Y-%m-%d") || format == "%s" || format == "%F" || format == ""
}

// isExact reports whether formatting with a format is unambiguous: the same time is always written in the same way.
func isExact(format string) bool {
	return !strings.Contains(format, "%f") && !strings.Contains(format, "%z") && !strings.Contains(format, "%_ms")
}

// countsPages matches a token that counts pages.
var countsPages = regexp.MustCompile(`^\{\{ ?\(?next_page_token\['next_page_token'\] or 0\)? \+ 1 ?\}\}$`)
