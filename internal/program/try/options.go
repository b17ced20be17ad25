package try

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/activities"
	"reprise/internal/program/recording"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// Defaults of Options.
const (
	DefaultPages   = 2
	DefaultMaxWait = time.Minute
)

// Options say what to try.
type Options struct {
	Book *playbook.Playbook // that has been checked
	// Step is the name of the step; "" for the first step that calls a tool.
	Step string
	// Workload is the playbook's workload merged with the user's.
	Workload map[string]any
	// With has results of other steps by their names, and values for `vars` and `args`.
	With map[string]any
	// Element is the element of the loop to try; nil for the first one.
	Element *any
	Pages   int           // how many pages are requested; 0 is DefaultPages
	MaxWait time.Duration // the longest wait that is made; 0 is DefaultMaxWait
	// AllowWrites allows requests that may change something, and Write writes to the sinks.
	AllowWrites, Write bool
	// DryRun shows the first request without sending it.
	DryRun    bool
	Partition *partition.Partition // nil where the playbook has none
	// Resources are the resources of a worker; secrets in them are not shown.
	Resources activities.Resources
	// Recording receives the responses; nil for none.
	Recording *recording.Recording
	// Begin is called before the first request, with what is tried; nil to skip.
	Begin func(*Report)
	// Each is called with each attempt, before what follows it; nil to skip.
	Each func(Attempt)
	// Sleep waits; nil really waits. Its error ends the try.
	Sleep func(context.Context, time.Duration) error
}

// RefusedError says why a step was not tried: nothing was sent.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return e.Message }

func refusef(format string, args ...any) error {
	return &RefusedError{Message: fmt.Sprintf(format, args...)}
}

// IsRefused reports whether nothing was sent because of what was requested.
func IsRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}

// placeText returns a place in the playbook for messages.
func placeText(book *playbook.Playbook, pos source.Position) string {
	return fmt.Sprintf("%s:%s", book.File.Name, pos)
}
