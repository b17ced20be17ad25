package connector

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/program/node"
	"reprise/interpreter/expression"
)

// incremental is the incremental reading of a step.
type incremental struct {
	cursor  string
	source  []string // path to the cursor where another field gives it, nil
	initial any
	kind    string // type, "" where format says it
	format  string
	step    string
	until   any
	lag     string
	missing string   // on_missing, "" for the default
	key     []string // that identifies rows, none for the sink's key
	state   string
	options []sliceOption
	// start and end are the bounds of the current slice, in the API's format.
	start, end code
	feed       bool // rows come newest first: the first old one ends the pages
	// stateful is set if the step keeps a state.
	stateful bool
	// The names of the slice's fields.
	startField, endField string
}

// addTo adds the current slice to a scope.
func (i *incremental) addTo(roots scope, s *step) {
	resolve := func(keys []any) (code, error) {
		switch {
		case len(keys) == 1 && keys[0] == i.startField:
			return i.start, nil
		case len(keys) == 1 && keys[0] == i.endField:
			return i.end, nil
		case s.loop != nil:
			return s.loop.partitionField(keys)
		case len(keys) == 0:
			return constantCode(true), nil
		}
		return unsupportedError("the field %v of a slice", keys[0])
	}
	for _, name := range []string{"stream_slice", "stream_partition", "stream_interval"} {
		roots[name] = resolve
	}
	roots["stream_state"] = func(keys []any) (code, error) {
		switch {
		case !i.stateful:
			return constantCode(nil), nil
		case len(keys) == 0, len(keys) == 1 && keys[0] == i.cursor:
			return pathCode("incremental", "watermark"), nil
		}
		return unsupportedError("the member %v of the state", keys[0])
	}
}

// newerThanSlice returns the condition that a row is not older than the start of the slice.
func (i *incremental) newerThanSlice(row code) code {
	of := memberCode(row, i.cursor)
	later := callCode("latest", of, code{text: "incremental.value"})
	return code{text: later.text + " == " + of.text, prec: precCompare}
}

// convertCursor converts a stream's cursor.
func (c *converter) convertCursor(s *step, cursor component) {
	switch kind := cursor.kind(); kind {
	case "DatetimeBasedCursor":
	case "Custom":
		s.addGap(atIncremental, customName(cursor, "CustomIncrementalSync"), "everything is read each time")
		return
	default:
		s.addGap(atIncremental, kind, "everything is read each time")
		return
	}
	i := &incremental{startField: "start_time", endField: "end_time"}
	i.startField = cmp.Or(cursor.text("partition_field_start"), i.startField)
	i.endField = cmp.Or(cursor.text("partition_field_end"), i.endField)
	field, isText := c.translateAt(s, atIncremental, cursor, "cursor_field", nil).(string)
	if i.cursor = field; !isText || field == "" {
		s.addGap(atIncremental, "DatetimeBasedCursor", "without a constant cursor_field; everything is read each time")
		return
	}
	send := plainFormat(cursor.text("datetime_format"))
	c.convertFormats(s, i, cursor, send)
	start, ok := c.firstValue(s, i, cursor)
	if !ok {
		return
	}
	used, sliced := c.usesSlice(s, cursor, i)
	i.stateful = !s.full && used != "" && c.cursorOfRow(s, i.cursor)
	if !s.full && used == "" {
		addNoteOf(c, s, "no request uses the cursor %s: everything is read each time, as Airbyte does", i.cursor)
		s.incremental = i
		i.start = constantCode(nil)
		i.end = constantCode(nil)
		return
	}
	c.convertBounds(s, i, cursor, start, send, sliced)
	feed, _ := cursor["is_data_feed"].(bool)
	i.feed = feed && i.stateful
	if client, _ := cursor["is_client_side_incremental"].(bool); client && i.stateful {
		condition := i.newerThanSlice(pathCode("row"))
		if s.where != nil {
			condition = andCode(*s.where, condition)
		}
		s.where = &condition
	}
	if s.loop != nil && i.stateful {
		i.state = s.loop.stateName(s.table)
	}
	s.incremental = i
	for _, one := range []struct {
		key   string
		value code
	}{{"start_time_option", i.start}, {"end_time_option", i.end}} {
		if option := cursor.childAt(one.key); option != nil {
			i.options = append(i.options, sliceOption{option, one.value})
		}
	}
}

