package expression_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

var benchmarks = []string{
	`response.paging.hasMore == true`,
	`status in [429, 500, 502, 503]`,
	`(response.paging.page | int) + 1`,
	`next_cursor is not none and next_cursor != ''`,
	`status >= 500 and status < 600`,
	`unknown or 0`,
	`s ~ '/p/' ~ n`,
	`arr | filter(# % 2 == 0) | map(# + 1) | join(",")`,
	`all(arr, # >= 0)`,
}

func BenchmarkCompile(b *testing.B) {
	for _, source := range benchmarks {
		b.Run(source, func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				if _, problems := expression.Compile(source); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}

func BenchmarkEvaluate(b *testing.B) {
	scope := testScope(b)

	arr := make([]any, 100)
	for i := range arr {
		arr[i] = i
	}

	scope["arr"] = arr

	for _, source := range benchmarks {
		program, problems := expression.Compile(source)
		require.Empty(b, problems)

		b.Run(source, func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				if _, err := program.Eval(scope, budget()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCondition evaluates conditions as playbooks have them.
func BenchmarkCondition(b *testing.B) {
	scope := expression.MapScope{
		"error":    map[string]any{"status": 503, "class": "rate_limited"},
		"response": map[string]any{"paging": map[string]any{"hasMore": true}},
		"_retry":   map[string]any{"attempt": 2},
	}

	for _, source := range conditions {
		condition, problems := expression.ParseCondition(source)
		require.Empty(b, problems)

		b.Run(source, func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				if v, err := condition.Render(scope, budget()); err != nil || v != true {
					b.Fatal(v, err)
				}
			}
		})
	}
}

var conditions = []string{
	`error.status in [429, 503] and _retry.attempt < 5`,
	`response.paging.hasMore`,
	`error.class == 'rate_limited'`,
}

func BenchmarkRenderRequest(b *testing.B) {
	scope := testScope(b)

	var templates []*expression.Template

	for _, source := range []string{`https://api/{{ s }}/items`, `{{ n }}`, `Bearer {{ m.k }}`, `{{ response.paging.page }}`} {
		template, problems := expression.ParseTemplate(source)
		require.Empty(b, problems)

		templates = append(templates, template)
	}

	b.ReportAllocs()

	for b.Loop() {
		decision := budget()

		for _, template := range templates {
			if _, err := template.Render(scope, decision); err != nil {
				b.Fatal(err)
			}
		}
	}
}
