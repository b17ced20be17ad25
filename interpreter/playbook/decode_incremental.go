package playbook

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

// maxStateName bounds the literal name of a state, in bytes, like incremental.MaxName does for a rendered one.
const maxStateName = 500

var incrementalSection = sectionOf(section{name: "incremental", prefix: "incremental."}, []keyOf[Incremental]{
	acceptKey(key{name: "cursor_path", doc: "dotted path to the cursor in each row"},
		readAs(WordName, func(d *decoder, w written, i *Incremental) { i.CursorPath = readRowPath(d, w.node, w.name) })),
	acceptKey(key{name: "token", doc: "instead of `cursor_path`: the token from which the source continues, such as `{{ response.next_sync_token }}`"},
		asTextValue(func(i *Incremental, n *Node) { i.Token = n })),
	acceptKey(key{name: "initial_value", doc: "the value that the first run starts from, which may be a template over the workload and the element; optional with `token`"}, asPart[Incremental](WordScalar)),
	acceptKey(key{name: "type", doc: "how cursors are compared: `time`, `date`, `integer` or `text`; default: the type of `initial_value`, unless that is a template"},
		asOneOf(func(i *Incremental, t incremental.CursorType) { i.Type = t }, incremental.Time, incremental.Date, incremental.Integer, incremental.Text)),
	acceptKey(key{name: "format", doc: "how the source writes its times or dates, in rows and in `value`: a layout of strftime or Go, or a number since 1970: `%s`, `%ms`, `%us`; `type` follows from it"},
		asPart[Incremental](WordText)),
	acceptKey(key{name: "lag", doc: "how far before the watermark each run starts reading: a duration for `time`, days for `date`, a number for `integer`; default 0"},
		asPart[Incremental](WordLength).or(0)),
	acceptKey(key{name: "step", doc: "reads in slices of this length, each with its pages, from `incremental.from` to `incremental.to`: an amount of `add_time` such as `30d` or `1mo`"},
		asPart[Incremental](WordText)),
	acceptKey(key{name: "until", doc: "with `step`, where the last slice ends, exclusive; default now"},
		asTextValue(func(i *Incremental, n *Node) { i.Until = n })),
	acceptKey(key{name: "range_start", doc: "`closed` (default): the source returns rows at or after the value; `open`: only rows after it"},
		asOneOf(func(i *Incremental, start string) { i.OpenStart = start == "open" }, "closed", "open").or("closed")),
	acceptKey(key{name: "row_order", doc: "`none` (default), or `asc`: rows arrive in cursor order, so the watermark moves page by page"},
		asOneOf(func(i *Incremental, order string) { i.Ascending = order == "asc" }, "none", "asc").or("none")),
	acceptKey(key{name: "on_missing", doc: "what happens to rows without a cursor: `fail` (default), `include` or `exclude`"},
		asOneOf(func(i *Incremental, choice OnMissing) { i.OnMissing = choice }, MissingFail, MissingInclude, MissingExclude).or(MissingFail)),
	acceptKey(key{name: "key", doc: "the columns that identify a row when it is read again, one name or a list; default: the sink's `key`, else the whole row"},
		readAs(WordNames, func(d *decoder, w written, i *Incremental) { i.Key = readRowKey(d, w.node, w.what) })),
	acceptKey(key{name: "state", doc: "the name of the state, made from the workload and the element; default: playbook and step, and in a loop the element"},
		asTextValue(func(i *Incremental, n *Node) { i.State = n })),
	acceptKey(key{name: "on_conflict", doc: "what a run does while another run holds the state: `queue` (default) or `fail`"},
		asOneOf(func(i *Incremental, choice OnConflict) { i.OnConflict = choice }, ConflictQueue, ConflictFail).or(ConflictQueue)),
})

func (*Incremental) section() *section { return incrementalSection }

