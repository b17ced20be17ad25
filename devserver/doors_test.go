package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/api/historyservice/v1"
	"go.temporal.io/server/api/matchingservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// privateFolder is one whose path is short enough for a socket.
func privateFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "devserver-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// leadTo serves what is at a socket.
func leadTo(socket string) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "ui" },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}},
	}
}

// TestWithAKeyNoPortServesOthers: neither that of clients, nor those at which the parts of the
// server reach each other, which trust whoever asks.
func TestWithAKeyNoPortServesOthers(t *testing.T) {
	t.Setenv(keyVariable, "k-123")
	p := startProcess(t, "--port", "0")
	ports := listening(t, p.cmd.Process.Pid)
	require.Len(t, ports, 5, "frontend, internal frontend, history, matching, worker")
	for _, port := range ports {
		for name, transport := range map[string]credentials.TransportCredentials{
			"plain": insecure.NewCredentials(), "TLS": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}), //nolint:gosec // that is what others can do
		} {
			conn, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(transport))
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			for asked, ask := range map[string]func() error{
				"frontend": func() error {
					_, err := workflowservice.NewWorkflowServiceClient(conn).ListNamespaces(ctx, &workflowservice.ListNamespacesRequest{})
					return err
				},
				"history": func() error {
					_, err := historyservice.NewHistoryServiceClient(conn).DescribeHistoryHost(ctx, &historyservice.DescribeHistoryHostRequest{HostAddress: "127.0.0.1:" + port})
					return err
				},
				"matching": func() error {
					_, err := matchingservice.NewMatchingServiceClient(conn).PollWorkflowTaskQueue(ctx, &matchingservice.PollWorkflowTaskQueueRequest{})
					return err
				},
			} {
				err := ask()
				require.Contains(t, []codes.Code{codes.Unavailable, codes.PermissionDenied, codes.Unimplemented}, status.Code(err), "%s %s on port %s: %v", name, asked, port, err)
				if status.Code(err) == codes.Unimplemented {
					require.Equal(t, port, portOfServer(t, p), "only the port of clients says what it has: %v", err)
				}
			}
			cancel()
			require.NoError(t, conn.Close())
		}
	}
}

func portOfServer(t *testing.T, p *process) string {
	t.Helper()
	_, port, err := net.SplitHostPort(p.server)
	require.NoError(t, err)
	return port
}

// TestTheUIAtASocket: it sends the key, so its socket is for this user alone, and it has no port.
func TestTheUIAtASocket(t *testing.T) {
	t.Setenv(keyVariable, "k-123")
	t.Setenv(uiPathVariable, "/temporal/")
	socket := filepath.Join(privateFolder(t), "ui")
	t.Setenv(uiSocketVariable, socket)
	p := startProcess(t, "--port", "0", "--ui-port", freePort(t))
	require.Empty(t, p.ui)
	require.Len(t, listening(t, p.cmd.Process.Pid), 5)
	info, err := os.Lstat(socket)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&private, "%v", info.Mode())
	site := "http://127.0.0.1:" + serveAt(t, "127.0.0.1:0", leadTo(socket))
	for path, want := range map[string]string{
		"/temporal/api/v1/namespaces": `"default"`,
		"/temporal/namespaces":        `base: "/temporal"`,
		"/temporal/_app/version.json": `"version"`,
		"/temporal/render?content=hi": `hi`,
	} {
		response, err := http.Get(site + path)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, path)
		require.Contains(t, string(body), want)
	}
	p.stopWith(t, os.Interrupt)
	require.NoFileExists(t, socket)

	folder := privateFolder(t)
	require.NoError(t, os.Chmod(folder, 0o755)) //nolint:gosec // that is refused
	t.Setenv(uiSocketVariable, filepath.Join(folder, "ui"))
	code, _, stderr := runOnce(t, "--port", "0")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "other users may look into the folder of")
	t.Setenv(uiSocketVariable, "")
	t.Setenv(uiPathVariable, `no"path`)
	_, _, stderr = runOnce(t, "--port", "0")
	require.Contains(t, stderr, "expected a path such as /temporal")
}
