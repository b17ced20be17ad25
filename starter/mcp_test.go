package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/starter/mcpserver"
)

// program is the starter: by this name the tests are the program.
func program(t *testing.T) string {
	t.Helper()
	tests, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "starter")
	require.NoError(t, os.Symlink(tests, path))
	return path
}

// mcpClient is a client of a starter mcp that it has started in a folder.
func mcpClient(t *testing.T, folder string, environment []string, args ...string) *mcp.ClientSession {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(t), append([]string{"mcp"}, args...)...)
	command.Dir, command.Stderr = folder, os.Stderr
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder}, environment...)
	return connectMCP(t, &mcp.CommandTransport{Command: command})
}

func connectMCP(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), transport, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// callMCP calls a tool, and gives all texts of its answer.
func callMCP(t *testing.T, session *mcp.ClientSession, tool string, arguments map[string]any) (text string, failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(t, err, tool)
	var texts []string
	for _, content := range result.Content {
		texts = append(texts, content.(*mcp.TextContent).Text)
	}
	return strings.Join(texts, "\n"), result.IsError
}

// commandIn is what a command of the starter prints in a folder.
func commandIn(t *testing.T, folder string, environment []string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(t), args...)
	command.Dir = folder
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder}, environment...)
	out, err := command.Output()
	if err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError), args)
	}
	return string(out)
}

// mcpFolder is a folder with files.
func mcpFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "work")
	for name, text := range files {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return folder
}

const mcpHead = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: users}\n"

const mcpUsers = mcpHead + `workload: {api: "https://api.test"}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/users"
    retry:
      - when: "{{ error.class == 'retryable' }}"
        then: {max_attempts: 3}
output: "{{ len(fetch.data) }} users"
`

const mcpUsersTest = `playbook: users.yaml
tests:
  - name: busy
    answers:
      fetch: [{status: 503}, {status: 200, body: {data: [1, 2]}}]
    expect: {status: completed, result: "2 users"}
`

// TestMCPTools: without --allow-writes no tool changes anything; every tool and argument is described.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	reading := []string{"eval", "events", "explain", "list", "status", "test", "try", "validate"}
	for _, row := range []struct {
		writes bool
		tools  []string
	}{
		{false, reading},
		{true, []string{"cancel", "eval", "events", "explain", "list", "pause", "resume", "retry-now", "run", "skip", "status", "test", "try", "validate"}},
	} {
		server, err := mcpserver.NewServer(mcpserver.Options{AllowWrites: row.writes})
		require.NoError(t, err)
		near, far := mcp.NewInMemoryTransports()
		_, err = server.Connect(t.Context(), near, nil)
		require.NoError(t, err)
		session := connectMCP(t, far)
		list, err := session.ListTools(t.Context(), nil)
		require.NoError(t, err)
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			require.NotEmpty(t, tool.Description, tool.Name)
			require.Equal(t, !row.writes || tool.Name != "try" && slices.Contains(reading, tool.Name), tool.Annotations.ReadOnlyHint, tool.Name)
			properties, _ := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
			require.NotEmpty(t, properties, tool.Name)
			for name, property := range properties {
				require.NotEmpty(t, property.(map[string]any)["description"], "%s.%s", tool.Name, name)
			}
		}
		require.Equal(t, row.tools, names)
		for _, name := range []string{"llms.txt", "llms-full.txt", "playbook.schema.json"} {
			read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "reprise://" + name})
			require.NoError(t, err)
			require.Greater(t, len(read.Contents[0].Text), 1000, name)
		}
	}
}

