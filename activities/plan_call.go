package activities

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"reprise/activities/attempt"
	"reprise/activities/keeper"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
)

// planStates plans the states of the step, or that of one element of its loop, and returns those that are stored by
// name.
func (s *stepPlanner) planStates(ctx context.Context, of *call.Call, element *expression.Value) map[string]incremental.State {
	section := s.step.Incremental
	if section == nil {
		return nil
	}
	plan := interpreter.StatePlan{State: s.book.StateName(s.step), KeptBy: "temporal", Type: section.Type, OnConflict: section.OnConflict}
	if home := s.book.StateHome(s.step); home != nil {
		for _, target := range of.Config().SinkTargets(s.now) {
			if target.Sink == home && target.Unknown != "" {
				plan.KeptBy, plan.Problem = target.Input.Tool, "its location is unknown: "+target.Unknown
				s.plan.States = append(s.plan.States, plan)
				return nil
			}
		}
	}
	at, err := s.task.StateAt(s.book, s.step, element, s.now)
	if err != nil {
		plan.Problem = err.Error()
		s.plan.States = append(s.plan.States, plan)
		return nil
	}
	if at.Place != nil {
		plan.KeptBy = at.Place.Tool
	}
	if at.Name != "" {
		plan.State = at.Name
	}
	found, err := s.statesAt(ctx, at)
	if err != nil {
		plan.Problem = attempt.MessageOf(err)
		s.plan.States = append(s.plan.States, plan)
		return nil
	}
	holders, _, err := keeper.HoldersOf(ctx, queue.Name{Key: at.Key, State: true}.WorkflowID())
	if err != nil {
		plan.Problem = attempt.MessageOf(err)
	}
	plan.Holders = holders
	byName := map[string]incremental.State{}
	for _, state := range found {
		byName[state.Name] = state
	}
	s.addStates(plan, found)
	return byName
}

// statesAt returns the states at a place of a name, or whose names have its prefix.
func (s *stepPlanner) statesAt(ctx context.Context, at call.StateAt) (states []incremental.State, err error) {
	prefix := at.Prefix
	if at.Name != "" {
		prefix = at.Name
	}
	if at.Place == nil && at.Group == "" {
		if prefix == "" {
			return nil, nil
		}
		states, _, err = keeper.StatesOfGroups(ctx, prefix)
	} else {
		states, err = s.catalogue.States.StoreOf(at.Place, at.Group).States(ctx, prefix, "")
	}
	if at.Name != "" {
		states = slices.DeleteFunc(states, func(state incremental.State) bool { return state.Name != at.Name })
	}
	shown := firstStates(states)
	if more := len(states) - len(shown); more > 0 {
		s.plan.Warnings = lists.AddUnique(s.plan.Warnings, fmt.Sprintf("%d more states begin with %q; starter state list shows them", more, prefix))
	}
	return shown, err
}

// firstStates returns the states of a step that a plan shows.
func firstStates(all []incremental.State) []incremental.State {
	return all[:min(len(all), mostPlannedStates)]
}

// addStates adds existing states to the plan. A state that does not exist yet reads from the initial
// value.
func (s *stepPlanner) addStates(plan interpreter.StatePlan, found []incremental.State) {
	section := s.step.Incremental
	initial := s.initialValue()
	if len(found) == 0 {
		plan.ReadsFrom = initial
		s.plan.States = append(s.plan.States, plan)
	}
	for _, state := range found {
		one := plan
		one.State, one.Watermark, one.MovedAt, one.Run = state.Name, state.Watermark.Value, state.MovedAt, state.Run
		one.Emptied, one.Table = state.Emptied, state.Table
		one.ReadsFrom = state.ReadsFrom(section.CursorForm(), section.Lag).Value
		if state.Watermark.IsZero() || slices.Contains(s.task.Run.FullRefresh, s.step.Name) {
			one.ReadsFrom = initial
		}
		s.plan.States = append(s.plan.States, one)
	}
}

// initialValue is where the step starts to read without a state. A template that needs an element is shown
// unevaluated.
func (s *stepPlanner) initialValue() expression.Value {
	section := s.step.Incremental
	scope := interpreter.NewScope(s.book, s.task.Run, s.task.Data)
	initial, err := section.EvalInitial(scope, expression.DecisionBudget(s.now))
	if loop := s.step.Loop; err != nil || loop != nil && section.InitialTemplate.UsesAny(loop.Element) {
		return section.InitialText()
	}
	return initial.Value
}

// findUnclaimable finds the states that no call may claim, because rows are missing from their tables.
func (s *stepPlanner) findUnclaimable(states []interpreter.StatePlan, plan *interpreter.TablePlan) {
	if plan == nil || plan.Qualified == "" || slices.Contains(s.task.Run.FullRefresh, s.step.Name) {
		return
	}
	table := incremental.Table{Name: plan.Qualified, Shown: plan.Name, Exists: plan.Exists, HasRow: plan.Exists && !plan.Empty}
	for i := range states {
		state := &states[i]
		stored := incremental.State{
			Name: state.State, Watermark: incremental.Cursor{Value: state.Watermark}, Table: state.Table, Emptied: state.Emptied,
		}
		if refused := incremental.WithoutRows(stored, table); refused != nil && state.Problem == "" {
			state.Problem = refused.Message
		}
	}
}

