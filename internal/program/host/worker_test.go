package host_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"reprise/activities"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
)

// startWorker starts a worker of a queue, until the test has ended.
func startWorker(t *testing.T, c client.Client, queue string, resources activities.Resources) {
	t.Helper()
	catalogue := activities.NewCatalogue(resources)
	w := host.NewWorker(c, catalogue, host.Options{TaskQueue: queue, StopTimeout: time.Second})
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		w.Stop()
		require.NoError(t, catalogue.Close())
	})
}

// interceptedWorker starts a worker whose requests to the server pass an interceptor, on a task queue of its own. url is
// of an API that it may request.
func interceptedWorker(t *testing.T, intercept grpc.UnaryClientInterceptor) (c client.Client, queue, url string) {
	t.Helper()
	env := testenv.Temporal(t)
	c, err := client.Dial(host.ClientOptions(nil, client.Options{
		HostPort: env.Address, Namespace: env.Namespace, Logger: quietLog{},
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(intercept)}},
	}, nil))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	queue = env.NewTaskQueue()
	startWorker(t, c, queue, activities.Resources{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("1")) }))
	t.Cleanup(api.Close)
	return c, queue, api.URL
}
