package health

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
)

// settledPoll is how long a poll has to be open to count as accepted: a server that refuses polls does so at once;
// one that accepts them responds when there is a task, or after a minute.
const settledPoll = 2 * time.Second

// Polls records whether the server accepts a worker's polls. A server may respond to health checks and still refuse
// polls, because its database is down or the API key's permissions were withdrawn. It is safe for concurrent use.
type Polls struct {
	now func() time.Time

	mu       sync.Mutex
	last     int               // number of the newest poll
	open     map[int]time.Time // since when polls are open, by number
	refused  error             // why the last poll that ended was refused, nil if it was not
	failedAt time.Time         // when that was
}

// NewPolls returns an empty record.
func NewPolls() *Polls { return &Polls{now: time.Now, open: map[int]time.Time{}} }

// ClientOptions returns options for a worker's client, and makes readiness depend on its polls.
func (s *Server) ClientOptions(options client.Options) client.Options {
	if s == nil {
		return options
	}
	polls := NewPolls()
	s.mu.Lock()
	s.polls = polls.Dependency()
	s.mu.Unlock()
	options.ConnectionOptions.DialOptions = append(slices.Clip(options.ConnectionOptions.DialOptions),
		grpc.WithChainUnaryInterceptor(polls.InterceptPoll))
	return options
}

// Dependency makes readiness depend on polls: it fails while the last poll was refused and none was accepted since.
func (p *Polls) Dependency() *Dependency {
	return &Dependency{Reason: "the Temporal server refuses polls", Check: func(context.Context) error { return p.lastRefusal() }}
}

// InterceptPoll is the interceptor of a worker's connection that records its polls.
func (p *Polls) InterceptPoll(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if !isPoll(request) {
		return invoke(ctx, method, request, reply, conn, options...)
	}
	number := p.beginPoll()
	err := invoke(ctx, method, request, reply, conn, options...)
	if err == nil || errors.Is(ctx.Err(), context.Canceled) { // the worker stops
		p.endPoll(number, nil)
	} else {
		p.endPoll(number, fmt.Errorf("%s: %w", path.Base(method), err))
	}
	return err
}

// isPoll reports whether a request polls a task queue.
func isPoll(request any) bool {
	switch request.(type) {
	case *workflowservice.PollWorkflowTaskQueueRequest, *workflowservice.PollActivityTaskQueueRequest:
		return true
	}
	return false
}

func (p *Polls) beginPoll() (number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.open[p.last] = p.now()
	return p.last
}

func (p *Polls) endPoll(number int, refused error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, number)
	p.refused = refused
	if refused != nil {
		p.failedAt = p.now()
	}
}

// lastRefusal returns why the server refuses polls; nil if it accepts them: the last poll that ended was accepted, or
// one that began after the refusal has been open for a while.
func (p *Polls) lastRefusal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil {
		return nil
	}
	for _, since := range p.open {
		if !since.Before(p.failedAt) && p.now().Sub(since) >= settledPoll {
			return nil
		}
	}
	return p.refused
}
