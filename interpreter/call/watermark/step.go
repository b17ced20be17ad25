package watermark

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/page"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// StatefulStep is a step that keeps a state between runs, as seen by one of its calls.
type StatefulStep struct {
	*request.Source
	Section  *playbook.Incremental
	Policies page.Policies
	// After says that sinks of the loop or step follow those of the policies.
	After bool
	home  *playbook.Sink // the sink whose database keeps the state; nil if Temporal does
	// inserts says that a sink skips rows that were written before.
	inserts bool
}

// StepOf returns the step of a source; nil if its calls keep no state.
func StepOf(source *request.Source, policies page.Policies, after bool) *StatefulStep {
	if source.Sink != nil || source.Step.Incremental == nil {
		return nil
	}
	return &StatefulStep{
		Source: source, Section: source.Step.Incremental, Policies: policies, After: after, home: source.Book.StateHome(source.Step),
		inserts: source.Book.InsertsRows(source.Step),
	}
}

// isFullRefresh reports whether the run requests that the step read everything again (full refresh).
func (s *StatefulStep) isFullRefresh() bool { return slices.Contains(s.Run.FullRefresh, s.Step.Name) }

// PendingClaim returns the state that the call has to claim.
func (s *StatefulStep) PendingClaim(now time.Time) (*Pending, error) {
	name, group, err := s.Name(now)
	return &Pending{Name: name, Group: group}, err
}

// Name returns the name of the call's state, and of the group that keeps it if Temporal does.
func (s *StatefulStep) Name(now time.Time) (name, group string, err error) {
	at := s.Section.Pos
	if s.Section.State != nil {
		at = s.Section.State.Pos
		rendered, err := s.Section.State.RenderKey(s.Scope, expression.DecisionBudget(now))
		if err != nil {
			return "", "", err
		}
		name = expression.Text(rendered)
		group = name
	} else {
		group = s.Book.StateGroup(s.Step)
		if name, err = s.defaultStateName(group); err != nil {
			return "", "", err
		}
	}
	if name == "" || len(name) > incremental.MaxName {
		return "", "", &playbook.EvalError{Pos: at, Message: fmt.Sprintf("the name of the state has %d bytes; it may have 1 to %d", len(name), incremental.MaxName)}
	}
	return name, group, nil
}

// defaultStateName returns the default name of the state: that of the group or, in a loop, one for each element.
func (s *StatefulStep) defaultStateName(group string) (string, error) {
	loop := s.Step.Loop
	if loop == nil {
		return group, nil
	}
	element, _ := s.Scope.Lookup(loop.Element)
	switch element.(type) {
	case []any, map[string]any:
		return "", &playbook.EvalError{Pos: s.Section.Pos, Message: fmt.Sprintf(
			"the elements are %ss, which cannot be part of a name; set state, for example state: \"%s/{{ %s.id }}\"", expression.TypeName(element), group, loop.Element)}
	}
	return group + "/" + expression.Text(element), nil
}

// ClaimRequest returns the request for a state. holder is the key of the call, and about identifies the source of the
// state.
func (s *StatefulStep) ClaimRequest(pending Pending, holder string, about incremental.SourceIdentity, now time.Time) interpreter.StateInput {
	return s.placeRequest(interpreter.StateInput{
		Group: pending.Group,
		Claim: &incremental.Claim{
			Name: pending.Name, Holder: holder, Run: s.Run.WorkflowID, Source: about, Full: s.isFullRefresh(), Tables: s.Book.OtherTables(s.Step),
			Inserts: s.inserts, Key: s.rowKey(now), Format: s.Section.Format,
		},
	}, now)
}

// rowKey returns the columns by which the inserting sink recognizes rows that come again: those of the step, or of
// the sink. None means the whole row.
func (s *StatefulStep) rowKey(now time.Time) []string {
	sink := s.Book.InsertingSink(s.Step)
	if len(s.Section.Key) > 0 || sink == nil || s.Section.Type == incremental.Token {
		return s.Section.Key
	}
	input, _ := s.SinkTarget(sink, now)
	return request.KeyColumns(input.Fields["key"].Data)
}