// TestMCPAnswersAsCommands: a tool gives the JSON that its command prints.
func TestMCPAnswersAsCommands(t *testing.T) {
	t.Parallel()
	folder := mcpFolder(t, map[string]string{
		"users.yaml": mcpUsers, "users_test.yaml": mcpUsersTest, "bad.yaml": strings.Replace(mcpUsers, "tool: http", "tool: htpp", 1),
		"names.json": `{"n": 12345678901234567}`,
	})
	session := mcpClient(t, folder, nil)
	for _, row := range []struct {
		tool      string
		arguments map[string]any
		command   []string
	}{
		{"validate", map[string]any{"file": "users.yaml"}, []string{"validate", "users.yaml"}},
		{"validate", map[string]any{"file": "bad.yaml"}, []string{"validate", "bad.yaml"}},
		{"validate", map[string]any{"files": []string{"users.yaml", "users_test.yaml"}}, []string{"validate", "users.yaml", "users_test.yaml"}},
		{"explain", map[string]any{"word": "retry.then.max_wait"}, []string{"explain", "retry.then.max_wait"}},
		{"eval", map[string]any{"expression": "n + 1", "names": json.RawMessage(`{"n": 12345678901234567}`)}, []string{"eval", "n + 1", "--with", "names.json"}},
		{"test", map[string]any{"coverage": true}, []string{"test", "--coverage"}},
		{"try", map[string]any{"file": "users.yaml", "dry_run": true}, []string{"try", "users.yaml", "--dry-run"}},
	} {
		text, failed := callMCP(t, session, row.tool, row.arguments)
		require.False(t, failed, "%s: %s", row.tool, text)
		require.Equal(t, timeless(commandIn(t, folder, nil, append(row.command, "--output", "json")...)), timeless(text), row.tool)
	}
	text, failed := callMCP(t, session, "explain", nil)
	require.False(t, failed)
	require.Equal(t, commandIn(t, folder, nil, "explain"), text)
	require.Less(t, len(text), 20_000, "the list of words is short")
	text, failed = callMCP(t, session, "validate", map[string]any{"text": mcpUsers})
	require.False(t, failed)
	require.Contains(t, text, `"valid": true`)
}

// timeless is a document without how long things took and when they were.
func timeless(document string) string {
	var lines []string
	for line := range strings.Lines(document) {
		if !strings.Contains(line, "took_seconds") && !strings.Contains(line, `"at":`) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// TestMCPErrors: what a tool cannot do is an error of the tool that says what would work.
func TestMCPErrors(t *testing.T) {
	t.Parallel()
	folder := mcpFolder(t, map[string]string{"bad.yaml": strings.Replace(mcpUsers, "tool: http", "tool: htpp", 1)})
	session := mcpClient(t, folder, nil)
	for _, row := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"validate", map[string]any{"flie": "a.yaml"}, `unknown argument "flie"; did you mean "file"?`},
		{"validate", map[string]any{}, "file or text is required"},
		{"validate", map[string]any{"file": "a.yaml"}, `there is no file "a.yaml"`},
		{"validate", map[string]any{"file": 3}, "file"},
		{"explain", map[string]any{"word": "retry.then.max_wiat"}, `did you mean "retry.then.max_wait"?`},
		{"eval", map[string]any{"expression": "1 +"}, "^"},
		{"try", map[string]any{"file": "bad.yaml"}, `did you mean "http"?`},
		{"test", map[string]any{"run": "("}, "not a regular expression"},
		{"status", map[string]any{"run": "users"}, "no Temporal server is known"},
		{"events", map[string]any{"kinds": []string{"step_rety"}}, `did you mean "step_retry"?`},
		{"list", map[string]any{"status": "fialed"}, `did you mean "failed"?`},
	} {
		text, failed := callMCP(t, session, row.tool, row.arguments)
		assert.True(t, failed, "%s: %s", row.tool, text)
		assert.Contains(t, text, row.want, row.tool)
	}
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"file": "bad.yaml"}})
	require.ErrorContains(t, err, "run")
}

