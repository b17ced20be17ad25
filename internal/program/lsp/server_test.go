package lsp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"reprise/activities"
	"reprise/internal/program/lsp"
	"reprise/internal/test/testenv"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
)

const file = uri.URI("file:///work/users.yaml")

// editor is a client over a pipe.
type editor struct {
	t        *testing.T
	conn     jsonrpc2.Conn
	problems chan []protocol.Diagnostic
}

func newEditor(t *testing.T) *editor {
	t.Helper()
	ours, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- lsp.New(activities.DefaultCatalogue(), check.Options{}).Serve(t.Context(), theirs) }()
	e := &editor{t: t, conn: jsonrpc2.NewConn(jsonrpc2.NewStream(ours)), problems: make(chan []protocol.Diagnostic, 100)}
	e.conn.Go(t.Context(), func(ctx context.Context, reply jsonrpc2.Replier, request jsonrpc2.Request) error {
		var params protocol.PublishDiagnosticsParams
		if request.Method() == protocol.MethodTextDocumentPublishDiagnostics && json.Unmarshal(request.Params(), &params) == nil {
			e.problems <- params.Diagnostics
		}
		return reply(ctx, nil, nil)
	})
	t.Cleanup(func() {
		_ = e.conn.Notify(context.Background(), protocol.MethodExit, nil)
		require.NoError(t, testenv.Receive(t, ended, "the end of the server"))
		_ = e.conn.Close()
	})
	var initialized protocol.InitializeResult
	e.call(protocol.MethodInitialize, protocol.InitializeParams{}, &initialized)
	require.Equal(t, "reprise", initialized.ServerInfo.Name)
	return e
}

func (e *editor) call(method string, params, result any) {
	e.t.Helper()
	_, err := e.conn.Call(e.t.Context(), method, params, result)
	require.NoError(e.t, err)
}

// shows opens or changes the document, and gives its problems.
func (e *editor) shows(text string) []protocol.Diagnostic {
	e.t.Helper()
	require.NoError(e.t, e.conn.Notify(e.t.Context(), protocol.MethodTextDocumentDidOpen, protocol.DidOpenTextDocumentParams{
		TextDocument: protocol.TextDocumentItem{URI: file, Text: text},
	}))
	return testenv.Receive(e.t, e.problems, "the problems of the document")
}

// split takes the cursor, ¦, out of a text.
func split(t *testing.T, text string) (string, protocol.TextDocumentPositionParams) {
	t.Helper()
	before, after, found := strings.Cut(text, "¦")
	require.True(t, found)
	line := strings.Count(before, "\n")
	column := len(utf16.Encode([]rune(before[strings.LastIndexByte(before, '\n')+1:])))
	return before + after, protocol.TextDocumentPositionParams{
		TextDocument: protocol.TextDocumentIdentifier{URI: file}, Position: protocol.Position{Line: uint32(line), Character: uint32(column)},
	}
}

// labels are what is proposed at the cursor.
func (e *editor) labels(text string) []string {
	e.t.Helper()
	text, at := split(e.t, text)
	e.shows(steps)
	e.shows(text)
	var list protocol.CompletionList
	e.call(protocol.MethodTextDocumentCompletion, protocol.CompletionParams{TextDocumentPositionParams: at}, &list)
	labels := make([]string, len(list.Items))
	for i, item := range list.Items {
		labels[i] = item.Label
	}
	return labels
}

const head = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: users}
workload: {api: "http://x"}
workflow:
`

// steps have a name in another script, of which editors count units otherwise than Go bytes.
const steps = head + `  - step: begin
    vars: {greeting: "Grüße 𝄞"}
    next: fetch
  - step: fetch
    tool: http
    url: "{{ api }}/𝄞/{{ begin }}"
    next: [{when: "{{ fetch.ok }}", then: end}, begin]
  - step: end
    vars: {n: "{{ fetch }}"}
