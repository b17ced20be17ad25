package expression_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

func TestConditions(t *testing.T) {
	t.Parallel()

	scope := testScope(t)

	for source, want := range map[string]bool{
		`response.paging.hasMore == true`:       true,
		`{{ response.paging.hasMore == true }}`: true,
		"  {{ status >= 500 }}\n":               true,
		`error is defined`:                      false,
		`true`:                                  true,
		`0`:                                     false,
		`{{ xs }}`:                              true,
		`none_`:                                 false,
		`s == '{{'`:                             false,
		`"}}" in s`:                             false,
		`{"a": {"b": n}}.a.b == 3`:              true,
		`status in [429, 503] and not (n > 9)`:  true,
		`'timeout' in (error | lower)`:          false,
		`next_cursor is not none and n < 1`:     false,
		`any(users, # .age > 30)`:               true,
		`{{ any(users, .name == "it's {{ x }}")}}`: false,
	} {
		template, problems := expression.ParseCondition(source)
		require.Empty(t, problems, source)
		require.Equal(t, source, template.Source())

		_, single := template.SingleProgram()
		require.True(t, single, source)

		result, err := template.Render(scope, budget())
		require.NoError(t, err, source)
		require.Equal(t, want, expression.Truthy(result), source)
	}
}

func TestConditionProblems(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		source string
		place  place
	}{
		{` `, place{0, "syntax", `the condition is empty; write true if it should always match`}},
		{`{{ a }} == {{ b }}`, place{8, "condition-text", `a condition must be a single expression; write {{ a == b }}`}},
		{`{{ a }} == 'x'`, place{8, "condition-text", `a condition must be a single expression; write {{ a == 'x' }}`}},
		{`not {{ a }}`, place{0, "condition-text", `a condition must be a single expression; write {{ not a }}`}},
		{`{{ a }} {{ b }}`, place{8, "condition-text", `a condition must be a single expression; write {{ a b }}`}},
		{`it's {{ a }} isn't`, place{0, "condition-text", `a condition must be a single expression; write {{ it's a isn't }}`}},
		{`{% if a %}true{% endif %}`, place{0, "jinja-block", `{% if a %} is not accepted; write {{ a if a else b }}`}},
		{`{{ a b }}`, place{5, "syntax", `unexpected "b"; an operator was expected here`}},
		{` a b`, place{3, "syntax", `unexpected "b"; an operator was expected here`}},
		{`{{ a`, place{0, "syntax", `"{{" is never closed; to write two braces as text use {{ '{{' }}`}},
	} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()

			template, problems := expression.ParseCondition(c.source)
			require.Nil(t, template)
			require.NotEmpty(t, problems)
			require.Equal(t, c.place, places(problems)[0])
		})
	}
}

func TestConditionOffsets(t *testing.T) {
	t.Parallel()

	for source, at := range map[string]int{`n + s`: 2, ` {{ n + s }}`: 6} {
		template, problems := expression.ParseCondition(source)
		require.Empty(t, problems)
		require.Equal(t, "n", template.Refs()[0].Root)
		require.Equal(t, at-2, template.Refs()[0].Offset)

		_, err := template.Render(testScope(t), budget())

		var located *expression.Error

		require.ErrorAs(t, err, &located)
		require.Equal(t, at, located.Offset)
	}
}
