package author

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/connector"
	"reprise/internal/program/scaffold"
	"reprise/starter/cli"
)

// TestQuestionsOfNew: who has no flags is asked until the description is known; empty answers are defaults.
func TestQuestionsOfNew(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		answers string
		want    newOptions
	}{
		{"\n\n\n\n", newOptions{style: "page", sink: "sqlite"}},
		{"soap\nstyle\ncursor\nfile\nuser_id\n", newOptions{style: "cursor", sink: "file", each: "user_id"}},
		{"curl\ncurl https://a.test \\\n  -H 'a: b'\nnone\n\n", newOptions{curl: "curl https://a.test \\\n  -H 'a: b'", sink: "none"}},
		{"openapi\napi.json\nlistUsers\n\n\n", newOptions{openapi: "api.json", operation: "listUsers", sink: "sqlite"}},
	} {
		var shown bytes.Buffer
		q := &prompter{in: bufio.NewReader(strings.NewReader(row.answers)), out: &shown}
		got := newOptions{}
		require.NoError(t, q.promptSource(&got))
		require.NoError(t, q.promptRest(&got))
		require.Equal(t, row.want, got)
		require.Contains(t, shown.String(), "[style]: ")
	}
	q := &prompter{in: bufio.NewReader(strings.NewReader("")), out: &bytes.Buffer{}}
	require.ErrorContains(t, q.promptSource(&newOptions{}), "no answer")
}

// TestForceFollowsNoLink: what a link leads to is not what somebody wants to replace.
func TestForceFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	elsewhere, link, plain := filepath.Join(dir, "elsewhere"), filepath.Join(dir, "rows.yaml"), filepath.Join(dir, "rows_test.yaml")
	require.NoError(t, os.WriteFile(elsewhere, []byte("mine"), 0o600))
	require.NoError(t, os.WriteFile(plain, []byte("old"), 0o600))
	require.NoError(t, os.Symlink(elsewhere, link))
	require.ErrorContains(t, writeNew([]newFile{{path: link, data: []byte("new")}}, true), "is not a regular file, so --force does not replace it")
	require.ErrorContains(t, writeNew([]newFile{{path: plain, data: []byte("new")}}, false), "exists")
	require.NoError(t, writeNew([]newFile{{path: plain, data: []byte("new")}}, true))
	for path, want := range map[string]string{elsewhere: "mine", plain: "new"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

// TestNewOffersAProbe: it is offered where it can be made, and made only after a yes.
func TestNewOffersAProbe(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		curl, answer   string
		offered, probe bool
	}{
		{"curl -H 'X-Api-Key: SECRETa1b2' 'https://a.test/rows?api_key=SECRETa1b2'", "y\n", true, true},
		{"curl https://a.test/rows", "\n", true, false},
		{"curl https://a.test/rows", "no\n", true, false},
		{"curl -X POST https://a.test/rows", "y\n", false, false},
		{"curl https://a.test/rows/{id}", "y\n", false, false},
	} {
		var shown bytes.Buffer
		o := newOptions{curl: row.curl}
		q := &prompter{in: bufio.NewReader(strings.NewReader(row.answer)), out: &shown}
		require.NoError(t, q.offerProbe(&o))
		require.Equal(t, row.probe, o.probe, row.curl)
		require.Equal(t, row.offered, strings.Contains(shown.String(), "send GET https://a.test/rows once"), shown.String())
		require.NotContains(t, shown.String(), "SECRET")
	}
}

// TestProbesAreBounded passes mostProbed: an API may send any number of rows.
func TestProbesAreBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		row := `{"text": "` + strings.Repeat("x", 1<<20) + `"}`
		_, _ = io.WriteString(w, "["+strings.Repeat(row+",", mostProbed>>20)+row+"]")
	}))
	defer server.Close()
	a := &cli.App{Streams: cli.Streams{Err: io.Discard}, Interrupts: &cli.Interrupts{Graceful: t.Context()}}
	require.ErrorContains(t, probeRequest(a, "curl "+server.URL, &scaffold.Description{}), "--probe: ")
}

// TestPlaceOfDict: a line behind the name of a file is that of one of its dicts, unless a file has that whole name.
func TestPlaceOfDict(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "a.py:3")
	require.NoError(t, os.WriteFile(whole, nil, 0o600))
	for place, want := range map[string]struct {
		path string
		line int
	}{
		"a.py": {"a.py", 0}, "a.py:12": {"a.py", 12}, "a.py:0": {"a.py:0", 0}, "a.py:x": {"a.py:x", 0}, ":4": {":4", 0}, `C:\a.py`: {`C:\a.py`, 0}, whole: {whole, 0},
	} {
		path, line := placeOfDict(place)
		require.Equal(t, want.path, path, place)
		require.Equal(t, want.line, line, place)
	}
	two := filepath.Join(t.TempDir(), "two.py")
	require.NoError(t, os.WriteFile(two, []byte("a = {'client': {}, 'resources': ['x']}\nb = {'client': {}, 'resources': ['y']}\n"), 0o600))
	from, _ := (&newOptions{dlt: two}).peerOf()
	data, err := os.ReadFile(two)
	require.NoError(t, err)
	_, err = from.convert(data, connector.Options{Name: "two"})
	require.ErrorContains(t, err, "there are 2 dicts with client and resources, in lines 1, 2; choose one: --dlt "+two+":1")
	from, _ = (&newOptions{dlt: two + ":2"}).peerOf()
	result, err := from.convert(data, connector.Options{Name: "two"})
	require.NoError(t, err)
	require.Equal(t, []string{"y"}, result.Streams)
}
