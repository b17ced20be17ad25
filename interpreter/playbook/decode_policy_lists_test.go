package playbook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// TestPoliciesOfEachUse checks that each use has policies of its own, with the numbers
// and places of its retry, and that each says where it stands.
func TestPoliciesOfEachUse(t *testing.T) {
	t.Parallel()

	pb, found := decode(t, head+`workflow:
  - step: a
    tool: http
    url: http://x
    retry:
      - when: "{{ error.status == 404 }}"
      - use: outer
      - use: inner
  - step: b
    tool: workbook
    name: get
policies:
  outer:
    - when: "{{ error.status == 500 }}"
      then: {sink: {tool: http, url: http://x}}
    - use: inner
  inner: [{when: "{{ error is defined }}", then: {max_attempts: 2}}]
workbook:
  - name: get
    tool: http
    url: http://x
    retry: [{use: inner}, {when: "{{ response.more }}"}]
`)
	require.Empty(t, found, "%v", found)

	a := pb.Step("a").Retry
	require.Len(t, a, 4)
	for i, from := range []string{"", " (policies.outer[1])", " (policies.inner[1])", " (policies.inner[1])"} {
		require.Equal(t, i+1, a[i].Number)
		require.Equal(t, from, a[i].OriginText())
	}
	require.Equal(t, "a.retry[2].then.sink", a[1].Then.Sinks[0].Place)
	require.NotSame(t, a[2], a[3])

	b := pb.Step("b").Retry
	require.Len(t, b, 2)
	require.Equal(t, " (policies.inner[1])", b[0].OriginText())
	require.Equal(t, " (workbook.get.retry[2])", b[1].OriginText())
}

// TestPoliciesOfPlaybookWithin checks that the steps which a call of tool playbook has
// written out use the lists of the playbook around them: those they need travel with them.
func TestPoliciesOfPlaybookWithin(t *testing.T) {
	t.Parallel()

	pb, found := decode(t, head+`policies:
  api: [{when: "{{ error.class == 'retryable' }}", then: {max_attempts: 2}}, {use: slow}]
  slow: [{when: "{{ error.class == 'rate_limited' }}", then: {max_attempts: 2}}]
  other: [{when: "{{ error is defined }}", then: {max_attempts: 2}}]
workflow:
  - step: below
    tool: playbook
    workflow:
      - step: fetch
        tool: http
        url: http://x
        retry: [{use: api}]
  - step: last
    tool: http
    url: http://x
    retry: [{use: other}]
`)
	require.Empty(t, found, "%v", found)

	inner := pb.Step("below").Action.Inline
	require.Len(t, inner.Steps[0].Retry, 2)
	require.NotContains(t, inner.SourceText(), "other")

	again, found := check.Validate(source.NewFile("inner.yaml", []byte(inner.SourceText())), withPlaybooks, check.Options{Open: true})
	require.Empty(t, found, "%v\n%s", found, inner.SourceText())
	require.Len(t, again.Steps[0].Retry, 2)
	require.Equal(t, " (policies.slow[1])", again.Steps[0].Retry[1].OriginText())
}
