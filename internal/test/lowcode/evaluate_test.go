package lowcode_test

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
)

// names are what a template can read.
type names map[string]any

// evaluate is the value of an operand.
func (o *operand) evaluate(in names) any {
	switch o.kind {
	case "lit":
		return o.value
	case "name":
		if value, has := in[o.text]; has {
			return value
		}
		return undefined{}
	case "attr", "item":
		return o.member(in)
	case "slice":
		return o.portion(in)
	case "call":
		return o.call(in)
	case "filter":
		return callFilter(o.text, o.parts[0].evaluate(in), evaluateAll(o.parts[1:], in))
	case "is":
		return isKind(o.parts[0].evaluate(in), o.text)
	case "un":
		value := o.parts[0].evaluate(in)
		if o.text == "not" {
			return !isTrue(value)
		}
		return binary("-", 0, value)
	case "bin":
		return o.binary(in)
	case "list":
		return evaluateAll(o.parts, in)
	case "dict":
		out := map[string]any{}
		for i := 0; i < len(o.parts); i += 2 {
			out[textOf(o.parts[i].evaluate(in))] = o.parts[i+1].evaluate(in)
		}
		return out
	case "if":
		if isTrue(o.parts[0].evaluate(in)) {
			return o.parts[1].evaluate(in)
		}
		return o.parts[2].evaluate(in)
	}
	return o.statement(in)
}

func evaluateAll(parts []*operand, in names) []any {
	out := make([]any, len(parts))
	for i, part := range parts {
		out[i] = part.evaluate(in)
	}
	return out
}

// statement is the text of a tag.
func (o *operand) statement(in names) any {
	switch o.kind {
	case "out":
		return textOf(o.parts[0].evaluate(in))
	case "set":
		in[o.text] = o.parts[0].evaluate(in)
	case "for":
		text := ""
		for _, item := range listOf(o.parts[0].evaluate(in)) {
			if key, value, both := strings.Cut(o.text, ","); both {
				in[key], in[value] = item.([]any)[0], item.([]any)[1]
			} else {
				in[key] = item
			}
			text += textOf(o.parts[1].evaluate(in))
		}
		return text
	case "block":
		text := ""
		for _, part := range o.parts {
			text += textOf(part.evaluate(in))
		}
		return text
	}
	return ""
}

func (o *operand) member(in names) any {
	of := o.parts[0].evaluate(in)
	key := any(o.text)
	if o.kind == "item" {
		key = o.parts[1].evaluate(in)
	}
	switch of := of.(type) {
	case undefined:
		panic(errUndefined{})
	case map[string]any:
		if value, has := of[textOf(key)]; has {
			return value
		}
	case []any:
		if i, is := key.(int); is {
			if i < 0 {
				i += len(of)
			}
			if i >= 0 && i < len(of) {
				return of[i]
			}
		}
	case moment:
		switch key {
		case "year":
			return of.at.Year()
		case "month":
			return int(of.at.Month())
		case "day":
			return of.at.Day()
		}
	}
	return undefined{}
}

func (o *operand) portion(in names) any {
	of := o.parts[0].evaluate(in)
	length := lengthOf(of)
	bound := func(part *operand, none int) int {
		if part == nil {
			return none
		}
		i, _ := part.evaluate(in).(int)
		if i < 0 {
			i += length
		}
		return min(max(i, 0), length)
	}
	from, to := bound(o.parts[1], 0), bound(o.parts[2], length)
	if text, is := of.(string); is {
		return string([]rune(text)[min(from, to):to])
	}
	return listOf(of)[min(from, to):to]
}

func (o *operand) call(in names) any {
	args := evaluateAll(o.parts[1:], in)
	for _, name := range []string{"format", "input_format"} {
		if named := o.named[name]; named != nil {
			for len(args) < map[string]int{"format": 1, "input_format": 2}[name] {
				args = append(args, nil)
			}
			args = append(args, named.evaluate(in))
		}
	}
	called := o.parts[0]
	if called.kind == "attr" {
		of := called.parts[0].evaluate(in)
		if _, is := of.(undefined); is {
			panic(errUndefined{})
		}
		return callMethod(of, called.text, args)
	}
	return callFunction(called.text, args, in["now"].(time.Time))
}

