package activities_test

import (
	"context"

	"go.temporal.io/sdk/worker"
)

// workerOptions makes ctx the parent of every activity's context.
func workerOptions(ctx context.Context) worker.Options {
	return worker.Options{BackgroundActivityContext: ctx}
}
