package connect_test

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"reprise/internal/base/connect"
)

// authorizations is a server that gives the authorization of each request to the channel, and refuses it.
func authorizations(t *testing.T) (address string, got chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	got = make(chan string, 16)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		sent, _ := metadata.FromIncomingContext(stream.Context())
		for _, value := range sent.Get("authorization") {
			got <- value
		}
		return status.Error(codes.PermissionDenied, "no such luck")
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String(), got
}

// TestAPIKeyOfAFile: each request has the key that the file has then. It sets environment variables, so it does not run
// in parallel.
func TestAPIKeyOfAFile(t *testing.T) {
	address, got := authorizations(t)
	path := filepath.Join(t.TempDir(), "api-key")
	write := func(text string) {
		require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	t.Setenv("TEMPORAL_CONFIG_FILE", os.DevNull)
	t.Setenv("TEMPORAL_API_KEY", "")
	t.Setenv("TEMPORAL_TLS", "false")
	t.Setenv(connect.KeyFileVariable, path)
	var log bytes.Buffer
	var masked []string
	flags := connect.Flags{Address: address, Logger: slog.New(slog.NewTextHandler(&log, nil)), MaskKey: func(key string) { masked = append(masked, key) }}
	_, err := connect.ResolveOptions(flags)
	require.ErrorContains(t, err, "read TEMPORAL_API_KEY_FILE: open "+path)
	for _, text := range []string{"", "\n", "first-key\nsecond-key"} {
		write(text)
		_, err = connect.ResolveOptions(flags)
		require.EqualError(t, err, "read TEMPORAL_API_KEY_FILE: "+path+" is empty, or has more than one line")
	}
	write("first-key\n")
	options, err := connect.ResolveOptions(flags)
	require.NoError(t, err)
	c, err := client.NewLazyClient(options)
	require.NoError(t, err)
	defer c.Close()
	request := func() string {
		_, err := c.WorkflowService().ListNamespaces(t.Context(), &workflowservice.ListNamespacesRequest{})
		require.ErrorContains(t, err, "no such luck")
		var last string
		for len(got) > 0 { // the SDK asks for the capabilities of the server too
			last = <-got
		}
		return last
	}
	require.Equal(t, "Bearer first-key", request())
	write("second-key")
	require.Equal(t, "Bearer second-key", request())
	write("")
	require.Equal(t, "Bearer second-key", request())
	require.Contains(t, log.String(), "the file of TEMPORAL_API_KEY_FILE has changed and cannot be used")
	require.Equal(t, []string{"first-key", "second-key"}, masked)

	t.Setenv("TEMPORAL_TLS", "")
	_, err = connect.ResolveOptions(flags)
	require.ErrorContains(t, err, "is empty")
	write("third-key")
	options, err = connect.ResolveOptions(flags)
	require.NoError(t, err)
	require.NotNil(t, options.ConnectionOptions.TLS, "a key is not sent without TLS, as with TEMPORAL_API_KEY")
	t.Setenv("TEMPORAL_API_KEY", "fourth-key")
	_, err = connect.ResolveOptions(flags)
	require.EqualError(t, err, "TEMPORAL_API_KEY and TEMPORAL_API_KEY_FILE are both set; unset one of them")
}
