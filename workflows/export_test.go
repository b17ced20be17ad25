package workflows

import (
	"time"

	"reprise/interpreter"
)

// StatusOfOpen is the status of a run of which one thing is open, which has the status until a time.
func StatusOfOpen(status interpreter.Status, until time.Time) interpreter.Status {
	var waits openWaits
	waits.add(status, until)
	return waits.status()
}
