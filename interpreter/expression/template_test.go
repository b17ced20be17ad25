package expression_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

func budget() *expression.Budget {
	return expression.NewBudget(expression.DecisionLimits, started)
}

func TestRender(t *testing.T) {
	t.Parallel()

	scope := testScope(t)

	for _, c := range []struct {
		source string
		result any
	}{
		{``, ``},
		{`plain`, `plain`},
		{`}} {"a": {"b": 1}}`, `}} {"a": {"b": 1}}`},
		{`{{ n }}`, 3},
		{` {{ n }}` + "\n", 3},
		{`{{n}}`, 3},
		{`{{ xs }}`, []any{1, 2, 3}},
		{`{{ unknown }}`, nil},
		{`a{{ n }}`, `a3`},
		{`{{ n }}{{ n }}`, `33`},
		{`{{ n }} {{ n }}`, `3 3`},
		{`n={{ n }}, f={{ f }}, nil={{ null }}!, {{ yes }} {{ m.a }} {{ xs }}`, `n=3, f=1.5, nil=!, true {"b":{"c":7}} [1,2,3]`},
		{`"007"`, `"007"`},
		{`{{ "007" }}`, `007`},
		{`{{ "{{ n }}" }}`, `{{ n }}`},
		{`{{ "}}" }}`, `}}`},
		{`{{ '{{' }} n }}`, `{{ n }}`},
		{`{{ {"a": {"b": 1}} }}`, map[string]any{"a": map[string]any{"b": 1}}},
		{`{{{"a": {"b": 1}}}}`, map[string]any{"a": map[string]any{"b": 1}}},
		{`{{ {} }}{{ {} }}`, `{}{}`},
		{`{{-1}}`, -1},
		{`{{-.5}}`, -0.5},
		{`it's {{ n }} o'clock`, `it's 3 o'clock`},
		{`{{ "it's" }} {{ 'a"b' }}`, `it's a"b`},
		{`é{{ u }}é`, `éhélloé`},
		{`{ {n} } {{ n }} { }`, `{ {n} } 3 { }`},
		{`{% {{ n }}`, `{% 3`},
		{`color: {#fff} {{ n }}`, `color: {#fff} 3`},
		{"{{ n\n + 1 }}", 4},
		{`{{ users | map({"n": .name}) | first }}`, map[string]any{"n": "Ann"}},
	} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()

			template, problems := expression.ParseTemplate(c.source)
			require.Empty(t, problems)
			require.Equal(t, c.source, template.Source())

			result, err := template.Render(scope, budget())
			require.NoError(t, err)
			require.Equal(t, c.result, result)
		})
	}
}

func TestTemplateParts(t *testing.T) {
	t.Parallel()

	template, problems := expression.ParseTemplate(`é {{ a.b }}{{ now() }} {{ '{{' }}`)
	require.Empty(t, problems)

	_, single := template.SingleProgram()
	require.False(t, single)

	_, literal := template.LiteralText()
	require.False(t, literal)

	segments := template.Segments()
	require.Len(t, segments, 5)

	for i, want := range []struct {
		start, end int
		text       string
	}{{0, 2, "é "}, {2, 11, ""}, {11, 22, ""}, {22, 23, " "}, {23, 33, ""}} {
		require.Equal(t, want.start, segments[i].Start)
		require.Equal(t, want.end, segments[i].End)
		require.Equal(t, want.text, segments[i].Text)
		require.Equal(t, want.text == "", segments[i].Program != nil)
	}

	require.Equal(t, []expression.Ref{{Root: "a", Path: []any{"b"}, Offset: 5, End: 6}}, template.Refs())

	template, problems = expression.ParseTemplate(` {{ a.b }} `)
	require.Empty(t, problems)
	require.Equal(t, []expression.Ref{{Root: "a", Path: []any{"b"}, Offset: 4, End: 5, Bare: true}}, template.Refs())

	program, single := template.SingleProgram()
	require.True(t, single)
	require.Equal(t, ` a.b `, program.Source())
	require.Equal(t, `a.b`, program.Printed())
}

func TestTemplateLiteral(t *testing.T) {
	t.Parallel()

	for source, want := range map[string]string{
		``: ``, `plain }}`: `plain }}`, `{{ '{{' }} x }}`: `{{ x }}`, `{{ "a" }}`: `a`,
	} {
		template, problems := expression.ParseTemplate(source)
		require.Empty(t, problems, source)

		text, ok := template.LiteralText()
		require.True(t, ok, source)
		require.Equal(t, want, text)
	}

	for _, source := range []string{`{{ a }}`, `x {{ 1 }}`, `{{ "a" ~ "b" }}`} {
		template, problems := expression.ParseTemplate(source)
		require.Empty(t, problems, source)

		_, ok := template.LiteralText()
		require.False(t, ok, source)
	}
}

