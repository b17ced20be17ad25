package playbook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// TestInlineSource checks the document that is made of steps which are written out:
// it says what they say, it is a playbook by itself, and it is always the same.
func TestInlineSource(t *testing.T) {
	t.Parallel()

	text := `apiVersion: reprise/v1
kind: Playbook
metadata: {name: outer}
workflow:
  - step: each
    tool: playbook
    workload: &w {id: 1, all: [a]}
    workflow:
      - step: fetch # of one
        tool: http
        url: "http://localhost/{{ id }}"
        body: {same: *w, text: "007", folded: "one\n  two"}
        next: run
      - step: run
        tool: python
        code: |2
            def main():
                return "{{ no template }}: \t#"
        next: deep
      - step: deep
        tool: playbook
        workflow: [{step: x, tool: http, url: http://localhost}]
`
	book, found := playbook.Decode(source.NewFile("outer.yaml", []byte(text)))
	require.Empty(t, found.Errors(), found.Error())

	inner := book.Steps[0].Action.Inline
	require.NotNil(t, inner)
	require.Equal(t, "outer.each", inner.Name)
	require.Equal(t, `apiVersion: reprise/v1
kind: Playbook
metadata:
  name: outer.each
workflow:
  - step: fetch
    tool: http
    url: "http://localhost/{{ id }}"
    body: {same: {id: 1, all: [a]}, text: "007", folded: "one\n  two"}
    next: run
  - step: run
    tool: python
    code: |2
        def main():
            return "{{ no template }}: \t#"
    next: deep
  - step: deep
    tool: playbook
    workflow: [{step: x, tool: http, url: 'http://localhost'}]
`, inner.SourceText())

	alone, found := playbook.Decode(source.NewFile("inner.yaml", []byte(inner.SourceText())))
	require.Empty(t, found.Errors(), found.Error())
	require.Equal(t, inner.Steps[1].Action.Field("code").Value, alone.Steps[1].Action.Field("code").Value)
	require.Equal(t, "outer.each.deep", alone.Steps[2].Action.Inline.Name)
	require.Equal(t, inner.Steps[2].Action.Inline.SourceText(), alone.Steps[2].Action.Inline.SourceText())

	again, _ := playbook.Decode(source.NewFile("outer.yaml", []byte(text)))
	require.Equal(t, inner.SourceText(), again.Steps[0].Action.Inline.SourceText())
}

// TestInlineName checks that the name of steps which are written out is one that a
// playbook may have, however long those around it are.
func TestInlineName(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("ä", 100)
	book, found := playbook.Decode(source.NewFile("outer.yaml", []byte("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: "+long+
		"}\nworkflow:\n  - step: each\n    tool: playbook\n    workflow: [{step: x, tool: http, url: http://localhost}]\n")))
	require.Empty(t, found.Errors(), found.Error())
	name := book.Steps[0].Action.Inline.Name
	require.LessOrEqual(t, len(name), 200)
	require.True(t, strings.HasSuffix(name, ".each"), name)

	_, found = playbook.Decode(source.NewFile("inner.yaml", []byte(book.Steps[0].Action.Inline.SourceText())))
	require.Empty(t, found.Errors(), found.Error())
}

// TestFileAt holds paths against the file that names them.
func TestFileAt(t *testing.T) {
	t.Parallel()

	for _, at := range []struct{ from, to, want string }{
		{"outer.yaml", "inner.yaml", "inner.yaml"},
		{"a/outer.yaml", "inner.yaml", "a/inner.yaml"},
		{"a/outer.yaml#each", "../b/inner.yaml", "b/inner.yaml"},
		{"/x/outer.yaml", "inner.yaml", "/x/inner.yaml"},
		{"a/outer.yaml", "/y/inner.yaml", "/y/inner.yaml"},
		{"stdin", "inner.yaml", "inner.yaml"},
		{"example:hello.yaml", "inner.yaml", "example:inner.yaml"},
		{"name:outer.yaml", "../inner.yaml", "name:../inner.yaml"},
	} {
		require.Equal(t, at.want, playbook.PathFrom(at.from, at.to), "%+v", at)
	}
	for _, bad := range []string{"", "a/b", `a\b`, "..", ".hidden", "a:b", "a\nb", "score v2", strings.Repeat("x", 101)} {
		_, err := playbook.PlaybookFileName(bad)
		require.Error(t, err, bad)
	}
	name, err := playbook.PlaybookFileName("score-v2")
	require.NoError(t, err)
	require.Equal(t, "name:score-v2.yaml", name)
}
