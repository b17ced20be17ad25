package connector

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"reprise/internal/program/node"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// code is an expression of a playbook, with what is known about its value.
type code struct {
	text string
	prec int
	// value is the value if known is set.
	value any
	known bool
	// of is the negated operand if the expression is a negation, and opposite its negation if that is shorter than with `not`.
	of, opposite *code
	// While there is no response, falsy says that the value is false, and calm that evaluating it is no error.
	falsy, calm bool
	// texty, timed, dated and whole say that the value is a text, a time, a day or a whole number.
	texty, timed, dated, whole bool
	// path is set if it is a name followed by members.
	path bool
	// sure says that the value is true wherever it is evaluated: it is a text or number that is always there.
	sure bool
	// moment is the time that it is the text of, in a format of strftime; nil if it is none.
	moment *code
	format string
}

// Precedences, weakest first.
const (
	precChoice = iota + 1
	precOr
	precAnd
	precCompare
	precJoin
	precAdd
	precMultiply
	precPipe
	precAtom
)

// operandText returns the text for use as an operand, in parentheses if its precedence is below prec.
func (c code) operandText(prec int) string {
	if c.prec < prec {
		return "(" + c.text + ")"
	}
	return c.text
}

// constantCode returns the expression for a constant.
func constantCode(v any) code {
	c := code{prec: precAtom, value: v, known: true, falsy: !expression.Truthy(v), calm: true}
	switch v := v.(type) {
	case nil:
		c.text = "nil"
	case string:
		c.text, c.texty = quoteText(v), true
	case []any:
		items := make([]string, len(v))
		for i, one := range v {
			items[i] = constantCode(one).text
		}
		c.text = "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var items []string
		for _, key := range playbook.SortedKeys(v) {
			items = append(items, quoteText(key)+": "+constantCode(v[key]).text)
		}
		c.text = "{" + strings.Join(items, ", ") + "}"
	default:
		c.text = expression.Text(v)
	}
	return c
}

// quoteText returns a text as a string literal, if possible in the quotes that need no escapes in YAML.
func quoteText(text string) string {
	if !strings.ContainsAny(text, "'\\\n\r\t") {
		return "'" + text + "'"
	}
	return strconv.Quote(text)
}

// callCode returns a function call.
func callCode(name string, args ...code) code {
	c := code{prec: precAtom, calm: true}
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = arg.text
		c.calm = c.calm && arg.calm
	}
	c.text = name + "(" + strings.Join(texts, ", ") + ")"
	return c
}

