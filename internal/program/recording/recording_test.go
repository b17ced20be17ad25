package recording_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/secrets"
	"reprise/internal/program/recording"
	"reprise/internal/test/samples"
	"reprise/interpreter/expression"
	"reprise/interpreter/source"
)

func value(v any) *expression.Value { return &expression.Value{Data: v} }

func written(t *testing.T, of *recording.Recording, known *secrets.Masker) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, recording.Write(&out, of, known))
	return out.String()
}

func read(t *testing.T, text string) (*recording.Recording, source.Diagnostics) {
	t.Helper()
	return recording.Read(source.NewFile("r.yaml", []byte(text)))
}

// TestRoundTrip: what is written is read as it was, whatever texts look like.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	text := "a,b\n1,2\n"
	before := &recording.Recording{Playbook: "users.yaml"}
	before.AddEntry("fetch", recording.Entry{
		Request: &recording.Request{Method: "GET", URL: "https://api.test/users?x={{ y }}", Params: map[string]any{"offset": "0"}},
		Element: value(map[string]any{"id": "p03"}), Status: 200, Headers: map[string]string{"content-type": "application/json"},
		Body: value(map[string]any{
			"data": []any{1, 2.5, 9007199254740993, nil, true}, "next_token": "abc", "long": strings.Repeat("x ", 60),
			"texts": []any{"", "007", "null", "yes", "2024-01-01", " a", "a: b", "- a", "# a", "a #b", "{{ a }}", "two\nlines", "\ttab", `q"'`, "1e400", "1_0", "\u0007", "ä", "*a", "!a"},
		}),
	})
	before.AddEntry("fetch", recording.Entry{Error: recording.ErrorTimeout})
	before.AddEntry("fetch.sink", recording.Entry{Status: 204})
	before.AddEntry("load/fetch", recording.Entry{Status: 200, BodyText: &text})
	before.AddEntry("rows", recording.Entry{Result: value([]any{map[string]any{"n": 1}})})
	before.AddEntry("nothing", recording.Entry{Result: value(nil)})
	before.AddEntry("null", recording.Entry{Status: 200, Body: value(nil)})

	after, found := read(t, written(t, before, nil))
	require.Empty(t, found)
	for i := range after.Steps {
		for j := range after.Steps[i].Entries {
			require.NotZero(t, after.Steps[i].Entries[j].Pos.Line)
			after.Steps[i].Entries[j].Pos = source.Position{}
		}
	}
	require.Equal(t, before, after)
	require.Len(t, after.StepEntries("fetch"), 2)
	require.Empty(t, after.StepEntries("other"))
}

// TestNothingSecretIsWritten: neither secrets of connections nor what is named like one.
func TestNothingSecretIsWritten(t *testing.T) {
	t.Parallel()
	known := &secrets.Masker{}
	known.AddConnection("bearer:tok-12345678")
	echo := "you sent tok-12345678"
	of := &recording.Recording{}
	of.AddEntry("login", recording.Entry{
		Request: &recording.Request{
			Method: "POST", URL: "https://api.test/?key=tok-12345678", Params: map[string]any{"api_key": "tok-12345678"},
			Headers: map[string]string{"authorization": "Bearer zzz", "accept": "tok-12345678"}, Body: value(map[string]any{"password": "pw"}),
		},
		Element: value(map[string]any{"secret": "s1"}), Status: 200,
		Headers: map[string]string{"set-cookie": "sid=1234", "x-echo": "tok-12345678"},
		Body:    value(map[string]any{"access_token": "fresh", "next_page_token": "stays", "items": []any{map[string]any{"client_secret": "deep"}}}),
	})
	of.AddEntry("echo", recording.Entry{Status: 200, BodyText: &echo})
	link, page := "<https://api.test/?page=2&access_token=inalink11>; rel=next", "see https://api.test/?sig=inatext11"
	of.AddEntry("more", recording.Entry{
		Request: &recording.Request{Method: "GET", URL: "https://api.test/?api_key=inaurl111"}, Status: 200, Headers: map[string]string{"link": link},
		Body: value(map[string]any{
			"next": "https://api.test/?access_token=inabody11", "access_token": []any{"inalist"},
			"rows": []any{map[string]any{"key": "PROJ-17", "code": "busy", "author": "Ada", "country_code": "DE"}},
		}),
	})
	of.AddEntry("text", recording.Entry{Status: 200, BodyText: &page})
	of.AddEntry("rows", recording.Entry{Result: value([]any{map[string]any{"password": "in a table", "note": "tok-12345678"}})})
	text := written(t, of, known)
	for _, secret := range []string{"tok-12345678", "zzz", "pw", "s1", "1234", "fresh", "deep", "in a table", "inalink11", "inatext11", "inaurl111", "inabody11", "inalist"} {
		require.NotContains(t, text, secret)
	}
	require.Contains(t, text, "next_page_token: stays")
	require.Regexp(t, `author: Ada\s+code: busy\s+country_code: DE\s+key: PROJ-17`, text)
	require.Contains(t, text, "***")
}