// cursorOfRow reports whether rows have the cursor when they are read: not if a transformation fills it from the slice, or
// computes it.
func (c *converter) cursorOfRow(s *step, cursor string) bool {
	for _, one := range s.of.componentList("transformations") {
		for _, field := range one.componentList("fields") {
			if path, _ := field["path"].([]any); len(path) != 1 || path[0] != cursor {
				continue
			}
			text := expression.Text(field["value"])
			if !strings.Contains(text, "record") {
				s.addGap(atIncremental, "DatetimeBasedCursor", "the cursor %s is that of the slice: everything is read from its start each time", cursor)
				return false
			}
			parts, err := c.stepScope(s, field, &trace{}).withRoots(recordScope("row")).textParts(text)
			if err == nil && oneSource(textOf(templateValue(parts))) == nil {
				s.addGap(atIncremental, "DatetimeBasedCursor", "the cursor %s is computed, %s: everything is read from its start each time", cursor, oneLine(text))
				return false
			}
		}
	}
	return true
}

// usesSlice returns a text that contains "start" and "end" if requests use these bounds of the slice; "" for none. sliced
// says that each slice has requests of its own.
func (c *converter) usesSlice(s *step, cursor component, i *incremental) (used string, sliced bool) {
	text := expression.Text(toCanonical(map[string]any(s.of.childAt("retriever"))))
	for _, end := range []struct{ field, option, name string }{{i.startField, "start_time_option", "start"}, {i.endField, "end_time_option", "end"}} {
		if cursor.childAt(end.option) != nil || strings.Contains(text, end.field) {
			used += end.name
		}
	}
	sliced = used != ""
	if client, _ := cursor["is_client_side_incremental"].(bool); client || strings.Contains(text, "stream_state") {
		used += "start"
	}
	if feed, _ := cursor["is_data_feed"].(bool); feed {
		used += "start"
	}
	return used, sliced
}

// convertFormats sets the type and format of the rows' cursors.
func (c *converter) convertFormats(s *step, i *incremental, cursor component, send string) {
	forms, _ := cursor["cursor_datetime_formats"].([]any)
	if len(forms) == 0 {
		forms = []any{send}
	}
	forms = slices.Clone(forms)
	for n, form := range forms {
		forms[n] = plainFormat(expression.Text(form))
	}
	forms = slices.Compact(forms)
	texts := make([]string, len(forms))
	for n, form := range forms {
		texts[n] = expression.Text(form)
	}
	first := texts[0]
	numbers := map[string]string{"%s": "%s", "%ms": "%ms", "%epoch_microseconds": "%us", "%s_as_float": "%s"}
	all := func(is func(string) bool) bool {
		return !slices.ContainsFunc(forms, func(form any) bool { return !is(expression.Text(form)) })
	}
	switch {
	case first == "%s_as_float":
		i.format = "%s"
		s.addGap(atIncremental, "datetime_format", "%%s_as_float: a cursor with a fraction is an error")
	case len(forms) == 1 && numbers[first] != "":
		i.format = numbers[first]
	case len(forms) == 1 && isExact(first):
		if _, ok := layoutOf(first); !ok {
			s.addGap(atIncremental, "datetime_format", "%s: cursors are compared as texts", first)
			i.kind = "text"
			return
		}
		i.format = first
	case all(isUsual) && all(func(form string) bool { return numbers[form] == "" }):
		i.kind = "time"
	case numbers[first] != "":
		i.format = numbers[first]
		s.addGap(atIncremental, "cursor_datetime_formats", "%s: only the first is read", strings.Join(texts, ", "))
	default:
		i.kind = "time"
		s.addGap(atIncremental, "cursor_datetime_formats", "%s: only times that can be read without a format", strings.Join(texts, ", "))
	}
}

// firstValue returns where the first run begins, as an expression over the workload.
func (c *converter) firstValue(s *step, i *incremental, cursor component) (code, bool) {
	start, err := c.datetimeCode(s, cursor, "start_datetime")
	if err != nil {
		s.addGap(atIncremental, "start_datetime", "%v; everything is read each time", err)
		return code{}, false
	}
	initial := i.inForm(start, cmp.Or(cursor.childAt("start_datetime").text("datetime_format"), cursor.text("datetime_format")))
	if i.initial = templateValue([]code{initial}); i.initial == nil {
		s.addGap(atIncremental, "start_datetime", "is empty; everything is read each time")
		return code{}, false
	}
	return start, true
}

