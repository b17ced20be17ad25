package playbook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// legacyPolicies decodes the retry of a step with a tool.
func legacyPolicies(t *testing.T, tool, retry string) []*playbook.Policy {
	t.Helper()

	text := head + "workflow:\n  - step: a\n    tool: " + tool + "\n    retry: " + strings.ReplaceAll(strings.TrimSpace(retry), "\n", "\n      ") + "\n"
	book, found := playbook.Decode(source.NewFile("legacy.yaml", []byte(text)))
	require.False(t, found.HasErrors(), found.Error())
	require.Len(t, found, 1, "the warning")
	return book.Steps[0].Retry
}

// TestLegacyConditions checks how the conditions of older forms are written in
// the list.
func TestLegacyConditions(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ retry, when string }{
		{`{when: "{{ status_code >= 500 }}"}`, "{{ error.status >= 500 }}"},
		{`{when: "status_code >= 500"}`, "{{ error.status >= 500 }}"},
		{`{when: "{{status_code==503 or status_code==429}}"}`, "{{ error.status==503 or error.status==429 }}"},
		{`{when: "{{ status_code == 202 }}"}`, "{{ this.meta.status == 202 }}"},
		{`{when: "{{ status_code != 200 }}"}`, "{{ (error.status or this.meta.status) != 200 }}"},
		{`{when: "{{ success }}"}`, "{{ error is not defined }}"},
		{`{when: "{{ not success }}"}`, "{{ not (error is not defined) }}"},
		{`{when: "{{ success == false }}"}`, "{{ (error is not defined) == false }}"},
		{`{when: "{{ success and data.n < 3 }}"}`, "{{ error is not defined and response.n < 3 }}"},
		{`{when: "{{ (success or attempt < 3) and data }}"}`, "{{ (error is not defined or _retry.attempt < 3) and response }}"},
		{`{when: "{{ error.body.data == 'success' }}"}`, "{{ error.body.data == 'success' }}"},
		{`{when: "{{ any(data.items, .status_code > 1) }}"}`, "{{ any(response.items, .status_code > 1) }}"},
		{`{when: "{{ data['x'] is defined }}"}`, "{{ response['x'] is defined }}"},
		{`{when: true}`, "true"},
		{`{on_error: {when: "{{ error.status != 404 }}"}}`, "{{ error is defined and (error.status != 404) }}"},
		{`{on_error: {when: "{{ error.status == 503 }}"}}`, "{{ error.status == 503 }}"},
		{`{on_error: {when: true}}`, "{{ error is defined and (true) }}"},
		{`{on_success: {while: "{{ response.n != 3 }}"}}`, "{{ error is not defined and (response.n != 3) }}"},
		{`{on_success: {while: "{{ response.n < 3 }}"}}`, "{{ response.n < 3 }}"},
		{`{on_success: {when: "{{ status_code == 202 }}", max_attempts: 2}}`, "{{ this.meta.status == 202 }}"},
	} {
		t.Run(test.retry, func(t *testing.T) {
			t.Parallel()

			policies := legacyPolicies(t, "http", test.retry)
			require.Len(t, policies, 1)
			require.Equal(t, test.when, policies[0].When.Raw)
		})
	}
}

// TestLegacyPlaces checks that errors in rewritten conditions point to what
// the author wrote.
func TestLegacyPlaces(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ retry, column string }{
		{`{when: "{{ data.count + 1 > 3 }}"}`, "data.count"},
		{`{when: "{{ success or data.first.count + 1 > 3 }}"}`, "data.first"},
		{`{when: data.count + 1 > 3}`, "data.count"},
		{`{when: '{{   (attempt < 9) and data.count + 1 > 3   }}'}`, "data.count"},
		{`{on_error: {when: "{{ attempt + missing.count > 3 }}"}}`, "missing.count"},
	} {
		t.Run(test.retry, func(t *testing.T) {
			t.Parallel()

			when := legacyPolicies(t, "http", test.retry)[0].When
			_, err := when.EvalCondition(expression.MapScope{
				"error": map[string]any{}, "_retry": map[string]any{"attempt": 1},
			}, expression.NewBudget(expression.DecisionLimits, time.Time{}))

			var failed *playbook.EvalError

			require.ErrorAs(t, err, &failed)
			require.Equal(t, 7, failed.Pos.Line)

			at := strings.Index("    retry: "+test.retry, test.column) + 1
			require.GreaterOrEqual(t, failed.Pos.Column, at)
			require.LessOrEqual(t, failed.Pos.Column, at+len(test.column)+1, "the operator behind it")
		})
	}
}

// TestLegacyTools checks that a failure of the call stands for one of the
// webhook on other tools only.
func TestLegacyTools(t *testing.T) {
	t.Parallel()

	const retry = "{max_retries: 1, retry_on: [webhook_failure]}"

	require.Equal(t, "{{ error.kind == 'webhook_failure' }}", legacyPolicies(t, "webhook", retry)[0].When.Raw)
	require.Equal(t, "{{ error.kind in ['webhook_failure', 'http', 'connection'] }}", legacyPolicies(t, "python", retry)[0].When.Raw)
	require.Equal(t, "{{ error.kind in ['webhook_failure', 'http', 'connection'] }}",
		legacyPolicies(t, `"{{ kind }}"`, retry)[0].When.Raw)
}

// TestLegacyJitter checks which forms ask for jitter, and that the others
// refuse the default of the list.
func TestLegacyJitter(t *testing.T) {
	t.Parallel()

	for retry, want := range map[string]playbook.Jitter{
		"true":                                      playbook.JitterNone,
		"{max_attempts: 3}":                         playbook.JitterNone,
		"{jitter: true}":                            playbook.JitterProportional,
		"{jitter: false}":                           playbook.JitterNone,
		"{jitter: full}":                            playbook.JitterFull,
		"{on_error: {}}":                            "",
		"{on_error: {jitter: false}}":               playbook.JitterNone,
		"{max_retries: 2}":                          playbook.JitterNone,
		"{initial_backoff: 1s}":                     playbook.JitterNone,
		"{base_delay_ms: 1}":                        playbook.JitterProportional,
		"{backoff: fixed}":                          playbook.JitterNone,
		"{backoff: linear}":                         playbook.JitterNone,
		"{backoff: jittered_exponential}":           playbook.JitterProportional,
		"{on_success: {while: \"response.more\" }}": "",
	} {
		require.Equal(t, want, legacyPolicies(t, "http", retry)[0].Then.Jitter, retry)
	}
}

// TestLegacyAliases checks that an older form may be shared by an alias.
func TestLegacyAliases(t *testing.T) {
	t.Parallel()

	text := head + `workflow:
  - {step: a, tool: http, url: x, retry: &r {max_attempts: &n 4, retry_when: &w "{{ status_code == 503 }}"}, next: b}
  - {step: b, tool: http, url: x, retry: *r, next: c}
  - {step: c, tool: http, url: x, retry: {max_attempts: *n, when: *w}}
`
	book, found := playbook.Decode(source.NewFile("alias.yaml", []byte(text)))
	require.False(t, found.HasErrors(), found.Error())

	for _, step := range book.Steps {
		require.Equal(t, "{{ error.status == 503 }}", step.Retry[0].When.Raw)
		require.Equal(t, 4, *step.Retry[0].Then.MaxAttempts)
	}
}