// TestMCPStaysInItsFolder: nothing outside the folder is read, by no way.
func TestMCPStaysInItsFolder(t *testing.T) {
	t.Parallel()
	folder := mcpFolder(t, map[string]string{
		"calls.yaml":        mcpHead + "workflow: [{step: a, tool: {kind: playbook, path: ../secret.yaml}}]\n",
		"reads.yaml":        mcpHead + "workflow: [{step: a, tool: file, path: ../secret.yaml, format: text}]\n",
		"queries.yaml":      mcpHead + "workflow: [{step: a, tool: sqlite, path: ../secret.db, statement: select 1}]\n",
		"outside_test.yaml": "playbook: ../secret.yaml\ntests: [{name: a, expect: {status: completed}}]\n",
		"link_test.yaml":    "playbook: link.yaml\ntests: [{name: a, expect: {status: completed}}]\n",
		"users.yaml":        mcpUsers,
		"records_test.yaml": "playbook: users.yaml\ntests: [{name: a, answers: {fetch: [{recorded: ../secret.yaml}]}, expect: {status: completed}}]\n",
	})
	const hidden = "hidden-4711"
	outside := filepath.Join(filepath.Dir(folder), "secret.yaml")
	require.NoError(t, os.WriteFile(outside, []byte(hidden+": ["), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(folder, "link.yaml")))
	require.NoError(t, os.Symlink(filepath.Dir(folder), filepath.Join(folder, "up")))
	session := mcpClient(t, filepath.Dir(folder), nil, "--folder", folder)
	for _, row := range []struct {
		tool      string
		arguments map[string]any
	}{
		{"validate", map[string]any{"file": "../secret.yaml"}},
		{"validate", map[string]any{"file": outside}},
		{"validate", map[string]any{"file": "link.yaml"}},
		{"validate", map[string]any{"file": "up/secret.yaml"}},
		{"validate", map[string]any{"file": "calls.yaml"}},
		{"validate", map[string]any{"files": []string{"outside_test.yaml", "records_test.yaml", "link_test.yaml"}}},
		{"try", map[string]any{"file": "../secret.yaml"}},
		{"try", map[string]any{"file": "reads.yaml"}},
		{"try", map[string]any{"file": "queries.yaml"}},
		{"test", map[string]any{"files": []string{"outside_test.yaml"}}},
		{"test", map[string]any{"files": []string{"records_test.yaml"}}},
		{"test", map[string]any{"files": []string{"link_test.yaml"}}},
		{"test", map[string]any{"files": []string{".."}}},
		{"test", map[string]any{"files": []string{"up"}}},
	} {
		text, _ := callMCP(t, session, row.tool, row.arguments)
		assert.NotContains(t, text, hidden, "%s %v", row.tool, row.arguments)
		assert.Regexp(t, `outside the folder|escapes from parent|leads out of|under the worker.s directory|without \.\.`, text, "%s %v", row.tool, row.arguments)
	}
	text, failed := callMCP(t, session, "validate", map[string]any{"file": filepath.Join(folder, "users.yaml")})
	require.False(t, failed, text)
	require.Contains(t, text, `"valid": true`)
}

// TestMCPReadsNoPrivateFiles: keys, the state of a server, connections and callers are read by no tool, whatever they are called.
func TestMCPReadsNoPrivateFiles(t *testing.T) {
	t.Parallel()
	const hidden = "hidden-4712"
	folder := mcpFolder(t, map[string]string{
		"mine.yml": "# " + hidden + "\npg: sqlite:rows.db\n", "callers.yaml": hidden + ": [",
		"calls.yaml":        mcpHead + "workflow: [{step: a, tool: {kind: playbook, path: .reprise/dev.json}}]\n",
		"reads.yaml":        mcpHead + "workflow: [{step: a, tool: file, path: .reprise/dev.json, format: text}]\n",
		"links.yaml":        mcpHead + "workflow: [{step: a, tool: file, path: hard.yaml, format: text}]\n",
		"queries.yaml":      mcpHead + "workflow: [{step: a, tool: sqlite, path: .reprise/temporal.db, statement: select 1}]\n",
		"literal.yaml":      mcpHead + "workflow: [{step: a, tool: sqlite, auth: \"sqlite:./.reprise/temporal.db\", statement: select 1}]\n",
		"private_test.yaml": "playbook: .reprise/dev.json\ntests: [{name: a, expect: {status: completed}}]\n",
	})
	require.NoError(t, os.Mkdir(filepath.Join(folder, ".reprise"), 0o700))
	for _, name := range []string{".reprise/dev.json", ".reprise/temporal.db.key", ".reprise/temporal.db"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(hidden+": ["), 0o600))
	}
	require.NoError(t, os.Symlink(".reprise/dev.json", filepath.Join(folder, "soft.yaml")))
	require.NoError(t, os.Symlink(".reprise", filepath.Join(folder, "folder")))
	require.NoError(t, os.Link(filepath.Join(folder, ".reprise/dev.json"), filepath.Join(folder, "hard.yaml")))
	require.NoError(t, os.Link(filepath.Join(folder, "mine.yml"), filepath.Join(folder, "hard_mine.yaml")))
	session := mcpClient(t, folder, nil, "--connections", "mine.yml")
	for _, file := range []string{
		".reprise/dev.json", ".Reprise/dev.json", "./.reprise/../.reprise/temporal.db.key", "soft.yaml", "folder/dev.json", "hard.yaml", "mine.yml", "./mine.yml",
		"hard_mine.yaml", "callers.yaml", filepath.Join(folder, ".reprise/dev.json"), filepath.Join(folder, "mine.yml"), "private_test.yaml", "calls.yaml",
	} {
		text, _ := callMCP(t, session, "validate", map[string]any{"file": file})
		assert.NotContains(t, text, hidden, file)
		assert.Contains(t, text, "cannot be read or written here", file)
	}
	for _, file := range []string{"reads.yaml", "links.yaml", "queries.yaml", "literal.yaml"} {
		text, _ := callMCP(t, session, "try", map[string]any{"file": file})
		assert.NotContains(t, text, hidden, file)
		assert.Contains(t, text, "one of the worker's own files", file)
	}
	text, _ := callMCP(t, session, "test", map[string]any{"files": []string{"private_test.yaml"}})
	assert.Contains(t, text, "cannot be read or written here")
	assert.NotContains(t, text, hidden)
}

