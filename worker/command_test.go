package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/childproc"
	"reprise/internal/base/exitcode"
	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// workerVariable has a test's binary be a worker.
const workerVariable = "REPRISE_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		os.Exit(runMain(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	testenv.Main(m)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args    []string
		status  int
		message string
	}{
		{[]string{"--nonsense"}, exitcode.Usage, "unknown flag: --nonsense\nSee worker --help."},
		{[]string{"more"}, exitcode.Usage, `unknown command "more"`},
		{[]string{"--log-level", "loud"}, exitcode.Usage, `--log-level "loud" is unknown, expected debug, info, warn or error`},
		{[]string{"--log-format", "xml"}, exitcode.Usage, `--log-format "xml" is unknown, expected text or json`},
		{[]string{"--log-file", "/nowhere/log"}, exitcode.Usage, "--log-file: open the log: open /nowhere/log"},
		{[]string{"--cached-workflows", "0"}, exitcode.Usage, "--cached-workflows is 0, expected 1 or more"},
		{[]string{"--heartbeat", "1s"}, exitcode.Usage, `--heartbeat is "1s", expected a duration from 2s to 1m0s`},
		{[]string{"--heartbeat", "61s"}, exitcode.Usage, `--heartbeat is "61s"`},
		{[]string{"--heartbeat", "often"}, exitcode.Usage, `--heartbeat is "often"`},
		{[]string{"--deployment", "clinic"}, exitcode.Usage, "--deployment requires --build"},
		{[]string{"--build", "1"}, exitcode.Usage, "--build requires --deployment"},
		{[]string{"--deployment", "clinic.eu", "--build", "1"}, exitcode.Usage, `--deployment: "clinic.eu" contains . or :`},
		{[]string{"--deployment", "clinic", "--build", "__1"}, exitcode.Usage, `--build: "__1" begins with __`},
		{[]string{"--deployment", strings.Repeat("x", 256), "--build", "1"}, exitcode.Usage, "has 256 bytes, expected at most 255"},
		{[]string{"--versioning", "none"}, exitcode.Usage, `--versioning is "none", expected pinned or auto-upgrade`},
		{[]string{"--connections", "/nowhere"}, exitcode.Usage, "read the connections"},
		{[]string{"--profile", "nobody"}, exitcode.Usage, "nobody"},
		{[]string{"--metrics-address", "nowhere"}, exitcode.Usage, `open the metrics address "nowhere"`},
		{[]string{"--health-address", "nowhere"}, exitcode.Usage, `open the health address "nowhere"`},
		{[]string{"--egress", "/nowhere"}, exitcode.Usage, "read the egress file: open /nowhere: no such file"},
		{[]string{"--directory", "/nowhere"}, exitcode.Usage, "--directory: stat /nowhere: no such file"},
		{[]string{"--directory", "command.go"}, exitcode.Usage, "--directory: command.go is not a folder"},
		{[]string{"--playbooks", "/nowhere"}, exitcode.Usage, "--playbooks: stat /nowhere: no such file"},
		{[]string{"--only-known"}, exitcode.Usage, "--only-known requires --playbooks or --playbook-keys, or no playbook could run"},
		{[]string{"--only-known", "--playbooks", ".."}, exitcode.Usage, "--only-known: playbooks may write to the folder of --playbooks, since it has --directory in it"},
		{[]string{"--only-known", "--playbooks", "."}, exitcode.Usage, "--only-known: playbooks may write to the folder of --playbooks"},
		{[]string{"--playbook-keys", "/nowhere"}, exitcode.Usage, "--playbook-keys: read the playbook keys: open /nowhere: no such file"},
		{[]string{"--playbook-keys", "command.go"}, exitcode.Usage, "--playbook-keys: read the playbook keys: command.go has no PEM block"},
		{[]string{"--callback-url", "https://runs.example.com"}, exitcode.Usage, "--callback-url requires REPRISE_SECRET_KEY or REPRISE_SECRET_KEY_FILE, the same as for starter serve"},
		{[]string{"--payload-store", "file:///nowhere/payloads"}, exitcode.Usage, "open the payload store file:///nowhere/payloads: the folder is not a payload store"},
		{[]string{"--address", "127.0.0.1:1"}, exitcode.NoServer, "no Temporal server responds at 127.0.0.1:1"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			require.Equal(t, test.status, runMain(t.Context(), test.args, &out, &errs))
			require.Contains(t, errs.String(), test.message)
			require.Empty(t, out.String())
		})
	}
}

