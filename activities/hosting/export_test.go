package hosting

import (
	"context"
	"time"

	"reprise/interpreter"
)

// ApplyAfter is Apply so long after the activity was scheduled.
func (s *StateStores) ApplyAfter(ctx context.Context, waited time.Duration, in interpreter.StateInput) (interpreter.StateOutput, error) {
	return s.applyAfter(ctx, waited, in)
}
