package expression_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// TestNested checks what is said of templates in the strings of expressions:
// where they stand, and what to write, which must compile.
func TestNested(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		source string
		at     []int
		write  string // of the first
	}{
		{source: `{{ '{{ error.status }}' == '503' }}`, at: []int{3}, write: `string(error.status) == '503'`},
		{source: `'{{ error.status }}' == '503'`, at: []int{0}, write: `string(error.status) == '503'`},
		{source: `{{ a and "{{b}}" != "x" }}`, at: []int{9}, write: `a and string(b) != "x"`},
		{source: "{{ `{{ b }}` }}", at: []int{3}, write: `string(b)`},
		{source: `{{ 'a/{{ b }}/{{ c | int }}' }}`, at: []int{3}, write: `'a/' ~ b ~ '/' ~ (c | int)`},
		{source: `{{ x == 'a/{{ b }}' }}`, at: []int{8}, write: `x == ('a/' ~ b)`},
		{source: `{{ '{{ a }}' == '{{ b }}' }}`, at: []int{3, 16}, write: `string(a) == '{{ b }}'`},
		{source: `{{ '{{' }}`},
		{source: `{{ '}}' ~ '{{' }}`},
		{source: `{{ '{{}}' }}`},
		{source: `a '{{ b }}' c`},
		{source: `x == '{{'`},
	} {
		t.Run(test.source, func(t *testing.T) {
			t.Parallel()

			template, problems := expression.ParseTemplate(test.source)
			if condition, found := expression.ParseCondition(test.source); len(found) == 0 {
				template, problems = condition, found
			}

			require.Empty(t, problems)

			var at []int

			nested := template.NestedProblems()
			for _, problem := range nested {
				require.Equal(t, "template-in-string", problem.Code)

				at = append(at, problem.Offset)
			}

			require.Equal(t, test.at, at)

			if len(nested) > 0 {
				require.Contains(t, nested[0].Message, "write {{ "+test.write+" }}")

				_, problems := expression.Compile(test.write)
				require.Empty(t, problems)
			}
		})
	}
}