// TestMistakesInConfigurationShowNoSecret: the line with the mistake may hold one.
func TestMistakesInConfigurationShowNoSecret(t *testing.T) {
	const secret = "hunter2000x"
	t.Setenv("REPRISE_AUTH_CLINIC", "bearer:"+secret)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	fails := func(args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		require.NotEqual(t, exitcode.OK, runMain(t.Context(), args, &out, &errs))
		require.NotEmpty(t, errs.String())
		require.NotContains(t, out.String()+errs.String(), secret[:6], "nor a piece of it")
	}
	for name, text := range map[string]string{
		"broken.yaml": "clinic: 'postgres://u:" + secret + "\n", "nested.yaml": "clinic: Bearer: " + secret + "\n",
		"nameless.yaml": "postgres://u:" + secret + "@h/d:\n", "list.yaml": "- " + secret + "\n",
	} {
		fails("--connections", file(name, text))
	}
	for name, text := range map[string]string{
		"bare.toml": "[profile.default]\napi_key = " + secret + "\n", "open.toml": "[profile.default]\napi_key = \"" + secret + "\n",
	} {
		t.Setenv("TEMPORAL_CONFIG_FILE", file(name, text))
		fails()
	}
	t.Setenv("TEMPORAL_CONFIG_FILE", "")
	fails("--payload-store", "s3://u:"+secret+"@bucket")
	fails("--address", "127.0.0.1:1", "--log-level", "debug")
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"--help": "Examples:", "--version": "worker "} {
		var out bytes.Buffer
		require.Equal(t, exitcode.OK, runMain(t.Context(), []string{flag}, &out, io.Discard))
		require.Contains(t, out.String(), want)
	}
}

// TestHelpFits: --help has at most 80 columns.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.Equal(t, exitcode.OK, runMain(t.Context(), []string{"--help"}, &out, io.Discard))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 80, line)
	}
	require.Contains(t, out.String(), "\nUsage:\n  worker [flags]\n\nExamples:\n  worker\n")
}

const writesFile = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: writes}
workflow:
  - step: compute
    tool: python
    code: |
      def main():
          print("one\ntwo")
          return [{"n": 1}]
    sink: {tool: file, path: rows.jsonl}