func (i *Incremental) decode(d *decoder, f *fields, where at) bool {
	*i = Incremental{
		Pos: f.pos, Words: f.words, Values: f.keyPositions(Words{}, ""), OnMissing: MissingFail, OnConflict: ConflictQueue,
	}
	d.readWords(f, i, where)
	switch {
	case f.getValue("token") == nil:
		if d.requireKeys(f, "incremental", "cursor_path", `cursor_path: updated_at, or token: "{{ response.next_sync_token }}" in its place`) {
			d.requireKeys(f, "incremental", "initial_value", `initial_value: "2024-01-01T00:00:00Z"`)
		}
	case f.getValue("cursor_path") != nil:
		d.Errorf(f.words["token"], CodeConflict,
			"incremental has both \"cursor_path\" and \"token\": a cursor is in each row, a token comes once with the response; keep one of them")
	default:
		for _, word := range []string{"type", "format", "lag", "step", "until", "range_start", "row_order", "on_missing"} {
			if f.getValue(word) != nil {
				d.Errorf(f.words[word], CodeConflict, "%q applies to cursors in rows; a token is not in rows and is not compared; remove it", word)
			}
		}
		i.Type = incremental.Token
	}
	if i.readFormat(d, f.getValue("format")) {
		i.readInitial(d, f.getValue("initial_value"))
	}
	if i.Type != incremental.Token {
		i.readLag(d, f.getValue("lag"))
	}
	i.readStep(d, f)
	if i.State != nil && i.State.Template == nil {
		readStateName(d, i.State)
	}
	return true
}

// readFormat reads the format of cursors. It sets the type if the author does not; ok is false for an invalid
// format.
func (i *Incremental) readFormat(d *decoder, n *yaml.Node) (ok bool) {
	const what = "incremental.format"
	if n == nil || i.Type == incremental.Token {
		return true
	}
	written, ok := d.readText(n, what)
	if !ok {
		return false
	}
	format, as, err := incremental.ReadFormat(written)
	switch {
	case err != nil:
		d.Errorf(positionOf(n), CodeWrongValue, "%s %s", what, err)
		return false
	case i.Type == incremental.Integer || i.Type == incremental.Text:
		d.Errorf(i.Words["format"], CodeConflict, "format applies only to times and dates, not to cursors of type %s; remove it, or write type: %s", i.Type, as)
		return false
	case i.Type == incremental.Date && as == incremental.Time:
		d.Errorf(i.Words["format"], CodeConflict, "format has a time of day, but type: date compares only days; write type: time")
		return false
	}
	i.Type, i.Format = cmp.Or(i.Type, as), format
	return true
}

// readInitial reads the initial value. It sets the type if the author does not.
func (i *Incremental) readInitial(d *decoder, n *yaml.Node) {
	if n == nil {
		return
	}
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "{{") && !d.broken[n] {
		i.InitialTemplate = d.valueNode(n)
		if i.Type == "" {
			d.Errorf(positionOf(n), CodeMissingKey, `incremental needs "type" or "format", because its initial_value is a template; write for example type: time`)
		}
		return
	}
	if !d.isLiteral(n, "incremental.initial_value") {
		return
	}
	value := d.constantValue(n)
	typed := cmp.Or(i.Type, cursorType(value))
	if typed == "" {
		d.Errorf(positionOf(n), codeWrongType, "incremental.initial_value must be a time, a date, a whole number or text, not %s", describeYAML(n))
		return
	}
	i.Type = typed
	if _, err := i.CursorForm().ParseAny(value); err != nil {
		hint := ""
		if i.Format == "" {
			hint = initialHint(typed, value)
		}
		d.Errorf(positionOf(n), CodeWrongValue, "incremental.initial_value: %s%s", err, hint)
		return
	}
	i.InitialValue = value
}

// cursorType returns the type of a cursor with this value; "" if it cannot be a cursor.
func cursorType(value any) incremental.CursorType {
	text, isText := value.(string)
	if !isText {
		if _, err := incremental.Parse(incremental.Integer, value); err == nil {
			return incremental.Integer
		}
		return ""
	}
	for _, one := range []incremental.CursorType{incremental.Date, incremental.Time} { // a date is a time too
		if _, err := incremental.Parse(one, text); err == nil {
			return one
		}
	}
	return incremental.Text
}

// initialHint completes a message about a value that does not have its type.
func initialHint(typed incremental.CursorType, value any) string {
	_, isText := value.(string)
	switch {
	case typed == incremental.Time && !isText:
		return "; a time is text, and seconds since 1970 have type: integer"
	case typed == incremental.Integer:
		return "; write for example 0"
	case typed == incremental.Text && !isText:
		return "; put it in quotes"
	}
	return ""
}

