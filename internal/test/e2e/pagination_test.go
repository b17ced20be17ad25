package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// assessments pages through the 35 assessments, 10 a page. Page 2 may fail.
const assessments = `
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 10, fail_pages: "{{ fail_pages }}", fail_times: "{{ fail_times }}"}
    retry:
      - when: "{{ error.class == 'retryable' }}"
        then: {max_attempts: 3, delay: 0.1}
      - when: "{{ response.paging.hasMore }}"
        then:
          max_attempts: 10
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
`

func failing(pages string, times int) map[string]any {
	return map[string]any{"fail_pages": pages, "fail_times": times}
}

func TestPageFailingOnce(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("page_failing_once")
	result := w.ends("completed", book(assessments+`
output: "{{ map(fetch, .id) }}"
`), failing("2", 1))
	require.Equal(t, w.expected(ids(35)), result.Result.Data)
	require.Equal(t, 5, w.api.CountRequests("", "/api/v1/assessments"))
	record := step(t, result, "fetch")
	require.Equal(t, 5, record.Attempts)
	require.Equal(t, 4, record.Pages)
}

func TestEveryPageFailingOnceHasItsOwnBudget(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("completed", book(assessments+`
output: "{{ len(fetch) }}"
`), failing("1,2,3,4", 2))
	require.Equal(t, 35, result.Result.Data)
	require.Equal(t, 12, w.api.CountRequests("", "/api/v1/assessments"), "each of 4 pages fails twice")
}

func TestPageFailingForEver(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("page_failing_for_ever")
	result := w.ends("failed", book(assessments+`
    sink: {tool: http, url: "{{ api }}/api/v1/writes"}
`), failing("2", 0))
	require.Equal(t, 4, w.api.CountRequests("", "/api/v1/assessments"), "page 1, then page 2 three times")
	require.Empty(t, w.bodies(), "a call that failed has no sink on the step")
	failure := result.Error
	require.EqualValues(t, "http", failure.Kind)
	require.Equal(t, 503, failure.Status)
	require.True(t, failure.Exhausted)
	require.Equal(t, 2, failure.Page)
	require.Len(t, failure.Collected.Data, 10, "what page 1 gave is not lost")
}

// TestPageFailingWithoutPolicy: an unmatched error in the middle of pagination
// fails the call.
func TestPageFailingWithoutPolicy(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 10, fail_pages: 3}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then:
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
`), nil)
	require.Equal(t, 3, w.api.CountRequests("", "/api/v1/assessments"))
	require.Equal(t, 3, result.Error.Page)
	require.False(t, result.Error.Exhausted)
	require.Len(t, result.Error.Collected.Data, 20)
}

func TestPaginationWithSinkOnTheStep(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.completes(book(assessments+`
    sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {rows: "{{ len(result) }}", pages: "{{ this.meta.pages }}"}}
`), failing("", 1))
	require.Equal(t, []any{map[string]any{"rows": 35, "pages": 4}}, w.bodies())
}

func TestTruncatedAtMaxAttempts(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("partial_success", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 10}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then:
          max_attempts: 2
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
output: {rows: "{{ len(fetch) }}", truncated: "{{ steps.fetch.meta.truncated }}"}
`), nil)
	require.Equal(t, map[string]any{"rows": 20, "truncated": true}, result.Result.Data)
	require.Equal(t, 2, w.api.CountRequests("", "/api/v1/assessments"))
	require.Len(t, result.Warnings, 1)
	require.Contains(t, result.Warnings[0], "after 2 pages (max_attempts reached); the result may be incomplete")
}

// TestTruncatedIterations: the loop's stats count them, and the run warns.
func TestTruncatedIterations(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("partial_success", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: "{{ size }}"}
    loop: {collection: [10, 20, 50], element: size, mode: parallel}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then:
          max_attempts: 2
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
output: {rows: "{{ map(fetch.results, len(#)) }}", truncated: "{{ fetch.stats.truncated }}"}
`), nil)
	require.Equal(t, map[string]any{"rows": []any{20, 35, 35}, "truncated": 1}, result.Result.Data)
	require.Len(t, result.Warnings, 1)
	require.Contains(t, result.Warnings[0], "iteration 0: step fetch: policy 1 stopped the call after 2 pages")
}

func TestPollExhausted(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("poll_exhausted")
	result := w.ends("failed", book(`
  - step: poll
    tool: http
    url: "{{ api }}/api/v1/jobs/job-1"
    params: {ready_after: 50}
    retry:
      - when: "{{ response.status == 'pending' }}"
        then: {max_attempts: 3, delay: 0.1}
`), nil)
	require.EqualValues(t, "exhausted", result.Error.Kind)
	require.Equal(t, 3, w.api.CountRequests("", "/api/v1/jobs/"))
}

// TestPagesThatNeverEnd: a request that was made before ends the call.
func TestPagesThatNeverEnd(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 10}
    retry:
      - when: "{{ response.data is defined }}"
        then:
          next_call: {params: {page: "{{ response.paging.page % 2 + 1 }}"}}
          collect: {path: data}
`), nil)
	require.EqualValues(t, "repeat", result.Error.Kind)
	require.Equal(t, 2, w.api.CountRequests("", "/api/v1/assessments"))
	require.Len(t, result.Error.Collected.Data, 20)
}

// TestRetryAfterIsObeyed: the API says 2 s, so no attempt comes before.
func TestRetryAfterIsObeyed(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("retry_after")
	w.completes(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/flaky"
    params: {times: 2, status: 429, retry_after: 1}
    retry:
      - when: "{{ error.class == 'rate_limited' }}"
        then: {max_attempts: 1, jitter: none}
`), nil)
	logged := w.api.Requests("")
	require.Len(t, logged, 3, "told waits use up no attempt")
	require.GreaterOrEqual(t, logged[1].AtMS-logged[0].DoneMS, int64(1000))
	require.GreaterOrEqual(t, logged[2].AtMS-logged[1].DoneMS, int64(1000))
}
