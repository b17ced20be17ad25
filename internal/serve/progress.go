package serve

import (
	"context"
	"net/http"
	"sync"
	"time"

	"reprise/interpreter"
)

// progressPause is the least time between two reports of progress of one attempt that
// go to its workflow: each is kept in its history.
const progressPause = 500 * time.Millisecond

// mostReporting bounds the attempts whose reports are held back; those of others go on
// at once.
const mostReporting = 10_000

// reporting holds back reports of progress that come too often. The newest counts:
// it is sent when the pause is over, or before another answer to the attempt.
type reporting struct {
	send func(context.Context, string, interpreter.Answer) (answer, error)
	mu   sync.Mutex
	open map[string]*reports // by the key of the attempt
	left sync.WaitGroup      // those that are to be sent
}

// reports are those of one attempt.
type reports struct {
	sending sync.Mutex // held while one is sent, so that none overtakes another
	newest  *interpreter.Answer
	over    error // why the last one was refused, nil where it was not
}

// report takes a report of progress. The first one is sent at once; one that is held
// back is answered as what a worker has not taken yet.
func (p *reporting) report(ctx context.Context, workflowID string, given interpreter.Answer) (answer, error) {
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
		return p.send(ctx, workflowID, given)
	}
	one = &reports{}
	one.sending.Lock()
	p.open[given.Key] = one
	p.left.Add(1)
	p.mu.Unlock()
	told, err := p.send(ctx, workflowID, given)
	one.sending.Unlock()
	p.mu.Lock()
	one.over = err
	p.mu.Unlock()
	time.AfterFunc(progressPause, func() { p.next(workflowID, given.Key, one) })
	return told, err
}

// next sends the newest report, if there is one, and looks again after a pause.
func (p *reporting) next(workflowID, key string, one *reports) {
	p.mu.Lock()
	if one.newest == nil || one.over != nil {
		if p.open[key] == one {
			delete(p.open, key)
		}
		p.mu.Unlock()
		p.left.Done()
		return
	}
	p.mu.Unlock()
	p.flush(context.Background(), workflowID, one)
	time.AfterFunc(progressPause, func() { p.next(workflowID, key, one) })
}

// flush sends the newest report that was held back.
func (p *reporting) flush(ctx context.Context, workflowID string, one *reports) {
	one.sending.Lock()
	defer one.sending.Unlock()
	p.mu.Lock()
	newest := one.newest
	one.newest = nil
	p.mu.Unlock()
	if newest == nil {
		return
	}
	_, err := p.send(ctx, workflowID, *newest)
	p.mu.Lock()
	one.over = err
	p.mu.Unlock()
}

// before sends what was held back of an attempt, before another answer to it.
func (p *reporting) before(ctx context.Context, workflowID, key string) {
	p.mu.Lock()
	one := p.open[key]
	delete(p.open, key) // what comes behind the answer is late, and told so
	p.mu.Unlock()
	if one != nil {
		p.flush(ctx, workflowID, one)
	}
}

// end waits until everything that was held back has been sent.
func (p *reporting) end() { p.left.Wait() }
