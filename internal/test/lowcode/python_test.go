package lowcode_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// undefined is what a name has that does not exist.
type undefined struct{}

// errUndefined is the failure of reading a member of what is undefined.
type errUndefined struct{}

func (errUndefined) Error() string { return "undefined" }

// moment is a Python datetime, or a date.
type moment struct {
	at  time.Time
	day bool
}

// isTrue is Python's truth of a value.
func isTrue(of any) bool {
	switch of := of.(type) {
	case nil, undefined:
		return false
	case bool:
		return of
	case int:
		return of != 0
	case float64:
		return of != 0
	case string:
		return of != ""
	case []any:
		return len(of) > 0
	case map[string]any:
		return len(of) > 0
	}
	return true
}

// textOf is Python's str of a value.
func textOf(of any) string {
	switch of := of.(type) {
	case undefined:
		return ""
	case string:
		return of
	case moment:
		switch {
		case of.day:
			return of.at.Format("2006-01-02")
		case of.at.Nanosecond() > 0:
			return of.at.Format("2006-01-02 15:04:05.000000-07:00")
		}
		return of.at.Format("2006-01-02 15:04:05-07:00")
	}
	return sourceOf(of)
}

// sourceOf is Python's repr of a value.
func sourceOf(of any) string {
	switch of := of.(type) {
	case nil:
		return "None"
	case bool:
		return strings.ToUpper(fmt.Sprint(of)[:1]) + fmt.Sprint(of)[1:]
	case int:
		return strconv.Itoa(of)
	case float64:
		if of == math.Trunc(of) && math.Abs(of) < 1e16 {
			return strconv.FormatFloat(of, 'f', 1, 64)
		}
		return strconv.FormatFloat(of, 'g', -1, 64)
	case string:
		if strings.Contains(of, "'") && !strings.Contains(of, `"`) {
			return `"` + of + `"`
		}
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(of) + "'"
	case []any:
		items := make([]string, len(of))
		for i, item := range of {
			items[i] = sourceOf(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var items []string
		for _, key := range sortedKeys(of) {
			items = append(items, sourceOf(key)+": "+sourceOf(of[key]))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return textOf(of)
}

func sortedKeys(of map[string]any) (keys []string) {
	for key := range of {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

var (
	wholeNumber    = regexp.MustCompile(`^-?(0|[1-9]\d*)$`)
	fractionNumber = regexp.MustCompile(`^-?\d+\.\d*(e[-+]?\d+)?$|^-?\d+e[-+]?\d+$`)
)

// literalOf is the value of a text that is a Python literal.
func literalOf(text string) (value any, is bool) {
	text = strings.Trim(text, " \t\n")
	switch {
	case text == "None":
		return nil, true
	case text == "True" || text == "False":
		return text == "True", true
	case wholeNumber.MatchString(text):
		n, err := strconv.Atoi(text)
		return n, err == nil
	case fractionNumber.MatchString(text):
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	case text == "" || !strings.ContainsRune(`'"[{(`, rune(text[0])):
		return nil, false
	}
	defer func() {
		if recover() != nil {
			value, is = nil, false
		}
	}()
	p := &parser{text: text, deep: 0}
	p.advance()
	tree := p.parseAtom()
	if p.next.kind != 'e' || p.at < len(text) || !isConstant(tree) {
		return nil, false
	}
	return tree.evaluate(nil), true
}

// isConstant reports whether an operand names nothing.
func isConstant(of *operand) bool {
	switch of.kind {
	case "lit":
		return true
	case "list", "dict":
		return !slices.ContainsFunc(of.parts, func(part *operand) bool { return !isConstant(part) })
	}
	return false
}

// formatTime is a time as strftime writes it; units of epochs are those of the CDK.
func formatTime(at time.Time, format string) string {
	switch format {
	case "%s":
		return strconv.FormatInt(at.Unix(), 10)
	case "%ms":
		return strconv.FormatInt(at.UnixMilli(), 10)
	case "%epoch_microseconds":
		return strconv.FormatInt(at.UnixMicro(), 10)
	case "%s_as_float":
		return sourceOf(float64(at.UnixMicro()) / 1e6)
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		if strings.HasPrefix(format[i:], "_ms") {
			fmt.Fprintf(&b, "%03d", at.Nanosecond()/1e6)
			i += 2
			continue
		}
		b.WriteString(at.Format(directives[format[i]]))
		switch format[i] {
		case 'f':
			fmt.Fprintf(&b, "%06d", at.Nanosecond()/1e3)
		case 's':
			b.WriteString(strconv.FormatInt(at.Unix(), 10))
		case '%':
			b.WriteByte('%')
		}
	}
	return b.String()
}

// directives are the layouts of those of strftime.
var directives = map[byte]string{
	'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'z': "-0700", 'Z': "MST", 'b': "Jan", 'B': "January",
	'y': "06", 'I': "03", 'p': "PM", 'j': "002", 'A': "Monday", 'a': "Mon", 'T': "15:04:05", 'F': "2006-01-02",
}

// parseTime reads a time by a format of strptime.
func parseTime(text, format string) (time.Time, bool) {
	n, err := strconv.ParseFloat(text, 64)
	if unit, is := map[string]float64{"%s": 1e6, "%s_as_float": 1e6, "%ms": 1e3, "%epoch_microseconds": 1}[format]; is {
		return time.UnixMicro(int64(math.Round(n * unit))).UTC(), err == nil
	}
	layout := ""
	for i := 0; i < len(format); i++ {
		switch {
		case format[i] != '%':
			layout += string(format[i])
			continue
		case strings.HasPrefix(format[i:], "%_ms"):
			layout, i = strings.TrimSuffix(layout, ".")+".000", i+2
		case format[i+1] == 'f':
			layout = strings.TrimSuffix(layout, ".")
			text = regexp.MustCompile(`:(\d\d),(\d)`).ReplaceAllString(text, ":$1.$2")
		default:
			layout += directives[format[i+1]]
		}
		i++
	}
	for _, form := range []string{layout, strings.Replace(layout, "-0700", "-07:00", 1), strings.Replace(layout, "-0700", "Z07:00", 1)} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// isoTime reads a time in any of the forms of ISO 8601 that appear.
func isoTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC()
		}
	}
	panic(fmt.Errorf("%q is no time", text))
}

var periods = regexp.MustCompile(`^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// period is an ISO 8601 duration.
type period struct {
	years, months, days int
	rest                time.Duration
}

func parsePeriod(text string) period {
	found := periods.FindStringSubmatch(text)
	if found == nil {
		panic(fmt.Errorf("%q is no duration", text))
	}
	n := make([]int, len(found))
	for i := range found {
		n[i], _ = strconv.Atoi(found[i])
	}
	seconds, _ := strconv.ParseFloat("0"+found[7], 64)
	rest := time.Duration(n[5])*time.Hour + time.Duration(n[6])*time.Minute + time.Duration(seconds*float64(time.Second))
	return period{n[1], n[2], n[3]*7 + n[4], rest}
}

// addTo is a time that much later, or earlier.
func (p period) addTo(at time.Time, sign int) time.Time {
	return at.AddDate(sign*p.years, sign*p.months, sign*p.days).Add(time.Duration(sign) * p.rest)
}

// plainJSON is a decoded JSON value with Python's integers.
func plainJSON(of any) any {
	switch of := of.(type) {
	case json.Number:
		if n, err := strconv.Atoi(of.String()); err == nil {
			return n
		}
		f, _ := of.Float64()
		return f
	case float64:
		if of == math.Trunc(of) && math.Abs(of) < 1e15 {
			return int(of)
		}
	case []any:
		out := make([]any, len(of))
		for i, item := range of {
			out[i] = plainJSON(item)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, item := range of {
			out[key] = plainJSON(item)
		}
		return out
	}
	return of
}

// callFilter applies a filter of Jinja.
func callFilter(name string, of any, args []any) any {
	switch name {
	case "string", "str":
		return textOf(of)
	case "int":
		switch n := of.(type) {
		case int:
			return n
		case float64:
			return int(n)
		}
		f, _ := strconv.ParseFloat(strings.TrimSpace(textOf(of)), 64)
		return int(f)
	case "float":
		f, _ := strconv.ParseFloat(strings.TrimSpace(textOf(of)), 64)
		return f
	case "length", "count":
		return lengthOf(of)
	case "default", "d":
		if _, is := of.(undefined); is || len(args) > 1 && isTrue(args[1]) && !isTrue(of) {
			return args[0]
		}
		return of
	case "lower", "upper", "trim", "join", "replace":
		if name == "join" {
			return callMethod(textOf(append(args, "")[0]), "join", []any{of})
		}
		return callMethod(textOf(of), map[string]string{"trim": "strip"}[name]+strings.TrimPrefix(name, "trim"), args)
	case "first", "last":
		list := listOf(of)
		if len(list) == 0 {
			return undefined{}
		}
		return list[map[string]int{"first": 0, "last": len(list) - 1}[name]]
	case "tojson":
		encoded, _ := json.Marshal(of)
		return string(encoded)
	case "urlencode":
		return strings.ReplaceAll(url.QueryEscape(textOf(of)), "+", "%20")
	case "base64encode":
		return base64.StdEncoding.EncodeToString([]byte(textOf(of)))
	case "list":
		return listOf(of)
	}
	panic(fmt.Errorf("the filter %s is not known", name))
}

func lengthOf(of any) int {
	switch of := of.(type) {
	case string:
		return len([]rune(of))
	case undefined:
		return 0
	case nil, int, bool, float64:
		panic(fmt.Errorf("%v has no length", of))
	}
	return len(listOf(of))
}

// listOf are the items of something.
func listOf(of any) (out []any) {
	switch of := of.(type) {
	case []any:
		return of
	case map[string]any:
		for _, key := range sortedKeys(of) {
			out = append(out, key)
		}
	case string:
		for _, one := range of {
			out = append(out, string(one))
		}
	}
	return out
}
