package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/migrate"
	"reprise/interpreter/source"
)

// legacyForms are the older forms of retry, each on a step that needs it: the
// demo API fails a few times, or has more pages.
var legacyForms = []struct {
	name     string
	step     string // the fields of the step, retry aside
	retry    string
	attempts int
	failure  int // the status of the error, 0 for a success
	result   any
}{
	{name: "true", step: flaky(2, 503), retry: "true", attempts: 3, result: healed(3)},
	{name: "empty", step: flaky(1, 503), retry: "{}", attempts: 2, result: healed(2)},
	{name: "number", step: flaky(1, 404), retry: "2", attempts: 2, result: healed(2)},
	{name: "number exhausted", step: flaky(2, 503), retry: "2", attempts: 2, failure: 503},
	{name: "false", step: flaky(1, 503), retry: "false", attempts: 1, failure: 503},
	{
		name: "flat", step: flaky(2, 503), attempts: 3, result: healed(3),
		retry: `{max_attempts: 3, initial_delay: 0.1, retry_when: "{{ status_code == 503 }}"}`,
	},
	{
		name: "flat without a match", step: flaky(2, 500), attempts: 1, failure: 500,
		retry: `{max_attempts: 3, initial_delay: 0.1, when: "{{ status_code == 503 }}"}`,
	},
	{
		name: "flat with stop_when", step: flaky(9, 503), attempts: 2, failure: 503,
		retry: `{max_attempts: 9, initial_delay: 0.1, stop_when: "{{ attempt >= 2 }}"}`,
	},
	{
		name: "flat poll", attempts: 3,
		step:   `url: "{{ api }}/api/v1/jobs/job-1?ready_after=3"`,
		retry:  `{max_attempts: 9, initial_delay: 0.1, when: "{{ success and data.status == 'pending' }}"}`,
		result: map[string]any{"id": "job-1", "status": "done", "polls": 3, "result": map[string]any{"rows": 35}},
	},
	{
		name: "flat poll by status_code", attempts: 2,
		step:   `url: "{{ api }}/status/202"`,
		retry:  `{max_attempts: 9, initial_delay: 0.1, when: "{{ status_code == 202 }}", stop_when: "{{ attempt > 1 }}"}`,
		result: map[string]any{"status": 202},
	},
	{
		name: "on_error and on_success", attempts: 5,
		step: `url: "{{ api }}/api/v1/assessments"
    params: {page: 1, fail_pages: 2}`,
		retry: `
      on_success:
        while: "{{ response.paging.hasMore }}"
        max_attempts: 100
        next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
        collect: {strategy: append, path: data}
      on_error: {when: "{{ error.status >= 500 }}", max_attempts: 3, initial_delay: 0.1}`,
		result: 35,
	},
	{name: "max_retries", step: flaky(1, 503), retry: "{max_retries: 1, initial_delay_secs: 1}", attempts: 2, result: healed(2)},
	{
		name: "max_retries with retry_on", step: flaky(1, 503), attempts: 2, result: healed(2),
		retry: "{max_retries: 1, initial_delay_secs: 1, retry_on: [webhook_failure]}",
	},
	{
		name: "max_retries with another trigger", step: flaky(1, 503), attempts: 1, failure: 503,
		retry: "{max_retries: 1, initial_delay_secs: 1, retry_on: [timeout, explicit]}",
	},
	{name: "initial_backoff", step: flaky(2, 503), retry: "{initial_backoff: 100ms}", attempts: 3, result: healed(3)},
	{name: "initial_backoff, final", step: flaky(2, 404), retry: "{initial_backoff: 100ms}", attempts: 1, failure: 404},
	{
		name: "base_delay_ms", step: flaky(2, 429), attempts: 3, result: healed(3),
		retry: "{backoff: jittered_exponential, base_delay_ms: 100, max_delay_ms: 30000, retriable_errors: [429, 500, timeout]}",
	},
	{
		name: "fixed, by type", step: `url: "http://127.0.0.1:1"`, attempts: 3, failure: -1,
		retry: "{backoff: fixed, base_delay_ms: 100, retriable_errors: [econnrefused]}",
	},
	{name: "linear", step: flaky(2, 500), retry: "{backoff: linear, base_delay_ms: 100}", attempts: 3, result: healed(3)},
}

// flaky fails so many times with a status, then works.
func flaky(times, status int) string {
	return fmt.Sprintf("url: \"{{ api }}/flaky\"\n    params: {times: %d, status: %d}", times, status)
}

func healed(attempts int) any { return map[string]any{"ok": true, "attempts": attempts} }