// inForm returns the start in the format of the cursor, if it is a day or a time in a known format.
func (i *incremental) inForm(start code, from string) code {
	if i.format == "" || i.isNumber() > 0 || start.known {
		return start
	}
	layout, _ := layoutOf(i.format)
	if raw, found := strings.CutSuffix(start.text, ", "+quoteText(layout)+")"); found && strings.HasPrefix(raw, "date(") && !strings.Contains(raw[len("date("):], "(") {
		return code{text: strings.TrimPrefix(raw, "date("), prec: precAtom}
	}
	if from == i.format && !strings.HasPrefix(start.text, "date(") {
		return start
	}
	if formed, err := formatTime(start, i.format); err == nil {
		return formed
	}
	return start
}

// oneSource returns the path to the only member of a row that a value is made of, without arithmetic; nil if there is none.
func oneSource(value string) []string {
	found := ofRow.FindAllStringSubmatch(value, -1)
	if len(found) != 1 || strings.ContainsAny(value, "*/+") {
		return nil
	}
	return keysOf(found[0][1])
}

// keysOf returns the names of a path of members as expressions write it.
func keysOf(members string) (path []string) {
	for _, key := range oneKey.FindAllStringSubmatch(members, -1) {
		path = append(path, key[1]+key[2])
	}
	return path
}

// sameForm matches a value that is the member of a row as it is, or the number of it.
var sameForm = regexp.MustCompile(`^\{\{ (?:int|float)?\(?row(?:\.\w+|\['[^']*'\])+\)? \}\}$`)

// fromAdded replaces a cursor that is an added field by the field it copies: when rows are read, they do not have
// added fields yet.
func (i *incremental) fromAdded(s *step) {
	for _, field := range s.fields {
		value := textOf(field.value)
		if field.name != i.cursor || oneSource(value) == nil {
			continue
		}
		i.source = oneSource(value)
		if !sameForm.MatchString(value) { // in the form that the source has
			i.kind, i.format = "time", ""
		}
	}
}

// datetimeCode returns a MinMaxDatetime, or a text, as an expression. The state is not available in it.
func (c *converter) datetimeCode(s *step, cursor component, key string) (code, error) {
	of := cursor.childAt(key)
	if of == nil {
		of = component{"datetime": cursor[key], parametersKey: cursor[parametersKey]}
	}
	var into trace
	none := func([]any) (code, error) { return constantCode(nil), nil }
	scope := c.stepScope(s, of, &into).withRoots(scope{"stream_state": none, "stream_interval": none})
	if s.loop == nil {
		scope["stream_slice"], scope["stream_partition"] = none, none
	}
	at, err := scope.translateExpression(expression.Text(of["datetime"]))
	if err != nil {
		return code{}, err
	}
	format := cmp.Or(of.text("datetime_format"), cursor.text("datetime_format"))
	if !at.timed {
		if layout, ok := layoutOf(format); ok && at.path {
			c.forms[at.text] = layout
		}
		at = readAs(at, format)
	}
	for _, bound := range []struct{ key, function string }{{"min_datetime", "latest"}, {"max_datetime", "earliest"}} {
		if text := of.text(bound.key); text != "" {
			other, err := scope.translateExpression(text)
			if err != nil {
				return code{}, err
			}
			at = callCode(bound.function, at, readAs(other, format))
		}
	}
	c.read.mergeTrace(into)
	return at, nil
}

var digits = regexp.MustCompile(`\d+`)

// lagAmount returns a duration of the cursor. If it depends on the configuration, the default is used, and noted as a
// gap.
func (c *converter) lagAmount(s *step, cursor component, key string) string {
	text := cursor.text(key)
	if value, isText := c.translateAt(s, atIncremental, cursor, key, nil).(string); isText {
		text = value
	} else if before, rest, opens := strings.Cut(text, "{{"); opens && strings.Contains(rest, "}}") {
		inner, after := rest[:strings.LastIndex(rest, "}}")], rest[strings.LastIndex(rest, "}}")+2:]
		text = before + digits.FindString(inner) + after
		s.addGap(atIncremental, key, "%s is made of the configuration: here it is constant", oneLine(cursor.text(key)))
	}
	if text == "" {
		return ""
	}
	amount, err := amountOf(text)
	if err != nil {
		s.addGap(atIncremental, key, "%v", err)
	}
	return amount
}

