package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// values decodes the values in a history. resolve replaces references to a payload store by the stored values.
type values struct {
	resolve func(proto.Message) error
}

// newValues returns values that use the reader's payload store.
func (r *Reader) newValues(ctx context.Context) values {
	return values{resolve: func(message proto.Message) error { return r.Store.ResolveReferences(ctx, message) }}
}

// decodeResult decodes the result of an ended child, or the details of its failure. It returns false if the child has
// neither.
func (v values) decodeResult(of *child, into any) (bool, error) {
	if of.end == nil {
		return false, nil
	}
	if err := v.resolve(of.end); err != nil {
		return false, fmt.Errorf("read how %s ended: %w", of.workflowID, err)
	}
	var payloads *commonpb.Payloads
	switch of.end.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
		payloads = of.end.GetChildWorkflowExecutionCompletedEventAttributes().GetResult()
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
		payloads = of.end.GetChildWorkflowExecutionCanceledEventAttributes().GetDetails()
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		return decodeFailure(of.end.GetChildWorkflowExecutionFailedEventAttributes().GetFailure(), into), nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		payloads = of.end.GetWorkflowExecutionCompletedEventAttributes().GetResult()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		payloads = of.end.GetWorkflowExecutionCanceledEventAttributes().GetDetails()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		return decodeFailure(of.end.GetWorkflowExecutionFailedEventAttributes().GetFailure(), into), nil
	default:
		return false, nil
	}
	if len(payloads.GetPayloads()) == 0 {
		return false, nil
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(payloads, into); err != nil {
		return false, fmt.Errorf("decode how %s ended: %w", of.workflowID, err)
	}
	return true, nil
}

func decodeFailure(failure *failurepb.Failure, into any) bool {
	return protocol.DecodeDetails(temporal.GetDefaultFailureConverter().FailureToError(failure), into)
}

// decodeInput decodes the first arguments of a workflow or an activity. Later arguments may be in a payload store
// that this program does not have.
func (v values) decodeInput(of string, input *commonpb.Payloads, into ...any) error {
	payloads := input.GetPayloads()
	first := &commonpb.Payloads{Payloads: slices.Clone(payloads[:min(len(into), len(payloads))])}
	if err := v.resolve(first); err != nil {
		return fmt.Errorf("read the input of %s: %w", of, err)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(first, into...); err != nil {
		return fmt.Errorf("decode the input of %s: %w", of, err)
	}
	return nil
}

// resultOf returns the result of a run from its last event.
func (v values) resultOf(run *child) (protocol.Result, error) {
	var result protocol.Result
	known, err := v.decodeResult(run, &result)
	if err != nil || known {
		return result, err
	}
	failure := run.end.GetWorkflowExecutionFailedEventAttributes().GetFailure()
	if failure == nil {
		return protocol.Result{}, nil
	}
	kind := interpreter.Kind(failure.GetApplicationFailureInfo().GetType())
	return protocol.Result{Error: &interpreter.ErrorObject{
		Kind: cmp.Or(kind, interpreter.KindTool), Class: interpreter.ClassFinal,
		Message: temporal.GetDefaultFailureConverter().FailureToError(failure).Error(),
	}}, nil
}
