package host

import (
	"context"

	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// largestUpdate is the largest accepted update, in bytes. The Temporal server delivers larger ones, but refuses
// responses that repeat them, as the SDK's do: the workflow task would fail until the server drops the update.
const largestUpdate = 2_000_000

// refuseLargeUpdates replaces the content of an update that is too large by a marker, which the workflow refuses. The
// content does not reach the history.
func refuseLargeUpdates(
	ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if err := invoke(ctx, method, request, reply, cc, options...); err != nil {
		return err
	}
	task, isTask := reply.(*workflowservice.PollWorkflowTaskQueueResponse)
	if !isTask {
		return nil
	}
	for _, message := range task.GetMessages() {
		update := &updatepb.Request{}
		if len(message.GetBody().GetValue()) <= largestUpdate || message.GetBody().UnmarshalTo(update) != nil {
			continue
		}
		if proto.Size(update.GetInput().GetArgs()) <= largestUpdate {
			continue
		}
		var refused any = "larger than an update may be" // no object, so no workflow takes it
		if update.GetInput().GetName() == protocol.AnswerUpdate {
			refused = interpreter.Answer{Verb: interpreter.AnswerOversized}
		}
		var err error
		if update.Input.Args, err = converter.GetDefaultDataConverter().ToPayloads(refused); err != nil {
			return err
		}
		if err := message.GetBody().MarshalFrom(update); err != nil {
			return err
		}
	}
	return nil
}
