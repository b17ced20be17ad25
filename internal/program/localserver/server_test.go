package localserver_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/program/localserver"
	"reprise/internal/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// binary is this project's own server; make test builds it.
func binary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "devserver"))
	require.NoError(t, err)
	require.FileExists(t, path, "run make bin/devserver")
	return path
}

func start(t *testing.T, options localserver.Options) *localserver.Server {
	t.Helper()
	server, err := localserver.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(server.Kill)
	return server
}

func dial(t *testing.T, server *localserver.Server) client.Client {
	t.Helper()
	c, err := connect.Dial(t.Context(), client.Options{HostPort: server.Address, Namespace: server.Namespace}, nil, nil)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestServerServesWhenStartReturns(t *testing.T) {
	t.Parallel()
	server := start(t, localserver.Options{Binary: binary(t), Namespace: "clinic", Attributes: map[string]enums.IndexedValueType{
		"Color": enums.INDEXED_VALUE_TYPE_KEYWORD, "Legs": enums.INDEXED_VALUE_TYPE_INT,
	}})
	c := dial(t, server)
	attributes, err := c.OperatorService().ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: "clinic"})
	require.NoError(t, err)
	require.Equal(t, enums.INDEXED_VALUE_TYPE_KEYWORD, attributes.GetCustomAttributes()["Color"])
	require.Equal(t, enums.INDEXED_VALUE_TYPE_INT, attributes.GetCustomAttributes()["Legs"])
	connection, err := net.Dial("tcp", server.UIURL[len("http://"):])
	require.NoError(t, err)
	require.NoError(t, connection.Close())

	server.Stop()
	select {
	case <-server.Exited():
	default:
		t.Fatal("the server runs on after Stop")
	}
	_, err = connect.Dial(t.Context(), client.Options{HostPort: server.Address, Namespace: "clinic"}, nil, nil)
	var none *connect.NoServerError
	require.ErrorAs(t, err, &none)
}

func TestFileStoresRunsOverARestart(t *testing.T) {
	t.Parallel()
	options := localserver.Options{Binary: binary(t), DBFile: filepath.Join(t.TempDir(), "new", "temporal.db")}
	first := start(t, options)
	run, err := dial(t, first).ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "kept", TaskQueue: "none"}, "Any")
	require.NoError(t, err)
	first.Stop()
	description, err := dial(t, start(t, options)).WorkflowService().DescribeWorkflowExecution(t.Context(),
		&workflowservice.DescribeWorkflowExecutionRequest{Namespace: "default", Execution: execution("kept", run.GetRunID())})
	require.NoError(t, err)
	require.Equal(t, run.GetRunID(), description.GetWorkflowExecutionInfo().GetExecution().GetRunId())
}

func TestExitedReportsThatTheServerDied(t *testing.T) {
	t.Parallel()
	server := start(t, localserver.Options{Binary: binary(t)})
	process, err := os.FindProcess(server.PID())
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	select {
	case <-server.Exited():
	case <-time.After(testenv.Within(10 * time.Second)):
		t.Fatal("nobody told")
	}
}

func TestStartSaysWhyItFails(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	port := taken.Addr().(*net.TCPAddr).Port

	_, err = localserver.Start(t.Context(), localserver.Options{Binary: binary(t), Port: port})
	require.ErrorContains(t, err, "port "+strconv.Itoa(port)+" cannot be used, give another one or 0 for a free one")

	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, []byte("#!/bin/sh\necho out of order >&2\nexit 7\n"), 0o700))
	_, err = localserver.Start(t.Context(), localserver.Options{Binary: broken})
	require.ErrorContains(t, err, "exit status 7")
	require.ErrorContains(t, err, "out of order")

	_, err = localserver.Start(t.Context(), localserver.Options{Binary: "/nowhere/server"})
	require.ErrorContains(t, err, "/nowhere/server")
}

// TestRequestsToAServer: one that opens an HTTP API serves nobody there, and
// the key is no argument, which everybody on the machine sees.
func TestRequestsToAServer(t *testing.T) {
	t.Parallel()
	nosy := filepath.Join(t.TempDir(), "nosy")
	require.NoError(t, os.WriteFile(nosy, []byte("#!/bin/sh\necho \"$@\" \"key=$DEVSERVER_API_KEY.\" >&2\nexit 7\n"), 0o700))
	_, err := localserver.Start(t.Context(), localserver.Options{Binary: nosy, Key: "k-123"})
	require.ErrorContains(t, err, "server start-dev")
	require.Regexp(t, `--dynamic-config-value frontend\.httpAllowedHosts=\["[A-Z2-7]{26}"\]`, err.Error())
	require.NotContains(t, err.Error(), "--http-port")
	require.Equal(t, 1, strings.Count(err.Error(), "k-123"))
	require.ErrorContains(t, err, "key=k-123.")
}