// pathCode returns a name followed by members.
func pathCode(root string, keys ...any) code {
	return code{text: root + memberPath(keys), prec: precAtom, falsy: true, calm: true, path: true}
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// memberPath returns the members that follow a name, as they are written in expressions.
func memberPath(keys []any) string {
	var b strings.Builder
	for _, key := range keys {
		switch key := key.(type) {
		case string:
			if plainName.MatchString(key) {
				b.WriteString("." + key)
			} else {
				b.WriteString("[" + quoteText(key) + "]")
			}
		case code:
			b.WriteString("[" + key.text + "]")
		default:
			_, _ = fmt.Fprintf(&b, "[%v]", key)
		}
	}
	return b.String()
}

// memberCode returns a member of an expression.
func memberCode(of code, key any) code {
	if of.known {
		if name, isText := key.(string); isText || of.value == nil {
			return constantCode(expression.MapMember(of.value, name))
		}
	}
	return code{text: of.operandText(precAtom) + memberPath([]any{key}), prec: precAtom, falsy: of.falsy, calm: of.calm, path: of.path}
}

func negate(c code) code {
	switch {
	case c.known:
		return constantCode(!expression.Truthy(c.value))
	case c.of != nil:
		return *c.of
	case c.opposite != nil:
		opposite := *c.opposite
		opposite.of = &c
		return opposite
	case strings.HasSuffix(c.text, " is defined") && c.prec == precCompare:
		return code{text: strings.TrimSuffix(c.text, "defined") + "not defined", prec: precCompare, of: &c, calm: c.calm}
	}
	return code{text: "not " + c.operandText(precAtom), prec: precCompare, of: &c, calm: c.calm}
}

func andCode(a, b code) code {
	switch {
	case a.known && expression.Truthy(a.value), a.text == b.text:
		return b
	case a.known:
		return a
	case b.known && b.value == true:
		return a
	case isImplied(b, a):
		return b
	case isImplied(a, b):
		return a
	}
	return code{text: a.operandText(precAnd) + " and " + b.operandText(precAnd), prec: precAnd, falsy: a.falsy || a.calm && b.falsy, calm: a.calm && (a.falsy || b.calm)}
}

// isImplied reports whether a makes b redundant: b is a prefix of a's path, or tests that it exists.
func isImplied(a, b code) bool {
	if !a.path {
		return false
	}
	if b.path {
		return strings.HasPrefix(a.text, b.text+".") || strings.HasPrefix(a.text, b.text+"[")
	}
	there, found := strings.CutSuffix(b.text, " is defined")
	if !found {
		var key string
		if key, there, found = strings.Cut(b.text, " in "); !found || b.prec != precCompare || strings.Contains(there, " ") {
			return false
		}
		there += memberPath([]any{strings.Trim(key, "'")})
	}
	return a.text == there || strings.HasPrefix(a.text, there+".") || strings.HasPrefix(a.text, there+"[")
}

// asDay returns an expression in which today is a day, and not the time of it.
func asDay(c code) code {
	if c.dated && c.text == nowCode().text {
		return code{text: "format_time(" + c.text + ", '2006-01-02')", prec: precAtom, calm: c.calm, texty: true}
	}
	return c
}

func orCode(a, b code) code {
	a, b = asDay(a), asDay(b)
	switch {
	case a.known && !expression.Truthy(a.value), a.text == b.text:
		return b
	case a.known, a.sure:
		return a
	case b.known && b.value == false:
		return a
	case a.of != nil && b.of != nil: // a negation of both is easier to read, and to negate again
		return negate(andCode(*a.of, *b.of))
	}
	c := code{text: a.operandText(precOr) + " or " + b.operandText(precOr), prec: precOr, falsy: a.falsy && b.falsy, calm: a.calm && b.calm}
	if neither := andCode(negate(a), negate(b)); neither.of == nil && !neither.known {
		c.opposite = &neither
	}
	return c
}

// members matches the members of a value.
var members = regexp.MustCompile(`^(?:\.\w+|\['[^']*'\])+$`)

func choiceCode(test, then, otherwise code) code {
	if test.known {
		if expression.Truthy(test.value) {
			return then
		}
		return otherwise
	}
	then, otherwise = asDay(then), asDay(otherwise)
	if rest, of := strings.CutPrefix(then.text, test.text); of && test.prec == precAtom && otherwise.known && otherwise.value == nil && members.MatchString(rest) {
		return then // which is nil where the test is
	}
	return code{
		text: then.operandText(precOr) + " if " + test.operandText(precOr) + " else " + otherwise.operandText(precChoice), prec: precChoice,
		calm: test.calm && then.calm && otherwise.calm, falsy: test.calm && then.falsy && otherwise.falsy,
		texty: then.texty && otherwise.texty, timed: then.timed && otherwise.timed,
	}
}

// compareCode returns a comparison, which is false for nil.
func compareCode(operator string, a, b code) code {
	if a.known && b.known && (operator == "==" || operator == "!=") {
		return constantCode((expression.Text(a.value) == expression.Text(b.value)) == (operator == "=="))
	}
	calm := a.calm && b.calm
	falsy := calm && operator != "!=" && operator != "not in" && (operator != "==" || a.known && a.value != nil || b.known && b.value != nil)
	if operator == "==" || operator == "!=" {
		falsy = falsy && (a.path || b.path)
	} else {
		falsy = falsy && (a.falsy || b.falsy)
	}
	c := code{text: a.operandText(precJoin) + " " + operator + " " + b.operandText(precJoin), prec: precCompare, falsy: falsy, calm: calm}
	if other := map[string]string{"==": "!=", "!=": "=="}[operator]; other != "" {
		c.opposite = &code{text: a.operandText(precJoin) + " " + other + " " + b.operandText(precJoin), prec: precCompare, calm: calm}
	}
	return c
}

// definedCode returns an expression that reports whether a value is defined.
func definedCode(c code) code {
	if c.known {
		return constantCode(c.value != nil)
	}
	return code{text: c.operandText(precPipe) + " is defined", prec: precCompare, falsy: c.falsy, calm: c.calm}
}

// joinTexts returns the concatenation of parts.
func joinTexts(parts []code) code {
	if len(parts) == 1 {
		return parts[0]
	}
	texts := make([]string, len(parts))
	calm := true
	var value strings.Builder
	known := true
	for i, part := range parts {
		part = asDay(part)
		texts[i] = part.operandText(precAdd)
		if i == 0 && part.prec == precJoin {
			texts[i] = part.text
		}
		calm, known = calm && part.calm, known && part.known
		if known {
			value.WriteString(expression.Text(part.value))
		}
	}
	if known {
		return constantCode(value.String())
	}
	return code{text: strings.Join(texts, " ~ "), prec: precJoin, calm: calm, texty: true}
}

// templateValue returns parts as a YAML value: a constant, or a text with templates.
func templateValue(parts []code) any {
	if len(parts) == 1 {
		if parts[0].known {
			return parts[0].value
		}
		return node.Verbatim("{{ " + asDay(parts[0]).text + " }}")
	}
	var b strings.Builder
	known := true
	for i, part := range parts {
		switch text, isText := part.value.(string); {
		case part.known && isText && strings.HasSuffix(text, "{") && i+1 < len(parts): // which would be one of those behind it
			b.WriteString(node.EscapeBraces(text[:len(text)-1]) + "{{ '{' }}")
		case part.known && isText:
			b.WriteString(node.EscapeBraces(text))
		case part.known:
			b.WriteString(expression.Text(part.value))
		default:
			known = false
			b.WriteString("{{ " + asDay(part).text + " }}")
		}
	}
	if known {
		var plain strings.Builder
		for _, part := range parts {
			plain.WriteString(expression.Text(part.value))
		}
		return plain.String()
	}
	return node.Verbatim(b.String())
}
