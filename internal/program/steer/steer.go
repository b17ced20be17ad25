// Package steer sends people's commands to runs, and describes the results. The commands of starter and the buttons
// of its web pages use it.
package steer

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"reprise/internal/observe/runs"
	"reprise/workflows/protocol"
)

// Names of the commands.
const (
	Pause    = "pause"
	Resume   = "resume"
	RetryNow = "retry-now"
	Skip     = "skip"
	Set      = "set"
	Cancel   = "cancel"
)

// updates maps commands to the updates that they send. A cancel is a request to Temporal instead.
var updates = map[string]string{
	Pause: protocol.PauseUpdate, Resume: protocol.ResumeUpdate, RetryNow: protocol.RetryNowUpdate,
	Skip: protocol.SkipUpdate, Set: protocol.SetUpdate,
}

const (
	// sendsAtOnce is how many runs a command is sent to concurrently.
	sendsAtOnce = 10
	// sendPatience is how long to wait for a run's worker to respond.
	sendPatience = 10 * time.Second
)

// Command is a command to runs.
type Command struct {
	Name string // one of the names above
	protocol.CommandInput
}

// DescribeCommand describes the command without the runs.
func (c Command) DescribeCommand() string {
	text := c.Name
	if c.Step != "" {
		text += ", step " + c.Step
	}
	if c.Index != nil {
		text += fmt.Sprintf(", iteration %d", *c.Index)
	}
	return text
}

// endsWaits reports whether the command is one that ends waits.
func (c Command) endsWaits() bool { return c.Name == RetryNow || c.Name == Skip }

// CommandOutcome says whether a run accepted a command.
type CommandOutcome string

// Outcomes of a command.
const (
	Done      CommandOutcome = "done"
	Unchanged CommandOutcome = "unchanged" // it was so already
	Refused   CommandOutcome = "refused"
	Unknown   CommandOutcome = "unknown" // no worker responded
	Pending   CommandOutcome = "kept"    // the server keeps it until a worker is back
)

// Result is the response of a run to a command.
type Result struct {
	runs.Found
	Outcome CommandOutcome          `json:"outcome,omitempty"` // "" where nothing was sent
	Message string                  `json:"message,omitempty"`
	Reply   *protocol.CommandResult `json:"reply,omitempty"`
	// Waits counts the waits that the command ended; waits in loops are counted shortly before it is sent. WaitsMore
	// says that there may have been more. Nil for commands that do not end waits.
	Waits     *int `json:"waits,omitempty"`
	WaitsMore bool `json:"waits_more,omitempty"`
	// HeldByParents are the parent runs that still hold the run after a command to resume.
	HeldByParents []runs.ChildWait `json:"held_by_parents,omitempty"`
}

// Failed reports whether the run refused the command or its outcome is unknown.
func (r Result) Failed() bool { return r.Outcome == Refused || r.Outcome == Unknown }

// Dispatcher sends commands to runs. It is safe for concurrent use.
type Dispatcher struct {
	Client    client.Client
	Namespace string
	Runs      *runs.Reader
}

// Find finds runs by their IDs or unique prefixes of them, without duplicates. The error is that of runs.Reader.Find
// for the first run that was not found.
func (s *Dispatcher) Find(ctx context.Context, ids []string) ([]runs.Found, error) {
	found, failures := make([]runs.Found, len(ids)), make([]error, len(ids))
	var group errgroup.Group
	group.SetLimit(sendsAtOnce)
	for i, id := range ids {
		group.Go(func() error {
			found[i], failures[i] = s.Runs.Find(ctx, id, "")
			return nil
		})
	}
	_ = group.Wait()
	if err := cmp.Or(failures...); err != nil {
		return nil, err
	}
	var each []runs.Found
	known := map[string]bool{}
	for _, run := range found {
		if !known[run.WorkflowID] {
			known[run.WorkflowID] = true
			each = append(each, run)
		}
	}
	return each, nil
}

// SendCommand sends a command to runs, ten at a time; a refusal by one does not stop the others. each is called with every
// result, never concurrently; the results are returned in the order of the runs.
func (s *Dispatcher) SendCommand(ctx context.Context, command Command, to []runs.Found, each func(Result)) []Result {
	sending := &sending{Dispatcher: s, command: command, workers: map[pollers]runs.Workers{}}
	results := make([]Result, len(to))
	var group errgroup.Group
	var one sync.Mutex
	group.SetLimit(sendsAtOnce)
	for i, run := range to {
		group.Go(func() error {
			results[i] = sending.sendTo(ctx, run)
			one.Lock()
			defer one.Unlock()
			each(results[i])
			return nil
		})
	}
	_ = group.Wait()
	return results
}

// SendOne sends a command to one run.
func (s *Dispatcher) SendOne(ctx context.Context, command Command, run runs.Found) Result {
	return s.SendCommand(ctx, command, []runs.Found{run}, func(Result) {})[0]
}
