package expression_test

import (
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// FuzzEvaluate looks for panics, results that are not canonical, work beyond
// the budget, runs that differ, and printed forms that mean something else.
func FuzzEvaluate(f *testing.F) {
	for _, seed := range []string{
		`n + 1`, `m.a.b.c ~ xs`, `users | filter(.ok) | map(.name) | join(",")`, `a if b else c`, `not a == b`,
		`x is not defined and n in (1, 2)`, `map(xs, {"v": #, "w": #index})`, `let x = n; x ** 2`, `s[1:3] | default("d", true)`,
		`reduce(xs, #acc + #, 0)`, `sortBy(users, .age, "desc")`, `groupBy(xs, # % 2)`, `1..3 | sum`, `-2 ** 2`, `a ?: b ?? c`,
		`"\ud83d\ude00é" ~ '\d'`, `m?.["a"].0.b`, `a < b < c`, `if n { 1 } else { 2 }`, `round(2.345, 2)`, `now()`, `{a: {b: [1]}}`,
		`xs matches "a+"`, `((((a`, `a == b == c`, `9223372036854775808 - 1`, `1e20 * 1e20`, `any(xs, all(xs, # > 1))`,
		`!n.x ?? -y | abs is none`, `[let x = 1; x, (1,)]`, `date("2026-01-01") | unix`, `fromJSON("[1e400]")`,
	} {
		f.Add(seed)
	}

	// Every operator, test and function, with names that the scope has.
	names := regexp.MustCompile(`\b[xyz]\b`)
	for _, source := range expression.EverySource() {
		f.Add(names.ReplaceAllStringFunc(source, func(name string) string {
			return map[string]string{"x": "xs", "y": "n", "z": "s"}[name]
		}))
	}

	f.Fuzz(func(t *testing.T, source string) {
		scope := testScope(t)

		program, problems := expression.Compile(source)
		if program == nil {
			requireInside(t, source, problems)
			return
		}

		require.Empty(t, problems)

		first, firstErr := fuzzRun(t, program, scope)
		second, secondErr := fuzzRun(t, program, scope)
		require.Equal(t, first, second)
		require.Equal(t, firstErr, secondErr)

		printed, problems := expression.Compile(program.Printed())
		if printed == nil { // parentheses can take it over a limit
			require.Equal(t, "too-large", problems[0].Code, "%s: %v", program.Printed(), problems)
			return
		}

		result, err := printed.Eval(scope, budget())
		require.Equal(t, firstErr == "", err == nil, "%s: %v", program.Printed(), err)

		if err == nil {
			require.Equal(t, first, result, program.Printed())
		}
	})
}

func fuzzRun(t *testing.T, program *expression.Program, scope expression.Scope) (any, string) {
	t.Helper()

	b := budget()
	result, err := program.Eval(scope, b)

	steps, bytes := b.Used()
	require.LessOrEqual(t, steps, expression.DecisionLimits.Steps+1)
	require.LessOrEqual(t, bytes, expression.DecisionLimits.Bytes+1)

	if err != nil {
		var located *expression.Error

		require.ErrorAs(t, err, &located)
		require.LessOrEqual(t, located.Offset, utf8.RuneCountInString(program.Source()))
		require.NotContains(t, located.Message, "cannot be evaluated")
		return nil, err.Error()
	}

	canonical, err := expression.Canonical(result)
	require.NoError(t, err)
	require.Equal(t, canonical, result)
	return result, ""
}

func requireInside(t *testing.T, source string, problems []expression.Problem) {
	t.Helper()
	require.NotEmpty(t, problems)

	for _, p := range problems {
		require.NotEmpty(t, p.Message)
		require.NotEmpty(t, p.Code)
		require.NotContains(t, p.Message, "cannot be compiled")
		require.GreaterOrEqual(t, p.Offset, 0)
		require.GreaterOrEqual(t, p.End, p.Offset)
		require.LessOrEqual(t, p.Offset, utf8.RuneCountInString(source))
	}
}

// FuzzTemplate looks for panics and for spans and segments that do not cover
// the text.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		``, `a {{ n }} b`, `{{ '{{' }}`, `{{ {"a": {}} }}}}`, `{{ 'x }} {{ y }}`, `{% if a %}b{% endif %}`, `{# c #}`, `{{- n -}}`,
		`{{-1}}`, `{{ n`, `{{{}}}`, "é{{ \"`\" }}`", `{{}}{{}}`, `{{ n }} == {{ n }}`, `it's {{ n }}`, `{{ "\"}}" }}`,
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, source string) {
		scope := testScope(t)
		runes := utf8.RuneCountInString(source)

		at := 0
		for _, s := range expression.FindSpans(source) {
			require.GreaterOrEqual(t, s.Start, at)
			require.Greater(t, s.End, s.Start)
			require.LessOrEqual(t, s.End, runes)
			at = s.End
		}

		if condition, problems := expression.ParseCondition(source); condition == nil {
			requireInside(t, source, problems)
		}

		template, problems := expression.ParseTemplate(source)
		if template == nil {
			requireInside(t, source, problems)
			return
		}

		at = 0
		for _, s := range template.Segments() {
			require.Equal(t, at, s.Start)
			at = s.End
		}

		require.Equal(t, runes, at)

		if text, ok := template.LiteralText(); ok {
			result, err := template.Render(scope, budget())
			require.NoError(t, err)
			require.Equal(t, text, result)
		}
	})
}
