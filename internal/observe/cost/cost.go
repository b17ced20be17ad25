// Package cost estimates what Temporal Cloud bills for runs: actions, and the bytes of histories that it stores. It
// counts those of a history (OfHistory), and foretells those of a playbook (Foretell). It does no I/O.
//
// What an action is follows the server's metric `action`: the list of Temporal Cloud
// (https://docs.temporal.io/cloud/actions) as far as a server can see it.
package cost

// Cost is what runs cost. Costs add up: Plus.
type Cost struct {
	// Actions are all actions, heartbeats included.
	Actions int `json:"actions"`
	// Heartbeats are those of activities, which no history has: they are estimated from how long activities ran.
	Heartbeats int `json:"heartbeats"`
	// Workflows is the number of workflow runs, each of which has a history.
	Workflows int `json:"workflows"`
	// HistoryBytes is the size of their histories as Temporal stores them.
	HistoryBytes int `json:"history_bytes"`
}

// Plus returns the sum of two costs.
func (c Cost) Plus(other Cost) Cost {
	return Cost{
		Actions: c.Actions + other.Actions, Heartbeats: c.Heartbeats + other.Heartbeats,
		Workflows: c.Workflows + other.Workflows, HistoryBytes: c.HistoryBytes + other.HistoryBytes,
	}
}

// Times returns the cost of n things of which each costs this much.
func (c Cost) Times(n int) Cost {
	return Cost{Actions: n * c.Actions, Heartbeats: n * c.Heartbeats, Workflows: n * c.Workflows, HistoryBytes: n * c.HistoryBytes}
}
