package connector

import (
	"strings"

	"reprise/internal/program/connector/jinja"
	"reprise/interpreter/expression"
)

// argumentCode returns an argument by position or name; ok is false if it is missing.
func (s scope) argumentCode(args []jinja.Operand, named map[string]jinja.Operand, place int, names ...string) (c code, ok bool, err error) {
	for _, name := range names {
		if n, found := named[name]; found {
			c, err = s.translateNode(n)
			return c, true, err
		}
	}
	if place < len(args) {
		c, err = s.translateNode(args[place])
		return c, true, err
	}
	return code{}, false, nil
}

// textArgument returns an argument that must be a constant text.
func (s scope) textArgument(n *jinja.Invocation, place int, fallback string, names ...string) (string, error) {
	c, ok, err := s.argumentCode(n.Args, n.Named, place, names...)
	if err != nil || !ok || c.known && c.value == nil {
		return fallback, err
	}
	text, isText := c.value.(string)
	if !isText {
		_, err = unsupportedError("a format that is no constant text")
	}
	return text, err
}

func (s scope) callCode(n *jinja.Invocation) (code, error) {
	if isGet(n) {
		return s.pathCode(n)
	}
	switch function := n.Function.(type) {
	case *jinja.Name:
		return s.functionCode(function.ID, n)
	case *jinja.Index:
		if name, isText := function.Key.(*jinja.Literal); isText {
			text, _ := name.Value.(string)
			return s.methodCode(function.Of, text, n)
		}
	}
	return unsupportedError("a call of an expression")
}

// usualFormat is the default time format of macros.
const usualFormat = "%Y-%m-%dT%H:%M:%S.%f%z"

func (s scope) functionCode(name string, n *jinja.Invocation) (code, error) {
	switch name {
	case "now_utc", "now_local":
		return nowCode(), nil
	case "today_utc":
		c := nowCode()
		c.dated = true
		return c, nil
	case "day_delta":
		return s.dayDelta(n)
	case "duration":
		text, err := s.textArgument(n, 0, "")
		if err != nil {
			return code{}, err
		}
		amount, err := amountOf(text)
		return code{text: amount, timed: true}, err
	case "format_datetime":
		of, _, err := s.argumentCode(n.Args, n.Named, 0, "dt")
		if err != nil {
			return code{}, err
		}
		format, err := s.textArgument(n, 1, usualFormat, "format")
		if err != nil {
			return code{}, err
		}
		from, err := s.textArgument(n, 2, "", "input_format")
		if err != nil {
			return code{}, err
		}
		return formatTime(readAs(of, from), format)
	case "timestamp":
		return s.simpleCall("unix", n.Args)
	case "str_to_datetime":
		c, err := s.simpleCall("date", n.Args)
		c.timed = true
		return c, err
	case "max", "min":
		args, err := s.translateAll(n.Args)
		if err != nil {
			return code{}, err
		}
		for _, arg := range args {
			if arg.timed {
				c := callCode(map[string]string{"max": "latest", "min": "earliest"}[name], args...)
				c.timed = true
				return c, nil
			}
		}
		return callCode(name, args...), nil
	case "camel_case_to_snake_case":
		return s.simpleCall("snake_case", n.Args)
	}
	return unsupportedError("the function %s", name)
}

// simpleCall translates a function call whose arguments need no change.
func (s scope) simpleCall(name string, args []jinja.Operand) (code, error) {
	translated, err := s.translateAll(args)
	return callCode(name, translated...), err
}

func nowCode() code {
	return code{text: "now()", prec: precAtom, calm: true, timed: true}
}

func (s scope) dayDelta(n *jinja.Invocation) (code, error) {
	days, ok, err := s.argumentCode(n.Args, n.Named, 0, "num_days")
	if err != nil {
		return code{}, err
	}
	format, err := s.textArgument(n, 1, usualFormat, "format")
	if err != nil {
		return code{}, err
	}
	at := nowCode()
	switch {
	case ok && days.known:
		if text := expression.Text(days.value); text != "0" {
			at = callCode("add_time", at, constantCode(text+"d"))
		}
	case ok:
		at = callCode("add_time", at, joinTexts([]code{days, constantCode("d")}))
	}
	return formatTime(at, format)
}

