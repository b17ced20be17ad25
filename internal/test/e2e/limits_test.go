package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
)

// Whatever is too large for Temporal ends in an error that says so. A run that
// never ends is the failure these tests look for.

const tooLarge = "payload_too_large"

func TestResultOfAnAttemptTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/body?bytes=3000000"
    retry:
      - when: "{{ error is defined }}"
        then: {max_attempts: 5}
`), nil)
	require.EqualValues(t, tooLarge, result.Error.Kind)
	require.Equal(t, 1, w.api.CountRequests("", "/body"), "no policy is asked")
}

// bigPages collects pages of 1.2 MB each.
const bigPages = `
    tool: http
    url: "{{ api }}/body?bytes=1200000"
    params: {page: 1}
    retry:
      - when: "{{ _retry.index < 3 }}"
        then:
          next_call: {params: {page: "{{ _retry.index + 1 }}"}}
          allow_repeat: true
          collect: {}
`

func TestResultOfAnIterationTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: fetch
    loop: {collection: [a, b], mode: parallel}
`+strings.TrimPrefix(bigPages, "\n")), nil)
	failures := step(t, result, "fetch").Loop.Errors
	require.Len(t, failures, 2)
	require.EqualValues(t, tooLarge, failures[0].Error.Kind)
	require.Contains(t, failures[0].Error.Message, "sink")
}

func TestAggregateTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/body?bytes=800000"
    loop: {collection: [1, 2, 3], mode: parallel}
`), nil)
	require.EqualValues(t, tooLarge, result.Error.Kind)
	stats := step(t, result, "fetch").Loop.Stats
	require.Equal(t, 3, stats.Success)
}

// TestErrorsOfALoopTooLarge: each iteration fails with what it had collected,
// and together that is too much.
func TestErrorsOfALoopTooLarge(t *testing.T) {
	t.Parallel()
	for _, batch := range []string{"1", "25"} {
		t.Run("batch "+batch, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/body?bytes=95000"
    loop: {collection: "{{ items }}", mode: parallel, batch: `+batch+`}
    retry:
      - when: "{{ error is not defined }}"
        then:
          next_call: {url: "{{ api }}/status/404"}
          collect: {}
`), map[string]any{"items": make([]any, 25)})
			require.Equal(t, 25, step(t, result, "fetch").Loop.Stats.Failed)
			require.EqualValues(t, "loop", result.Error.Kind)
			require.Contains(t, result.Error.Message, "25 of 25 iterations failed")
		})
	}
}

// bigSteps give 1.2 MB each.
const bigSteps = `
  - step: load_a
    tool: http
    url: "{{ api }}/body?bytes=1200000"
    next: load_b
  - step: load_b
    tool: http
    url: "{{ api }}/body?bytes=1200000"
    next: last_one
`

func TestRequestTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(bigSteps+`
  - step: last_one
    tool: http
    url: "{{ api }}/echo"
    body: ["{{ load_a }}", "{{ load_b }}"]
`), nil)
	require.EqualValues(t, tooLarge, result.Error.Kind)
	require.Contains(t, result.Error.Message, "request of step last_one")
	require.Zero(t, w.api.CountRequests("", "/echo"))
}

func TestInputOfALoopTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(bigSteps+`
  - step: last_one
    tool: http
    url: "{{ api }}/echo"
    params: {n: "{{ len(load_a) + len(load_b) }}"}
    loop: {collection: [1, 2]}
`), nil)
	require.EqualValues(t, tooLarge, result.Error.Kind)
	require.Zero(t, w.api.CountRequests("", "/echo"))
}

func TestResultOfTheRunTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(bigSteps+`
  - step: last_one
    tool: http
    url: "{{ api }}/echo"
output: ["{{ load_a }}", "{{ load_b }}"]
`), nil)
	require.EqualValues(t, tooLarge, result.Error.Kind)
	require.Contains(t, result.Error.Message, "output")
}

