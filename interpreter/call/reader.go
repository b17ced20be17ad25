package call

import (
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/call/watermark"
)

// reader derives values from the state of a call, for the call itself and for a View. It changes nothing.
type reader struct {
	config   *Config
	requests *request.Builder
	keeps    *watermark.StatefulStep // nil if the step keeps no state between runs
	state    *State
}

func (c *Call) newReader() reader {
	return reader{config: &c.config, requests: &c.requests, keeps: c.keeps, state: &c.state}
}

// requestMoment returns the progress of the call that requests are rendered with.
func (r reader) requestMoment() request.Moment {
	s := r.state
	moment := request.Moment{StartedAt: s.StartedAt, Page: r.state.currentPage(r.config), Attempts: s.Attempts, Lost: s.Lost, Restarts: s.Restarts}
	if r.keeps != nil {
		moment.Claim, moment.Incremental = s.Watermark.ClaimKey(s.Restarts), r.keeps.ExprValue(s.Watermark)
	}
	return moment
}

// newResults returns the builder of results, errors and waits.
func (r reader) newResults() results {
	return results{config: r.config, state: r.state, scope: r.policyScope}
}

// stagingRound identifies this round of the call for staged rows: after a restart, rows of the new round replace
// those of the previous one.
func (r reader) stagingRound() sink.Round {
	return sink.Round{Source: &r.config.Source, Limits: r.config.Limits, LedgerKey: r.ledgerKey, Restarts: r.state.Restarts}
}