// TestLegacyForms runs each form as it is written, and again as migrate
// rewrites it: both make the same attempts and end the same.
func TestLegacyForms(t *testing.T) {
	t.Parallel()
	for _, form := range legacyForms {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			written := book(`
  - step: fetch
    tool: http
    headers: {X-Scenario: "{{ execution_id }}"}
    ` + form.step + `
    retry: ` + form.retry + "\n")
			migration := migrate.MigrateFile(source.NewFile("test.yaml", []byte(written)))
			require.Empty(t, migration.Problems)
			require.True(t, migration.HasChanged())
			w := newWorking(t)
			for _, text := range []string{written, string(migration.Text)} {
				status := "completed"
				if form.failure != 0 {
					status = "failed"
				}
				result := w.ends(status, text, nil)
				fetched := step(t, result, "fetch")
				require.Equal(t, form.attempts, fetched.Attempts)
				switch {
				case form.failure > 0:
					require.Equal(t, form.failure, fetched.Error.Status)
				case form.failure == 0:
					got := result.Result.Data
					if rows, ok := got.([]any); ok {
						got = len(rows)
					}
					require.Equal(t, form.result, got)
				}
			}
		})
	}
}

// legacyPages page through the 35 assessments as the original project's own
// playbooks do; the counts are those that it published.
var legacyPages = []struct {
	name     string
	step     string
	requests int
	result   any
	warnings int // beside that of the form
}{
	{
		name: "35 in 4", requests: 4, result: 35,
		step: `
    params: {page: 1, pageSize: 10}
    loop:
      pagination:
        type: response_based
        continue_while: "{{ response.data.paging.hasMore == true }}"
        next_page:
          params:
            page: "{{ (response.data.paging.page | int) + 1 }}"
            pageSize: "{{ response.data.paging.pageSize }}"
        merge_strategy: append
        merge_path: data.data   # the envelope's, then the page's
        max_iterations: 10
output: "{{ len(fetch) }}"`,
	},
	{
		name: "20 in 2", requests: 2, result: 20, warnings: 1,
		step: `
    params: {page: 1, pageSize: 10}
    loop:
      pagination:
        continue_while: "{{ response.paging.hasMore == true }}"
        next_page: {params: {page: "{{ (response.paging.page | int) + 1 }}"}}
        merge_strategy: append
        merge_path: data
        max_iterations: 2
output: "{{ len(fetch) }}"`,
	},
	{
		name: "35 with one page failing once", requests: 5, result: 35,
		step: `
    params: {page: 1, fail_pages: "2", fail_times: 1}
    loop:
      pagination:
        type: response_based
        continue_while: "{{ response.data.paging.hasMore == true }}"
        next_page: {params: {page: "{{ iteration + 2 }}"}}
        merge_path: data.data
        retry: {max_attempts: 3, backoff: exponential, initial_delay: 0.1, max_delay: 5}
output: "{{ len(fetch) }}"`,
	},
	{
		name: "3 times 35 in 9", requests: 9, result: []any{35, 35, 35},
		step: `
    params: {page: 1, pageSize: "{{ size }}"}
    loop:
      in: [15, 16, 17]
      iterator: size
      pagination:
        continue_while: "{{ response.data.paging.hasMore }}"
        next_page: {params: {page: "{{ response.data.paging.page + 1 }}"}}
        merge_strategy: append
        merge_path: data.data
output: "{{ map(fetch.results, len(#)) }}"`,
	},
}

// TestLegacyPagination runs each as it is written, and again as migrate
// rewrites it.
func TestLegacyPagination(t *testing.T) {
	t.Parallel()
	for _, pages := range legacyPages {
		t.Run(pages.name, func(t *testing.T) {
			t.Parallel()
			written := strings.Replace(book(`
  - step: fetch
    type: http
    endpoint: "{{ api }}/api/v1/assessments"
    headers: {X-Scenario: "{{ execution_id }}"}`+pages.step+"\n"), "reprise/v1", "noetl.io/v1", 1)
			migration := migrate.MigrateFile(source.NewFile("test.yaml", []byte(written)))
			require.Empty(t, migration.Problems)
			require.NotContains(t, string(migration.Text), "pagination")
			w := newWorking(t)
			for i, text := range []string{written, string(migration.Text)} {
				before := w.api.CountRequests("", "/api/v1/assessments")
				status := "completed"
				if pages.warnings > 0 {
					status = "partial_success"
				}
				result := w.ends(status, text, nil)
				require.Equal(t, pages.result, result.Result.Data)
				require.Equal(t, pages.requests, w.api.CountRequests("", "/api/v1/assessments")-before)
				require.Len(t, result.Warnings, pages.warnings, "%q", result.Warnings)
				require.Len(t, result.ValidationWarnings, 1-i, "an older form is a warning of validation alone")
			}
		})
	}
}
