package main

import "fmt"

const head = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: bench}\nworkflow:\n"

// loopBook returns a playbook with a loop of n iterations, each with one attempt.
func loopBook(n, width, batch, ms int) string {
	mode := fmt.Sprintf("mode: parallel, max_concurrency: %d", width)
	if width == 1 {
		mode = "mode: sequential"
	}
	return head + fmt.Sprintf(`  - step: each
    tool: nap
    ms: %d
    give: "{{ item }}"
    loop: {collection: "{{ 1..%d }}", %s, batch: %d}
output: "{{ each.stats.success }}"
`, ms, n, mode, batch)
}

// stepBook is a playbook with one step, which takes one attempt.
const stepBook = head + `  - step: only
    tool: nap
    give: 1
`

// scaleBook returns a playbook with a long loop that keeps no results.
func scaleBook(n int) string {
	return head + fmt.Sprintf(`  - step: each
    tool: nap
    give: "{{ item }}"
    loop: {collection: "{{ 1..%d }}", mode: parallel, max_concurrency: 100, results: stats}
output: "{{ each.stats.success }}"
`, n)
}

// pagesBook returns a playbook that fetches pages of 100 rows. per is the number of pages per activity, 0 for the
// default.
func pagesBook(url string, per int) string {
	words := ""
	if per > 0 {
		words = fmt.Sprintf("\n          pages_per_activity: %d", per)
	}
	return head + fetchPages(url, words)
}

// fetchPages returns the step that fetches pages. then is appended to its policy.
func fetchPages(url, then string) string {
	return fmt.Sprintf(`  - step: fetch
    tool: http
    url: %s/api/v1/assessments
    params: {page: 1, pageSize: 100}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then:
          max_attempts: 10001
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}%s
output: "{{ len(fetch) }}"
`, url, then)
}

// writtenBook returns a playbook that fetches pages of 100 rows and writes each with a tool: sqlite, or one that
// replaces it.
func writtenBook(url, tool string) string {
	return head + `  - step: create
    tool: sqlite
    path: "{{ execution_id }}.db"
    statement: CREATE TABLE assessments (id INTEGER, patient_id TEXT, score REAL)
    next: fetch
` + fetchPages(url, fmt.Sprintf(`
          per_iteration: {sink: {tool: %s, path: "{{ execution_id }}.db", table: assessments}}`, tool))
}

// elementsBook returns a playbook in which each of n iterations fetches all pages and writes them to a shared table.
func elementsBook(url string, n int, batch string) string {
	return head + fmt.Sprintf(`  - step: create
    tool: sqlite
    path: "{{ execution_id }}.db"
    statement: CREATE TABLE assessments (id INTEGER, patient_id TEXT, score REAL)
    next: fetch
  - step: fetch
    tool: http
    url: %s/api/v1/assessments
    params: {page: 1, pageSize: 100}
    loop: {collection: "{{ 1..%d }}", mode: parallel, max_concurrency: 10, batch: %s, results: stats}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then:
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          per_iteration: {sink: {tool: sqlite, path: "{{ execution_id }}.db", table: assessments, args: "{{ response.data }}"}}
output: "{{ fetch.stats.success }}"
`, url, n, batch)
}

// politeBook returns a playbook that observes the rate limit of an API.
func politeBook(url string, n, rate int) string {
	return head + fmt.Sprintf(`  - step: fetch
    tool: http
    url: %s/api/v1/limited
    params: {rate_limit: %d, n: "{{ item }}"}
    rate_limit: {requests: %d, key: bench}
    loop: {collection: "{{ 1..%d }}", mode: parallel, max_concurrency: 200, batch: 50}
    retry:
      - when: "{{ error.class == 'rate_limited' }}"
        then: {max_attempts: 10}
output: "{{ fetch.stats.success }}"
`, url, rate, rate, n)
}