`

// startWorker runs a worker, and gives what it prints. stop ends its context, and requires that it ends well.
func startWorker(t *testing.T, args ...string) (lines *bufio.Reader, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	status := make(chan int, 1)
	go func() { status <- runMain(ctx, args, writer, io.Discard) }()
	return bufio.NewReader(reader), func() {
		t.Helper()
		cancel()
		require.Equal(t, exitcode.OK, testenv.Receive(t, status, "the end of the worker"))
	}
}

// TestWorksUntilItsContextEnds runs a playbook that needs what the flags give:
// the queue, Python, and the folder of files.
func TestWorksUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	queue, folder := env.NewTaskQueue(), t.TempDir()
	lines, stop := startWorker(t, "--address", env.Address, "--namespace", env.Namespace, "--task-queue", queue,
		"--allow-python", "--directory", folder, "--log-level", "error", "--metrics-address", "127.0.0.1:0",
		"--log-file", filepath.Join(folder, "worker.jsonl"))
	require.Contains(t, testenv.ReadLine(t, lines, "the queue of the worker"), "worker: polling task queue \""+queue+"\"")
	line := testenv.ReadLine(t, lines, "where the metrics are")
	metrics, found := strings.CutPrefix(line, "worker: metrics at ")
	require.True(t, found, "%s", line)

	started, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue},
		protocol.PlaybookWorkflowName, protocol.Input{Name: "writes.yaml", Source: writesFile})
	require.NoError(t, err)
	result, err := ending.WaitForResult(t.Context(), started)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	rows, err := os.ReadFile(filepath.Join(folder, "rows.jsonl"))
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, string(rows))

	logged, err := os.ReadFile(filepath.Join(folder, "worker.jsonl"))
	require.NoError(t, err)
	require.Regexp(t, `"level":"INFO","msg":"python printed","step":"compute","visit":1,"page":1,"attempt":1,`+
		`"operation_key":"[0-9a-f]+","run":"`+queue+`","workflow":"`+queue+`","output":"one\\ntwo\\n"`, string(logged))
	require.Equal(t, []string{
		`run started: writes`,
		`step ended: writes compute completed 1 rows.jsonl`,
		`run ended: writes  completed 1 rows.jsonl`,
	}, endsLogged(t, logged))

	response, err := http.Get(metrics)
	require.NoError(t, err)
	counted, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Contains(t, string(counted), `reprise_rows_written_total{playbook="writes",step="compute",tool="file"} 1`)

	stop()
}

// endsLogged are the lines of a log that say that a run or a step began or ended.
func endsLogged(t *testing.T, log []byte) (ends []string) {
	t.Helper()
	for line := range bytes.Lines(log) {
		var said struct {
			Msg, Playbook, Step, Status, Run, Tables string
			Written                                  int `json:"rows_written"`
		}
		require.NoError(t, json.Unmarshal(line, &said))
		switch {
		case said.Msg == "run started":
			ends = append(ends, said.Msg+": "+said.Playbook)
		case strings.HasSuffix(said.Msg, " ended"):
			ends = append(ends, fmt.Sprintf("%s: %s %s %s %d %s", said.Msg, said.Playbook, said.Step, said.Status, said.Written, said.Tables))
		}
	}
	return ends
}

// TestSpeaksJSON: with --log-format json all that a worker says is JSON: that it polls, and why it ends.
func TestSpeaksJSON(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	queue := env.NewTaskQueue()
	lines, stop := startWorker(t, "--address", env.Address, "--namespace", env.Namespace, "--task-queue", queue, "--log-format", "json",
		"--health-address", "127.0.0.1:0", "--payload-store", "file://"+t.TempDir()+"?create_dir=true")
	var said struct{ Msg, Namespace, Health string }
	require.NoError(t, json.Unmarshal([]byte(testenv.ReadLine(t, lines, "that it polls")), &said))
	require.Equal(t, [2]string{"polling", env.Namespace}, [2]string{said.Msg, said.Namespace})
	require.Equal(t, http.StatusOK, statusOf(t, said.Health+"/readyz"))
	stop()
	var errs bytes.Buffer
	require.Equal(t, exitcode.NoServer, runMain(t.Context(), []string{"--address", "127.0.0.1:1", "--log-format", "json"}, io.Discard, &errs))
	for line := range bytes.Lines(errs.Bytes()) {
		require.True(t, json.Valid(line), "%s", line)
	}
	require.Contains(t, errs.String(), "no Temporal server responds at 127.0.0.1:1")
	errs.Reset()
	require.Equal(t, exitcode.Usage, runMain(t.Context(), []string{"--log-format", "json", "--directory", "/nowhere"}, io.Discard, &errs))
	require.True(t, json.Valid(errs.Bytes()), "%s", errs.String())
}

// statusOf is the status of the response to a GET.
func statusOf(t *testing.T, url string) int {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// TestProbesOfALostServer: a worker whose server is away is alive, not ready, and counts that its polls fail, for which
// docs/operations/alerts.yaml looks. It is ready again by itself.
func TestProbesOfALostServer(t *testing.T) {
	t.Parallel()
	server := testenv.TemporalServer(t)
	lines, stop := startWorker(t, "--address", server.Address, "--namespace", server.Namespace, "--log-format", "json", "--log-level", "error",
		"--health-address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0")
	var said struct{ Health, Metrics string }
	require.NoError(t, json.Unmarshal([]byte(testenv.ReadLine(t, lines, "that it polls")), &said))
	ready := func(want int) {
		t.Helper()
		require.Eventually(t, func() bool { return statusOf(t, said.Health+"/readyz") == want }, testenv.Within(time.Minute), 100*time.Millisecond)
		require.Equal(t, http.StatusOK, statusOf(t, said.Health+"/livez"))
	}
	ready(http.StatusOK)
	server.Kill()
	ready(http.StatusServiceUnavailable)
	require.Eventually(t, func() bool {
		response, err := http.Get(said.Metrics)
		require.NoError(t, err)
		counted, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return pollsFailed.Match(counted)
	}, testenv.Within(time.Minute), 200*time.Millisecond)
	server.Start(t)
	ready(http.StatusOK)
	stop()
}

// pollsFailed is the series for which the alert of a server out of reach looks.
var pollsFailed = regexp.MustCompile(`(?m)^temporal_long_request_failure_total\{[^}]*status_code="UNAVAILABLE"[^}]*\} [1-9]`)

// TestPrivateAddressesAreDenied: a worker reaches no listener of its machine unless a file of its operator, or a connection,
// says so.
func TestPrivateAddressesAreDenied(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "within") }))
	t.Cleanup(api.Close)
	file := filepath.Join(t.TempDir(), "egress.yaml")
	require.NoError(t, os.WriteFile(file, []byte("allow: [\""+strings.TrimPrefix(api.URL, "http://")+"\"]\n"), 0o600))
	for name, row := range map[string]struct {
		args   []string
		status string
	}{
		"by default": {nil, "failed"},
		"by a file":  {[]string{"--egress", file}, "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := env.NewTaskQueue()
			lines, stop := startWorker(t, append(row.args, "--address", env.Address, "--namespace", env.Namespace, "--task-queue", queue, "--log-level", "error")...)
			testenv.ReadLine(t, lines, "that it polls")
			run, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, protocol.PlaybookWorkflowName,
				protocol.Input{Name: "asks.yaml", Source: "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: asks}\nworkflow: [{step: ask, tool: http, url: \"" + api.URL + "\"}]\n"})
			require.NoError(t, err)
			result, err := ending.WaitForResult(t.Context(), run)
			require.NoError(t, err)
			require.EqualValues(t, row.status, result.Status, "%+v", result.Error)
			if row.status == "failed" {
				require.Equal(t, "egress_denied", result.Error.Type)
			}
			stop()
		})
	}
}

// waitsForever is a run that waits for an answer.
const waitsForever = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: waits}
workflow: [{step: ask, tool: webhook}]
output: "{{ ask }}"
`

