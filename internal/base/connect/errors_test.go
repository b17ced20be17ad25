package connect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/connect"
)

// questions are what may be asked of an error of the server, by name.
var questions = map[string]func(error) bool{
	"NotFound":         connect.IsNotFound,
	"InvalidArgument":  connect.IsInvalidArgument,
	"UnknownID":        connect.IsUnknownID,
	"NamespaceMissing": connect.IsNamespaceMissing,
	"AlreadyStarted":   func(err error) bool { _, started := connect.AlreadyStarted(err); return started },
	"CancelRequested":  connect.CancelRequested,
	"UpdateEnded":      connect.UpdateEnded,
	"UpdateTimedOut":   connect.UpdateTimedOut,
	"QueryFailed":      func(err error) bool { _, failed := connect.QueryFailure(err); return failed },
	"QueryUnanswered":  connect.QueryUnanswered,
	"NotBegun":         connect.HasNotBegun,
	"Unavailable":      connect.IsUnavailable,
	"Unreachable":      connect.IsUnreachable,
	"Waits":            connect.MustWait,
}

// TestErrorsOfTheServer asks every question of every error, as the server makes it, as
// it comes over the wire, and wrapped.
func TestErrorsOfTheServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err error
		yes []string
	}{
		"not found":              {serviceerror.NewNotFound("workflow not found"), []string{"NotFound", "UnknownID", "UpdateEnded"}},
		"invalid argument":       {serviceerror.NewInvalidArgument("invalid RunId"), []string{"InvalidArgument", "UnknownID"}},
		"no namespace":           {serviceerror.NewNamespaceNotFound("nobody"), []string{"NamespaceMissing"}},
		"already started":        {serviceerror.NewWorkflowExecutionAlreadyStarted("is running", "request", "run"), []string{"AlreadyStarted"}},
		"already exists":         {serviceerror.NewAlreadyExists("the attribute"), nil},
		"cancel requested":       {serviceerror.NewCancellationAlreadyRequested("is being cancelled"), []string{"CancelRequested"}},
		"query failed":           {serviceerror.NewQueryFailed("unknown query"), []string{"QueryFailed", "QueryUnanswered"}},
		"no poller":              {serviceerror.NewFailedPrecondition("no poller seen"), []string{"QueryUnanswered"}},
		"workflow not ready":     {serviceerror.NewWorkflowNotReady("no first task yet"), []string{"NotBegun", "QueryUnanswered"}},
		"unavailable":            {serviceerror.NewUnavailable("no hosts"), []string{"Unavailable", "Unreachable", "Waits"}},
		"internal":               {serviceerror.NewInternal("database is locked"), []string{"Unreachable", "Waits"}},
		"overloaded":             {serviceerror.NewResourceExhausted(0, "rate limit"), []string{"Unreachable", "Waits"}},
		"cancelled":              {serviceerror.NewCanceled("context canceled"), []string{"QueryUnanswered", "Unreachable", "Waits"}},
		"deadline of the server": {serviceerror.NewDeadlineExceeded("context deadline"), []string{"QueryUnanswered", "Unreachable", "Waits"}},
		"denied":                 {serviceerror.NewPermissionDenied("no right", ""), nil},
		"unimplemented":          {serviceerror.NewUnimplemented("no such service"), nil},
	} {
		overTheWire := serviceerror.FromStatus(serviceerror.ToStatus(test.err))
		for _, err := range []error{test.err, overTheWire, fmt.Errorf("list runs: %w", test.err), errors.Join(errors.New("x"), test.err)} {
			requireAnswers(t, name, err, test.yes)
		}
	}
}

// TestErrorsOfTheClient asks every question of errors that the SDK makes itself.
func TestErrorsOfTheClient(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err error
		yes []string
	}{
		"none":             {nil, nil},
		"any":              {errors.New("workflow not found"), nil},
		"the client left":  {context.Canceled, nil},
		"deadline":         {context.DeadlineExceeded, []string{"UpdateTimedOut", "QueryUnanswered", "Unreachable", "Waits"}},
		"update timed out": {&client.WorkflowUpdateServiceTimeoutOrCanceledError{}, []string{"UpdateTimedOut"}},
		"accepted update":  {temporal.NewApplicationError("ended", "AcceptedUpdateCompletedWorkflow"), []string{"UpdateEnded"}},
		"refused update":   {temporal.NewApplicationError("no such step", "unknown_step"), nil},
		"no server": {
			&connect.NoServerError{Address: "127.0.0.1:1", Err: serviceerror.NewUnavailable("refused")},
			[]string{"Unavailable", "Unreachable"},
		},
	} {
		requireAnswers(t, name, test.err, test.yes)
		if test.err != nil {
			requireAnswers(t, name, fmt.Errorf("start the run: %w", test.err), test.yes)
		}
	}
}

// requireAnswers requires that exactly the named questions are answered with yes.
func requireAnswers(t *testing.T, name string, err error, yes []string) {
	t.Helper()
	for question, ask := range questions {
		require.Equal(t, slices.Contains(yes, question), ask(err), "%s of %s: %v", question, name, err)
	}
}

func TestErrorsGiveDetails(t *testing.T) {
	t.Parallel()
	runID, _ := connect.AlreadyStarted(fmt.Errorf("x: %w", serviceerror.NewWorkflowExecutionAlreadyStarted("m", "request", "run-1")))
	require.Equal(t, "run-1", runID)
	failure, _ := connect.QueryFailure(fmt.Errorf("x: %w", serviceerror.NewQueryFailed("unknown query kept")))
	require.Equal(t, "unknown query kept", failure.GetMessage())
}
