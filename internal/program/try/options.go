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

// Options say what is tried.
type Options struct {
	Book *playbook.Playbook // that has been checked
	// Step is its name, "" for the first step that calls a tool.
	Step string
	// Workload is the playbook's with what the user has laid over it.
	Workload map[string]any
	// With are results of other steps by their names, and values of vars and args by these words.
	With map[string]any
	// Element is the element of the loop; nil is the first one.
	Element *any
	Pages   int           // how many pages are requested; 0 is DefaultPages
	MaxWait time.Duration // the longest wait that is made; 0 is DefaultMaxWait
	// AllowWrites makes requests that may change something, and Write writes to the sinks.
	AllowWrites, Write bool
	// DryRun sends nothing and shows the first request.
	DryRun    bool
	Partition *partition.Partition // nil where the playbook has none
	// Resources are the resources of a worker; what they keep secret is not shown.
	Resources activities.Resources
	// Recording gets the answers; nil for none.
	Recording *recording.Recording
	// Begin is called once before the first request, with what is tried; nil for nothing.
	Begin func(*Report)
	// Each is called with each attempt before what follows it is done; nil for nothing.
	Each func(Attempt)
	// Sleep waits; nil is time itself. Its error ends the try.
	Sleep func(context.Context, time.Duration) error
}

// RefusedError says why a step is not tried: nothing was sent.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return e.Message }

func refusef(format string, args ...any) error {
	return &RefusedError{Message: fmt.Sprintf(format, args...)}
}

// IsRefused reports whether nothing was sent, because of what was asked for.
func IsRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}

// placeText returns a place of the playbook for messages.
func placeText(book *playbook.Playbook, pos source.Position) string {
	return fmt.Sprintf("%s:%s", book.File.Name, pos)
}