// readLag reads how far before the watermark the source is read again.
func (i *Incremental) readLag(d *decoder, n *yaml.Node) {
	const what = "incremental.lag"
	if n == nil || i.Type == "" || !d.isLiteral(n, what) {
		return
	}
	switch i.Type {
	case incremental.Time:
		length, _ := d.readDuration(n, what)
		i.Lag = incremental.Lag(length)
	case incremental.Date:
		i.Lag = readDays(d, n, what)
	case incremental.Integer:
		if v, ok := d.readInteger(n, what); ok && v < 0 {
			d.Errorf(positionOf(n), CodeBounds, "%s must not be negative, not %d", what, v)
		} else if ok {
			i.Lag = incremental.Lag(v)
		}
	case incremental.Text, incremental.Token:
		d.Errorf(i.Words["lag"], CodeConflict, "lag does not apply to cursors of type text; remove it, or write type: time, date or integer")
	}
}

// readStep reads the length of slices.
func (i *Incremental) readStep(d *decoder, f *fields) {
	const what = "incremental.step"
	n := f.getValue("step")
	switch {
	case n == nil && i.Until != nil && i.Type != incremental.Token:
		d.Errorf(i.Words["until"], CodeConflict, "until is the end of the last slice and needs step; add for example step: 30d, or remove until")
		return
	case n == nil || i.Type == incremental.Token || i.Type == "":
		return
	case i.Type != incremental.Time && i.Type != incremental.Date:
		d.Errorf(i.Words["step"], CodeConflict, "step reads in slices of time, but cursors of type %s are not times; remove it", i.Type)
		return
	}
	text, ok := d.readText(n, what)
	if !ok {
		return
	}
	if err := i.CursorForm().CheckStep(text); err != nil {
		d.Errorf(positionOf(n), CodeWrongValue, "%s: %s", what, err)
		return
	}
	i.Step = text
}

// readDays reads a number of days, or a duration of whole days.
func readDays(d *decoder, n *yaml.Node, what string) incremental.Lag {
	const day = 24 * time.Hour
	length := time.Duration(-1)
	if n.ShortTag() == "!!int" {
		if v, ok := d.readInteger(n, what); !ok {
			return 0
		} else if v >= 0 && v <= maxDays {
			return incremental.Lag(v)
		}
	} else if text, ok := strings.CutPrefix(durationHint(n.Value), "; write "); ok {
		length, _ = time.ParseDuration(text)
	} else if v, err := time.ParseDuration(n.Value); err == nil {
		length = v
	}
	if length < 0 || length%day != 0 {
		d.Errorf(positionOf(n), codeWrongType, "%s must be whole days, because the type is date, such as lag: 3, not %s", what, describeYAML(n))
		return 0
	}
	return incremental.Lag(length / day)
}

// maxDays is about 2,700 years: a longer duration would overflow.
const maxDays = 1_000_000

// readRowPath reads a dotted path into a row. A column may have any name.
func readRowPath(d *decoder, n *yaml.Node, what string) string {
	text, ok := d.readName(n, "incremental."+what)
	if !ok {
		return ""
	}
	if plain, ok := plainPath(text); ok {
		d.Errorf(positionOf(n), codePath, "%s is JSONPath; a path is dotted and starts at the row: write %s: %s", ShortenText(text), what, plain)
	}
	return text
}

// readRowKey reads the name of a column, or a list of names.
func readRowKey(d *decoder, n *yaml.Node, what string) []string {
	if n.Kind != yaml.SequenceNode {
		if name, ok := d.readName(n, what); ok {
			return []string{name}
		}
		return nil
	}
	if len(n.Content) == 0 {
		d.Errorf(positionOf(n), codeEmpty, "%s has no names; write for example %s: id, or remove it", what, what[strings.LastIndex(what, ".")+1:])
	}
	keys := d.readTexts(n, what)
	for i, key := range keys {
		if slices.Contains(keys[:i], key) {
			d.Errorf(positionOf(n.Content[i]), CodeDuplicateKey, "%s has %q twice; keep one of them", what, ShortenText(key))
		}
	}
	return keys
}

// readStateName reports an invalid name of a state.
func readStateName(d *decoder, n *Node) {
	switch text := expression.Text(n.Value); {
	case strings.TrimSpace(text) == "":
		d.Errorf(n.Pos, CodeBadName, "incremental.state must not be empty")
	case len(text) > maxStateName:
		d.Errorf(n.Pos, CodeBadName, "incremental.state has %d bytes; at most %d are allowed", len(text), maxStateName)
	}
}