// TestAddressesStay: of an address only the secret is lost, also where a connection has it as a whole.
func TestAddressesStay(t *testing.T) {
	t.Parallel()
	known := &secrets.Masker{}
	known.AddConnection("https://ada:pw-12345678@api.test/v1/rows?api_key=k-12345678")
	known.AddConnection("https://hooks.slack.com/services/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")
	of := &recording.Recording{}
	of.AddEntry("fetch", recording.Entry{
		Request: &recording.Request{Method: "GET", URL: "https://ada:pw-12345678@api.test/v1/rows?api_key=k-12345678"}, Status: 200,
		Body: value(map[string]any{
			"session": "https://api.test/sessions/7?sig=a1b2c3d4e5", "hook": "https://hooks.slack.com/services/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",
		}),
	})
	text := written(t, of, known)
	for _, secret := range []string{"pw-12345678", "k-12345678", "a1b2c3d4e5", "aB3dE5fG7hI9jK1lM3nO5pQ7"} {
		require.NotContains(t, text, secret)
	}
	for _, stays := range []string{"api.test/v1/rows?api_key=***", "https://api.test/sessions/7?sig=***", "https://hooks.slack.com/services/"} {
		require.Contains(t, text, stays)
	}
}

// TestProblems: all of them, with their places.
func TestProblems(t *testing.T) {
	t.Parallel()
	_, found := read(t, `playbook: 3
answer: {}
answers:
  a: {status: 200}
  b:
    - {status: 99}
    - {error: broken}
    - {}
    - {status: 200, result: []}
    - {status: 200, body: 1, body_text: a}
    - {error: timeout, body: 1}
    - {statsu: 200, error: timeout}
    - {status: 200, headers: {a: [1]}, request: {verb: GET, params: 3}}
    - 7
`)
	var lines []string
	for _, one := range found {
		lines = append(lines, one.String())
	}
	samples.Golden(t, "problems", strings.Join(lines, "\n")+"\n")
	for text, code := range map[string]string{
		"": "empty", "a: [": "yaml-syntax", "- a": "wrong-type", "playbook: a": "missing-key", strings.Repeat("#", recording.MaxBytes+1): "too-large",
		"answers: {a: &x [*x]}": "alias-cycle",
	} {
		_, found := read(t, text)
		require.True(t, found.HasErrors(), text)
		require.Equal(t, code, found[0].Code)
	}
	shared, found := read(t, "answers:\n  a: &x [{status: 200, headers: &h {a: 1}}]\n  b: *x\n  c: [{status: 201, headers: *h}]\n")
	require.Empty(t, found)
	require.Equal(t, shared.StepEntries("a"), shared.StepEntries("b"))
	require.Equal(t, map[string]string{"a": "1"}, shared.StepEntries("c")[0].Headers)
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	of := &recording.Recording{}
	of.AddEntry("a", recording.Entry{Status: 200, Body: value(strings.Repeat("x", recording.MaxBytes))})
	require.ErrorIs(t, recording.Write(&bytes.Buffer{}, of, nil), recording.ErrTooLarge)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.yaml")
	_, err := recording.Load(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("answers: {a: [{stat: 1}]}"), 0o600))
	_, err = recording.Load(path)
	require.ErrorContains(t, err, "r.yaml:1:16: unknown key \"stat\"")
	require.NoError(t, os.WriteFile(path, []byte("answers: {a: [{status: 200}]}"), 0o600))
	of, err := recording.Load(path)
	require.NoError(t, err)
	require.Equal(t, 200, of.StepEntries("a")[0].Status)
}

func FuzzRead(f *testing.F) {
	f.Add("answers: {a: [{status: 200, body: {b: 1}}]}")
	f.Add("answers:\n  a: &x [{status: 200}]\n  b: *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		of, found := recording.Read(source.NewFile("r.yaml", []byte(text)))
		if found.HasErrors() {
			return
		}
		var out bytes.Buffer
		if recording.Write(&out, of, nil) != nil {
			return
		}
		_, found = recording.Read(source.NewFile("again.yaml", out.Bytes()))
		require.Empty(t, found, out.String())
	})
}
