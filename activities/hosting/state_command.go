package hosting

import (
	"context"
	"slices"
	"strings"

	"reprise/activities/attempt"
	"reprise/activities/keeper"
	"reprise/activities/tool"
	"reprise/internal/base/heartbeat"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

// Command is the activity that reads or changes states for a person. The error is one of the
// destination; Temporal repeats the activity if that may help.
func (s *StateStores) Command(ctx context.Context, command interpreter.StateCommand) (answer interpreter.StateAnswer, err error) {
	defer heartbeat.StartSending(ctx)()
	ctx = tool.ForNoPlaybook(attempt.WithDelivery(ctx, attempt.NewDelivery(ctx, true)))
	if command.Place != nil {
		command.Place = s.withTool(ctx, *command.Place)
		answer.Tool = command.Place.Tool
	}
	if command.Change == nil && command.Removal == nil && command.Queue != "" {
		var unknown error
		if answer.Holders, answer.HeldSince, unknown = keeper.HoldersOf(ctx, command.Queue); unknown != nil {
			answer.HoldersUnknown = attempt.MessageOf(unknown)
		}
	}
	store := s.StoreOf(command.Place, command.Group)
	switch {
	case command.Removal != nil:
		answer, err = s.remove(ctx, command, answer)
	case command.Place == nil && command.Group == "":
		answer.States, answer.More, err = keeper.StatesOfGroups(ctx, command.Prefix)
	case command.Change != nil:
		if err := command.Change.Check(); err != nil {
			return answer, keeper.RefusalError(err.Error())
		}
		if answer.Holders, answer.HeldSince, err = keeper.HoldersOf(ctx, command.Queue); err != nil || len(answer.Holders) > 0 {
			return answer, err
		}
		err = store.Set(ctx, *command.Change)
	case command.History != "":
		answer.Changes, err = store.History(ctx, command.History)
	default:
		answer.States, err = store.States(ctx, command.Prefix, command.After)
		if answer.More = len(answer.States) > keeper.MostListed; answer.More {
			answer.States = answer.States[:keeper.MostListed]
		}
		if command.Held && err == nil {
			var unknown error
			if answer.Held, unknown = keeper.HeldStates(ctx, answer.States); unknown != nil {
				answer.HoldersUnknown = attempt.MessageOf(unknown)
			}
		}
	}
	return answer, err
}

// remove removes states, unless a run holds the states of their step.
func (s *StateStores) remove(ctx context.Context, command interpreter.StateCommand, answer interpreter.StateAnswer) (interpreter.StateAnswer, error) {
	err := command.Removal.Check()
	if err != nil {
		return answer, keeper.RefusalError(err.Error())
	}
	if answer.Holders, answer.HeldSince, err = keeper.HoldersOf(ctx, command.Queue); err != nil || len(answer.Holders) > 0 {
		return answer, err
	}
	answer.Removed = []string{}
	if command.Place != nil || command.Group != "" {
		removed, err := s.StoreOf(command.Place, command.Group).Remove(ctx, *command.Removal)
		answer.Removed = append(answer.Removed, removed...)
		return answer, err
	}
	for _, listed := range command.Removal.States { // each is in a group of its own
		one := *command.Removal
		one.States = []incremental.ListedState{listed}
		removed, err := s.Groups.GroupOf(listed.Name).Remove(ctx, one)
		if err != nil {
			return answer, err
		}
		answer.Removed = append(answer.Removed, removed...)
	}
	return answer, nil
}

// withTool returns a place with its tool: its own, or that of its connection, or else postgres, whose
// error says what the connection lacks.
func (s *StateStores) withTool(ctx context.Context, place interpreter.ToolInput) *interpreter.ToolInput {
	if place.Tool != "" {
		return &place
	}
	const file = "sqlite:"
	connection, _ := s.lent.Connection(ctx, place.Auth, "") // the tool says what it lacks
	place.Tool = "postgres"
	if strings.HasPrefix(place.Auth, file) || strings.HasPrefix(connection, file) {
		place.Tool = "sqlite"
	}
	return &place
}

// States returns the states whose names have a prefix.
func (p placeStore) States(ctx context.Context, prefix, after string) ([]incremental.State, error) {
	states, err := callAtPlace(ctx, p, func(ctx context.Context, of tool.StateStore, place interpreter.ToolInput) ([]incremental.State, error) {
		return of.States(ctx, place, prefix)
	})
	return slices.DeleteFunc(states, func(state incremental.State) bool { return after != "" && state.Name <= after }), err
}

// History returns the changes of a state.
func (p placeStore) History(ctx context.Context, name string) ([]incremental.StateChange, error) {
	return callAtPlace(ctx, p, func(ctx context.Context, of tool.StateStore, place interpreter.ToolInput) ([]incremental.StateChange, error) {
		return of.StateHistory(ctx, place, name)
	})
}

// Set changes a state for a person.
func (p placeStore) Set(ctx context.Context, change incremental.StateChange) error {
	_, err := callAtPlace(ctx, p, func(ctx context.Context, of tool.StateStore, place interpreter.ToolInput) (struct{}, error) {
		return struct{}{}, of.SetState(ctx, place, change)
	})
	return err
}

// Remove forgets states for a person.
func (p placeStore) Remove(ctx context.Context, removal incremental.Removal) ([]string, error) {
	return callAtPlace(ctx, p, func(ctx context.Context, of tool.StateStore, place interpreter.ToolInput) ([]string, error) {
		return of.RemoveStates(ctx, place, removal)
	})
}