// TestMCPReadsOnly: without --allow-writes nothing is written, by no way.
func TestMCPReadsOnly(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write([]byte(`[{"id": 1}]`))
	}))
	t.Cleanup(api.Close)
	python := mcpHead + "workflow:\n  - step: a\n    tool: python\n    code: |\n      def main():\n          open('made.txt', 'w').write('x')\n"
	folder := mcpFolder(t, map[string]string{
		"python.yaml":      python,
		"python_test.yaml": "playbook: python.yaml\ntests: [{name: a, expect: {status: completed}}]\n",
		"post.yaml":        mcpHead + "workflow: [{step: a, tool: http, method: POST, url: \"" + api.URL + "\"}]\n",
		"get.yaml":         mcpHead + "workflow: [{step: a, tool: http, url: \"" + api.URL + "\", sink: {tool: file, path: rows.jsonl, format: jsonl}}]\n",
		"delete.yaml":      mcpHead + "workflow: [{step: a, tool: sqlite, path: rows.db, statement: create table a (b int)}]\n",
	})
	before := namesIn(t, folder)
	session := mcpClient(t, folder, nil)
	for _, row := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"try", map[string]any{"file": "python.yaml"}, "python is off"},
		{"test", map[string]any{"files": []string{"python_test.yaml"}}, "python is off"},
		{"try", map[string]any{"file": "post.yaml"}, "allow"},
		{"try", map[string]any{"file": "delete.yaml"}, "allow"},
		{"try", map[string]any{"file": "get.yaml", "write": true}, `unknown argument "write"`},
		{"try", map[string]any{"file": "get.yaml", "record": "made.yaml"}, `unknown argument "record"`},
	} {
		text, _ := callMCP(t, session, row.tool, row.arguments)
		assert.Contains(t, text, row.want, "%v", row.arguments)
	}
	require.Zero(t, requests.Load())
	text, failed := callMCP(t, session, "try", map[string]any{"file": "get.yaml"})
	require.False(t, failed, text)
	require.EqualValues(t, 1, requests.Load())
	require.Equal(t, before, namesIn(t, folder))

	session = mcpClient(t, folder, nil, "--allow-writes")
	text, failed = callMCP(t, session, "try", map[string]any{"file": "get.yaml", "write": true, "record": "made.yaml"})
	require.False(t, failed, text)
	require.FileExists(t, filepath.Join(folder, "rows.jsonl"))
	require.FileExists(t, filepath.Join(folder, "made.yaml"))
	text, _ = callMCP(t, session, "try", map[string]any{"file": "get.yaml", "record": "../made.yaml"})
	require.Contains(t, text, "outside the folder")
	require.NoFileExists(t, filepath.Join(filepath.Dir(folder), "made.yaml"))
}

