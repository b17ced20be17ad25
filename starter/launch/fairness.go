package launch

import (
	"unicode/utf8"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/program/start"
	"reprise/starter/cli"
)

const (
	// DefaultPriority is Temporal's default, the middle priority.
	DefaultPriority = 3
	// LastPriority is the lowest priority.
	LastPriority      = 5
	minFairnessWeight = 0.001
	// maxFairnessWeight is the largest weight that Temporal accepts; it refuses the start of a run with a larger one.
	maxFairnessWeight = 1000
)

// FairnessFlags are the priority and the fairness key of a run in its task queue.
type FairnessFlags struct {
	Priority int
	key      string
	Weight   float64
}

// AddFlags adds the flags to a command.
func (f *FairnessFlags) AddFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.IntVar(&f.Priority, "priority", DefaultPriority, "1 to 5: waiting work of priority 1 goes before all work of priority 2, and so on")
	flags.StringVar(&f.key, "fairness-key", "",
		"work of one priority is dispatched in rotation by this key; up to 64 bytes, default: the run's ID")
	flags.Float64Var(&f.Weight, "fairness-weight", 1, "weight of the key in the rotation, 0.001 to 1000")
}

// Check rejects values that Temporal would refuse or misinterpret.
func (f *FairnessFlags) Check() error {
	switch {
	case f.Priority < 1 || f.Priority > LastPriority:
		return cli.UsageError("--priority %d: expected a number from 1, the first, to %d, the last", f.Priority, LastPriority)
	case len(f.key) > start.MaxFairnessKey:
		return cli.UsageError("--fairness-key has %d bytes, expected at most %d", len(f.key), start.MaxFairnessKey)
	case !utf8.ValidString(f.key):
		return cli.UsageError("--fairness-key %q: expected UTF-8", f.key)
	case !(f.Weight >= minFairnessWeight && f.Weight <= maxFairnessWeight): // NaN is neither
		return cli.UsageError("--fairness-weight %v: expected a number from %v to %v", f.Weight, minFairnessWeight, maxFairnessWeight)
	}
	return nil
}

// PrioritySettings returns the priority for Temporal. Defaults stay unset, so that the server's own defaults apply.
func (f *FairnessFlags) PrioritySettings() temporal.Priority {
	settings := temporal.Priority{FairnessKey: f.key}
	if f.Priority != DefaultPriority {
		settings.PriorityKey = f.Priority
	}
	if f.Weight != 1 {
		settings.FairnessWeight = float32(f.Weight)
	}
	return settings
}
