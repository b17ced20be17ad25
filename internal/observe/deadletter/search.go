package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"reprise/internal/base/connect"
	"reprise/internal/observe/runs"
	"reprise/workflows/protocol"
)

// reading is how many runs are read concurrently.
const reading = 8

// ErrNoAttributes means that the namespace does not index which runs have dead letters, so that only runs given by ID
// can be read.
var ErrNoAttributes = errors.New("the namespace does not have the search attribute " + protocol.DeadLettersAttribute)

// Search finds the chains of all runs with dead letters that are still in the namespace, in no particular order. If
// since is not zero, it leaves out chains in which nothing has happened since. A run sets the search attribute when a
// loop ends, so a run that was terminated during its first loop is not found.
func (r *Reader) Search(ctx context.Context, namespace string, since time.Time) ([]*Chain, error) {
	query := fmt.Sprintf("WorkflowType = '%s' AND %s > 0", protocol.PlaybookWorkflowName, protocol.DeadLettersAttribute)
	if !since.IsZero() {
		query += fmt.Sprintf(" AND (CloseTime >= '%s' OR ExecutionStatus = 'Running')", since.UTC().Format(time.RFC3339Nano))
	}
	search := &searching{reader: r, seen: map[string]bool{}}
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(reading)
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, Query: query}
	for {
		page, err := r.Client.ListWorkflow(ctx, request)
		if err != nil {
			if connect.IsInvalidArgument(err) {
				return nil, fmt.Errorf("%w: %w", ErrNoAttributes, err)
			}
			return nil, fmt.Errorf("search for runs with dead letters: %w", err)
		}
		for _, found := range page.GetExecutions() {
			group.Go(func() error { return search.addRun(limited, found) })
		}
		request.NextPageToken = page.GetNextPageToken()
		if len(request.NextPageToken) == 0 {
			err := group.Wait()
			return search.chains, err
		}
	}
}

// searching collects chains. A run and its reprocesses are found separately, and are one chain.
type searching struct {
	reader *Reader
	mu     sync.Mutex
	seen   map[string]bool // first run IDs of origins
	chains []*Chain
}

func (s *searching) addRun(ctx context.Context, found *workflowpb.WorkflowExecutionInfo) error {
	execution := found.GetExecution()
	workflowID, runID, err := s.reader.Origin(ctx, execution.GetWorkflowId(), execution.GetRunId())
	if err != nil {
		return ignoreGone(err)
	}
	if s.isKnown(runID) {
		return nil
	}
	chain, err := s.reader.Chain(ctx, workflowID, runID)
	if err != nil {
		return ignoreGone(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chains = append(s.chains, chain)
	return nil
}

// isKnown reports whether an origin was seen before, and records it.
func (s *searching) isKnown(runID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.seen[runID]
	s.seen[runID] = true
	return known
}

// ignoreGone returns nil for an error that says that a run no longer exists.
func ignoreGone(err error) error {
	if errors.Is(err, runs.ErrNotFound) || connect.IsNotFound(err) {
		return nil
	}
	return err
}

// SelectLetters returns the letters of several chains that a filter selects, newest first.
func SelectLetters(chains []*Chain, filter Filter) []Letter {
	var all []Letter
	for _, chain := range chains {
		all = append(all, chain.Select(filter)...)
	}
	slices.SortFunc(all, CompareNewest)
	return all
}
