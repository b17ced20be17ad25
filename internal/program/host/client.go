package host

import (
	"cmp"
	"log/slog"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"

	"reprise/internal/base/payload"
	"reprise/interpreter"
	"reprise/workflows"
)

// ClientOptions are those of a worker's client, which keeps large values in the store;
// nil is none. The logger gets the runs that wait for it; nil for none.
func ClientOptions(store *payload.Store, options client.Options, logger *slog.Logger) client.Options {
	logger = cmp.Or(logger, slog.New(slog.DiscardHandler))
	options = store.Use(options)
	interceptor := refuseLargeUpdates // which a store keeps, so that they may be taken
	if store != nil {
		interceptor = store.Hold(logger, cancelledDetails)
	}
	options.ConnectionOptions.DialOptions = append(slices.Clip(options.ConnectionOptions.DialOptions), grpc.WithChainUnaryInterceptor(interceptor))
	return options
}

// cancelledDetails are those of a workflow that was cancelled and cannot report its
// progress. Only runs have any: the parent of another workflow counts its work as
// cancelled.
func cancelledDetails(workflowType, reason string) *commonpb.Payloads {
	if workflowType != workflows.PlaybookWorkflowName {
		return nil
	}
	details, err := converter.GetDefaultDataConverter().ToPayloads(workflows.Result{
		Status: interpreter.Cancelled, Steps: []workflows.StepRecord{}, Warnings: []string{reason},
	})
	if err != nil {
		return nil // a text can always be encoded
	}
	return details
}
