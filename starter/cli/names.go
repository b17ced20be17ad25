package cli

import (
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"reprise/internal/base/terminal"
	"reprise/workflows/protocol"
)

// checkName rejects names that Temporal would not accept or that cannot be typed. what is the flag or argument in the
// error.
func checkName(what, name string) error {
	switch {
	case name == "":
		return UsageError("%s is empty", what)
	case len(name) > protocol.MaxWorkflowID:
		return UsageError("%s is %d bytes long; Temporal allows %d", what, len(name), protocol.MaxWorkflowID)
	case strings.ContainsFunc(name, func(r rune) bool { return terminal.IsUnsafe(r) || r == '\n' || r == '\t' }):
		return UsageError("%s %q has invisible characters", what, name)
	}
	return nil
}

// CheckID rejects what checkName does, and IDs with characters that cannot be sent in headers.
func CheckID(what, id string) error {
	if err := checkName(what, id); err != nil {
		return err
	}
	if strings.ContainsFunc(id, func(r rune) bool { return r > unicode.MaxASCII }) {
		return UsageError("%s %q has characters outside ASCII, which Temporal does not allow", what, id)
	}
	return nil
}

// CheckQueue rejects names that cannot be a task queue of Reprise.
func CheckQueue(name string) error {
	const ofServer = "/_sys/"
	if strings.HasPrefix(name, ofServer) {
		return UsageError("--task-queue %q begins with %s, which is reserved for the server", name, ofServer)
	}
	return checkName("--task-queue", name)
}

// CheckRun rejects IDs that cannot name a run; runID may be "".
func CheckRun(workflowID, runID string) error {
	if err := CheckID("the workflow ID", workflowID); err != nil {
		return err
	}
	if runID != "" && uuid.Validate(runID) != nil {
		return UsageError("--run-id %q is not a run ID, such as 0197f0a4-5c0e-7d3a-9f2b-8f6f0a1b2c3d", runID)
	}
	return nil
}

// KnownZone returns an error for a time zone that this machine does not know.
func KnownZone(name string) error {
	_, err := time.LoadLocation(name)
	return err
}

// CheckNote rejects a note that is longer than what is stored. flag is the flag that it was given with.
func CheckNote(flag, note string) error {
	if len(note) > protocol.MaxSaid {
		return UsageError("--%s has %d bytes; at most %d are kept", flag, len(note), protocol.MaxSaid)
	}
	return nil
}
