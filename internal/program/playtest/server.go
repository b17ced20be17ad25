package playtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/connect"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/ratelimit"
)

// server replaces the Temporal server for activities, including the workflows that serve many runs: it makes their
// decisions with the same code.
type server struct {
	client.Client

	now    func() time.Time
	before map[string]any // watermarks of runs before
	mu     sync.Mutex
	states map[string]*incremental.Keeper // by the IDs of their workflows
	limits map[string]*limiter
}

type limiter struct {
	ratelimit.Limiter
	pause time.Time
}

// DescribeWorkflow knows no run: in a test, people's commands are not read from a memo.
func (*server) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	return nil, connect.UnreachableServer()
}

// DescribeWorkflowExecution knows no run.
func (*server) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, connect.UnreachableServer()
}

// QueryWorkflow knows no run.
func (*server) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, connect.UnreachableServer()
}

// ListWorkflow finds nothing.
func (*server) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

// SignalWorkflow drops its signal.
func (*server) SignalWorkflow(context.Context, string, string, string, any) error { return nil }

// UpdateWorkflow answers the updates of states. Other updates are refused: tests have no use for them.
func (s *server) UpdateWorkflow(_ context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keeper := s.states[options.WorkflowID]
	if keeper == nil {
		var err error
		if keeper, err = incremental.ReadKeeper(nil); err != nil {
			return nil, err
		}
		s.states[options.WorkflowID] = keeper
	}
	switch arg := options.Args[0].(type) {
	case incremental.Claim:
		if err := s.setWatermark(keeper, arg); err != nil {
			return nil, err
		}
		return answerTo(keeper.Claim(arg, s.now()))
	case []incremental.StateWrite:
		return answerTo(keeper.MoveAll(arg, s.now()))
	}
	return nil, fmt.Errorf("update %s needs a server", options.UpdateName)
}

// setWatermark sets a state to the watermark that the test says earlier runs left.
func (s *server) setWatermark(keeper *incremental.Keeper, claim incremental.Claim) error {
	value, given := s.before[claim.Name]
	if !given {
		return nil
	}
	delete(s.before, claim.Name)
	cursor, err := claim.CursorForm().ParseAny(value)
	if err != nil {
		return fmt.Errorf("states: the watermark of %s: %w", claim.Name, err)
	}
	if refused := keeper.Set(incremental.StateChange{Name: claim.Name, To: cursor, By: "test"}, s.now()); refused != nil {
		return errors.New(refused.Message)
	}
	return nil
}

// ReserveTurn returns when an attempt gets its turn under a rate limit, as the limit's workflow would; nil if at once.
func (s *server) ReserveTurn(limit ratelimit.Limit, in interpreter.ToolInput) *ratelimit.Reservation {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, l := s.now(), s.limiterOf(limit)
	if comes := in.Turn; comes != nil && !now.Before(comes.Promised) && !now.Before(l.pause) {
		return nil
	}
	lease := l.Lease(ratelimit.LeaseRequest{Limit: limit, Count: 1, PauseSeconds: max(l.pause.Sub(now), 0).Seconds()}, now)
	if lease.Delay() <= 0 {
		return nil
	}
	at := now.Add(lease.Delay())
	return &ratelimit.Reservation{At: at, Promised: at, Since: now}
}

// PauseAttempts pauses all attempts under a rate limit.
func (s *server) PauseAttempts(limit ratelimit.Limit, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.limiterOf(limit)
	if until := s.now().Add(wait); until.After(l.pause) {
		l.pause = until
	}
}

func (s *server) limiterOf(limit ratelimit.Limit) *limiter {
	key := limit.Playbook + "\x00" + limit.Key
	if s.limits[key] == nil {
		s.limits[key] = &limiter{}
	}
	return s.limits[key]
}

// updateResult is the result of an update that was answered at once.
type updateResult struct{ data []byte }

func answerTo(v any) (client.WorkflowUpdateHandle, error) {
	data, err := json.Marshal(v)
	return updateResult{data}, err
}

func (updateResult) WorkflowID() string { return "" }
func (updateResult) RunID() string      { return "" }
func (updateResult) UpdateID() string   { return "" }

func (a updateResult) Get(_ context.Context, into any) error {
	if into == nil {
		return nil
	}
	return json.Unmarshal(a.data, into)
}
