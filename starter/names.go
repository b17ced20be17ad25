package main

import (
	"strings"
	"unicode"

	"github.com/google/uuid"

	"reprise/internal/base/terminal"
	"reprise/workflows/protocol"
)

// checkName refuses names that Temporal would not accept, and names that cannot be
// typed again. what is the flag or argument.
func checkName(what, name string) error {
	switch {
	case name == "":
		return usageError("%s is empty", what)
	case len(name) > protocol.MaxWorkflowID:
		return usageError("%s is %d bytes long; Temporal allows %d", what, len(name), protocol.MaxWorkflowID)
	case strings.ContainsFunc(name, func(r rune) bool { return terminal.Unsafe(r) || r == '\n' || r == '\t' }):
		return usageError("%s %q has invisible characters", what, name)
	}
	return nil
}

// checkID refuses what checkName does, and names that a request for one workflow cannot have in its headers.
func checkID(what, id string) error {
	if err := checkName(what, id); err != nil {
		return err
	}
	if strings.ContainsFunc(id, func(r rune) bool { return r > unicode.MaxASCII }) {
		return usageError("%s %q has characters outside ASCII, which Temporal does not allow", what, id)
	}
	return nil
}

// checkQueue refuses what is no task queue of ours.
func checkQueue(name string) error {
	const ofServer = "/_sys/"
	if strings.HasPrefix(name, ofServer) {
		return usageError("--task-queue %q begins with %s, which is reserved for the server", name, ofServer)
	}
	return checkName("--task-queue", name)
}

// checkRun refuses what cannot be a run; runID may be "".
func checkRun(workflowID, runID string) error {
	if err := checkID("the workflow ID", workflowID); err != nil {
		return err
	}
	if runID != "" && uuid.Validate(runID) != nil {
		return usageError("--run-id %q is not a run ID, such as 0197f0a4-5c0e-7d3a-9f2b-8f6f0a1b2c3d", runID)
	}
	return nil
}