var cachedNow = regexp.MustCompile(`(?m)^temporal_sticky_cache_size(?:{[^}]*})? (\d+)`)

// TestWaitingRunsShareTheCache: a worker keeps as many as it is told, and the
// others go on all the same.
func TestWaitingRunsShareTheCache(t *testing.T) {
	t.Parallel()
	const runs, cached = 12, 3
	env := testenv.Temporal(t)
	queue := env.NewTaskQueue()
	command := exec.Command(os.Args[0], "--address", env.Address, "--namespace", env.Namespace, "--task-queue", queue,
		"--log-level", "error", "--metrics-address", "127.0.0.1:0", "--cached-workflows", strconv.Itoa(cached))
	command.Env = append(os.Environ(), workerVariable+"=1")
	process, err := childproc.Start(command)
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	var metrics string
	require.Eventually(t, func() bool {
		_, said, _ := strings.Cut(process.Output.String(), "worker: metrics at ")
		var whole bool
		metrics, _, whole = strings.Cut(said, "\n")
		return whole
	}, testenv.Within(time.Minute), 20*time.Millisecond)
	answer := func(id string, answer interpreter.Answer) error {
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Within(time.Minute))
		defer cancel()
		handle, err := env.Client().UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: id, UpdateName: protocol.AnswerUpdate, Args: []any{answer}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err != nil {
			return err
		}
		return handle.Get(ctx, nil)
	}
	var all []client.WorkflowRun
	for i := range runs {
		id := fmt.Sprint(queue, "-", i)
		one, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue},
			protocol.PlaybookWorkflowName, protocol.Input{Name: "waits.yaml", Source: waitsForever})
		require.NoError(t, err)
		all = append(all, one)
		require.Eventually(t, func() bool { // until it waits
			return answer(id, interpreter.Answer{Verb: interpreter.AnswerProgress, Done: 1}) == nil
		}, testenv.Within(time.Minute), 50*time.Millisecond)
	}
	response, err := http.Get(metrics)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	found := cachedNow.FindSubmatch(text)
	require.NotNil(t, found, "%s", text)
	now, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	require.LessOrEqual(t, now, cached)
	require.NotZero(t, now)
	for i, one := range all {
		require.NoError(t, answer(one.GetID(), interpreter.Answer{Verb: interpreter.AnswerComplete, Result: expression.Of(i)}))
		result, err := ending.WaitForResult(t.Context(), one)
		require.NoError(t, err)
		require.Equal(t, i, result.Result.Data)
	}
}
