package gate

import (
	"go.temporal.io/sdk/temporal"

	"reprise/workflows/protocol"
)

// UnfitError returns the error of a workflow whose input no worker can have written, such as a forged one or one
// with the state of another run. It is not retried.
func UnfitError(err error) error {
	return temporal.NewApplicationErrorWithOptions("the input of the workflow was refused: "+err.Error(), protocol.InvalidInput,
		temporal.ApplicationErrorOptions{NonRetryable: true})
}

// InvalidError returns the error of a run whose playbook is invalid. It is not retried.
func InvalidError(err error) error { return RefusedError(protocol.InvalidPlaybook, err.Error()) }

// RefusedError returns the error of a run whose playbook the validation refused, with the type of the refusal. It is not retried.
func RefusedError(kind, message string) error {
	return temporal.NewApplicationErrorWithOptions(message, kind, temporal.ApplicationErrorOptions{NonRetryable: true})
}
