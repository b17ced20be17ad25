package interpreter

import (
	"regexp"
	"strconv"
	"time"
)

// WaitSummary is what the summary of a wait says, which stands beside its timer
// in the history.
type WaitSummary struct {
	// Name is the step, or the place of a sink.
	Name string
	// Index is that of the iteration, nil without a loop.
	Index  *int
	Reason Reason
	// Attempt is the number of what follows the wait: an attempt under its policy, a
	// poll, a page or a restart. It is 0 for a turn.
	Attempt int
	// Most is how many of them the policy gives, 0 where the summary does not say.
	Most    int
	Restart bool
	// Delay is how long the wait was to be.
	Delay time.Duration
	// Error is the failure in a few words, "" for none.
	Error string
}

// WaitsForPlace is what an iteration says that waits for nothing but a place in the
// window of its loop.
const WaitsForPlace = "waits for a place in the loop's window"

var waitForms = regexp.MustCompile(
	`(?s)^(?:(attempt|poll|page|restart) (\d+)(?:/(\d+))? of|(turn) of) ([^\[\s]\S*?)(?:\[(\d+)\])? in ([0-9.a-zµ]+)` +
		`(?:(, under its rate limit)|(, as asked)?(?:: (.*))?)$`)

// ParseWait reads the summary of a wait; false for another text.
func ParseWait(summary string) (WaitSummary, bool) {
	found := waitForms.FindStringSubmatch(summary)
	if found == nil {
		return WaitSummary{}, false
	}
	wait := WaitSummary{Name: found[5], Restart: found[1] == "restart", Reason: ReasonFailure, Error: found[10]}
	delay, err := time.ParseDuration(found[7])
	if err != nil {
		return WaitSummary{}, false
	}
	wait.Delay = delay
	wait.Attempt, _ = strconv.Atoi(found[2])
	wait.Most, _ = strconv.Atoi(found[3])
	if found[6] != "" {
		index, err := strconv.Atoi(found[6])
		if err != nil {
			return WaitSummary{}, false
		}
		wait.Index = &index
	}
	switch {
	case found[4] != "":
		wait.Reason = ReasonTurn
	case found[1] == "poll":
		wait.Reason = ReasonPoll
	case found[1] == "page":
		wait.Reason = ReasonPage
	case found[9] != "":
		wait.Reason = ReasonRateLimited
	}
	return wait, true
}

// place is the step, or the place of the sink.
func (c *CallConfig) place() string {
	if c.Sink != nil {
		return c.Sink.Place
	}
	return c.Step.Name
}

// name is that of the call in summaries: the step, with the index of its
// iteration, or the place of the sink.
func (c *CallConfig) name() string {
	name := c.place()
	if c.Index != nil {
		name += "[" + strconv.Itoa(*c.Index) + "]"
	}
	return name
}