// initialCursor returns the cursor from which a call reads if the state has not moved yet. The error is an
// *playbook.EvalError.
func (s *StatefulStep) initialCursor(now time.Time) (incremental.Cursor, error) {
	return s.Section.EvalInitial(s.Scope, expression.DecisionBudget(now))
}

// NewWatermark returns the watermark of a call that has claimed its state. The error is about the initial value.
func (s *StatefulStep) NewWatermark(pending Pending, holder string, claimed incremental.ClaimedState, now time.Time) (*Watermark, error) {
	own := Watermark{Name: pending.Name, Group: pending.Group, Holder: holder, Run: s.Run.WorkflowID, Found: claimed.Watermark, KnownAs: claimed.KnownAs, KnownTo: claimed.KnownTo}
	initial, err := s.initialCursor(now)
	if err != nil {
		return nil, err
	}
	if s.Section.InitialTemplate != nil {
		own.Initial = &initial
	}
	own.Value = initial
	if !own.Found.IsZero() && !s.isFullRefresh() {
		state := incremental.State{Watermark: own.Found, KnownFrom: claimed.KnownFrom}
		own.Value = state.ReadsFrom(s.Section.CursorForm(), s.Section.Lag)
		own.LessLag = !own.Value.Equal(s.Section.CursorForm().BeforeLag(own.Found, s.Section.Lag))
	}
	own.Slice, err = s.Section.FirstSlice(own.Value, s.Scope, expression.DecisionBudget(now), now)
	return &own, err
}

// MoveRequest returns the request to move the state.
func (s *StatefulStep) MoveRequest(w *Watermark, move *incremental.Move, now time.Time) interpreter.StateInput {
	return s.placeRequest(interpreter.StateInput{Moves: w.AsMoves(move)}, now)
}

// placeRequest sets the place of a request: where the state is kept.
func (s *StatefulStep) placeRequest(request interpreter.StateInput, now time.Time) interpreter.StateInput {
	if request.Place = s.StateSink(now); request.Place != nil {
		request.Group = ""
	}
	return request
}

// StateSink returns the sink whose database keeps the state, without the data to write; nil if Temporal keeps it.
func (s *StatefulStep) StateSink(now time.Time) *interpreter.ToolInput {
	if s.home == nil {
		return nil
	}
	input, fixed := s.SinkTarget(s.home, now)
	if !fixed {
		return nil
	}
	return &input
}

// isHome reports whether a sink writes to the database that keeps the state.
func (s *StatefulStep) isHome(sink *playbook.Sink, now time.Time) bool {
	if s.home == nil {
		return false
	}
	if s.home == sink {
		return true
	}
	at, fixed := s.SinkTarget(s.home, now)
	other, alsoFixed := s.SinkTarget(sink, now)
	return fixed && alsoFixed && at.Tool == other.Tool && at.Auth == other.Auth && other.Fields["table"].Data != nil &&
		expression.Text(at.Fields["path"].Data) == expression.Text(other.Fields["path"].Data)
}

// isTableOfState reports whether a sink writes to the table of the home sink, for which the state is kept. The sink
// must write to the same database.
func (s *StatefulStep) isTableOfState(sink *playbook.Sink, now time.Time) bool {
	if s.home == sink {
		return true
	}
	at, _ := s.SinkTarget(s.home, now)
	other, _ := s.SinkTarget(sink, now)
	return expression.Text(at.Fields["table"].Data) == expression.Text(other.Fields["table"].Data)
}

// SourceOf identifies the source of the state by an action, rendered in the given scope.
func (s *StatefulStep) SourceOf(action *playbook.Action, scope *interpreter.Scope, now time.Time) incremental.SourceIdentity {
	of := source{step: s, scope: scope, budget: expression.DecisionBudget(now)}
	for _, field := range action.Fields {
		if field.Key == playbook.FieldURL {
			of.addURL(field.Value)
		} else {
			of.addField(field.Key, field.Value)
		}
	}
	if action.Args != nil {
		of.addField("args", action.Args)
	}
	if action.Auth != nil {
		if auth, err := action.Auth.Render(scope, of.budget); err == nil {
			of.parts = append(of.parts, expression.Text(auth))
		}
	}
	return incremental.SourceIdentity{CursorPath: s.Section.CursorPath, Type: s.Section.Type, Fingerprint: expression.ShortDigest(of.parts...)}
}

