package airbyte

import (
	"reprise/internal/program/airbyte/jinja"
	"reprise/interpreter/expression"
)

// argument is an argument by its place or its name; ok is false where there is none.
func (s scope) argument(args []jinja.Operand, named map[string]jinja.Operand, place int, names ...string) (c code, ok bool, err error) {
	for _, name := range names {
		if n, found := named[name]; found {
			c, err = s.of(n)
			return c, true, err
		}
	}
	if place < len(args) {
		c, err = s.of(args[place])
		return c, true, err
	}
	return code{}, false, nil
}

// textArgument is an argument that is a constant text.
func (s scope) textArgument(n *jinja.Invocation, place int, fallback string, names ...string) (string, error) {
	c, ok, err := s.argument(n.Args, n.Named, place, names...)
	if err != nil || !ok || c.known && c.value == nil {
		return fallback, err
	}
	text, isText := c.value.(string)
	if !isText {
		_, err = unsupported("a format that is no constant text")
	}
	return text, err
}

func (s scope) call(n *jinja.Invocation) (code, error) {
	if isGet(n) {
		return s.path(n)
	}
	switch function := n.Function.(type) {
	case *jinja.Name:
		return s.function(function.ID, n)
	case *jinja.Index:
		if name, isText := function.Key.(*jinja.Literal); isText {
			text, _ := name.Value.(string)
			return s.method(function.Of, text, n)
		}
	}
	return unsupported("a call of an expression")
}

// The form of times that macros have unless they are given another.
const usualFormat = "%Y-%m-%dT%H:%M:%S.%f%z"

func (s scope) function(name string, n *jinja.Invocation) (code, error) {
	switch name {
	case "now_utc", "now_local":
		return now(), nil
	case "today_utc":
		c := now()
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
		of, _, err := s.argument(n.Args, n.Named, 0, "dt")
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
		return formatted(readAs(of, from), format)
	case "timestamp":
		return s.simple("unix", n.Args)
	case "str_to_datetime":
		c, err := s.simple("date", n.Args)
		c.timed = true
		return c, err
	case "max", "min":
		args, err := s.all(n.Args)
		if err != nil {
			return code{}, err
		}
		for _, arg := range args {
			if arg.timed {
				c := call(map[string]string{"max": "latest", "min": "earliest"}[name], args...)
				c.timed = true
				return c, nil
			}
		}
		return call(name, args...), nil
	case "camel_case_to_snake_case":
		return s.simple("snake_case", n.Args)
	}
	return unsupported("the function %s", name)
}

// simple is a function with the arguments as they are.
func (s scope) simple(name string, args []jinja.Operand) (code, error) {
	translated, err := s.all(args)
	return call(name, translated...), err
}

func now() code {
	return code{text: "now()", prec: precAtom, calm: true, timed: true}
}

func (s scope) dayDelta(n *jinja.Invocation) (code, error) {
	days, ok, err := s.argument(n.Args, n.Named, 0, "num_days")
	if err != nil {
		return code{}, err
	}
	format, err := s.textArgument(n, 1, usualFormat, "format")
	if err != nil {
		return code{}, err
	}
	at := now()
	switch {
	case ok && days.known:
		if text := expression.Text(days.value); text != "0" {
			at = call("add_time", at, constant(text+"d"))
		}
	case ok:
		at = call("add_time", at, join([]code{days, constant("d")}))
	}
	return formatted(at, format)
}

// readAs is a time that is written in a form; "" for one that date can read.
func readAs(of code, format string) code {
	layout, ok := layoutOf(format)
	if !ok || isUsual(format) {
		return of
	}
	return call("date", of, constant(layout))
}

// formatted is a time in a form of strftime.
func formatted(of code, format string) (code, error) {
	switch format {
	case "%s":
		return call("int", call("unix", of)), nil
	case "%ms":
		return call("int", code{text: call("unix", of).text + " * 1000", prec: precMultiply}), nil
	case "%epoch_microseconds":
		return call("int", code{text: call("unix", of).text + " * 1000000", prec: precMultiply}), nil
	case "%s_as_float":
		return call("unix", of), nil
	}
	layout, ok := layoutOf(format)
	if !ok {
		return unsupported("the format %s of a time", format)
	}
	c := call("format_time", of, constant(layout))
	c.texty, c.timed = true, true
	return c, nil
}