// driveCall renders the first request of a call, and sends it if a sample is requested. It returns the
// inputs of the sinks, by place.
func (s *stepPlanner) driveCall(
	ctx context.Context, of *call.Call, states map[string]incremental.State, first bool,
) map[string]interpreter.ToolInput {
	written, made, cut := map[string]interpreter.ToolInput{}, false, false
	for ctx.Err() == nil {
		switch command := of.Next(s.now); command.Kind {
		case call.DoState:
			if !s.answerClaim(of, command.State, states) {
				return written
			}
		case call.DoAttempt:
			if made {
				of.EndHere(s.now, "the sample")
				cut = true
				continue
			}
			if made = s.showAttempt(ctx, of, command.Input, first); !made {
				return written
			}
		case call.DoSink:
			if next := command.Sink.Next(s.now); next.Kind == call.DoAttempt && (next.Input.Staging == nil || next.Input.Staging.Do == "") {
				written[next.Input.Place] = next.Input
			}
			of.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, s.now)
		case call.DoWait:
			of.EndWait()
		case call.DoFinish:
			if first && command.Result.Failed() && s.plan.Problem == "" {
				s.plan.Problem = command.Result.Error.Message
			}
			if first && !cut {
				s.plan.Warnings = command.Result.Warnings
			}
			return written
		default:
			return written
		}
	}
	return written
}

// answerClaim answers a call's claim with the stored state, without claiming it.
func (s *stepPlanner) answerClaim(of *call.Call, in interpreter.StateInput, states map[string]incremental.State) bool {
	output := interpreter.StateOutput{}
	if in.Claim != nil {
		state := states[in.Claim.Name]
		source := in.Claim.Source
		if in.Place == nil {
			source = source.DigestIdentity()
		}
		refused := incremental.RefuseOtherSource(state, source)
		if refused == nil && !in.Claim.Full {
			refused = incremental.WithoutTables(state, *in.Claim)
		}
		if refused != nil {
			s.plan.Problem = refused.Message
			return false
		}
		output.Claimed = incremental.ClaimedState{Watermark: state.Watermark, KnownFrom: state.KnownFrom}
	}
	of.StateAnswered(output, s.now)
	return true
}

// showAttempt shows the first request, and makes it for a sample. It reports whether it was made and has an answer.
func (s *stepPlanner) showAttempt(ctx context.Context, of *call.Call, in interpreter.ToolInput, first bool) bool {
	if !first {
		return false
	}
	sent := of.View().Request
	s.plan.Request = sent.String()
	traits := playbook.TraitsOf(in.Tool)
	switch {
	case traits.Plays:
		s.planBelow(ctx, of, in)
		return false
	case isTable(in):
		in.Place = s.step.Name
		s.planWrites(ctx, in)
		return false
	case traits.Moves:
		s.planMove(ctx, in)
		return false
	case !s.sample:
		return false
	case !traits.Requests || !strings.EqualFold(sent.HTTPMethod(false), http.MethodGet):
		s.noteUnsampled("for a sample, only GET requests of tool http are made")
		return false
	case s.step.Secret:
		s.noteUnsampled("the result of the step is secret")
		return false
	}
	made, err := s.catalogue.Attempts.MakeAttempt(ctx, in)
	switch {
	case err != nil:
		s.plan.Problem = "the sample failed: " + attempt.MessageOf(err)
		return false
	case made.Outcome.Err != nil:
		s.plan.Problem = "the sample failed: " + made.Outcome.Err.Message
		return false
	case made.Outcome.PutOff != nil:
		s.noteUnsampled("the request has to wait for a rate limit")
		return false
	}
	s.plan.Sampled = true
	of.ApplyOutcome(made.Outcome, s.now)
	return true
}

// planWrites plans a step that writes rows itself.
func (s *stepPlanner) planWrites(ctx context.Context, in interpreter.ToolInput) {
	plan := interpreter.SinkPlan{Place: s.plan.Step, Tool: in.Tool, Auth: in.Auth, Target: expression.Text(in.Fields["table"].Data)}
	s.planTable(ctx, in, &plan)
	s.plan.Sinks = append(s.plan.Sinks, plan)
}

// planMove plans the destination of a transfer. Its objects are published at the end.
func (s *stepPlanner) planMove(ctx context.Context, in interpreter.ToolInput) {
	s.noteUnsampled("for a sample, only GET requests of tool http are made")
	to, err := in.NestedCall(playbook.FieldTo)
	if err != nil {
		return // the check of the playbook says so
	}
	to.Place = s.step.Name
	if isTable(to) {
		s.planWrites(ctx, to)
		return
	}
	plan := interpreter.SinkPlan{Place: s.plan.Step, Tool: to.Tool, Auth: to.Auth, Target: expression.Text(to.Fields[playbook.FieldPath].Data)}
	if path := s.book.ResolveAction(s.step.Action).FolderOfRows(); path != "" {
		to.RowPaths, plan.Target = []string{}, tool.CutText(path, maxTarget)
	}
	s.planFile(ctx, to, false, &plan)
	s.plan.Sinks = append(s.plan.Sinks, plan)
}
