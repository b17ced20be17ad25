package call

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// A step with incremental keeps a state between runs (docs/concepts/state.md#what-a-run-reads). Its
// call claims the state before it renders its first request, reads the cursors of what each page
// contributes, and moves the watermark with the write of a page, with that of its last sink, or
// behind it.

// Incremental is what a call knows of the state that its step keeps; part of State. It is
// replaced and never changed in place.
type Incremental struct {
	Name  string `json:"name"`
	Group string `json:"group,omitempty"`
	// Holder is the key under which the call has claimed the state, and Writes counts what it
	// has written under that.
	Holder string `json:"holder"`
	Writes int    `json:"writes,omitempty"`
	// Found is the watermark that the call has found, and Value where it reads from. At is
	// where the watermark is now, nil where the call has found it.
	Found incremental.Cursor  `json:"found,omitzero"`
	Value incremental.Cursor  `json:"value,omitzero"`
	At    *incremental.Cursor `json:"at,omitempty"`
	// The rest is of the pages since the call began or was restarted. Largest is the largest
	// cursor that is not later than the call's start; Newest is the largest of all of earlier
	// pages, which only row_order asc needs.
	Largest incremental.Cursor `json:"largest,omitzero"`
	Newest  incremental.Cursor `json:"newest,omitzero"`
	Rows    int                `json:"rows,omitempty"`
	// Future counts rows that are dated later than the call's start, BelowValue those below
	// Value, and Missing those without a cursor that were left out.
	Future     int `json:"future,omitempty"`
	BelowValue int `json:"below_value,omitempty"`
	Missing    int `json:"missing,omitempty"`
}

// PendingState is a state that has to be claimed or moved without rows. Kept with State.
type PendingState struct {
	// Name and Group are those of the state that is to be claimed.
	Name  string `json:"name,omitempty"`
	Group string `json:"group,omitempty"`
	// Move is nil where the state is to be claimed.
	Move *incremental.Move `json:"move,omitempty"`
}

// incremental is the step's section, nil for calls that keep no state.
func (c *Config) incremental() *playbook.Incremental {
	if c.Sink != nil {
		return nil
	}
	return c.Step.Incremental
}

// readsInFull reports whether the run has the step read everything again.
func (c *Config) readsInFull() bool { return slices.Contains(c.Run.FullRefresh, c.Step.Name) }

// start begins the call: by a claim of its state, where it keeps one.
func (c *Call) start(now time.Time) {
	c.state.StartedAt = now
	if c.config.incremental() == nil || c.state.Incremental != nil {
		c.begin(now)
		return
	}
	name, group, err := c.stateName(now)
	if err != nil {
		c.fail(interpreter.ExpressionError(c.config.Book, c.config.where(), err), now)
		return
	}
	c.state.Todo = []Todo{{State: &PendingState{Name: name, Group: group}}}
}

// stateName is the name of the call's state, and of the group that keeps it where Temporal
// does.
func (c *Call) stateName(now time.Time) (name, group string, err error) {
	section := c.config.incremental()
	at := section.Pos
	if section.State != nil {
		at = section.State.Pos
		rendered, err := section.State.RenderKey(c.config.Scope, decisionBudget(now))
		if err != nil {
			return "", "", err
		}
		name = expression.Text(rendered)
		group = name
	} else {
		group = c.config.Book.StateGroup(c.config.Step)
		if name, err = c.config.elementState(group); err != nil {
			return "", "", err
		}
	}
	if name == "" || len(name) > incremental.MaxName {
		return "", "", &playbook.EvalError{Pos: at, Message: fmt.Sprintf("the name of the state has %d bytes; it may have 1 to %d", len(name), incremental.MaxName)}
	}
	return name, group, nil
}

// elementState is the name of a state without one of its own: each element of a loop has its.
func (c *Config) elementState(group string) (string, error) {
	loop := c.Step.Loop
	if loop == nil {
		return group, nil
	}
	element, _ := c.Scope.Lookup(loop.Element)
	switch element.(type) {
	case []any, map[string]any:
		return "", &playbook.EvalError{Pos: c.Step.Incremental.Pos, Message: fmt.Sprintf(
			"the elements are %ss, which make no names; name their state, such as state: \"%s/{{ %s.id }}\"", expression.TypeName(element), group, loop.Element)}
	}
	return group + "/" + expression.Text(element), nil
}

// stateRequest is the request to claim or move the state.
func (c *Call) stateRequest(pending PendingState, now time.Time) interpreter.StateInput {
	request := interpreter.StateInput{Place: c.statePlace(now)}
	if pending.Move == nil {
		request.Group = pending.Group
		request.Claim = &incremental.Claim{
			Name: pending.Name, Holder: c.ledgerKey(), Run: c.config.Run.WorkflowID, Source: c.stateSource(now), Full: c.config.readsInFull(),
		}
	} else {
		request.Moves = c.state.Incremental.moves(pending.Move)
	}
	if request.Place != nil {
		request.Group = ""
	}
	return request
}

