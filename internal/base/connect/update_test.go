package connect_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
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
}

func (u *updated) UpdateWorkflow(_ context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	u.sent++
	if options.WaitForStage != client.WorkflowUpdateStageCompleted {
		return nil, serviceerror.NewInvalidArgument("the stage is missing")
	}
	return u, nil
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
	require.NoError(t, connect.Update(t.Context(), twice, client.UpdateWorkflowOptions{}, &result))
	require.Equal(t, "done", result)
	require.Equal(t, 3, twice.sent)

	gone := &updated{errors: []error{serviceerror.NewNotFound("it has ended")}}
	require.True(t, connect.UpdateEnded(connect.Update(t.Context(), gone, client.UpdateWorkflowOptions{}, &result)))
	require.Equal(t, 1, gone.sent)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	endless := &updated{errors: []error{dropped, dropped, dropped}}
	require.ErrorIs(t, connect.Update(ended, endless, client.UpdateWorkflowOptions{}, &result), dropped)
	require.Equal(t, 1, endless.sent)
}
