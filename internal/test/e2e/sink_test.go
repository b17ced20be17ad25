package e2e_test

import (
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
)

// medications fetches every page of each patient; what is written where is up
// to the test.
const medications = `
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/patients/{{ patient }}/medications"
    params: {page: 1}
    loop:
      collection: "{{ patients }}"
      element: patient
      mode: parallel
      thresholds: {completed: 0.6}
    retry:
      - when: "{{ error.class in ['retryable', 'rate_limited'] }}"
        then: {max_attempts: 5, delay: 0.1}
      - when: "{{ response.paging.hasMore }}"
        then:
          max_attempts: 10
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
`

const patientSink = `
          sink:
            tool: http
            url: "{{ api }}/api/v1/writes"
            args: {patient: "{{ patient }}", rows: "{{ len(result) }}"}
`

const stepSink = `
    sink:
      tool: http
      url: "{{ api }}/api/v1/writes"
      args: {total: "{{ result.stats.total }}", success: "{{ result.stats.success }}", failed: "{{ map(result.errors, .element) }}"}
`

// somePatients are one patient of each number of pages and one that is not
// there.
func somePatients(t *testing.T) []any {
	t.Helper()
	byPages := map[int]string{}
	for _, id := range demoapi.Patients() {
		if pages := demoapi.MedicationPages(id); id != demoapi.MissingPatient {
			byPages[pages] = id
		}
	}
	patients := []any{demoapi.MissingPatient}
	for pages, id := range byPages {
		require.Positive(t, pages)
		patients = append(patients, id)
	}
	require.Len(t, patients, 5, "patients of 1 to 4 pages")
	sort.Slice(patients, func(i, j int) bool { return patients[i].(string) < patients[j].(string) })
	return patients
}

func patientRows(patients []any) []any {
	var rows []any
	for _, patient := range patients {
		if patient != demoapi.MissingPatient {
			rows = append(rows, map[string]any{"patient": patient, "rows": len(demoapi.Medications(patient.(string)))})
		}
	}
	return rows
}

var aggregateRow = map[string]any{"total": 5, "success": 4, "failed": []any{demoapi.MissingPatient}}

func TestSinkOnTheStepOfALoop(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.completes(book(medications+stepSink), map[string]any{"patients": somePatients(t)})
	require.Equal(t, []any{aggregateRow}, w.bodies(), "once, with the aggregate")
}

func TestSinkPerPatient(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	patients := somePatients(t)
	w.completes(book(medications+patientSink), map[string]any{"patients": patients})
	require.ElementsMatch(t, patientRows(patients), w.bodies(), "once per patient, those of one page included")
}

func TestSinksAtBothPlaces(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("sinks")
	patients := somePatients(t)
	w.completes(book(medications+patientSink+stepSink), map[string]any{"patients": patients})
	bodies := w.bodies()
	require.Len(t, bodies, 5)
	require.ElementsMatch(t, patientRows(patients), bodies[:4])
	require.Equal(t, aggregateRow, bodies[4], "the step's sink comes after every iteration")
}

// TestSinkPerPage: once per page, the last one included, each with what the
// page contributed and before the next request.
func TestSinkPerPage(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.completes(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 10, fail_pages: 2}
    retry:
      - when: "{{ error.class == 'retryable' }}"
        then: {backoff: none}
      - when: "{{ response.paging.hasMore }}"
        then:
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
          per_page:
            sink:
              tool: http
              url: "{{ api }}/api/v1/writes"
              args: {page: "{{ _retry.index }}", first: "{{ result[0].id }}", rows: "{{ len(result) }}", so_far: "{{ len(pages) }}"}
output: "{{ len(fetch) }}"
`), nil)
	require.Equal(t, w.expected([]any{
		map[string]any{"page": 1, "first": 1, "rows": 10, "so_far": 10},
		map[string]any{"page": 2, "first": 11, "rows": 10, "so_far": 20},
		map[string]any{"page": 3, "first": 21, "rows": 10, "so_far": 30},
		map[string]any{"page": 4, "first": 31, "rows": 5, "so_far": 35},
	}), w.bodies())
	var paths []string
	for _, request := range w.api.Requests("") {
		paths = append(paths, request.Method)
	}
	require.Equal(t, []string{"GET", "POST", "GET", "GET", "POST", "GET", "POST", "GET", "POST"}, paths)
}

// TestSinkFailsInOneIteration: that iteration fails and the loop goes on.
func TestSinkFailsInOneIteration(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("sink_failure")
	result := w.ends("partial_success", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
    loop:
      collection: [a, b, c]
      sink:
        tool: http
        url: "{{ api }}{{ '/status/503' if item == 'b' else '/api/v1/writes' }}"
        args: {item: "{{ item }}"}
        retry:
          - when: "{{ error.class == 'retryable' }}"
            then: {max_attempts: 3, backoff: none}
    retry:
      - when: "{{ error is defined }}"
        then: {max_attempts: 5}
`), nil)
	require.Equal(t, []any{map[string]any{"item": "a"}, map[string]any{"item": "c"}}, w.bodies())
	require.Equal(t, 3, w.api.CountRequests("", "/status/503"), "the sink's own policies repeat it")
	require.Equal(t, 3, w.api.CountRequests("", "/echo"), "those of the step never do")
	failures := step(t, result, "fetch").Loop.Errors
	require.Len(t, failures, 1)
	require.Equal(t, 1, failures[0].Index)
	require.EqualValues(t, "sink", failures[0].Error.Kind)
	require.Equal(t, 503, failures[0].Error.Status)
}