func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// TestMCPRuns: on a real server a client starts a run, sees where it is and what happened, and steers it.
// A connection's token is in no answer, though the API repeats it.
func TestMCPRuns(t *testing.T) {
	t.Parallel()
	const token = "tok-f00dfeed4711"
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("no: " + r.Header.Get("Authorization")))
	}))
	t.Cleanup(api.Close)
	env := testenv.Temporal(t)
	queue, connection := env.NewTaskQueue(), "bearer:"+token+"@"+api.URL
	catalogue := activities.NewCatalogue(activities.Resources{Connections: activities.EnvConnections(func(name string) (string, bool) {
		return connection, name == "REPRISE_AUTH_API"
	})})
	worker := host.NewWorker(env.Client(), catalogue, host.Options{TaskQueue: queue, StopTimeout: time.Second})
	require.NoError(t, worker.Start())
	t.Cleanup(worker.Stop)
	folder := mcpFolder(t, map[string]string{"waits.yaml": mcpHead + `workflow:
  - step: fetch
    tool: http
    auth: api
    url: /users
    retry: [{when: "{{ error.class == 'retryable' }}", then: {max_attempts: 3, initial_delay: 1h, max_delay: 1h}}]
`})
	environment := []string{"TEMPORAL_ADDRESS=" + env.Address, "REPRISE_TASK_QUEUE=" + queue, "REPRISE_AUTH_API=" + connection}
	session := mcpClient(t, folder, environment, "--allow-writes")
	id := "mcp-" + queue
	var all bytes.Buffer
	call := func(tool string, arguments map[string]any) string {
		text, failed := callMCP(t, session, tool, arguments)
		require.False(t, failed, "%s: %s", tool, text)
		all.WriteString(text)
		return text
	}
	call("run", map[string]any{"file": "waits.yaml", "workflow_id": id})
	require.Eventually(t, func() bool {
		return strings.Contains(call("status", map[string]any{"run": id}), `"status": "retry_pending"`)
	}, patience, 50*time.Millisecond)
	for tool, arguments := range map[string]map[string]any{
		"status": {"run": id, "step": "fetch"}, "events": {"run": id}, "list": {"playbook": "users", "limit": 1},
	} {
		command := []string{tool, id}
		if tool == "list" {
			command = []string{tool, "--playbook", "users", "--limit", "1"}
		}
		if tool == "status" {
			command = append(command, "fetch")
		}
		require.Equal(t, timeless(commandIn(t, folder, environment, append(command, "--output", "json")...)), timeless(call(tool, arguments)), tool)
	}
	require.Contains(t, call("events", map[string]any{"run": id}), `"event":"step_retry"`)
	paused := call("pause", map[string]any{"run": id, "reason": "a test"})
	require.Contains(t, paused, `"done"`, paused)
	require.Contains(t, call("resume", map[string]any{"run": id}), `"done"`)
	require.Contains(t, call("retry-now", map[string]any{"run": id, "step": "fetch"}), `"done"`)
	text, failed := callMCP(t, session, "skip", map[string]any{"run": id, "step": "fetch", "reason": " "})
	require.True(t, failed)
	require.Contains(t, text, "reason")
	call("cancel", map[string]any{"run": id, "reason": "the test is over"})
	require.Eventually(t, func() bool {
		return strings.Contains(call("status", map[string]any{"run": id}), `"status": "cancelled"`)
	}, patience, 50*time.Millisecond)
	text, _ = callMCP(t, session, "try", map[string]any{"file": "waits.yaml"})
	all.WriteString(text)
	require.Contains(t, all.String(), "no: ")
	require.NotContains(t, all.String(), token)
}

// TestMCPCancels: a call that the client gives up ends, and so does the request that it makes; the next one is answered.
func TestMCPCancels(t *testing.T) {
	t.Parallel()
	arrived, gone := make(chan struct{}), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(gone)
	}))
	t.Cleanup(api.Close)
	session := mcpClient(t, mcpFolder(t, map[string]string{"users.yaml": mcpUsers}), nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{
			Name: "try", Arguments: map[string]any{"file": "users.yaml", "workload": map[string]any{"api": api.URL}},
		})
		ended <- err
	}()
	testenv.Receive(t, arrived, "the request of the call")
	cancel()
	require.ErrorIs(t, testenv.Receive(t, ended, "the end of the call"), context.Canceled)
	testenv.Receive(t, gone, "the end of the request")
	text, failed := callMCP(t, session, "validate", map[string]any{"file": "users.yaml"})
	require.False(t, failed, text)
}

// TestMCPLongAnswer: an answer that no model can read is an error that says what to do.
func TestMCPLongAnswer(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"data": strings.Repeat("long ", 300_000)})
	}))
	t.Cleanup(api.Close)
	session := mcpClient(t, mcpFolder(t, map[string]string{"users.yaml": mcpUsers}), nil)
	text, failed := callMCP(t, session, "try", map[string]any{"file": "users.yaml", "workload": map[string]any{"api": api.URL}})
	require.True(t, failed)
	require.Contains(t, text, "the result is larger than 1024 KiB; request less")
	require.Less(t, len(text), 1000)
}
