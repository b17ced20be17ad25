package connect_test

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"reprise/internal/base/connect"
	"reprise/internal/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const profiles = `
[profile.default]
namespace = "from-default"
[profile.clinic]
address = "clinic:7233"
namespace = "from-clinic"
[profile.empty]
namespace = "x"
`

// TestResolve sets environment variables, so it does not run in parallel.
func TestResolve(t *testing.T) {
	config := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(config, []byte(profiles), 0o600))
	for _, test := range []struct {
		name        string
		flags       connect.Flags
		environment map[string]string
		address     string
		namespace   string
		problem     string
	}{
		{name: "nothing is said", address: "", namespace: "default"},
		{name: "flags", flags: connect.Flags{Address: "a:1", Namespace: "n"}, address: "a:1", namespace: "n"},
		{
			name:        "environment",
			environment: map[string]string{"TEMPORAL_ADDRESS": "e:1", "TEMPORAL_NAMESPACE": "en"}, address: "e:1", namespace: "en",
		},
		{
			name: "flags before environment", flags: connect.Flags{Address: "a:1"},
			environment: map[string]string{"TEMPORAL_ADDRESS": "e:1", "TEMPORAL_NAMESPACE": "en"}, address: "a:1", namespace: "en",
		},
		{
			name: "empty variables are not set", environment: map[string]string{
				"TEMPORAL_ADDRESS": "", "TEMPORAL_NAMESPACE": "", "TEMPORAL_CONFIG_FILE": config, "TEMPORAL_PROFILE": "clinic",
			}, address: "clinic:7233", namespace: "from-clinic",
		},
		{
			name: "profile of a flag", flags: connect.Flags{Profile: "clinic"},
			environment: map[string]string{"TEMPORAL_CONFIG_FILE": config}, address: "clinic:7233", namespace: "from-clinic",
		},
		{
			name:        "default profile without address",
			environment: map[string]string{"TEMPORAL_CONFIG_FILE": config}, address: "", namespace: "from-default",
		},
		{
			name: "environment before profile", flags: connect.Flags{Profile: "clinic"},
			environment: map[string]string{"TEMPORAL_CONFIG_FILE": config, "TEMPORAL_ADDRESS": "e:1"},
			address:     "e:1", namespace: "from-clinic",
		},
		{
			name: "unknown profile", flags: connect.Flags{Profile: "nobody"},
			environment: map[string]string{"TEMPORAL_CONFIG_FILE": config}, problem: "nobody",
		},
		{
			name: "profile without address", flags: connect.Flags{Profile: "empty"},
			environment: map[string]string{"TEMPORAL_CONFIG_FILE": config}, problem: `the profile "empty" has no address`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("TEMPORAL_CONFIG_FILE", os.DevNull)
			for _, name := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE"} {
				t.Setenv(name, "")
			}
			for name, value := range test.environment {
				t.Setenv(name, value)
			}
			options, err := connect.ResolveOptions(test.flags)
			if test.problem != "" {
				require.ErrorContains(t, err, test.problem)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.address, options.HostPort)
			require.Equal(t, test.namespace, options.Namespace)
		})
	}
}

func TestDialSaysThatNoServerAnswers(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	_, err := connect.Dial(t.Context(), client.Options{HostPort: "127.0.0.1:1", Namespace: "default"}, nil, nil)
	require.EqualError(t, err, "no Temporal server responds at 127.0.0.1:1 (dial tcp 127.0.0.1:1: connect: connection refused);"+
		" set another address with --address, or start a server with starter dev")
	for _, options := range []client.Options{
		{HostPort: "127.0.0.1:1", Namespace: "default"},
		{HostPort: env.Address, Namespace: "nobody"},
	} {
		_, err := connect.Dial(t.Context(), options, nil, nil)
		var none *connect.NoServerError
		require.ErrorAs(t, err, &none)
		require.Equal(t, options.HostPort, none.Address)
	}
	_, err = connect.Dial(t.Context(), client.Options{HostPort: env.Address, Namespace: "nobody"}, nil, nil)
	require.EqualError(t, err, "the Temporal server at "+env.Address+` has no namespace "nobody": use another with --namespace, or create it there`)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = connect.Dial(ended, client.Options{HostPort: "127.0.0.1:1", Namespace: "default"}, nil, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// requests records how the requests that arrive at a server are compressed.
type requests struct{ compression chan string }

func (r requests) HandleRPC(_ context.Context, s stats.RPCStats) {
	if header, is := s.(*stats.InHeader); is {
		r.compression <- header.Compression
	}
}

func (requests) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (requests) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (requests) HandleConn(context.Context, stats.ConnStats)                       {}

func TestDialCompressesNothingOnThisMachine(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	const calls = 100
	seen := requests{make(chan string, calls)}
	server := grpc.NewServer(grpc.StatsHandler(seen), grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(codes.PermissionDenied, "no")
	}))
	t.Cleanup(server.Stop)
	go func() { _ = server.Serve(listener) }()
	for compression, chosen := range map[string]client.GrpcCompression{"": nil, "gzip": &client.GrpcCompressionGzip{}} {
		options := client.Options{HostPort: listener.Addr().String(), Namespace: "default"}
		options.ConnectionOptions.GrpcCompression = chosen
		_, err := connect.Dial(t.Context(), options, nil, nil)
		require.Error(t, err)
		require.Equal(t, compression, testenv.Receive(t, seen.compression, "a request"))
	}
}

func TestUncompressed(t *testing.T) {
	t.Parallel()
	for address, uncompressed := range map[string]bool{
		"": true, "localhost:7233": true, "127.0.0.1:7233": true, "127.1.2.3:1": true, "[::1]:7233": true,
		"temporal:7233": false, "10.0.0.1:7233": false, "[2001:db8::1]:7233": false, "localhost.example.com:7233": false,
		"dns:///temporal:7233": false, "localhost": false,
	} {
		options := connect.WithoutCompression(client.Options{HostPort: address})
		require.Equal(t, uncompressed, options.ConnectionOptions.GrpcCompression != nil, address)
	}
}

func TestEnsureAttributes(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	name := "Test" + strings.ToLower(rand.Text()[:8])
	keyword := map[string]enums.IndexedValueType{name: enums.INDEXED_VALUE_TYPE_KEYWORD}
	for range 2 { // the second time they are there
		_, err := connect.EnsureAttributes(t.Context(), env.Client(), env.Namespace, keyword)
		require.NoError(t, err)
	}
	known, err := env.Client().OperatorService().ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: env.Namespace})
	require.NoError(t, err)
	require.Equal(t, enums.INDEXED_VALUE_TYPE_KEYWORD, known.GetCustomAttributes()[name])

	number := "Test" + strings.ToLower(rand.Text()[:8])
	_, err = env.Client().OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
		Namespace:        env.Namespace,
		SearchAttributes: map[string]enums.IndexedValueType{number: enums.INDEXED_VALUE_TYPE_INT},
	})
	require.NoError(t, err)
	keyword = map[string]enums.IndexedValueType{number: enums.INDEXED_VALUE_TYPE_KEYWORD}
	_, err = connect.EnsureAttributes(t.Context(), env.Client(), env.Namespace, keyword)
	require.ErrorContains(t, err, "expected Keyword")
}