// TestSinkOfTheStepFails: the step fails, and what it gave is kept.
func TestSinkOfTheStepFails(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]string{"call": "", "loop": "    loop: {collection: [1, 2]}\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			result := w.ends("completed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
`+loop+`
    sink: {tool: http, url: "{{ api }}/status/500"}
    next:
      - when: "{{ error.kind == 'sink' }}"
        then: [{step: look, args: {got: "{{ result }}"}}]
  - step: look
    tool: python
    code: |
      def main(got):
          return {"lost": got is None}
`), nil)
			require.Equal(t, map[string]any{"lost": false}, result.Result.Data)
			record := step(t, result, "fetch")
			require.EqualValues(t, "failed", record.Status)
			require.True(t, record.Handled)
			require.Equal(t, 500, record.Error.Status)
		})
	}
}

// TestSinkAfterFailure: a policy's sink runs for the failure it matched last,
// and the call keeps its own error.
func TestSinkAfterFailure(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/500"
    retry:
      - when: "{{ error.status == 404 }}"
        then:
          sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {never: true}}
      - when: "{{ error.status == 500 }}"
        then:
          max_attempts: 2
          backoff: none
          sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {status: "{{ error.status }}", exhausted: "{{ error.exhausted }}"}}
`), nil)
	require.Equal(t, []any{map[string]any{"status": 500, "exhausted": true}}, w.bodies())
	require.EqualValues(t, "http", result.Error.Kind)
}

// TestSinkIsWrittenOnce: the API stores the row and loses its answer, so the
// sink is sent again with the same key.
func TestSinkIsWrittenOnce(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.completes(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
    loop:
      collection: [1, 2, 3]
      mode: parallel
      sink:
        tool: http
        url: "{{ api }}/api/v1/writes?fail_after=2"
        args: {n: "{{ item }}"}
        retry:
          - when: "{{ error is defined }}"
            then: {max_attempts: 3, backoff: none}
`), nil)
	require.Len(t, w.bodies(), 3)
	for _, write := range w.api.Writes("") {
		require.Equal(t, 3, write.Attempts)
	}
}

// TestMembersOfATextAreWarnings: a body that was not read as JSON has no rows, and the
// run that counts them says where. The step and the route ask once each.
func TestMembersOfATextAreWarnings(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("completed", book(`
  - step: get
    tool: python
    code: |
      def main():
          return '{"rows": [1, 2]}'
    next: filter
  - step: filter
    next: [{when: "{{ get.more }}", then: count}, {else: count}]
  - step: count
    tool: http
    url: "{{ api }}/echo"
    params: {n: "{{ len(get.rows) }}", m: "{{ len(fromJSON(get).rows) }}"}
output: {n: "{{ len(get.rows) }}", more: "{{ count.total.of.none }}", total: "{{ get.total }}"}
`), nil)
	warnings := strings.Join(result.Warnings, "\n")
	require.Len(t, result.Warnings, 3, warnings)
	require.Regexp(t, `step filter: get is text and has no member "more", so this is nil \(line \d+, column 23\); where it is JSON, fromJSON reads it`, warnings)
	require.Regexp(t, `step count: get is text and has no member "rows", so this is nil \(line \d+, column 25\)`, warnings)
	require.Regexp(t, `output: get is text and has no member "total"`, warnings)
}

// TestAbsentMembersAreWarnings: a sink that writes nothing but nil says why.
func TestAbsentMembersAreWarnings(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("completed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
    loop: {collection: [1, 2]}
    sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {x: "{{ result.data.x }}", n: "{{ result.stats.total }}"}}
    next: again
  - step: again
    tool: http
    url: "{{ api }}/echo"
    params: {n: "{{ fetch.rows }}", total: "{{ fetch.stats.total }}"}
    next: [{step: again, when: "{{ false }}"}]
`), nil)
	require.Equal(t, []any{map[string]any{"x": nil, "n": 2}}, w.bodies())
	warnings := strings.Join(result.Warnings, "\n")
	require.Len(t, result.Warnings, 2)
	require.Contains(t, warnings, `result has no member "data", so this is `)
	require.Contains(t, warnings, `fetch has no member "rows", so this is `)
	require.Contains(t, strings.Join(result.ValidationWarnings, "\n"), "nothing limits the number of rounds")
}
