package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// stopsWithin is what callers may count on after SIGTERM or an interrupt.
const stopsWithin = stopLimit + 2*time.Second

func greet(_ context.Context, name string) (string, error) { return "hello " + name, nil }

func greetWorkflow(ctx workflow.Context, name string) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	var greeting string
	err := workflow.ExecuteActivity(ctx, greet, name).Get(ctx, &greeting)
	return greeting, err
}

// greetOn runs one workflow with one activity and returns its result.
func greetOn(t *testing.T, c client.Client, id string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	w := worker.New(c, "greetings", worker.Options{})
	w.RegisterWorkflow(greetWorkflow)
	w.RegisterActivity(greet)
	require.NoError(t, w.Start())
	defer w.Stop()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: "greetings"}, greetWorkflow, "world")
	require.NoError(t, err)
	var greeting string
	require.NoError(t, run.Get(ctx, &greeting))
	return greeting
}

func dial(t *testing.T, target string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: target})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestTheSDKsTestSuiteDrivesIt(t *testing.T) {
	t.Parallel()
	attribute := temporal.NewSearchAttributeKeyKeyword("Playbook")
	srv, err := testsuite.StartDevServer(t.Context(), testsuite.DevServerOptions{
		ExistingPath:     executable(t),
		ClientOptions:    &client.Options{Namespace: "clinic"},
		SearchAttributes: temporal.NewSearchAttributes(attribute.ValueSet("")),
		LogLevel:         "error",
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, srv.Stop()) }()

	require.Equal(t, "hello world", greetOn(t, srv.Client(), "greeting"))

	listed, err := srv.Client().WorkflowService().ListNamespaces(t.Context(), &workflowservice.ListNamespacesRequest{})
	require.NoError(t, err)
	var names []string
	for _, n := range listed.GetNamespaces() {
		names = append(names, n.GetNamespaceInfo().GetName())
	}
	require.Subset(t, names, []string{"default", "clinic"})

	attributes, err := srv.Client().OperatorService().ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: "clinic"})
	require.NoError(t, err)
	require.Equal(t, enums.INDEXED_VALUE_TYPE_KEYWORD, attributes.GetCustomAttributes()["Playbook"])

	_, err = srv.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		TaskQueue: "nobody", TypedSearchAttributes: temporal.NewSearchAttributes(attribute.ValueSet("hello")),
	}, greetWorkflow, "nobody")
	require.NoError(t, err, "a search attribute is usable at once")
}

func TestAFileStoresRunsAndGainsAttributes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "100% state.db")
	first := startProcess(t, "--port", "0", "--headless", "--db-filename", file)
	require.Equal(t, "hello world", greetOn(t, dial(t, first.server), "kept"))
	first.stopWith(t, syscall.SIGTERM)
	log, err := os.Stat(file + "-wal")
	require.NoError(t, err)
	require.Zero(t, log.Size(), "the file alone holds everything")
	database, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), database.Mode().Perm(), "no other user reads histories")

	second := startProcess(t, "--port", "0", "--headless", "--db-filename", file, "--search-attribute", "Team=Keyword")
	c := dial(t, second.server)
	var greeting string
	require.NoError(t, c.GetWorkflow(t.Context(), "kept", "").Get(t.Context(), &greeting))
	require.Equal(t, "hello world", greeting)
	attributes, err := c.OperatorService().ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: "default"})
	require.NoError(t, err)
	require.Equal(t, enums.INDEXED_VALUE_TYPE_KEYWORD, attributes.GetCustomAttributes()["Team"])

	// A killed process leaves a file that opens again.
	require.Equal(t, "hello world", greetOn(t, c, "before the kill"))
	require.NoError(t, second.cmd.Process.Kill())
	_ = second.cmd.Wait()
	third := startProcess(t, "--port", "0", "--headless", "--db-filename", file)
	require.NoError(t, dial(t, third.server).GetWorkflow(t.Context(), "before the kill", "").Get(t.Context(), &greeting))
	third.stopWith(t, syscall.SIGTERM)
}

func TestTheWebUIAnswersOnceAnnounced(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--port", "0")
	for _, path := range []string{"/", "/namespaces/default/workflows", "/api/v1/namespaces"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.ui+path, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, path)
	}
	require.Less(t, p.stopWith(t, os.Interrupt), stopsWithin)
}

func TestItStopsWithAWorkerStillPolling(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "server", "start-dev", "--port", "0", "--headless")
	c := dial(t, p.server)
	w := worker.New(c, "greetings", worker.Options{})
	w.RegisterWorkflow(greetWorkflow)
	require.NoError(t, w.Start())
	defer w.Stop()
	_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "greetings"}, greetWorkflow, "world")
	require.NoError(t, err)
	require.Less(t, p.stopWith(t, syscall.SIGTERM), stopsWithin)
}

func TestItUsesFourShards(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--port", "0", "--headless")
	answer, err := dial(t, p.server).WorkflowService().GetClusterInfo(t.Context(), &workflowservice.GetClusterInfoRequest{})
	require.NoError(t, err)
	require.EqualValues(t, 4, answer.GetHistoryShardCount())
	p.stopWith(t, syscall.SIGTERM)
}

func TestATakenPortIsNamed(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)

	status, stdout, stderr := runOnce(t, "--port", port, "--headless")
	require.Equal(t, exitError, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "cannot listen on 127.0.0.1:"+port+", choose another port with --port")

	_, _, stderr = runOnce(t, "--port", "0", "--ui-port", port)
	require.Contains(t, stderr, "choose another port with --ui-port")
}

func TestAForeignDatabaseFileIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes.db")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("not a database ", 100)), 0o600))
	status, _, stderr := runOnce(t, "--port", "0", "--headless", "--db-filename", file)
	require.Equal(t, exitError, status)
	require.Contains(t, stderr, "prepare database file")

	status, _, stderr = runOnce(t, "--port", "0", "--headless", "--db-filename", filepath.Join(file+".d", "x.db"))
	require.Equal(t, exitError, status)
	require.Contains(t, stderr, "find the folder of database file")
}

func TestHelpVersionAndUsageErrors(t *testing.T) {
	t.Parallel()
	status, stdout, _ := runOnce(t, "--help")
	require.Equal(t, exitOK, status)
	require.Equal(t, usage, stdout)

	status, stdout, _ = runOnce(t, "--version")
	require.Equal(t, exitOK, status)
	require.Regexp(t, `^devserver \(Server 1\.\d+\.\d+, UI 2\.\d+\.\d+\)\n$`, stdout)

	status, _, stderr := runOnce(t, "--nonsense")
	require.Equal(t, exitUsage, status)
	require.Contains(t, stderr, "See devserver --help.")
}

func TestItEndsQuietlyWhenStoppedWhileStarting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(ctx, []string{"--port", "0", "--headless"}, &stdout, &stderr))
	require.Empty(t, stdout.String())
	require.Empty(t, stderr.String())
}
