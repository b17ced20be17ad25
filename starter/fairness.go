package main

import (
	"unicode/utf8"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/program/start"
)

const (
	// defaultPriority is the one in the middle, which Temporal gives to runs
	// that say nothing.
	defaultPriority, lastPriority        = 3, 5
	minFairnessWeight, maxFairnessWeight = 0.001, 1000
)

// fairnessFlags are the priority and the fairness key of a run in its task queue.
type fairnessFlags struct {
	priority int
	key      string
	weight   float64
}

func (f *fairnessFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.IntVar(&f.priority, "priority", defaultPriority, "1 to 5: waiting work of priority 1 goes before all work of priority 2, and so on")
	flags.StringVar(&f.key, "fairness-key", "",
		"work of one priority is dispatched in rotation by this key; up to 64 bytes, default: the run's ID")
	flags.Float64Var(&f.weight, "fairness-weight", 1, "weight of the key in the rotation, 0.001 to 1000")
}

// check refuses what Temporal would not take, or would take for something else.
func (f *fairnessFlags) check() error {
	switch {
	case f.priority < 1 || f.priority > lastPriority:
		return usageError("--priority %d: expected a number from 1, the first, to %d, the last", f.priority, lastPriority)
	case len(f.key) > start.MaxFairnessKey:
		return usageError("--fairness-key has %d bytes, expected at most %d", len(f.key), start.MaxFairnessKey)
	case !utf8.ValidString(f.key):
		return usageError("--fairness-key %q: expected UTF-8", f.key)
	case !(f.weight >= minFairnessWeight && f.weight <= maxFairnessWeight): // NaN is neither
		return usageError("--fairness-weight %v: expected a number from %v to %v", f.weight, minFairnessWeight, maxFairnessWeight)
	}
	return nil
}

// settings are what the flags say. Defaults stay unset, so that a server may
// have others.
func (f *fairnessFlags) settings() temporal.Priority {
	settings := temporal.Priority{FairnessKey: f.key}
	if f.priority != defaultPriority {
		settings.PriorityKey = f.priority
	}
	if f.weight != 1 {
		settings.FairnessWeight = float32(f.weight)
	}
	return settings
}