// layoutOf is the layout of Go's package time for a form; ok is false for one that it does not know.
func layoutOf(format string) (string, bool) {
	return expression.LayoutOfStrftime(format)
}

// optionalConfig is the root of keys of the configuration that have something else in their place where they are missing.
const optionalConfig = "config "

func (s scope) method(of jinja.Operand, name string, n *jinja.Invocation) (code, error) {
	if name == "join" {
		return s.joined(of, n.Args)
	}
	if name == "get" && len(n.Args) == 2 {
		if root, isName := of.(*jinja.Name); isName && root.ID == "config" {
			of = &jinja.Name{ID: optionalConfig}
		}
		on, err := s.path(&jinja.Index{Of: of, Key: n.Args[0]})
		if err != nil {
			return code{}, err
		}
		other, err := s.of(n.Args[1])
		return orDefault(on, other), err
	}
	on, err := s.of(of)
	if err != nil {
		return code{}, err
	}
	args, err := s.all(n.Args)
	if err != nil {
		return code{}, err
	}
	all := append([]code{on}, args...)
	if ours, known := methods[name]; known {
		c := call(ours.name, all...)
		c.texty = ours.texty
		return c, nil
	}
	switch name {
	case "strftime":
		format, err := s.textArgument(n, 0, "")
		if err != nil {
			return code{}, err
		}
		return formatted(on, format)
	case "lower", "upper":
		c := call(name, on)
		c.texty = true
		return c, nil
	case "isoformat":
		return on, nil
	case "timestamp":
		return call("unix", on), nil
	case "keys", "values":
		return call(name, on), nil
	case "items":
		return call("toPairs", on), nil
	}
	return unsupported("the method %s", name)
}

// methods are the functions that do what a method of a text in Python does, with the same arguments; texty ones give a text.
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

// joined is the `join` of a separator.
func (s scope) joined(separator jinja.Operand, args []jinja.Operand) (code, error) {
	between, err := s.of(separator)
	if err != nil || len(args) != 1 {
		return code{}, err
	}
	list, err := s.of(args[0])
	c := call("join", list, between)
	c.texty = true
	return c, err
}

// orDefault is a value, or another where it is nil.
func orDefault(of, other code) code {
	if of.known {
		if of.value == nil {
			return other
		}
		return of
	}
	c := code{text: of.in(precPipe) + " | default(" + other.text + ")", prec: precPipe, calm: of.calm && other.calm, falsy: of.falsy && other.falsy, texty: other.texty}
	return c
}

// sameFilters are the filters that have the same name as a function here, or which one they have.
var sameFilters = map[string]string{
	"int": "int", "float": "float", "string": "string", "lower": "lower", "upper": "upper", "length": "len", "count": "len",
	"tojson": "toJSON", "join": "join", "replace": "replace", "first": "first", "last": "last", "round": "round", "trim": "trim", "abs": "abs",
	"base64encode": "toBase64", "base64decode": "fromBase64", "unique": "uniq", "max": "max", "min": "min", "sum": "sum", "items": "toPairs", "reverse": "reverse",
	"timestamp": "unix",
}

func (s scope) filter(n *jinja.Filter) (code, error) {
	of, err := s.of(n.Of)
	if err != nil {
		return code{}, err
	}
	args, err := s.all(n.Args)
	if err != nil {
		return code{}, err
	}
	switch n.Name {
	case "default", "d":
		if len(args) > 0 {
			return orDefault(of, args[0]), nil
		}
		return orDefault(of, constant("")), nil
	case "list", "safe":
		return of, nil
	case "hash", "md5":
		return unsupported("the filter %s", n.Name)
	}
	name := sameFilters[n.Name]
	if name == "" || len(n.Named) > 0 {
		return unsupported("the filter %s", n.Name)
	}
	if number, isNumber := of.value.(int); isNumber && name == "int" {
		return constant(number), nil
	}
	c := call(name, append([]code{of}, args...)...)
	c.texty = name == "string" || name == "lower" || name == "upper" || name == "join" || name == "replace" || name == "trim"
	c.calm = c.calm && name != "int" && name != "float"
	c.falsy = c.calm && of.falsy && name != "toJSON"
	return c, nil
}
