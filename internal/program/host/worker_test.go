package host_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/internal/program/host"
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