`

func TestProblems(t *testing.T) {
	t.Parallel()
	e := newEditor(t)
	require.Empty(t, e.shows(strings.Replace(steps, ", begin]", "]", 1)))
	found := e.shows(head + "  - step: fetch\n    tool: http\n    urk: \"𝄞\"\n    url: \"𝄞{{ apy }}\"\n")
	require.NotEmpty(t, found)
	places := map[string]string{}
	for _, one := range found {
		require.Equal(t, protocol.DiagnosticSeverityError, one.Severity, one.Message)
		places[fmt.Sprint(one.Code)] = fmt.Sprintf("%d:%d-%d", one.Range.Start.Line, one.Range.Start.Character, one.Range.End.Character)
	}
	require.Equal(t, "7:4-7", places["unknown-field"], "%v", found)
	require.Equal(t, "8:15-18", places["unknown-name"], "%v", found)
	require.Empty(t, e.shows("services: {web: {image: x}}\n"), "another YAML file is none of ours")
	require.Empty(t, e.shows("no: [yaml"))
	require.NoError(t, e.conn.Notify(t.Context(), protocol.MethodTextDocumentDidClose, protocol.DidCloseTextDocumentParams{TextDocument: protocol.TextDocumentIdentifier{URI: file}}))
	require.Empty(t, testenv.Receive(t, e.problems, "the problems of the document"))
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	e := newEditor(t)
	for text, want := range map[string][]string{
		"¦":            {"workflow", "metadata", "workload"},
		head + "  - ¦": {"step", "tool", "retry", "loop"},
		head + "  - step: a\n    tool: http\n    ¦":                                                                {"url", "params", "retry", "next"},
		head + "  - step: a\n    ¦\n    tool: sqlite\n":                                                            {"statement", "loop"},
		head + "  - step: a\n    tool: ¦":                                                                          {"http", "postgres", "webhook"},
		head + "  - step: a\n    tool: http\n    method: ¦":                                                        {"GET", "POST"},
		head + "  - step: a\n    tool: http\n    retry:\n      - ¦":                                                {"when", "then"},
		head + "  - step: a\n    tool: http\n    retry:\n      - when: \"{{ true }}\"\n        then:\n          ¦": {"max_attempts", "max_wait", "next_call"},
		head + "  - step: a\n    tool: http\n    retry: [{when: \"{{ x }}\", then: {max_attempts: 2, ¦":            {"delay", "collect"},
		head + "  - step: a\n    tool: http\n    retry:\n    - when: \"{{ ¦":                                       {"len", "response", "api"},
		head + "  - step: a\n    tool: http\n    retry:\n    - when: \"{{ error.¦":                                 {"status", "class", "retry_after"},
		head + "  - step: a\n    vars: {n: \"{{ this.meta.¦":                                                       {"pages", "attempts"},
		head + "  - step: a\n    vars: {n: \"{{ len(_loop.in¦":                                                     {"index", "count"},
		head + "  - step: a\n    vars: {n: \"{{ steps.¦":                                                           {"begin", "fetch"},
		head + "  - step: a\n    vars: {n: \"{{ steps.fetch.error.¦":                                               {"status"},
		head + "  - step: a\n    vars: {n: \"{{ workload.¦":                                                        {"api"},
		head + "  - step: a\n    tool: http\n    loop:\n      ¦":                                                   {"mode", "max_concurrency", "batch"},
		head + "  - step: a\n    tool: http\n    loop:\n      sink:\n        tool: sqlite\n        ¦":              {"table", "mode", "key"},
		head + "  - step: a\n    next: ¦\n  - step: other\n":                                                       {"a", "other"},
	} {
		require.Subset(t, e.labels(text), want, text)
	}
	require.NotContains(t, e.labels(head+"  - step: a\n    tool: http\n    loop:\n      ¦"), "url")
	require.NotContains(t, e.labels(head+"  - step: a\n    tool: http\n    ¦"), "statement")
}

// TestCompletionOfResults: members of results are those that tests beside the playbook answer, and their
// recordings.
func TestCompletionOfResults(t *testing.T) {
	t.Parallel()
	e := newEditor(t)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"users_test.yaml": "playbook: users.yaml\ntests:\n  - name: a\n    answers:\n      fetch:\n        - {status: 503, body: {wrong: 1}}\n" +
			"        - {status: 200, body: {rows: [{id: 1, name: x}], total: 1}}\n        - recorded: users.recording.yaml\n    expect: {status: completed}\n",
		"users.recording.yaml": "answers:\n  fetch:\n    - {status: 200, body: {rows: [], more: true}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	at := uri.File(filepath.Join(folder, "users.yaml"))
	book := head + "  - step: fetch\n    tool: http\n    url: \"{{ api }}\"\n    vars: {v: \"{{ @ }}\"}\n    next: load\n  - step: load\n    vars: {n: \"{{ # }}\"}\n"
	for place, paths := range map[string]map[string][]string{
		"@": {"response.": {"more", "rows", "total"}, "result.rows[0].": {"id", "name"}, "this.data.": {"more", "rows", "total"}, "load.": nil},
		"#": {"fetch.": {"more", "rows", "total"}, "steps.fetch.data.rows[0].na": {"id", "name"}, "fetch.rows[7].": nil, "result.": nil},
	} {
		for path, want := range paths {
			whole := strings.NewReplacer("@", "1", "#", "1").Replace(book)
			require.NoError(t, e.conn.Notify(t.Context(), protocol.MethodTextDocumentDidOpen, protocol.DidOpenTextDocumentParams{TextDocument: protocol.TextDocumentItem{URI: at, Text: whole}}))
			testenv.Receive(t, e.problems, "the problems of the document")
			text, where := split(t, strings.NewReplacer("@", "1", "#", "1").Replace(strings.Replace(book, place, path+"¦", 1)))
			require.NoError(t, e.conn.Notify(t.Context(), protocol.MethodTextDocumentDidOpen, protocol.DidOpenTextDocumentParams{TextDocument: protocol.TextDocumentItem{URI: at, Text: text}}))
			testenv.Receive(t, e.problems, "the problems of the document")
			where.TextDocument.URI = at
			var list protocol.CompletionList
			e.call(protocol.MethodTextDocumentCompletion, protocol.CompletionParams{TextDocumentPositionParams: where}, &list)
			var labels []string
			for _, item := range list.Items {
				labels = append(labels, item.Label)
			}
			require.Equal(t, want, labels, path)
		}
	}
}

// TestFixes: each problem that has one sure fix offers it, and all of them at once are what
// starter validate --fix writes.
func TestFixes(t *testing.T) {
	t.Parallel()
	e := newEditor(t)
	wrong := head + "  - step: fetch\r\n    tool: http\n    url: \"𝄞{{ apy }}\" # ü\n    retry:\n      - {wehn: \"{{ 𝄞 == error.status == '503' }}\"}\n    next: ¦lod\n  - step: load\n    description: x\n"
	wrong = strings.Replace(wrong, "𝄞 == ", "", 1)
	text, at := split(t, wrong)
	e.shows(text)
	var actions []protocol.CodeAction
	e.call(protocol.MethodTextDocumentCodeAction, protocol.CodeActionParams{
		TextDocument: protocol.TextDocumentIdentifier{URI: file}, Range: protocol.Range{Start: at.Position, End: at.Position},
		Context: protocol.CodeActionContext{Only: []protocol.CodeActionKind{protocol.QuickFix}},
	}, &actions)
	require.Len(t, actions, 1)
	require.Equal(t, "Replace lod with load", actions[0].Title)
	require.True(t, actions[0].IsPreferred)
	require.Equal(t, strings.Replace(text, "lod", "load", 1), apply(t, text, actions[0].Edit.Changes[file]))
	e.call(protocol.MethodTextDocumentCodeAction, protocol.CodeActionParams{
		TextDocument: protocol.TextDocumentIdentifier{URI: file}, Range: protocol.Range{Start: at.Position, End: at.Position},
	}, &actions)
	require.Len(t, actions, 2)
	edits := actions[1].Edit.Changes[file]
	require.Len(t, edits, 1)
	require.Equal(t, strings.NewReplacer("apy", "api", "wehn", "when", "'503'", "503", "lod", "load", "description", "desc").Replace(text), edits[0].NewText)
	require.Equal(t, protocol.Position{}, edits[0].Range.Start)
	require.Equal(t, uint32(strings.Count(text, "\n")), edits[0].Range.End.Line)
	require.NotContains(t, fmt.Sprint(e.shows(edits[0].NewText)), "unknown")
}

// TestEndsOfLines: YAML ends lines where editors do not, and editors where Go programs forget to.
func TestEndsOfLines(t *testing.T) {
	t.Parallel()
	e := newEditor(t)
	for end, line := range map[string]int{"\n": 6, "\r\n": 6, "\r": 6} {
		found := e.shows(strings.ReplaceAll(head, "\n", end) + "  # a\u2028# b\u0085# c" + end + "  - {step: a, vars: {b: \"𝄞{{ cc }}\"}}" + end)
		require.Len(t, found, 1, "%q", end)
		require.Equal(t, protocol.Position{Line: uint32(line), Character: 30}, found[0].Range.Start, "%q", end)
		require.Equal(t, protocol.Position{Line: uint32(line), Character: 32}, found[0].Range.End, "%q", end)
	}
}

func TestHover(t *testing.T) {
	t.Parallel()
	e := newEditor(t)
	for text, want := range map[string]string{
		head + "  - step: a\n    tool: ht¦tp\n    url: x\n":                               "tool `http`",
		head + "  - step: a\n    tool: http\n    u¦rl: x\n":                               "`url` of http",
		head + "  - step: a\n    tool: http\n    retry:\n      - then: {max_¦wait: 1m}\n": "`max_wait` of then",
		head + "  - step: a\n    tool: http\n    url: \"{{ l¦en(api) }}\"\n":              "len(",
	} {
		text, at := split(t, text)
		e.shows(text)
		var hover *protocol.Hover
		e.call(protocol.MethodTextDocumentHover, protocol.HoverParams{TextDocumentPositionParams: at}, &hover)
		require.NotNil(t, hover, text)
		require.Contains(t, hover.Contents.Value, want)
	}
}

func TestStepsAreFoundAndRenamed(t *testing.T) {
	t.Parallel()
	e := newEditor(t)
	text, at := split(t, strings.Replace(steps, "    next: fetch", "    next: fe¦tch", 1))
	e.shows(text)
	var places []protocol.Location
	e.call(protocol.MethodTextDocumentDefinition, protocol.DefinitionParams{TextDocumentPositionParams: at}, &places)
	require.Len(t, places, 1)
	require.Equal(t, protocol.Position{Line: 8, Character: 10}, places[0].Range.Start)
	e.call(protocol.MethodTextDocumentReferences, protocol.ReferenceParams{TextDocumentPositionParams: at}, &places)
	require.Len(t, places, 4)
	var edit protocol.WorkspaceEdit
	e.call(protocol.MethodTextDocumentRename, protocol.RenameParams{TextDocumentPositionParams: at, NewName: "load"}, &edit)
	require.Equal(t, strings.NewReplacer("fetch", "load").Replace(text), apply(t, text, edit.Changes[file]))
	_, at = split(t, strings.Replace(steps, "{{ begin }}", "{{ be¦gin }}", 1))
	e.call(protocol.MethodTextDocumentRename, protocol.RenameParams{TextDocumentPositionParams: at, NewName: "first"}, &edit)
	require.Equal(t, strings.NewReplacer("begin", "first").Replace(text), apply(t, text, edit.Changes[file]))
	for _, wrong := range []string{"a b", "end", ""} {
		_, err := e.conn.Call(t.Context(), protocol.MethodTextDocumentRename, protocol.RenameParams{TextDocumentPositionParams: at, NewName: wrong}, &edit)
		require.Error(t, err, wrong)
	}
	var symbols []protocol.DocumentSymbol
	e.call(protocol.MethodTextDocumentDocumentSymbol, protocol.DocumentSymbolParams{TextDocument: protocol.TextDocumentIdentifier{URI: file}}, &symbols)
	require.Len(t, symbols, 3)
}

// apply carries edits out, the last first.
func apply(t *testing.T, text string, edits []protocol.TextEdit) string {
	t.Helper()
	lines := strings.Split(text, "\n")
	for i := len(edits) - 1; i >= 0; i-- {
		at := edits[i].Range
		line := utf16.Encode([]rune(lines[at.Start.Line]))
		require.LessOrEqual(t, int(at.End.Character), len(line))
		lines[at.Start.Line] = string(utf16.Decode(line[:at.Start.Character])) + edits[i].NewText + string(utf16.Decode(line[at.End.Character:]))
	}
	return strings.Join(lines, "\n")
}

// TestRandomEdits: whatever is typed, requests are answered, and places are in the document.
func TestRandomEdits(t *testing.T) {
	t.Parallel()
	e := newEditor(t)
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"{{", "}}", "- ", ": ", "\n", "  ", "next", "tool: http", "{", "}", "[", "]", "\"", "'", "𝄞", "#", "step: x", "\t", "|", "ü"}
	text := []rune(steps)
	for range 300 {
		at := random.IntN(len(text) + 1)
		if random.IntN(3) == 0 && at < len(text) {
			text = append(text[:at:at], text[min(len(text), at+random.IntN(20)):]...)
		} else {
			text = append(text[:at:at], append([]rune(pieces[random.IntN(len(pieces))]), text[at:]...)...)
		}
		lines := strings.Split(string(text), "\n")
		for _, one := range e.shows(string(text)) {
			require.Less(t, int(one.Range.Start.Line), len(lines))
			line := utf16.Encode([]rune(lines[one.Range.End.Line]))
			require.LessOrEqual(t, int(one.Range.End.Character), len(line), "%s", one.Message)
			require.LessOrEqual(t, one.Range.Start.Character, one.Range.End.Character)
		}
		where := protocol.TextDocumentPositionParams{
			TextDocument: protocol.TextDocumentIdentifier{URI: file},
			Position:     protocol.Position{Line: uint32(random.IntN(len(lines) + 2)), Character: uint32(random.IntN(100))},
		}
		e.call(protocol.MethodTextDocumentCompletion, protocol.CompletionParams{TextDocumentPositionParams: where}, nil)
		e.call(protocol.MethodTextDocumentHover, protocol.HoverParams{TextDocumentPositionParams: where}, nil)
		e.call(protocol.MethodTextDocumentReferences, protocol.ReferenceParams{TextDocumentPositionParams: where}, nil)
	}
}

// FuzzDocument: whatever a document is, its problems and their fixes have places in it.
func FuzzDocument(f *testing.F) {
	f.Add(steps, uint32(3), uint32(5))
	f.Add(strings.ReplaceAll(steps, "\n", "\r"), uint32(7), uint32(9))
	f.Add(strings.ReplaceAll(steps, "fetch", "fe\u2028h"), uint32(0), uint32(0))
	f.Fuzz(func(t *testing.T, text string, line, character uint32) {
		lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
		within := func(at protocol.Range) {
			require.Less(t, int(at.End.Line), len(lines))
			require.LessOrEqual(t, int(at.End.Character), len(utf16.Encode([]rune(lines[at.End.Line]))))
			require.False(t, at.Start.Line > at.End.Line || at.Start.Line == at.End.Line && at.Start.Character > at.End.Character)
		}
		problems, actions := lsp.Looked(activities.DefaultCatalogue(), file, text, protocol.Position{Line: line, Character: character})
		for _, one := range problems {
			within(one.Range)
		}
		for _, one := range actions {
			for _, edit := range one.Edit.Changes[file] {
				within(edit.Range)
			}
		}
	})
}

// TestExamples: the examples have no problems in an editor either.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "playbooks", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	e := newEditor(t)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if !strings.HasSuffix(name, playbook.TestSuffix) {
			require.Empty(t, e.shows(string(text)), name)
		}
	}
}

// BenchmarkTyping is how long the problems of 500 steps take after a key.
func BenchmarkTyping(b *testing.B) {
	var text strings.Builder
	text.WriteString(head)
	for i := range 500 {
		fmt.Fprintf(&text, "  - step: s%d\n    tool: http\n    url: \"{{ api }}/%d\"\n    next: s%d\n", i, i, (i+1)%500)
	}
	ours, theirs := net.Pipe()
	go func() { _ = lsp.New(activities.DefaultCatalogue(), check.Options{}).Serve(b.Context(), theirs) }()
	published := make(chan struct{}, 1)
	conn := jsonrpc2.NewConn(jsonrpc2.NewStream(ours))
	conn.Go(b.Context(), func(ctx context.Context, reply jsonrpc2.Replier, _ jsonrpc2.Request) error {
		published <- struct{}{}
		return reply(ctx, nil, nil)
	})
	defer func() { _ = conn.Close() }()
	for b.Loop() {
		_ = conn.Notify(b.Context(), protocol.MethodTextDocumentDidOpen, protocol.DidOpenTextDocumentParams{TextDocument: protocol.TextDocumentItem{URI: file, Text: text.String()}})
		testenv.Receive(b, published, "the problems of the document")
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/key")
}

// TestLargeDocuments passes mostBytes: a larger document has no problems, as it is not read.
func TestLargeDocuments(t *testing.T) {
	t.Parallel()
	const mostBytes = 4 << 20
	text := "apiVersion: reprise/v1\nkind: Playbook\nstep: x\n"
	for padding, want := range map[int]bool{0: true, mostBytes: false} {
		problems, _ := lsp.Looked(activities.DefaultCatalogue(), "file:///p.yaml", text+"# "+strings.Repeat("x", padding)+"\n", protocol.Position{})
		require.Equal(t, want, len(problems) > 0, padding)
	}
}
