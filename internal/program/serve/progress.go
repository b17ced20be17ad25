package serve

import (
	"context"
	"net/http"
	"sync"
	"time"

	"reprise/interpreter"
)

const (
	// progressPause is the least time between two progress reports of one attempt that are sent to its workflow: each
	// is stored in its history.
	progressPause = 500 * time.Millisecond
	// storedPause is the pause while no worker accepts reports: each report then needs a separate workflow, which
	// replaces the previous one.
	storedPause = 10 * time.Second
	// mostReporting bounds the attempts whose progress reports are held back. Each is in memory for a second, and
	// tokens of any number of attempts may report.
	mostReporting = 10_000
)

// reporting holds back progress reports that come too often. Only the newest is sent, when the pause is over or
// before another answer to the attempt.
type reporting struct {
	send func(context.Context, string, interpreter.Answer) (answer, error)
	mu   sync.Mutex
	open map[string]*reports // by the key of the attempt
	left sync.WaitGroup      // those that are to be sent
	// ends is set if the server is stopping, so that nothing is held back any more.
	ends bool
}

// reports are the reports of one attempt.
type reports struct {
	sending sync.Mutex // held while one is sent, so that none overtakes another
	newest  *interpreter.Answer
	over    error       // why the last one was refused, nil where it was not
	stored  bool        // no worker has taken it
	pause   *time.Timer // until the next one is sent; nil while one is
}

// acceptReport accepts a progress report. The first one is sent at once; one that is held back is answered as if no
// worker had accepted it yet.
func (p *reporting) acceptReport(ctx context.Context, workflowID string, given interpreter.Answer) (answer, error) {
	p.mu.Lock()
	one, known := p.open[given.Key]
	switch {
	case known && one.over != nil:
		defer p.mu.Unlock()
		return answer{}, one.over
	case known:
		one.newest = &given
		p.mu.Unlock()
		return answer{status: http.StatusAccepted, body: callbackAnswer{}}, nil
	case len(p.open) >= mostReporting:
		p.mu.Unlock()
		return answer{}, errReporting
	}
	one = &reports{}
	one.sending.Lock()
	p.open[given.Key] = one
	p.left.Add(1)
	p.mu.Unlock()
	reply, err := p.send(ctx, workflowID, given)
	one.sending.Unlock()
	p.recordSent(workflowID, given.Key, one, reply, err)
	return reply, err
}

// errReporting is the problem for a report if too many are held back.
var errReporting = newProblem(http.StatusServiceUnavailable, "busy",
	"%d attempts are reporting progress already; repeat this report later", mostReporting).withHeader("Retry-After", "5")

// recordSent records the outcome of a report. A newer report that has arrived since is sent after a pause.
func (p *reporting) recordSent(workflowID, key string, one *reports, reply answer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recordOutcome(one, reply, err)
	pause := progressPause
	switch {
	case p.ends || p.open[key] != one:
		pause = 0
	case one.stored:
		pause = storedPause
	}
	one.pause = time.AfterFunc(pause, func() { p.sendNewest(workflowID, key, one) })
}

// recordOutcome records the outcome of the last report. The lock must be held.
func (p *reporting) recordOutcome(one *reports, reply answer, err error) {
	body, _ := reply.body.(callbackAnswer)
	one.over, one.stored = err, err == nil && !body.Accepted
}

// sendNewest sends the newest report, if there is one, and checks again after a pause.
func (p *reporting) sendNewest(workflowID, key string, one *reports) {
	p.mu.Lock()
	one.pause = nil
	if one.newest == nil || one.over != nil {
		if p.open[key] == one {
			delete(p.open, key)
		}
		p.mu.Unlock()
		p.left.Done()
		return
	}
	p.mu.Unlock()
	reply, err := p.flushReport(context.Background(), workflowID, one)
	p.recordSent(workflowID, key, one, reply, err)
}

// flushReport sends the newest report that was held back.
func (p *reporting) flushReport(ctx context.Context, workflowID string, one *reports) (reply answer, err error) {
	one.sending.Lock()
	defer one.sending.Unlock()
	p.mu.Lock()
	newest := one.newest
	one.newest = nil
	if newest == nil {
		defer p.mu.Unlock()
		return answer{body: callbackAnswer{Accepted: !one.stored}}, one.over
	}
	p.mu.Unlock()
	return p.send(ctx, workflowID, *newest)
}

// flushBefore sends a report that was held back for an attempt, before another answer to it.
func (p *reporting) flushBefore(ctx context.Context, workflowID, key string) {
	p.mu.Lock()
	one := p.open[key]
	delete(p.open, key) // a report behind the answer is late, and refused
	p.mu.Unlock()
	if one == nil {
		return
	}
	reply, err := p.flushReport(ctx, workflowID, one)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recordOutcome(one, reply, err)
	one.endPause()
}

// flushAll sends all reports that were held back.
func (p *reporting) flushAll() {
	p.mu.Lock()
	p.ends = true
	for _, one := range p.open {
		one.endPause()
	}
	p.mu.Unlock()
	p.left.Wait()
}

// endPause ends the pause. The lock must be held.
func (r *reports) endPause() {
	if r.pause != nil && r.pause.Stop() {
		r.pause.Reset(0)
	}
}
