package host

import (
	"context"

	commonpb "go.temporal.io/api/common/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"reprise/interpreter"
	"reprise/workflows"
)

// largestUpdate is how many bytes an update may bring. The Temporal server delivers
// larger ones, and accepts no answer that repeats them, as those of the SDK do: the
// workflow task would fail until the server drops the update.
const largestUpdate = 2_000_000

// refuseLargeUpdates puts something in the place of what an update brings that is too
// large, which its workflow refuses. Nothing of it comes into the history.
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
		refused, err := refusedArguments(update.GetInput().GetName())
		if err != nil {
			return err
		}
		update.Input.Args = refused
		if err := message.GetBody().MarshalFrom(update); err != nil {
			return err
		}
	}
	return nil
}

// refusedArguments are none that an update of a workflow takes: an answer says why, and
// of others a text is no object.
func refusedArguments(update string) (*commonpb.Payloads, error) {
	if update == workflows.AnswerUpdate {
		return converter.GetDefaultDataConverter().ToPayloads(interpreter.Answer{Verb: interpreter.AnswerOversized})
	}
	return converter.GetDefaultDataConverter().ToPayloads("larger than an update may be")
}
