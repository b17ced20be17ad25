package airbyte

import (
	"regexp"
	"strconv"
	"strings"

	"reprise/internal/program/airbyte/jinja"
	"reprise/interpreter/expression"
)

var (
	// fraction matches a number with a fraction or an exponent.
	fraction = regexp.MustCompile(`^-?\d+(\.\d*)?([eE][-+]?\d+)?$`)
	// quotedText matches a text in quotes.
	quotedText = regexp.MustCompile(`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"`)
	// jinjaConstant matches constants of Jinja, and of JSON, that Python does not have.
	jinjaConstant = regexp.MustCompile(`\b(true|false|none|null)\b`)
)

// literalOf returns the value of a text that is a Python literal. The CDK parses the results of templates that way.
func literalOf(text string) (value any, is bool) {
	text = strings.TrimSpace(text)
	switch {
	case text == "True" || text == "False":
		return text == "True", true
	case text == "None":
		return nil, true
	case number.MatchString(text) && (text == "0" || !strings.HasPrefix(strings.TrimPrefix(text, "-"), "0")):
		if n, err := strconv.Atoi(text); err == nil {
			return n, true
		}
	case text == "" || jinja.HasTemplate(text) || !strings.ContainsRune(`[{('"`, rune(text[0])):
		return nil, false
	}
	if fraction.MatchString(text) && strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	}
	if jinjaConstant.MatchString(quotedText.ReplaceAllString(text, "")) {
		return nil, false
	}
	tree, err := jinja.Parse("{{ " + text + " }}")
	if err != nil {
		return nil, false
	}
	return constantOf(tree)
}

// constantOf is the value of an operand that names nothing.
func constantOf(of jinja.Operand) (value any, is bool) {
	switch of := of.(type) {
	case *jinja.Literal:
		return of.Value, true
	case *jinja.Tuple:
		list := make([]any, len(of.Items))
		for i, item := range of.Items {
			if list[i], is = constantOf(item); !is {
				return nil, false
			}
		}
		return list, true
	case *jinja.Dict:
		out := map[string]any{}
		for i, key := range of.Keys {
			name, named := constantOf(key)
			one, known := constantOf(of.Values[i])
			if !named || !known {
				return nil, false
			}
			out[expression.Text(name)] = one
		}
		return out, true
	}
	return nil, false
}