// convertBounds sets the bounds of slices.
func (c *converter) convertBounds(s *step, i *incremental, cursor component, start code, send string, sliced bool) {
	end := code{text: "run.started_at", prec: precAtom, calm: true, timed: true}
	if cursor["end_datetime"] != nil {
		given, err := c.datetimeCode(s, cursor, "end_datetime")
		if err != nil {
			s.addGap(atIncremental, "end_datetime", "%v: it is now", err)
		} else {
			end = given
		}
		if end.dated && end.text == nowCode().text && strings.ContainsAny(send, "HIMSTs") { // the day begins at midnight
			end = callCode("start_of", nowCode(), constantCode("day"))
			end.timed = true
		}
	}
	granularity := c.lagAmount(s, cursor, "cursor_granularity")
	i.lag = lagInHours(c.lagAmount(s, cursor, "lookback_window"), i.isDate())
	if !i.stateful {
		c.boundsFromStart(s, i, cursor, start, end, send, sliced)
		return
	}
	if sliced {
		i.step = c.lagAmount(s, cursor, "step")
	}
	value := pathCode("incremental", "value")
	value.falsy, value.sure = false, true
	if i.step == "" {
		i.start, i.end = c.timeAsSent(s, i, value, send, false), c.timeAsSent(s, i, end, send, true)
		return
	}
	from, to := pathCode("incremental", "from"), pathCode("incremental", "to")
	from.falsy, from.sure, to.falsy, to.sure = false, true, false, true
	i.start, i.end = c.timeAsSent(s, i, from, send, false), c.timeAsSent(s, i, to, send, false)
	given := cursor["end_datetime"] != nil && end.text != "now()" && !strings.HasPrefix(end.text, "format_time(now(), '2006-01-02T15:04:05")
	if granularity != "" && i.kind != "text" { // ends are exclusive here, and inclusive there
		amount := granularity
		i.end = c.timeAsSent(s, i, i.sliceEnd(to, granularity), send, i.isNumber() == 0)
		if granularity == i.step { // each slice ends where it begins
			i.end, amount = i.start, i.unit()
		}
		if given {
			end = movedTime(end, amount, strings.Replace(i.format, "%us", "%epoch_microseconds", 1))
		} else if amount == "1d" {
			given, end = true, callCode("add_time", nowCode(), constantCode(amount))
		}
	}
	if given {
		if written := strings.Replace(i.format, "%us", "%epoch_microseconds", 1); written != "" && !end.known {
			if formed, err := formatTime(end, written); err == nil { // the end of the last slice is as it is written here
				end = formed
			}
		}
		i.until = templateValue([]code{end})
	}
}

// boundsFromStart sets the bounds of slices of a step without a state, which reads from the start each time: a loop has
// a slice for each step of time.
func (c *converter) boundsFromStart(s *step, i *incremental, cursor component, start, end code, send string, sliced bool) {
	granularity := c.lagAmount(s, cursor, "cursor_granularity")
	step := c.lagAmount(s, cursor, "step")
	if step != "" && sliced && s.loop != nil {
		s.addGap(atIncremental, "step", "%s in a loop over partitions: all of the time is one slice", step)
	}
	if step == "" || !sliced || s.loop != nil {
		i.start, i.end = c.timeAsSent(s, i, start, send, true), c.timeAsSent(s, i, end, send, true)
		return
	}
	from := pathCode(c.elementName("slice_start"))
	from.falsy = false
	last := end // the range is exclusive here, and inclusive there
	if granularity != "" {
		last = movedTime(end, granularity, "")
	}
	s.loop = &loop{list: "time_range(" + start.text + ", " + last.text + ", " + quoteText(step) + ")", element: from.text}
	s.loop.collection = node.Verbatim("{{ " + s.loop.list + " }}")
	to := from
	if step != granularity {
		to = callCode("add_time", from, constantCode(step))
		if granularity != "" {
			to = callCode("add_time", to, constantCode("-"+granularity))
		}
		to = callCode("earliest", to, end)
	}
	i.start, i.end = c.timeAsSent(s, i, from, send, true), c.timeAsSent(s, i, to, send, true)
}

// isDate reports whether cursors are days.
func (i *incremental) isDate() bool {
	return i.format != "" && i.isNumber() == 0 && !strings.ContainsAny(i.format, "HIMST")
}