func TestAKeyIsRequired(t *testing.T) {
	t.Parallel()
	server := start(t, localserver.Options{Binary: binary(t), Key: "k-123"})
	_, err := connect.Dial(t.Context(), client.Options{HostPort: server.Address, Namespace: server.Namespace}, nil, nil)
	require.ErrorContains(t, err, " requires an API key")
	c, err := connect.Dial(t.Context(), server.ClientOptions(), nil, nil)
	require.NoError(t, err)
	c.Close()

	require.Empty(t, server.UIURL, "the web UI sends the key for whoever asks it")
	folder, err := os.Stat(filepath.Dir(server.UISocket))
	require.NoError(t, err)
	require.EqualValues(t, 0o700, folder.Mode().Perm())
	connection, err := net.Dial("unix", server.UISocket)
	require.NoError(t, err)
	require.NoError(t, connection.Close())
	server.Stop()
	require.NoDirExists(t, filepath.Dir(server.UISocket))
}

// TestAnotherListenerIsNotTheUI: who listens, as the server starts, at the port that the web UI would have without a key is another program.
func TestAnotherListenerIsNotTheUI(t *testing.T) {
	t.Parallel()
	free := [2]int{}
	for i := range free {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		free[i] = listener.Addr().(*net.TCPAddr).Port
		require.NoError(t, listener.Close())
	}
	go func() {
		for t.Context().Err() == nil {
			if connection, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(free[0])); err == nil { // the server has begun
				_ = connection.Close()
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if other, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(free[1])); err == nil {
			<-t.Context().Done()
			_ = other.Close()
		}
	}()
	server := start(t, localserver.Options{Binary: binary(t), Key: "k-123", Port: free[0], UIPort: free[1]})
	require.Empty(t, server.UIURL)
	require.NotEmpty(t, server.UISocket)
}

// TestFilesOfAnyServer: this user alone reads them, those too that Temporal's own command makes and those that were there before.
func TestFilesOfAnyServer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	other, file := filepath.Join(folder, "other"), filepath.Join(folder, "temporal.db")
	require.NoError(t, os.WriteFile(other, []byte("#!/bin/sh\numask >&2\nexit 7\n"), 0o700))
	for _, name := range []string{file, file + "-wal"} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		require.NoError(t, os.Chmod(name, 0o644)) //nolint:gosec // as an earlier version made it
	}
	_, err := localserver.Start(t.Context(), localserver.Options{Binary: other, DBFile: file})
	require.Regexp(t, `said:\s+0*77\b`, err.Error())
	for _, name := range []string{file, file + "-wal"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode().Perm(), name)
	}
}

// TestOwnFolder: a folder of programs is made for this user, and one of another user is not used.
func TestOwnFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), ".reprise")
	for range 2 {
		require.NoError(t, localserver.OwnFolder(folder))
		info, err := os.Stat(folder)
		require.NoError(t, err)
		require.EqualValues(t, 0o700, info.Mode().Perm())
		require.NoError(t, os.Chmod(folder, 0o755)) //nolint:gosec // as an earlier version made it
	}
	if os.Geteuid() == 0 {
		const nobody = 65534
		link := folder + "-link"
		require.NoError(t, os.Symlink(folder, link))
		require.NoError(t, os.Lchown(link, nobody, -1))
		require.ErrorContains(t, localserver.OwnFolder(link), "belongs to user 65534 and not to you")
		require.NoError(t, os.Chown(folder, nobody, -1))
		require.ErrorContains(t, localserver.OwnFolder(folder), "belongs to user 65534 and not to you")
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	mute := filepath.Join(t.TempDir(), "mute")
	require.NoError(t, os.WriteFile(mute, []byte("#!/bin/sh\nexec sleep 1200\n"), 0o700))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := localserver.Start(ctx, localserver.Options{Binary: mute})
	require.ErrorContains(t, err, "wait for it to serve")
	require.Less(t, time.Since(began), testenv.Within(30*time.Second))
}