type place struct {
	at      int
	code    string
	message string
}

func TestTemplateProblems(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		source string
		places []place
	}{
		{`é {{ n`, []place{{2, "syntax", `"{{" is never closed; to write two braces as text use {{ '{{' }}`}}},
		{`{{ }}`, []place{{2, "syntax", `the expression is empty`}}},
		{`a {{ 'x }} b {{ y. }} {{ n }}`, []place{
			{5, "syntax", `the text that starts with ' is never closed`},
			{17, "syntax", `a name was expected after ".", not the end; other keys are written a["the key"]`},
		}},
		{`{{ {"a": 1 }} {{ lowr(x) }}`, []place{
			{3, "syntax", `"{" is never closed; "}" is missing`},
			{17, "unknown-function", `unknown function "lowr"; did you mean "lower"?`},
		}},
		{`{% if a > 1 %}x{% else %}y{% endif %}`, []place{
			{0, "jinja-block", `{% if a > 1 %} is not accepted; write {{ a if a > 1 else b }}`},
			{15, "jinja-block", `{% else %} is not accepted; write {{ a if c else b }}`},
			{26, "jinja-block", `{% endif %} is not accepted; write {{ a if c else b }}`},
		}},
		{`{%- for x in xs -%}{{ x }}{% endfor %}`, []place{
			{0, "jinja-block", `{% for x in xs %} is not accepted; write {{ map(xs, #.name) | join("") }}, with # as the element`},
			{26, "jinja-block", `{% endfor %} is not accepted; write {{ map(xs, #.name) | join("") }}, with # as the element`},
		}},
		{`{% set x = 2 %}`, []place{
			{0, "jinja-block", `{% set x = 2 %} is not accepted; write {{ let x = 2; … }}, or set it in vars`},
		}},
		{`{% raw %}`, []place{{0, "jinja-block", `{% raw %} is not accepted; write two braces as {{ '{{' }}`}}},
		{`{% include "x" %}`, []place{
			{0, "jinja-block", `{% include "x" %} is not accepted; write the value as an expression in {{ }}`},
		}},
		{`a {# b #} c`, []place{
			{2, "jinja-block", `comments are not part of a template; put them into the YAML as # comment`},
		}},
		{`{{- n }}`, []place{
			{0, "jinja-block", `"{{-" does not strip white space here; write {{ without -, and {{ -x }} for minus x`},
		}},
		{`{{ n -}}`, []place{{5, "jinja-block", `"-}}" does not strip white space here; write }} without -`}}},
		{`{{ {% if a %} }}`, []place{
			{3, "syntax", `{% … %} blocks are not part of an expression; write a if c else b, or let x = …; …`},
		}},
	} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()

			template, problems := expression.ParseTemplate(c.source)
			require.Nil(t, template)
			require.Equal(t, c.places, places(problems))
		})
	}
}

func places(problems []expression.Problem) []place {
	out := make([]place, len(problems))
	for i, p := range problems {
		out[i] = place{p.Offset, p.Code, p.Message}
	}
	return out
}

func TestRenderErrorOffsets(t *testing.T) {
	t.Parallel()

	scope := testScope(t)

	for _, c := range []struct {
		source string
		at     int
	}{
		{`{{ n + s }}`, 5},
		{`é {{ n }} {{ n + s }}`, 15},
		{`{{ "é" }} {{ 1 + zz }}`, 17},
		{"\n {{ n + s }} ", 7},
	} {
		template, problems := expression.ParseTemplate(c.source)
		require.Empty(t, problems)

		_, err := template.Render(scope, budget())

		var located *expression.Error

		require.ErrorAs(t, err, &located)
		require.Equal(t, c.at, located.Offset, c.source)
	}
}

func TestFindSpans(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		source string
		spans  []expression.Placeholder
	}{
		{`select 1`, []expression.Placeholder{}},
		{`é '{{ a }}' {{ '}}' }}`, []expression.Placeholder{{Start: 3, End: 10}, {Start: 12, End: 22}}},
		{`{{ {"a": {}} }}}}`, []expression.Placeholder{{Start: 0, End: 15}}},
		{`a {{ b`, []expression.Placeholder{{Start: 2, End: 6}}},
		{`{{ 'b }} c`, []expression.Placeholder{{Start: 0, End: 8}}},
		{`{{`, []expression.Placeholder{{Start: 0, End: 2}}},
	} {
		require.Equal(t, c.spans, expression.FindSpans(c.source), c.source)
	}
}
