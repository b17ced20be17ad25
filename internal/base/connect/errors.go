package connect

import (
	"context"
	"errors"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// Only this file inspects the server's error types. Each function accepts wrapped errors, and returns false for nil.

// IsNotFound reports whether the server has no such workflow, activity or schedule, or whether the workflow or activity
// has ended.
func IsNotFound(err error) bool { return isError[*serviceerror.NotFound](err) }

// IsInvalidArgument reports whether the server refused the content of a request, such as a search attribute that its
// namespace lacks.
func IsInvalidArgument(err error) bool { return isError[*serviceerror.InvalidArgument](err) }

// IsUnknownID reports whether there is no run with the requested IDs: the server does not know them, or they are
// malformed.
func IsUnknownID(err error) bool { return IsNotFound(err) || IsInvalidArgument(err) }

// IsPreconditionFailed reports whether the state of what a request is about forbids it, such as a build without workers.
func IsPreconditionFailed(err error) bool { return isError[*serviceerror.FailedPrecondition](err) }

// IsNamespaceMissing reports whether the server has no such namespace.
func IsNamespaceMissing(err error) bool { return isError[*serviceerror.NamespaceNotFound](err) }

// AlreadyStarted reports whether a workflow with the ID exists, so that none was started. runID, its run, may be "".
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

// acceptedUpdateCompleted is the failure type of an update that the workflow had accepted but not completed when it
// ended.
const acceptedUpdateCompleted = "AcceptedUpdateCompletedWorkflow"

// UpdateEnded reports whether an update has no result because its workflow ended, before or after it accepted the
// update.
func UpdateEnded(err error) bool {
	var failed *temporal.ApplicationError
	return IsNotFound(err) || errors.As(err, &failed) && failed.Type() == acceptedUpdateCompleted
}

// UpdateTimedOut reports whether no worker responded to an update in time. The update may still take effect.
func UpdateTimedOut(err error) bool {
	return isError[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err) || errors.Is(err, context.DeadlineExceeded)
}

// isDroppedUpdate reports whether an update had no effect because the workflow task that accepted it failed.
func isDroppedUpdate(err error) bool { return isError[*serviceerror.WorkflowNotReady](err) }

// QueryFailure returns the failure that a worker returned for a query; false for other errors.
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

// QueryUnanswered reports whether the server responded, but no worker returned a result for the query.
func QueryUnanswered(err error) bool {
	return isError[*serviceerror.QueryFailed](err) ||
		isError[*serviceerror.FailedPrecondition](err) || // no worker has polled recently
		isError[*serviceerror.Canceled](err) || // the worker stopped before it answered
		isError[*serviceerror.WorkflowNotReady](err) ||
		isError[*serviceerror.DeadlineExceeded](err) || errors.Is(err, context.DeadlineExceeded)
}

// HasNotBegun reports whether a workflow could not be queried because no worker has run it yet: it ended before, or has
// not started.
func HasNotBegun(err error) bool { return isError[*serviceerror.WorkflowNotReady](err) }

// IsUnavailable reports whether nothing responds at the server's address, or the server reports that it is
// unavailable.
func IsUnavailable(err error) bool { return isError[*serviceerror.Unavailable](err) }

// IsUnreachable reports whether the server could not be reached or did not respond in time: the request may succeed
// later.
func IsUnreachable(err error) bool {
	return IsUnavailable(err) || isOverloaded(err) ||
		isError[*serviceerror.DeadlineExceeded](err) || errors.Is(err, context.DeadlineExceeded) ||
		isError[*serviceerror.Canceled](err) ||
		isError[*serviceerror.Internal](err) // its database is away, or it cannot read what that says
}

// MustWait reports whether a server is there but cannot serve requests now, for example because its database is down.
// It is false if nothing responds at the address, which may be wrong.
func MustWait(err error) bool {
	var none *NoServerError
	return IsUnreachable(err) && (!errors.As(err, &none) || none.reached)
}

// isOverloaded reports whether the server refused a request because it has too many.
func isOverloaded(err error) bool { return isError[*serviceerror.ResourceExhausted](err) }

// isDenied reports whether the client lacks permission for a request.
func isDenied(err error) bool { return isError[*serviceerror.PermissionDenied](err) }

// isUnimplemented reports whether the server does not implement a request.
func isUnimplemented(err error) bool { return isError[*serviceerror.Unimplemented](err) }

// isAlreadyThere reports whether the object to create exists already; for runs see AlreadyStarted.
func isAlreadyThere(err error) bool { return isError[*serviceerror.AlreadyExists](err) }

// isError reports whether an error is or wraps an error of type E.
func isError[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// UnreachableServer returns the error with which a client without a server fails requests about workflows.
func UnreachableServer() error { return serviceerror.NewNotFound("there is no server") }