// statePlace is the sink whose database keeps the state, without what it writes; nil where
// Temporal keeps it.
func (c *Call) statePlace(now time.Time) *interpreter.ToolInput {
	home := c.config.Book.StateHome(c.config.Step)
	if home == nil {
		return nil
	}
	place, fixed := c.ledger(home, now)
	if !fixed {
		return nil
	}
	return &place
}

// stateSource is what the state is about.
func (c *Call) stateSource(now time.Time) incremental.Source {
	section, budget := c.config.incremental(), decisionBudget(now)
	scope := c.config.Scope.With(c.keys())
	var parts []any
	for _, field := range c.action.Fields {
		if field.Key == playbook.FieldURL {
			if url, err := field.Value.RenderURL(scope, budget); err == nil {
				parts = append(parts, withoutQuery(expression.Text(url)))
			}
			continue
		}
		field.Value.EachTemplate(func(leaf *playbook.Node) {
			if !c.config.namesSource(leaf) {
				return
			}
			if value, err := leaf.Render(scope, budget); err == nil {
				parts = append(parts, field.Key, value)
			}
		})
	}
	if c.action.Auth != nil {
		if auth, err := c.action.Auth.Render(scope, budget); err == nil {
			parts = append(parts, expression.Text(auth))
		}
	}
	return incremental.Source{CursorPath: section.CursorPath, Type: section.Type, Fingerprint: expression.Hash(parts...)}
}

// namesSource reports whether a value of the request names workload or the element, and
// nothing that differs from run to run.
func (c *Config) namesSource(leaf *playbook.Node) bool {
	names := false
	for _, ref := range leaf.Refs() {
		_, isWorkload := c.Book.Workload[ref.Root]
		isElement := c.Step.Loop != nil && ref.Root == c.Step.Loop.Element
		if !isWorkload && !isElement && ref.Root != "workload" {
			return false
		}
		names = true
	}
	return names
}

func withoutQuery(url string) string {
	if at := bytes.IndexAny([]byte(url), "?#"); at >= 0 {
		return url[:at]
	}
	return url
}

// StateAnswered applies the result of the claim or the move that was due.
func (c *Call) StateAnswered(output interpreter.StateOutput, now time.Time) {
	pending := *c.state.head().State
	if pending.Move != nil {
		c.state.moved(pending.Move)
		c.state.Todo = c.state.Todo[1:]
		c.state.behindPage()
		c.endsBehindSinks(now)
		return
	}
	if refused := output.Claimed.Refused; refused != nil {
		c.fail(incrementalError(refused.Type, c.config.where()+": "+refused.Message), now)
		return
	}
	section := c.config.incremental()
	own := Incremental{Name: pending.Name, Group: pending.Group, Holder: c.ledgerKey(), Found: output.Claimed.Watermark}
	own.Value = incremental.Before(section.Type, own.Found, section.Lag)
	if own.Found.IsZero() || c.config.readsInFull() {
		own.Value = section.Initial()
	}
	c.state.Incremental, c.operation = &own, pageKey{}
	c.begin(now)
}

// StateFailed ends the call: its state cannot be claimed or moved.
func (c *Call) StateFailed(failure interpreter.ErrorObject, now time.Time) {
	if failure.Kind != interpreter.KindCancelled {
		failure.Kind = interpreter.KindIncremental
	}
	failure.Message = c.config.where() + ": " + failure.Message
	c.fail(&failure, now)
}

func incrementalError(kind, message string) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{Kind: interpreter.KindIncremental, Class: interpreter.ClassFinal, Type: kind, Message: message, Final: true}
}

// incrementalNames are `incremental` in expressions.
func (c *Call) incrementalNames() map[string]any {
	own := c.state.Incremental
	if own == nil {
		own = &Incremental{Value: c.config.incremental().Initial()}
	}
	return map[string]any{"value": own.Value.Value.Data, "watermark": own.Found.Value.Data}
}

// write is the next write under the claim.
func (i *Incremental) write(move *incremental.Move) *incremental.Write {
	return &incremental.Write{Name: i.Name, Holder: i.Holder, Number: i.Writes + 1, Move: move}
}

// moves are the next write alone.
func (i *Incremental) moves(move *incremental.Move) []incremental.Moves {
	return []incremental.Moves{{Group: i.Group, Writes: []incremental.Write{*i.write(move)}}}
}

// reached is where the watermark is now.
func (i *Incremental) reached() incremental.Cursor {
	if i.At != nil {
		return *i.At
	}
	return i.Found
}

// moved records a write, and where it has moved the watermark.
func (s *State) moved(move *incremental.Move) {
	own := *s.Incremental
	own.Writes++
	if at := own.reached(); move != nil && (move.Back || !bytes.Equal(move.To.Position, at.Position) || move.To.Text() != at.Text()) {
		own.At = &move.To
	}
	s.Incremental = &own
}

// claim distinguishes what the call reads from what it has read before, or has read under another
// claim; "" where it keeps no state.
func (c *Call) claim() string {
	switch own := c.state.Incremental; {
	case c.config.Sink != nil:
		return c.config.Sink.claim
	case own == nil:
		return ""
	default:
		return expression.Hash(own.Holder, own.Value.Value.Data, c.state.Restarts)
	}
}
