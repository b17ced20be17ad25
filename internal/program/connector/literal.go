package connector

import (
	"regexp"
	"strconv"
	"strings"

	"reprise/internal/program/connector/jinja"
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

// template matches a template within a text.
var template = regexp.MustCompile(`\{\{.*?\}\}`)

// literalOfTemplates returns the map or list that a text of a body with templates is once they are rendered: where they are
// in quotes within a literal of Python. Other values it returns as they are.
func literalOfTemplates(of any, key string) any {
	switch of := of.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range of {
			out[name] = literalOfTemplates(value, key)
		}
		return out
	case string:
		text := strings.TrimSpace(of)
		if key != "request_body_json" || !jinja.HasTemplate(text) || !strings.HasPrefix(text, "[") && (!strings.HasPrefix(text, "{") || strings.HasPrefix(text, "{{") || strings.HasPrefix(text, "{%")) {
			return of
		}
		var templates []string
		plain := template.ReplaceAllStringFunc(text, func(one string) string {
			templates = append(templates, one)
			return "\x01" + strconv.Itoa(len(templates)-1) + "\x01"
		})
		if value, is := literalOf(plain); is {
			return withTemplates(value, templates)
		}
	}
	return of
}

// withTemplates returns a value with templates in the place of their marks.
func withTemplates(of any, templates []string) any {
	switch of := of.(type) {
	case string:
		for i, one := range templates {
			of = strings.ReplaceAll(of, "\x01"+strconv.Itoa(i)+"\x01", one)
		}
		return of
	case []any:
		for i := range of {
			of[i] = withTemplates(of[i], templates)
		}
	case map[string]any:
		for key := range of {
			of[key] = withTemplates(of[key], templates)
		}
	}
	return of
}
