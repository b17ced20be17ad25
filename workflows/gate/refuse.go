package gate

import (
	"go.temporal.io/sdk/temporal"

	"reprise/workflows/protocol"
)

// UnfitError fails a workflow whose input no worker can have written, such as an invented one
// or one with the state of another run. It is not retried.
func UnfitError(err error) error {
	return temporal.NewApplicationErrorWithOptions("the input of the workflow was refused: "+err.Error(), protocol.InvalidInput,
		temporal.ApplicationErrorOptions{NonRetryable: true})
}

// InvalidError fails a run whose playbook is invalid.
func InvalidError(err error) error {
	return temporal.NewApplicationErrorWithOptions(err.Error(), protocol.InvalidPlaybook,
		temporal.ApplicationErrorOptions{NonRetryable: true})
}
