package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"reprise/activities/tool"
	"reprise/internal/base/connect"
	"reprise/internal/base/heartbeat"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/queue"
)

// mostListed bounds the states that one command gives.
const mostListed = 2000

// StateCommand is the activity that does what a person wants to know of states, or to change. The
// error is one of the destination; Temporal has it made again where that may help.
func (c *Catalogue) StateCommand(ctx context.Context, command interpreter.StateCommand) (answer interpreter.StateAnswer, err error) {
	defer heartbeat.Keep(ctx)()
	ctx = hosted(ctx, newDelivery(ctx, true))
	if command.Place != nil {
		command.Place = c.withTool(*command.Place)
		answer.Tool = command.Place.Tool
	}
	if command.Change == nil && command.Queue != "" {
		var unknown error
		if answer.Holders, answer.HeldSince, unknown = holdersOf(ctx, command.Queue); unknown != nil {
			answer.HoldersUnknown = problemOf(unknown)
		}
	}
	keeper := c.keeperOf(command.Place, command.Group)
	switch {
	case command.Place == nil && command.Group == "":
		answer.States, answer.More, err = statesOfGroups(ctx, command.Prefix)
	case command.Change != nil:
		if err := command.Change.Check(); err != nil {
			return answer, refusedChange(err.Error())
		}
		if answer.Holders, answer.HeldSince, err = holdersOf(ctx, command.Queue); err != nil || len(answer.Holders) > 0 {
			return answer, err
		}
		err = keeper.set(ctx, *command.Change)
	case command.History != "":
		answer.Changes, err = keeper.history(ctx, command.History)
	default:
		answer.States, err = keeper.states(ctx, command.Prefix)
		if answer.More = len(answer.States) > mostListed; answer.More {
			answer.States = answer.States[:mostListed]
		}
		if command.Held && err == nil {
			var unknown error
			if answer.Held, unknown = heldStates(ctx, answer.States); unknown != nil {
				answer.HoldersUnknown = problemOf(unknown)
			}
		}
	}
	return answer, err
}

// withTool is a place with its tool: where it has none, that of the connection, or else postgres, whose
// error says what the connection lacks.
func (c *Catalogue) withTool(place interpreter.ToolInput) *interpreter.ToolInput {
	if place.Tool != "" {
		return &place
	}
	const file = "sqlite:"
	connection, _ := c.res.Connections.Connection(place.Auth)
	place.Tool = "postgres"
	if strings.HasPrefix(place.Auth, file) || strings.HasPrefix(connection, file) {
		place.Tool = "sqlite"
	}
	return &place
}

func refusedChange(message string) error {
	return applicationError(&interpreter.ErrorObject{
		Kind: interpreter.KindIncremental, Class: interpreter.ClassFinal, Final: true, Message: message,
	})
}

// holdersOf are the workflow IDs of the runs that have a turn in a queue and have not ended, and since when the first has it.
func holdersOf(ctx context.Context, id string) (holders []string, since time.Time, err error) {
	if !strings.HasPrefix(id, queue.StatePrefix) {
		return nil, since, refusedChange(fmt.Sprintf("%q is not the queue of a state", id))
	}
	of, err := stateQueue(ctx, id)
	if err != nil {
		return nil, since, err
	}
	return runningHolders(ctx, of)
}

// stateQueue is the queue of a state with a workflow ID; one without members where there is none.
func stateQueue(ctx context.Context, id string) (queue.Queue, error) {
	of, err := queryQueue(ctx, activity.GetClient(ctx), id, "")
	switch {
	case connect.NotFound(err):
		return queue.Queue{}, nil
	case err != nil:
		return queue.Queue{}, fmt.Errorf("ask whether a run holds the state: %w", err)
	}
	return of, nil
}

// runningHolders are those of a queue that have not ended.
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

// heldStates are those of the states that runs hold, as the queues of states have it.
func heldStates(ctx context.Context, states []incremental.State) (held []interpreter.HeldState, err error) {
	queues, more, err := workflowIDs(ctx, fmt.Sprintf(
		"WorkflowType = '%s' AND ExecutionStatus = 'Running' AND WorkflowId STARTS_WITH '%s'", queue.WorkflowName, queue.StatePrefix), mostStateQueues)
	if more {
		err = fmt.Errorf("runs hold more than %d states, or wait for them", mostStateQueues)
	}
	if err != nil {
		return nil, err
	}
	for _, id := range queues {
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

// mostStateQueues bounds the queues that one command queries.
const mostStateQueues = 500

// holdsState reports whether who has a turn under a key holds a state. The key of a loop begins the names of its states, of which
// a run holds those that it has claimed.
func holdsState(key string, holders []string, state incremental.State) bool {
	if key == state.Name {
		return true
	}
	prefix, _, byElement := strings.Cut(key, "{{")
	if !byElement {
		prefix += "/"
	}
	return strings.HasPrefix(state.Name, prefix) && slices.Contains(holders, state.Run)
}

func (k placeKeeper) states(ctx context.Context, prefix string) ([]incremental.State, error) {
	return atPlace(ctx, k, func(ctx context.Context, keeper tool.StateKeeper, place interpreter.ToolInput) ([]incremental.State, error) {
		return keeper.States(ctx, place, prefix)
	})
}

func (k placeKeeper) history(ctx context.Context, name string) ([]incremental.StateChange, error) {
	return atPlace(ctx, k, func(ctx context.Context, keeper tool.StateKeeper, place interpreter.ToolInput) ([]incremental.StateChange, error) {
		return keeper.StateHistory(ctx, place, name)
	})
}

func (k placeKeeper) set(ctx context.Context, change incremental.StateChange) error {
	_, err := atPlace(ctx, k, func(ctx context.Context, keeper tool.StateKeeper, place interpreter.ToolInput) (struct{}, error) {
		return struct{}{}, keeper.SetState(ctx, place, change)
	})
	return err
}

func (k groupKeeper) states(ctx context.Context, prefix string) ([]incremental.State, error) {
	states, within := []incremental.State{}, incremental.NameRange{Prefix: prefix}
	for len(states) <= mostListed {
		part, err := queryStates[incremental.State](ctx, incremental.WorkflowID(k.group), incremental.StatesQuery, within)
		if err != nil || len(part) == 0 {
			return states, err
		}
		states = append(states, part...)
		within.After = part[len(part)-1].Name
	}
	return states, nil
}

// mostGroups bounds the groups that one command queries.
const mostGroups = 500

// statesOfGroups are the states of all groups whose names begin with a prefix, in the order of their
// names: those of a loop that names each of them itself.
func statesOfGroups(ctx context.Context, prefix string) (states []incremental.State, more bool, err error) {
	if prefix == "" {
		return nil, false, refusedChange("states of all groups need the beginning of their names")
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

// workflowIDs are those of the workflows that a query of the list finds, up to so many.
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

func (k groupKeeper) history(ctx context.Context, name string) ([]incremental.StateChange, error) {
	return queryStates[incremental.StateChange](ctx, incremental.WorkflowID(k.group), incremental.HistoryQuery, name)
}

func (k groupKeeper) set(ctx context.Context, change incremental.StateChange) error {
	return k.update(ctx, incremental.SetUpdate, change, nil)
}

// queryStates queries a workflow that keeps states, of which there may be none.
func queryStates[T any](ctx context.Context, id, query string, arg any) (found []T, err error) {
	answer, err := activity.GetClient(ctx).QueryWorkflow(ctx, id, "", query, arg)
	if connect.NotFound(err) {
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
