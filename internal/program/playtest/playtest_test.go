package playtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/playtest"
)

// write makes a playbook with its tests, and gives the path of the tests.
func write(t *testing.T, book, tests string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "book.yaml"), []byte(book), 0o600))
	path := filepath.Join(dir, "book_test.yaml")
	require.NoError(t, os.WriteFile(path, []byte(tests), 0o600))
	return path
}

// run runs the tests of a file and gives the texts of all failures.
func run(t *testing.T, path string) []string {
	t.Helper()
	suite, err := playtest.Load(path)
	require.NoError(t, err)
	var all []string
	for _, test := range suite.Tests.Tests {
		report := suite.Run(test, playtest.Options{})
		for _, failure := range report.Failures {
			all = append(all, failure.Text(filepath.Base(path)))
		}
		t.Logf("%s: %s of the test's clock, in %s", test.Name, report.Clock, report.Took)
	}
	return all
}

const users = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: all_users}
workload: {api: "http://127.0.0.1:8088"}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/users"
    params: {offset: 0, limit: 2}
    retry:
      - when: "{{ error.class in ['retryable', 'rate_limited'] }}"
        then: {max_attempts: 5}
      - when: "{{ response.has_more }}"
        then:
          max_attempts: 100
          next_call: {params: {offset: "{{ response.offset + response.limit }}"}}
          collect: {path: data}
    sink:
      tool: sqlite
      path: .reprise/users.db
      statement: CREATE TABLE IF NOT EXISTS fetched AS SELECT {{ len(result) }} AS users
output: "{{ len(fetch) }} users"
`

func TestUsers(t *testing.T) {
	t.Parallel()
	path := write(t, users, strings.TrimSpace(`
playbook: book.yaml
tests:
  - name: a page that fails twice
    workload: {api: "https://api.test"}
    answers:
      fetch:
        - {status: 503}
        - {status: 429, headers: {retry-after: "30"}}
        - {status: 200, body: {data: [1, 2], has_more: true, offset: 0, limit: 2}}
        - {body: {data: [3], has_more: false}}
    expect:
      status: completed
      result: "3 users"
      requests: {fetch: [{params: {offset: 0}}, {}, {}, {url: "https://api.test/api/v1/users", params: {offset: 2}}]}
      waits: {fetch: [1s, 30s]}
      sinks: {fetch.sink: [{values: [3]}]}
      within: 40s
`)+"\n")
	require.Empty(t, run(t, path))
}