// callFunction is what a macro of the CDK gives.
func callFunction(name string, args []any, now time.Time) any {
	switch name {
	case "now_utc":
		return moment{at: now}
	case "today_utc":
		return moment{at: now.Truncate(24 * time.Hour), day: true}
	case "timestamp":
		if n, is := args[0].(int); is {
			return n
		}
		return float64(momentOf(args[0]).UnixMicro()) / 1e6
	case "max", "min":
		if len(args) == 1 {
			args = listOf(args[0])
		}
		best := args[0]
		for _, one := range args[1:] {
			if order := compare(one, best); name == "max" && order > 0 || name == "min" && order < 0 {
				best = one
			}
		}
		return best
	case "day_delta":
		format := "%Y-%m-%dT%H:%M:%S.%f%z"
		if len(args) > 1 {
			format = textOf(args[1])
		}
		return formatTime(now.AddDate(0, 0, args[0].(int)), format)
	case "duration":
		return parsePeriod(textOf(args[0]))
	case "format_datetime":
		if len(args) > 2 {
			at, is := parseTime(textOf(args[0]), textOf(args[2]))
			if !is {
				panic(fmt.Errorf("%v is no time", args[0]))
			}
			return formatTime(at, textOf(args[1]))
		}
		return formatTime(momentOf(args[0]), textOf(args[1]))
	case "sanitize_url":
		return url.QueryEscape(textOf(args[0]))
	}
	panic(fmt.Errorf("the function %s is not known", name))
}

func momentOf(of any) time.Time {
	switch of := of.(type) {
	case moment:
		return of.at
	case int:
		return time.Unix(int64(of), 0).UTC()
	}
	return isoTime(textOf(of))
}

// callMethod is what a method of a Python value gives.
func callMethod(of any, name string, args []any) any {
	switch of := of.(type) {
	case map[string]any:
		switch name {
		case "get":
			if value, has := of[textOf(args[0])]; has {
				return value
			}
			if len(args) > 1 {
				return args[1]
			}
			return nil
		case "items", "values", "keys":
			var out []any
			for _, key := range sortedKeys(of) {
				out = append(out, map[string]any{"items": []any{key, of[key]}, "values": of[key], "keys": key}[name])
			}
			return out
		}
	case []any:
		if name == "append" {
			return nil
		}
	case moment:
		switch name {
		case "strftime":
			return formatTime(of.at, textOf(args[0]))
		case "isoformat":
			return strings.Replace(textOf(of), " ", "T", 1)
		case "timestamp":
			return float64(of.at.UnixMicro()) / 1e6
		}
	case string:
		return textMethod(of, name, args)
	}
	panic(fmt.Errorf("%T has no method %s that is known", of, name))
}

func textMethod(of, name string, args []any) any {
	text := func(i int) string { return textOf(append(args, "", "")[i]) }
	switch name {
	case "split":
		parts := strings.Fields(of)
		if len(args) > 0 {
			parts = strings.Split(of, text(0))
		}
		out := make([]any, len(parts))
		for i, part := range parts {
			out[i] = part
		}
		return out
	case "join":
		list := listOf(args[0])
		parts := make([]string, len(list))
		for i, item := range list {
			parts[i] = textOf(item)
		}
		return strings.Join(parts, of)
	case "replace":
		return strings.ReplaceAll(of, text(0), text(1))
	case "lower":
		return strings.ToLower(of)
	case "upper":
		return strings.ToUpper(of)
	case "strip":
		return strings.TrimSpace(of)
	case "rstrip":
		return strings.TrimRight(of, text(0))
	case "startswith":
		return strings.HasPrefix(of, text(0))
	case "endswith":
		return strings.HasSuffix(of, text(0))
	}
	panic(fmt.Errorf("texts have no method %s that is known", name))
}

func isKind(of any, name string) bool {
	_, isUndefined := of.(undefined)
	switch name {
	case "defined":
		return !isUndefined
	case "undefined":
		return isUndefined
	case "none":
		return of == nil
	case "mapping":
		_, is := of.(map[string]any)
		return is
	case "string":
		_, is := of.(string)
		return is
	case "number", "integer":
		_, is := of.(int)
		_, fraction := of.(float64)
		return is || fraction && name == "number"
	case "iterable", "sequence":
		_, is := of.([]any)
		return is
	case "true", "false":
		return of == (name == "true")
	}
	panic(fmt.Errorf("the test %s is not known", name))
}

