package jinja_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/connector/jinja"
)

// TestParse: each form of templates has its tree.
func TestParse(t *testing.T) {
	t.Parallel()
	text := func(v any) *jinja.Literal { return &jinja.Literal{Value: v} }
	a, b := &jinja.Name{ID: "a"}, &jinja.Name{ID: "b"}
	for source, want := range map[string]any{
		"plain":                             text("plain"),
		"{{ a }}\n":                         a,
		"x{{ a }}y":                         &jinja.Concat{Parts: []jinja.Operand{text("x"), a, text("y")}},
		"{{ a['b'] }}":                      &jinja.Index{Of: a, Key: text("b")},
		"{{ a.b }}":                         &jinja.Index{Of: a, Key: text("b"), Dotted: true},
		"{{ a[1:] }}":                       &jinja.Portion{Of: a, From: text(1)},
		"{{ not a or b }}":                  &jinja.Binary{Operator: "or", Left: &jinja.Unary{Operator: "not", Of: a}, Right: b},
		"{{ a not in b }}":                  &jinja.Binary{Operator: "not in", Left: a, Right: b},
		"{{ a is not none }}":               &jinja.Predicate{Of: a, Name: "none", Not: true},
		"{{ 'x' if a else b }}":             &jinja.Ternary{If: a, Then: text("x"), Else: b},
		"{{ a | default(1) }}":              &jinja.Filter{Name: "default", Of: a, Args: []jinja.Operand{text(1)}, Named: map[string]jinja.Operand{}},
		"{{ a(1, x=2) }}":                   &jinja.Invocation{Function: a, Args: []jinja.Operand{text(1)}, Named: map[string]jinja.Operand{"x": text(2)}},
		"{{ (1, -2.5) }}":                   &jinja.Tuple{Items: []jinja.Operand{text(1), text(-2.5)}},
		"{{ {'a': '}}'} }}":                 &jinja.Dict{Keys: []jinja.Operand{text("a")}, Values: []jinja.Operand{text("}}")}},
		"{% if a %}1{% else %}2{% endif %}": &jinja.Ternary{If: a, Then: text("1"), Else: text("2")},
		"{% set b = a %} {{ b }}":           &jinja.Let{Name: "b", Value: a, In: b},
		"{# a comment #}{{ a }}":            a,
	} {
		got, err := jinja.Parse(source)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
}

// TestErrors: what cannot be read says why, also what is nested deeper than maxDepth.
func TestErrors(t *testing.T) {
	t.Parallel()
	const depth = 200
	for source, want := range map[string]string{
		"{{ a":                       "braces are not closed",
		"{{ 'a }}":                   "braces are not closed",
		"{{ a b }}":                  `"b" was not expected`,
		"{{ a. }}":                   "a name is missing behind a dot",
		"{{ (a }}":                   `")" is missing`,
		"{{ }}":                      "an expression ends too early",
		"{{ ? }}":                    `"?" cannot be read`,
		"{% for x in a %}":           "the block {% for %}",
		"{% if a %}":                 "{% endif %} is missing",
		"{% endif %}":                "{% endif %} has no beginning",
		"{% set a, b = c %}":         "the block {% set a, b %}",
		"{{ 99999999999999999999 }}": "99999999999999999999 is too large",
		"{{ " + strings.Repeat("(", depth) + " }}":                                       "it is nested too deep",
		strings.Repeat("{% if a %}", depth) + "x" + strings.Repeat("{% endif %}", depth): "blocks are nested too deep",
	} {
		_, err := jinja.Parse(source)
		require.ErrorContains(t, err, want, source)
	}
}
