package call

import (
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/call/watermark"
)

// reader reads a call: what follows from its state without a decision, for the call itself and for a View. It changes
// nothing.
type reader struct {
	config   *Config
	requests *request.Builder
	keeps    *watermark.StatefulStep // nil where the step keeps no state between runs
	state    *State
}

func (c *Call) newReader() reader {
	return reader{config: &c.config, requests: &c.requests, keeps: c.keeps, state: &c.state}
}

// requestMoment is how far the call has come, in the form in which requests are rendered from it.
func (r reader) requestMoment() request.Moment {
	s := r.state
	moment := request.Moment{StartedAt: s.StartedAt, Page: r.state.currentPage(r.config), Attempts: s.Attempts, Lost: s.Lost, Restarts: s.Restarts}
	if r.keeps != nil {
		moment.Claim, moment.Incremental = s.Watermark.Claim(s.Restarts), r.keeps.Names(s.Watermark)
	}
	return moment
}

// newResults makes what the decisions of the call come to.
func (r reader) newResults() results {
	return results{config: r.config, state: r.state, scope: r.policyScope}
}

// stagingRound identifies this round of the call for staged rows: a restart begins another, whose rows replace the rows of the last.
func (r reader) stagingRound() sink.Round {
	return sink.Round{Source: &r.config.Source, LedgerKey: r.ledgerKey, Restarts: r.state.Restarts}
}