// readAs returns a time parsed from a format, if `date` needs to know it.
func readAs(of code, format string) code {
	layout, ok := layoutOf(format)
	if !ok || isUsual(format) {
		return of
	}
	return callCode("date", of, constantCode(layout))
}

// formatTime returns a time formatted by a strftime format.
func formatTime(of code, format string) (code, error) {
	if of.moment != nil && of.format == format {
		return of, nil
	}
	c, err := textOfTime(of.withSeconds(format), format)
	c.moment, c.format, c.sure = &of, format, true
	c.whole = strings.HasPrefix(c.text, "int(")
	return c, err
}

// withSeconds returns a time as it was before it was written with whole seconds, if it is to be written in a format that has no
// fractions of them either. In a layout, zeros behind a point are a fraction, also where the format has the zeros themselves.
func (c code) withSeconds(format string) code {
	layout, _ := layoutOf(format)
	fine := format != "%s" && (layout == "" || strings.Contains(layout, "05.") || strings.Contains(layout, "05,"))
	if c.moment == nil || c.moment.text != nowCode().text || !strings.Contains(c.format, "%S") || fine {
		return c
	}
	return *c.moment
}

// movedTime returns a time moved by an amount. If the time is a text that will be written in the same format again, its
// time is moved.
func movedTime(of code, amount, format string) code {
	switch {
	case of.moment != nil && of.format == format:
		of = *of.moment
	case of.moment != nil:
		of = readAs(of, of.format)
	}
	return callCode("add_time", of, constantCode(amount))
}

func textOfTime(of code, format string) (code, error) {
	switch format {
	case "%s":
		return callCode("int", callCode("unix", of)), nil
	case "%ms":
		return callCode("int", code{text: callCode("unix", of).text + " * 1000", prec: precMultiply}), nil
	case "%epoch_microseconds":
		return callCode("int", code{text: callCode("unix", of).text + " * 1000000", prec: precMultiply}), nil
	case "%s_as_float":
		return callCode("unix", of), nil
	}
	layout, ok := layoutOf(format)
	if !ok {
		return unsupportedError("the format %s of a time", format)
	}
	c := callCode("format_time", of, constantCode(layout))
	c.texty, c.timed = true, true
	return c, nil
}

// layoutOf returns the layout for Go's package time; ok is false if the format is not supported.
func layoutOf(format string) (string, bool) {
	return expression.LayoutOfStrftime(format)
}

// optionalConfig is the scope's root for configuration keys that may be missing because the expression has a default
// for them.
const optionalConfig = "config "

func (s scope) methodCode(of jinja.Operand, name string, n *jinja.Invocation) (code, error) {
	if name == "join" {
		return s.joinCode(of, n.Args)
	}
	if name == "get" && len(n.Args) == 2 {
		if root, isName := of.(*jinja.Name); isName && root.ID == "config" {
			of = &jinja.Name{ID: optionalConfig}
		}
		on, err := s.pathCode(&jinja.Index{Of: of, Key: n.Args[0]})
		if err != nil {
			return code{}, err
		}
		other, err := s.translateNode(n.Args[1])
		return orDefault(on, other), err
	}
	on, err := s.translateNode(of)
	if err != nil {
		return code{}, err
	}
	args, err := s.translateAll(n.Args)
	if err != nil {
		return code{}, err
	}
	all := append([]code{on}, args...)
	if ours, known := methods[name]; known {
		c := callCode(ours.name, all...)
		c.texty = ours.texty
		return c, nil
	}
	switch name {
	case "strftime":
		format, err := s.textArgument(n, 0, "")
		if err != nil {
			return code{}, err
		}
		return formatTime(on, format)
	case "lower", "upper":
		c := callCode(name, on)
		c.texty = true
		return c, nil
	case "isoformat":
		return on, nil
	case "timestamp":
		return callCode("unix", on), nil
	case "keys", "values":
		return callCode(name, on), nil
	case "items":
		return callCode("toPairs", on), nil
	}
	return unsupportedError("the method %s", name)
}