// source collects what distinguishes the source of a step from others.
type source struct {
	step   *StatefulStep
	scope  *interpreter.Scope
	budget *expression.Budget
	parts  []any
}

// addURL adds a URL without its query, and the values of workload and element that the query uses.
func (of *source) addURL(url *playbook.Node) {
	rendered, err := url.RenderURL(of.scope, of.budget)
	if err != nil {
		return
	}
	text := expression.Text(rendered)
	at := strings.IndexAny(text, "?#")
	if at < 0 {
		of.parts = append(of.parts, text)
		return
	}
	of.parts = append(of.parts, text[:at])
	of.addNamed(playbook.FieldURL, queryRefs(url))
}

// queryRefs returns the references in the query of a URL. If the question mark may come from a value, it returns
// all references.
func queryRefs(url *playbook.Node) []expression.Ref {
	if url.Template == nil {
		return nil
	}
	for _, segment := range url.Template.Segments() {
		if segment.Program != nil || !strings.ContainsAny(segment.Text, "?#") {
			continue
		}
		return slices.DeleteFunc(url.Refs(), func(ref expression.Ref) bool { return ref.Offset < segment.Start })
	}
	return url.Refs()
}

// addField adds the values of a field that uses workload or the element. Templates that use nothing else are
// rendered. Of others only the values of workload and element are added, because the rest, such as
// incremental.value, may differ from run to run.
func (of *source) addField(key string, field *playbook.Node) {
	for leaf := range field.Templates() {
		refs := leaf.Refs()
		if slices.ContainsFunc(refs, func(ref expression.Ref) bool { return !of.step.namesSource(ref) }) {
			of.addNamed(key, refs)
		} else if value, err := leaf.Render(of.scope, of.budget); err == nil && len(refs) > 0 {
			of.parts = append(of.parts, key, value)
		}
	}
	if field.Statement() != nil {
		of.addNamed(key, field.Refs())
	}
}

// addNamed adds the values of the references to workload and element.
func (of *source) addNamed(key string, refs []expression.Ref) {
	for _, ref := range refs {
		if !of.step.namesSource(ref) {
			continue
		}
		root, _ := of.scope.Lookup(ref.Root)
		value, _ := expression.FollowKeys(root, ref.Path)
		of.parts = append(of.parts, key, value)
	}
}

// namesSource reports whether a reference reads the workload or the element.
func (s *StatefulStep) namesSource(ref expression.Ref) bool {
	_, isWorkload := s.Book.Workload[ref.Root]
	isElement := s.Step.Loop != nil && ref.Root == s.Step.Loop.Element
	return isWorkload || isElement || ref.Root == "workload"
}

// ExprValue returns the value of `incremental` in expressions.
func (s *StatefulStep) ExprValue(w *Watermark) map[string]any {
	if w == nil {
		initial, _ := s.initialCursor(s.Run.StartedAt) // an error ends the call once it has claimed its state
		w = &Watermark{Value: initial}
		w.Slice, _ = s.Section.FirstSlice(initial, s.Scope, expression.DecisionBudget(s.Run.StartedAt), s.Run.StartedAt)
	}
	if w.Slice != nil {
		return map[string]any{
			"value": w.Value.Value.Data, "watermark": s.Section.CursorForm().BeforeLag(w.Found, 0).Value.Data,
			"from": w.Slice.From.Value.Data, "to": w.Slice.To.Value.Data,
		}
	}
	return map[string]any{"value": w.Value.Value.Data, "watermark": s.Section.CursorForm().BeforeLag(w.Found, 0).Value.Data}
}
