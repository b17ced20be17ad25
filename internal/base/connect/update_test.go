package connect_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
)

// updated answers updates with errors, one after the other, then accepts them.
type updated struct {
	client.Client
	client.WorkflowUpdateHandle

	errors []error
	sent   int
	begun  client.StartWorkflowOptions
}

func (u *updated) UpdateWorkflow(_ context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	u.sent++
	if options.WaitForStage != client.WorkflowUpdateStageCompleted {
		return nil, serviceerror.NewInvalidArgument("the stage is missing")
	}
	return u, nil
}

func (u *updated) NewWithStartWorkflowOperation(options client.StartWorkflowOptions, _ any, _ ...any) client.WithStartWorkflowOperation {
	u.begun = options
	return nil
}

func (u *updated) UpdateWithStartWorkflow(
	ctx context.Context, options client.UpdateWithStartWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	return u.UpdateWorkflow(ctx, options.UpdateOptions)
}

func (u *updated) Get(_ context.Context, result any) error {
	if u.sent <= len(u.errors) {
		return u.errors[u.sent-1]
	}
	*result.(*string) = "done"
	return nil
}

// TestUpdate: an update that the server has dropped is sent again, and no other one.
func TestUpdate(t *testing.T) {
	t.Parallel()
	dropped := serviceerror.NewWorkflowNotReady("unexpected workflow task failure")
	var result string
	twice := &updated{errors: []error{dropped, dropped}}
	require.NoError(t, connect.SendUpdate(t.Context(), twice, client.UpdateWorkflowOptions{}, &result))
	require.Equal(t, "done", result)
	require.Equal(t, 3, twice.sent)

	gone := &updated{errors: []error{serviceerror.NewNotFound("it has ended")}}
	require.True(t, connect.UpdateEnded(connect.SendUpdate(t.Context(), gone, client.UpdateWorkflowOptions{}, &result)))
	require.Equal(t, 1, gone.sent)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	endless := &updated{errors: []error{dropped, dropped, dropped}}
	require.ErrorIs(t, connect.SendUpdate(ended, endless, client.UpdateWorkflowOptions{}, &result), dropped)
	require.Equal(t, 1, endless.sent)
}

// TestUpdateWithStart: so is one that starts its workflow, which may have been started meanwhile.
func TestUpdateWithStart(t *testing.T) {
	t.Parallel()
	var result string
	once := &updated{errors: []error{serviceerror.NewWorkflowNotReady("unexpected workflow task failure")}}
	options := client.UpdateWorkflowOptions{WorkflowID: "of states"}
	require.NoError(t, connect.UpdateWithStart(t.Context(), once, options, &result, client.StartWorkflowOptions{TaskQueue: "here"}, "StateWorkflow", nil))
	require.Equal(t, "done", result)
	require.Equal(t, 2, once.sent)
	require.Equal(t, client.StartWorkflowOptions{
		ID: "of states", TaskQueue: "here", WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, once.begun)
}