// methods maps methods of Python texts to functions with the same arguments; texty functions return a text.
var methods = map[string]struct {
	name  string
	texty bool
}{
	"split":        {"split", false},
	"replace":      {"replace", true},
	"strip":        {"trim", true},
	"rstrip":       {"trimSuffix", true},
	"lstrip":       {"trimPrefix", true},
	"removeprefix": {"trimPrefix", true},
	"removesuffix": {"trimSuffix", true},
	"startswith":   {"hasPrefix", false},
	"endswith":     {"hasSuffix", false},
}

// joinCode returns the `join` of a list with a separator.
func (s scope) joinCode(separator jinja.Operand, args []jinja.Operand) (code, error) {
	between, err := s.translateNode(separator)
	if err != nil || len(args) != 1 {
		return code{}, err
	}
	list, err := s.translateNode(args[0])
	return joinedList(list, between), err
}

// joinedList returns the elements of a list as a text.
func joinedList(list, between code) code {
	if values, isList := list.value.([]any); isList && between.known {
		texts := make([]string, len(values))
		for i, value := range values {
			texts[i] = expression.Text(value)
		}
		return constantCode(strings.Join(texts, expression.Text(between.value)))
	}
	c := callCode("join", list, between)
	c.texty = true
	return c
}

// orDefault returns a value, or another if it is nil.
func orDefault(of, other code) code {
	if of.known {
		if of.value == nil {
			return other
		}
		return of
	}
	c := code{text: of.operandText(precPipe) + " | default(" + other.text + ")", prec: precPipe, calm: of.calm && other.calm, falsy: of.falsy && other.falsy, texty: other.texty}
	return c
}

// sameFilters maps Jinja filters to the functions that do the same.
var sameFilters = map[string]string{
	"int": "int", "float": "float", "string": "string", "lower": "lower", "upper": "upper", "length": "len", "count": "len",
	"tojson": "toJSON", "join": "join", "replace": "replace", "first": "first", "last": "last", "round": "round", "trim": "trim", "abs": "abs",
	"base64encode": "toBase64", "base64decode": "fromBase64", "unique": "uniq", "max": "max", "min": "min", "sum": "sum", "items": "toPairs", "reverse": "reverse",
	"timestamp": "unix",
}

func (s scope) filterCode(n *jinja.Filter) (code, error) {
	of, err := s.translateNode(n.Of)
	if err != nil {
		return code{}, err
	}
	args, err := s.translateAll(n.Args)
	if err != nil {
		return code{}, err
	}
	switch n.Name {
	case "default", "d":
		if len(args) > 0 {
			return orDefault(of, args[0]), nil
		}
		return orDefault(of, constantCode("")), nil
	case "list", "safe":
		return of, nil
	case "hash", "md5":
		return unsupportedError("the filter %s", n.Name)
	}
	name := sameFilters[n.Name]
	if name == "" || len(n.Named) > 0 {
		return unsupportedError("the filter %s", n.Name)
	}
	if name == "int" && of.whole {
		return of, nil
	}
	if number, isNumber := of.value.(int); isNumber && name == "int" {
		return constantCode(number), nil
	}
	if name == "join" {
		return joinedList(of, append(args, constantCode(""))[0]), nil
	}
	c := callCode(name, append([]code{of}, args...)...)
	c.texty = name == "string" || name == "lower" || name == "upper" || name == "join" || name == "replace" || name == "trim"
	c.calm = c.calm && name != "int" && name != "float"
	c.whole = name == "int"
	c.falsy = c.calm && of.falsy && name != "toJSON"
	return c, nil
}