// TestCollectedTooLarge: a failure keeps what it can of what was collected.
func TestCollectedTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/body?bytes=1200000"
    params: {page: 1}
    retry:
      - when: "{{ response is defined }}"
        then:
          next_call: {url: "{{ api + '/status/404' if _retry.index == 2 else this.meta.url }}", params: {page: "{{ _retry.index + 1 }}"}}
          allow_repeat: true
          collect: {}
`), nil)
	require.Equal(t, 404, result.Error.Status)
	require.Contains(t, result.Warnings[len(result.Warnings)-1], "therefore not in it: what the failure had collected")
}

func TestSinkInputTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: fetch
`+strings.TrimPrefix(bigPages, "\n")+`
    sink: {tool: http, url: "{{ api }}/api/v1/writes"}
`), nil)
	require.EqualValues(t, "sink", result.Error.Kind)
	require.Contains(t, result.Error.Message, "bytes, more than")
}

// TestManyLargeCommandsAtOnce: each is small enough, but the workflow task that
// carries them all is not.
func TestManyLargeCommandsAtOnce(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]string{
		"children":   "mode: parallel, max_concurrency: 100",
		"activities": "mode: parallel, max_concurrency: 100, batch: 100",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			result := w.ends("completed", book(`
  - step: load
    tool: http
    url: "{{ api }}/body?bytes=150000"
    next: fetch
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/writes"
    method: POST
    body: "{{ load }}{{ item }}"
    loop: {collection: "{{ items }}", `+loop+`}
output: "{{ fetch.stats.success }}"
`), map[string]any{"items": make([]any, 40)})
			require.Equal(t, 40, result.Result.Data)
			require.Len(t, w.api.Writes(""), 40)
		})
	}
}

// TestManyLargeBranchesAtOnce: the same for steps that start together.
func TestManyLargeBranchesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	steps, names := "", []string{}
	for _, letter := range strings.Split("abcdef", "") {
		names = append(names, "branch_"+letter)
		steps += `
  - step: branch_` + letter + `
    tool: http
    url: "{{ api }}/echo?` + letter + `"
    method: POST
    body: "{{ load }}"
    retry:
      - when: "{{ error.status == 413 }}"
        then: {max_attempts: 1}
    next: [{step: done}]
`
	}
	w.ends("completed", book(`
  - step: load
    tool: http
    url: "{{ api }}/body?bytes=900000"
    next: [`+strings.Join(names, ", ")+`]
`+steps+`
  - step: done
`), nil)
	require.Equal(t, 6, w.api.CountRequests("", "/echo"))
}

// TestOperatorLimitIsNamed: a policy that is cut by the operator's limit says so,
// in the error and as a warning.
func TestOperatorLimitIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resources.Limits = playbook.Limits{MaxRetries: 2}
	w.work()
	result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/503"
    retry: [{when: "{{ this.status == 'error' }}", then: {max_attempts: 30, delay: 0.01s}}]
`), nil)
	const limit = "policy 1 ended after 3 of 30 attempts: the worker allows 2 retries, set by REPRISE_RETRY_MAX_RETRIES_LIMIT"
	require.Equal(t, 3, w.api.CountRequests("", "/status"))
	require.True(t, result.Error.Exhausted)
	require.Equal(t, "HTTP 503 from GET "+w.api.URL()+"/status/503 ("+limit+")", result.Error.Message)
	require.Equal(t, []string{"step fetch: " + limit}, result.Warnings)

	result = w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/200"
    sink:
      tool: http
      url: "{{ api }}/status/503"
      retry: [{when: "{{ this.status == 'error' }}", then: {max_attempts: 30, delay: 0.01s}}]
`), nil)
	require.Contains(t, result.Error.Message, "("+limit+")")
	require.Equal(t, []string{"sink fetch.sink: " + limit}, result.Warnings)

	result = w.ends("completed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/503"
    retry: [{when: "{{ this.status == 'error' }}", then: {max_attempts: 30, delay: 0.01s, on_exhausted: succeed}}]
`), nil)
	require.Len(t, result.Warnings, 1, "once, with what it did")
	require.Contains(t, result.Warnings[0], "the worker allows 2 retries")
}
