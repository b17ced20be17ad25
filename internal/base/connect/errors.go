package connect

import (
	"context"
	"errors"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// Only this file inspects the server's error types. Each function accepts wrapped errors, and is false for nil.

// NotFound reports whether the server does not know a workflow, an activity or a
// schedule, or knows that the workflow or activity has ended.
func NotFound(err error) bool { return isError[*serviceerror.NotFound](err) }

// InvalidArgument reports whether the server refuses the content of a request, such as a search
// attribute that its namespace does not have.
func InvalidArgument(err error) bool { return isError[*serviceerror.InvalidArgument](err) }

// UnknownID reports whether no run has the requested IDs: the server does not know
// them, or they cannot be IDs.
func UnknownID(err error) bool { return NotFound(err) || InvalidArgument(err) }

// NamespaceMissing reports whether the server has no such namespace.
func NamespaceMissing(err error) bool { return isError[*serviceerror.NamespaceNotFound](err) }

// AlreadyStarted reports whether a run with the ID exists, so that no other one was
// started. The ID of its run may be "".
func AlreadyStarted(err error) (runID string, started bool) {
	var exists *serviceerror.WorkflowExecutionAlreadyStarted
	if !errors.As(err, &exists) {
		return "", false
	}
	return exists.RunId, true
}

// CancelRequested reports whether a cancel was refused because the workflow is being
// cancelled.
func CancelRequested(err error) bool { return isError[*serviceerror.CancellationAlreadyRequested](err) }

// acceptedUpdateCompleted is the type of the server's failure of an update that a
// workflow had accepted when it ended.
const acceptedUpdateCompleted = "AcceptedUpdateCompletedWorkflow"

// UpdateEnded reports whether an update has no result because its workflow has ended,
// before or after it accepted the update.
func UpdateEnded(err error) bool {
	var failed *temporal.ApplicationError
	return NotFound(err) || errors.As(err, &failed) && failed.Type() == acceptedUpdateCompleted
}

// UpdateTimedOut reports whether no worker responded to an update in time. The update may
// take effect when one does.
func UpdateTimedOut(err error) bool {
	return isError[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err) || errors.Is(err, context.DeadlineExceeded)
}

// updateDropped reports whether an update had no effect because the task failed in which its workflow accepted it.
func updateDropped(err error) bool { return isError[*serviceerror.WorkflowNotReady](err) }

// QueryFailure returns the failure with which a worker has answered a query. Failed is false for other errors.
func QueryFailure(err error) (failure *failurepb.Failure, failed bool) {
	var query *serviceerror.QueryFailed
	if !errors.As(err, &query) {
		return nil, false
	}
	if query.Failure == nil {
		return &failurepb.Failure{Message: query.Message}, true
	}
	return query.Failure, true
}

// QueryUnanswered reports whether the server is there and no worker has responded to a
// query with a result.
func QueryUnanswered(err error) bool {
	return isError[*serviceerror.QueryFailed](err) ||
		isError[*serviceerror.FailedPrecondition](err) || // no worker has polled recently
		isError[*serviceerror.Canceled](err) || // the worker stopped before it answered
		isError[*serviceerror.WorkflowNotReady](err) ||
		isError[*serviceerror.DeadlineExceeded](err) || errors.Is(err, context.DeadlineExceeded)
}

// NotBegun reports whether a workflow could not be queried because it has ended, or is
// still to begin, without a worker that has seen it.
func NotBegun(err error) bool { return isError[*serviceerror.WorkflowNotReady](err) }

// IsUnavailable reports whether nothing answers at the server's address, or the server
// says that it is unavailable.
func IsUnavailable(err error) bool { return isError[*serviceerror.Unavailable](err) }

// IsUnreachable reports whether an error says that the server could not be reached, or
// did not answer: the request may succeed later.
func IsUnreachable(err error) bool {
	return IsUnavailable(err) || isOverloaded(err) ||
		isError[*serviceerror.DeadlineExceeded](err) || errors.Is(err, context.DeadlineExceeded) ||
		isError[*serviceerror.Canceled](err) ||
		isError[*serviceerror.Internal](err) // its database is away, or it cannot read what that says
}

// MustWait reports whether an error says that a server is there and cannot answer for
// now, such as one whose database is away. Where nothing is there, MustWait is false:
// the address may be wrong.
func MustWait(err error) bool {
	var none *NoServerError
	return IsUnreachable(err) && (!errors.As(err, &none) || none.reached)
}

// isOverloaded reports whether the server takes no more requests for now.
func isOverloaded(err error) bool { return isError[*serviceerror.ResourceExhausted](err) }

// isDenied reports whether the client has no right to do what it requested.
func isDenied(err error) bool { return isError[*serviceerror.PermissionDenied](err) }

// isUnimplemented reports whether the server has no service for a request.
func isUnimplemented(err error) bool { return isError[*serviceerror.Unimplemented](err) }

// alreadyExists reports whether what was to be made is there, other than a run.
func alreadyExists(err error) bool { return isError[*serviceerror.AlreadyExists](err) }

// isError reports whether an error is, or wraps, one of a type.
func isError[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// NoServer returns the error of a client that replaces the server, for requests about workflows.
func NoServer() error { return serviceerror.NewNotFound("there is no server") }