// isNumber returns how many units of the cursor's numeric format make a second; 0 for other formats.
func (i *incremental) isNumber() int {
	return map[string]int{"%s": 1, "%ms": 1000, "%us": 1000000}[i.format]
}

// unit returns the smallest difference of two cursors, as an amount of time.
func (i *incremental) unit() string {
	switch {
	case i.format == "" || strings.ContainsAny(i.format, "SsTX"):
		return "1s"
	case strings.Contains(i.format, "%M"):
		return "1m"
	case strings.Contains(i.format, "%H"):
		return "1h"
	}
	return "1d"
}

// sliceEnd returns the end of a slice moved back by the cursor's granularity.
func (i *incremental) sliceEnd(to code, granularity string) code {
	if n := i.isNumber(); n > 0 {
		if length, err := time.ParseDuration(lagInHours(granularity, false)); err == nil {
			return code{text: "int(" + to.text + ") - " + expression.Text(int(math.Ceil(length.Seconds()*float64(n)))), prec: precAdd}
		}
	}
	if i.format != "" && i.isNumber() == 0 {
		to = readAs(to, i.format)
	}
	return callCode("add_time", to, constantCode("-"+granularity))
}

// timeAsSent returns a time in the format that the API expects. plainTime says that the time is not in the cursor's
// format.
func (c *converter) timeAsSent(s *step, i *incremental, at code, send string, plainTime bool) code {
	numeric := i.isNumber() > 0
	switch {
	case at.known:
		return at
	case i.kind == "text", i.format == send && !plainTime, i.format == "%us" && send == "%epoch_microseconds" && !plainTime:
		return at
	case numeric && send == "%s_as_float" && !plainTime:
		return at
	case numeric && !plainTime:
		seconds := callCode("int", at)
		if n := i.isNumber(); n > 1 {
			seconds = code{text: seconds.text + " / " + expression.Text(n), prec: precMultiply}
		}
		at = callCode("date", seconds)
	case i.format != "" && !isUsual(i.format) && !plainTime:
		at = readAs(at, i.format)
	}
	sent, err := formatTime(at, send)
	if err != nil {
		s.addGap(atIncremental, "datetime_format", "%v", err)
		return at
	}
	return sent
}

// lagInHours returns an amount as `lag` accepts it: a duration, or days.
func lagInHours(amount string, days bool) string {
	if amount == "" {
		return ""
	}
	factors := map[string]int{"y": 365 * 24, "mo": 30 * 24, "w": 7 * 24, "d": 24}
	total, rest := 0, amount
	for rest != "" {
		n := digits.FindString(rest)
		unit := rest[len(n):]
		if end := strings.IndexAny(unit, "0123456789"); end >= 0 {
			unit = unit[:end]
		}
		factor, known := factors[unit]
		if !known {
			break
		}
		total += int(expression.Of(typedBody(n)).Data.(int)) * factor // as it was read
		rest = rest[len(n)+len(unit):]
	}
	switch {
	case days && rest == "" && total%24 == 0:
		return expression.Text(total/24) + "d"
	case total == 0:
		return rest
	}
	return expression.Text(total) + "h" + rest
}

// incrementalPairs returns the members of the step's key `incremental`.
func (i *incremental) incrementalPairs() []pair {
	out := []pair{{"cursor_path", i.cursorPath()}, {"initial_value", i.initial}}
	for _, one := range []pair{{"type", i.kind}, {"format", i.format}, {"lag", i.lagValue()}, {"step", i.step}, {"until", i.until}, {"on_missing", i.missing}, {"state", i.stateValue()}} {
		if one.value != nil && one.value != "" {
			out = append(out, one)
		}
	}
	if len(i.key) > 0 {
		out = append(out, pair{"key", i.key})
	}
	return out
}

func (i *incremental) stateValue() any {
	if i.state == "" {
		return nil
	}
	return node.Verbatim(i.state)
}

// lagValue returns the lag: of integers it is a number.
func (i *incremental) lagValue() any {
	if n, err := strconv.Atoi(i.lag); err == nil {
		return n
	}
	return i.lag
}

// cursorPath returns the path to the cursor.
func (i *incremental) cursorPath() string {
	if i.source != nil {
		keys := make([]any, len(i.source))
		for n, key := range i.source {
			keys[n] = key
		}
		return strings.TrimPrefix(memberPath(keys), ".")
	}
	if plainName.MatchString(i.cursor) {
		return i.cursor
	}
	return `["` + i.cursor + `"]`
}
