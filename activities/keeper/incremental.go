package keeper

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/connect"
	"reprise/internal/base/slots"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/queue"
)

// statesOfOne bounds the updates that a worker's activities send to one group of states at a time; see
// admissionsOfOne.
const statesOfOne = 2

// States gives a worker's activities access to the workflows that store states and the progress of partitions.
type States struct{ slots *slots.ByKey }

// NewStates is for one worker.
func NewStates() *States { return &States{slots.New(statesOfOne, 0)} }

// sendUpdate sends an update to a workflow that keeps something for later runs, a bounded number
// at a time. Updates may be repeated without effect.
func (s *States) sendUpdate(ctx context.Context, of lasting, name string, arg, result any) error {
	leave, err := s.slots.Enter(ctx, of.id)
	if err != nil {
		return err
	}
	defer leave()
	return updateLasting[[]byte](ctx, of, client.UpdateWorkflowOptions{UpdateName: name, Args: []any{arg}}, result)
}

// Group is the workflow that keeps the states of a group.
type Group struct {
	states *States
	group  string
}

// GroupOf returns the workflow of a group.
func (s *States) GroupOf(group string) Group { return Group{s, group} }

// Claim claims a state for a call.
func (k Group) Claim(ctx context.Context, claim incremental.Claim) (claimed incremental.ClaimedState, err error) {
	err = k.sendUpdate(ctx, incremental.ClaimUpdate, claim, &claimed)
	return claimed, err
}

// Move applies writes to states, each by itself.
func (k Group) Move(ctx context.Context, writes []incremental.StateWrite) error {
	var moved incremental.MoveResult
	if err := k.sendUpdate(ctx, incremental.MoveUpdate, writes, &moved); err != nil {
		return err
	}
	for _, refused := range moved.Refused {
		if refused != nil {
			return refusalError(interpreter.ErrorObject{
				Kind: interpreter.KindIncremental, Class: interpreter.ClassFinal, Type: refused.Type, Final: true, Message: refused.Message,
			})
		}
	}
	return nil
}

// sendUpdate sends an update to the workflow of the group.
func (k Group) sendUpdate(ctx context.Context, name string, arg, result any) error {
	of := lasting{
		name: incremental.WorkflowName, id: incremental.WorkflowID(k.group), query: incremental.SnapshotQuery,
		summary: "keeps between runs the states of " + k.group,
	}
	if err := k.states.sendUpdate(ctx, of, name, arg, result); err != nil {
		return fmt.Errorf("%s the state in %s: %w", name, of.id, err)
	}
	return nil
}

// RefusalError is the final error of what cannot be done to a state.
func RefusalError(message string) error {
	return refusalError(interpreter.ErrorObject{Kind: interpreter.KindIncremental, Class: interpreter.ClassFinal, Final: true, Message: message})
}

func refusalError(object interpreter.ErrorObject) error {
	return temporal.NewApplicationErrorWithOptions(object.Message, string(object.Kind), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{object},
	})
}

// MostListed bounds the states in the output of one command: it is one message, and Temporal
// refuses messages over 2 MB.
const MostListed = 2000

// States returns the states whose names have a prefix, behind the one named after.
func (k Group) States(ctx context.Context, prefix, after string) ([]incremental.State, error) {
	states, within := []incremental.State{}, incremental.NameRange{Prefix: prefix, After: after}
	for len(states) <= MostListed {
		part, err := queryStates[incremental.State](ctx, incremental.WorkflowID(k.group), incremental.StatesQuery, within)
		if err != nil || len(part) == 0 {
			return states, err
		}
		states = append(states, part...)
		within.After = part[len(part)-1].Name
	}
	return states, nil
}

// History returns the history of a state.
func (k Group) History(ctx context.Context, name string) ([]incremental.StateChange, error) {
	return queryStates[incremental.StateChange](ctx, incremental.WorkflowID(k.group), incremental.HistoryQuery, name)
}

// Set changes a state for a person.
func (k Group) Set(ctx context.Context, change incremental.StateChange) error {
	return k.sendUpdate(ctx, incremental.SetUpdate, change, nil)
}

// Remove forgets states that are unchanged since they were listed, and returns their names.
func (k Group) Remove(ctx context.Context, removal incremental.Removal) (removed []string, err error) {
	err = k.sendUpdate(ctx, incremental.RemoveUpdate, removal, &removed)
	return removed, err
}

// queryStates queries a workflow that keeps states, which may not exist.
func queryStates[T any](ctx context.Context, id, query string, arg any) (found []T, err error) {
	answer, err := activity.GetClient(ctx).QueryWorkflow(ctx, id, "", query, arg)
	if connect.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the states of %s: %w", id, err)
	}
	if err := answer.Get(&found); err != nil {
		return nil, errors.Join(errors.New("read what is said of states"), err)
	}
	return found, nil
}

// mostGroups bounds the groups of states that one command queries. Each costs a query, and all
// of them have to fit into the time of the activity.
const mostGroups = 500