func (o *operand) binary(in names) any {
	left := o.parts[0].evaluate(in)
	switch o.text {
	case "and":
		if !isTrue(left) {
			return left
		}
		return o.parts[1].evaluate(in)
	case "or":
		if isTrue(left) {
			return left
		}
		return o.parts[1].evaluate(in)
	}
	return binary(o.text, left, o.parts[1].evaluate(in))
}

func binary(operator string, left, right any) any {
	switch operator {
	case "==", "!=":
		return isEqual(left, right) == (operator == "==")
	case "~":
		return textOf(left) + textOf(right)
	case "in":
		switch of := right.(type) {
		case string:
			return strings.Contains(of, textOf(left))
		case map[string]any:
			_, has := of[textOf(left)]
			return has
		case undefined:
			panic(errUndefined{})
		}
		return slices.ContainsFunc(listOf(right), func(one any) bool { return isEqual(one, left) })
	case "<", ">", "<=", ">=":
		order := compare(left, right)
		return order < 0 && operator[0] == '<' || order > 0 && operator[0] == '>' || order == 0 && len(operator) == 2
	}
	return arithmetic(operator, left, right)
}

func isEqual(left, right any) bool {
	if a, b, both := numbersOf(left, right); both {
		return a == b
	}
	return sourceOf(left) == sourceOf(right)
}

func numbersOf(left, right any) (a, b float64, both bool) {
	number := func(of any) (float64, bool) {
		switch of := of.(type) {
		case int:
			return float64(of), true
		case float64:
			return of, true
		case bool:
			return map[bool]float64{true: 1}[of], true
		}
		return 0, false
	}
	a, first := number(left)
	b, second := number(right)
	return a, b, first && second
}

// compare orders two values of one type.
func compare(left, right any) int {
	if a, b, both := numbersOf(left, right); both {
		return int(math.Copysign(1, a-b)) * map[bool]int{true: 1}[a != b]
	}
	if a, is := left.(string); is {
		if b, is := right.(string); is {
			return strings.Compare(a, b)
		}
	}
	if a, is := left.(moment); is {
		return a.at.Compare(momentOf(right))
	}
	if _, is := left.(undefined); is {
		panic(errUndefined{})
	}
	panic(fmt.Errorf("%v and %v have no order", left, right))
}

func arithmetic(operator string, left, right any) any {
	for _, of := range []any{left, right} {
		if _, is := of.(undefined); is {
			panic(errUndefined{})
		}
	}
	if at, is := left.(moment); is {
		if length, is := right.(period); is {
			return moment{at: length.addTo(at.at, map[string]int{"+": 1, "-": -1}[operator]), day: at.day}
		}
	}
	if text, is := left.(string); is {
		if other, is := right.(string); is && operator == "+" {
			return text + other
		}
	}
	if list, is := left.([]any); is && operator == "+" {
		return append(slices.Clone(list), listOf(right)...)
	}
	a, b, both := numbersOf(left, right)
	if !both {
		panic(fmt.Errorf("%v %s %v", left, operator, right))
	}
	var out float64
	switch operator {
	case "+":
		out = a + b
	case "-":
		out = a - b
	case "*":
		out = a * b
	case "/":
		return a / b
	case "//":
		out = math.Floor(a / b)
	case "%":
		out = a - b*math.Floor(a/b)
	}
	_, first := left.(float64)
	if _, second := right.(float64); first || second {
		return out
	}
	return int(out)
}

// render is the text of a template. undefinedName reports that something undefined was read of; err is what is not known here.
func render(text string, in names) (out string, undefinedName bool, err error) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case errUndefined:
			undefinedName = true
		case error:
			err = fmt.Errorf("%s: %w", text, reason)
		default:
			panic(reason)
		}
	}()
	return textOf(parseTemplate(text).evaluate(maps.Clone(in))), false, nil
}

// interpolate is the value of a text with templates: their text, read as a Python literal where it is one.
func interpolate(text string, in names) any {
	out, undefinedName, err := render(text, in)
	if err != nil {
		panic(err)
	}
	if undefinedName || out == "" {
		return nil
	}
	if value, is := literalOf(out); is {
		return value
	}
	return out
}

// holds is the truth of a condition.
func holds(text string, in names) bool {
	switch value := interpolate(text, in).(type) {
	case nil:
		return false
	case string:
		return !slices.Contains([]string{"False", "false", "{}", "[]", "()", "", "0", "0.0"}, value)
	case []any, map[string]any:
		return lengthOf(value) > 0
	case bool:
		return value
	case int:
		return value != 0 // 0 == False
	default:
		return true
	}
}
