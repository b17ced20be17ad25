package gate

import (
	"go.temporal.io/sdk/temporal"

	"reprise/workflows/protocol"
)

// UnfitError fails a workflow whose input cannot come from a worker: a client has made it up, or the state of another run. It is
// not retried.
func UnfitError(err error) error {
	return temporal.NewApplicationErrorWithOptions("the input of the workflow was refused: "+err.Error(), protocol.InvalidInput,
		temporal.ApplicationErrorOptions{NonRetryable: true})
}

// InvalidError fails a run whose playbook the validation refuses.
func InvalidError(err error) error {
	return temporal.NewApplicationErrorWithOptions(err.Error(), protocol.InvalidPlaybook,
		temporal.ApplicationErrorOptions{NonRetryable: true})
}