// StatesOfGroups returns the states of all groups whose names begin with a prefix, sorted by name: a
// loop may name the state of each element itself.
func StatesOfGroups(ctx context.Context, prefix string) (states []incremental.State, more bool, err error) {
	if prefix == "" {
		return nil, false, RefusalError("states of all groups need the beginning of their names")
	}
	ids, more, err := workflowIDs(ctx, fmt.Sprintf(
		"WorkflowType = '%s' AND WorkflowId STARTS_WITH '%s'", incremental.WorkflowName, incremental.WorkflowIDPrefix(prefix)), mostGroups)
	if err != nil {
		return nil, false, err
	}
	for _, id := range ids {
		part, err := queryStates[incremental.State](ctx, id, incremental.StatesQuery, incremental.NameRange{Prefix: prefix})
		if err != nil {
			return nil, false, err
		}
		states = append(states, part...)
	}
	slices.SortFunc(states, func(a, b incremental.State) int { return strings.Compare(a.Name, b.Name) })
	return states, more, nil
}

// workflowIDs returns the IDs of the workflows that a list query finds, up to a number.
func workflowIDs(ctx context.Context, query string, most int) (ids []string, more bool, err error) {
	c, seen := activity.GetClient(ctx), map[string]bool{}
	for page := []byte(nil); ; {
		found, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: page})
		if err != nil {
			return nil, false, fmt.Errorf("list the workflows that keep states or their queues: %w", err)
		}
		for _, execution := range found.GetExecutions() {
			id := execution.GetExecution().GetWorkflowId()
			if seen[id] {
				continue // an earlier history of it
			}
			if len(ids) == most {
				return ids, true, nil
			}
			seen[id], ids = true, append(ids, id)
		}
		if page = found.GetNextPageToken(); len(page) == 0 {
			return ids, false, nil
		}
	}
}

// HoldersOf returns the workflow IDs of the runs that have a turn in a queue and have not ended, and since when the first has it.
func HoldersOf(ctx context.Context, id string) (holders []string, since time.Time, err error) {
	if !strings.HasPrefix(id, queue.StatePrefix) {
		return nil, since, RefusalError(fmt.Sprintf("%q is not the queue of a state", id))
	}
	of, err := stateQueue(ctx, id)
	if err != nil {
		return nil, since, err
	}
	return runningHolders(ctx, of)
}

// stateQueue returns the queue of a state by its workflow ID, empty if there is none.
func stateQueue(ctx context.Context, id string) (queue.Queue, error) {
	of, err := queryQueue(ctx, activity.GetClient(ctx), id, "")
	switch {
	case connect.IsNotFound(err):
		return queue.Queue{}, nil
	case err != nil:
		return queue.Queue{}, fmt.Errorf("ask whether a run holds the state: %w", err)
	}
	return of, nil
}

// runningHolders returns the holders of a queue that have not ended.
func runningHolders(ctx context.Context, of queue.Queue) (holders []string, since time.Time, err error) {
	for _, holder := range of.Holders {
		running, err := isRunning(ctx, holder.Member)
		if err != nil {
			return nil, since, err
		}
		if !running {
			continue
		}
		if holders == nil {
			since = holder.Since
		}
		holders = append(holders, holder.WorkflowID)
	}
	return holders, since, nil
}

// HeldStates returns which of the states are held by runs, according to the states' queues.
func HeldStates(ctx context.Context, states []incremental.State) (held []interpreter.HeldState, err error) {
	queues, more, err := workflowIDs(ctx, fmt.Sprintf(
		"WorkflowType = '%s' AND ExecutionStatus = 'Running' AND WorkflowId STARTS_WITH '%s'", queue.WorkflowName, queue.StatePrefix), mostStateQueues)
	if more {
		err = fmt.Errorf("runs hold more than %d states, or wait for them", mostStateQueues)
	}
	if err != nil {
		return nil, err
	}
	for _, id := range queues {
		if !mayHold(id, states) {
			continue // nobody may answer for it here, as its worker may be another one
		}
		of, err := stateQueue(ctx, id)
		if err != nil {
			return nil, err
		}
		holders, since, err := runningHolders(ctx, of)
		if err != nil {
			return nil, err
		}
		if len(holders) == 0 {
			continue
		}
		for _, state := range states {
			if holdsState(of.Name.Key, holders, state) {
				held = append(held, interpreter.HeldState{State: state.Name, Holders: holders, Since: since})
			}
		}
	}
	return held, nil
}

// mostStateQueues bounds the state queues that one command queries; if there are more, the
// command says that its output is incomplete.
const mostStateQueues = 500

// mayHold reports whether a workflow ID can be that of a state's queue.
func mayHold(id string, states []incremental.State) bool {
	key, err := url.PathUnescape(strings.TrimPrefix(id, queue.StatePrefix))
	if err != nil || (queue.Name{Key: key, State: true}).WorkflowID() != id {
		return true // a long key is cut in the ID
	}
	return slices.ContainsFunc(states, func(state incremental.State) bool { return isStateOf(key, state.Name) })
}

// isStateOf reports whether a key belongs to a state. A loop's key is the prefix of its states' names.
func isStateOf(key, state string) bool {
	prefix, _, byElement := strings.Cut(key, "{{")
	if !byElement {
		prefix += "/"
	}
	return key == state || strings.HasPrefix(state, prefix)
}

// holdsState reports whether the holder of a slot holds a state. A run holds those states of a loop that it has
// claimed.
func holdsState(key string, holders []string, state incremental.State) bool {
	return key == state.Name || isStateOf(key, state.Name) && slices.Contains(holders, state.Run)
}
