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
	"reprise/interpreter/retry"
)

// A step with incremental keeps a state between runs (language.md, section incremental). Its
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
	Ahead   int                `json:"ahead,omitempty"`   // rows that are dated later than the call's start
	Below   int                `json:"below,omitempty"`   // rows that are below Value
	Without int                `json:"without,omitempty"` // rows without a cursor that were left out
	// Stays says that the call has not read to the end, so that the watermark stays.
	Stays bool `json:"stays,omitempty"`
}

// PendingState is a state that has to be claimed or moved without rows. Kept with State.
type PendingState struct {
	// Move is nil where the state is to be claimed.
	Move *incremental.Move `json:"move,omitempty"`
}

// keeps is the step's section, nil for calls that keep no state.
func (c *Config) keeps() *playbook.Incremental {
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
	if c.config.keeps() == nil || c.state.Incremental != nil {
		c.begin(now)
		return
	}
	if _, _, err := c.stateName(now); err != nil {
		c.fail(interpreter.ExpressionError(c.config.Book, c.config.where(), err), now)
		return
	}
	c.state.Todo = []Todo{{State: &PendingState{}}}
}

// mostName bounds the name of a state, in bytes.
const mostName = 500

// stateName is the name of the call's state, and of the group that keeps it where Temporal
// does.
func (c *Call) stateName(now time.Time) (name, group string, err error) {
	section := c.config.keeps()
	if section.State == nil {
		group = c.config.Book.StateGroup(c.config.Step)
		name = group
		if loop := c.config.Step.Loop; loop != nil {
			element, _ := c.config.Scope.Lookup(loop.Element)
			name += "/" + expression.Text(element)
		}
	} else {
		rendered, err := section.State.RenderKey(c.config.Scope, decisionBudget(now))
		if err != nil {
			return "", "", err
		}
		name = expression.Text(rendered)
		group = name
	}
	if name == "" || len(name) > mostName {
		at := section.Pos
		if section.State != nil {
			at = section.State.Pos
		}
		return "", "", &playbook.EvalError{Pos: at, Message: fmt.Sprintf("the name of the state has %d bytes; it may have 1 to %d", len(name), mostName)}
	}
	return name, group, nil
}

// stateRequest is what the host asks of whoever keeps the state.
func (c *Call) stateRequest(pending PendingState, now time.Time) interpreter.StateInput {
	name, group, _ := c.stateName(now)
	request := interpreter.StateInput{Place: c.statePlace(now)}
	if request.Place == nil {
		request.Group = group
	}
	if pending.Move == nil {
		request.Claim = &incremental.Claim{
			Name: name, Holder: c.ledgerKey(), Run: c.config.Run.WorkflowID, Source: c.stateSource(now), Full: c.config.readsInFull(),
		}
		return request
	}
	request.Moves = []incremental.Write{*c.state.Incremental.write(pending.Move)}
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
	section, budget := c.config.keeps(), decisionBudget(now)
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
			if !c.config.tellsSources(leaf) {
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

// tellsSources reports whether a value of the request names workload or the element, and
// nothing that differs from run to run.
func (c *Config) tellsSources(leaf *playbook.Node) bool {
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

// StateAnswered takes what became of the claim or the move that was due.
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
	section := c.config.keeps()
	name, group, _ := c.stateName(now)
	own := Incremental{Name: name, Group: group, Holder: c.ledgerKey(), Found: output.Claimed.Watermark}
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
		own = &Incremental{Value: c.config.keeps().Initial()}
	}
	return map[string]any{"value": own.Value.Value.Data, "watermark": own.Found.Value.Data}
}

// write is the next write under the claim.
func (i *Incremental) write(move *incremental.Move) *incremental.Write {
	return &incremental.Write{Name: i.Name, Holder: i.Holder, Number: i.Writes + 1, Move: move}
}

// moved notes a write, and where it has moved the watermark.
func (s *State) moved(move *incremental.Move) {
	own := *s.Incremental
	own.Writes++
	if move != nil {
		own.At = &move.To
	}
	s.Incremental = &own
}

// claim tells what the call reads from what it has read before, or has read under another
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

// readCursors reads the cursors of what a page contributes. The failure is one that ends the
// call; the page is not written then.
func (c *Call) readCursors() *interpreter.ErrorObject {
	section := c.config.keeps()
	if section == nil {
		return nil
	}
	rows := incremental.Contributed(c.state.Last.Contribution.Data)
	own := *c.state.Incremental
	own.Rows += len(rows)
	if section.Token == nil {
		if failure := own.read(section, rows, c.state.StartedAt); failure != nil {
			failure.Message = fmt.Sprintf("%s: page %d, %s", c.config.where(), c.state.Successes, failure.Message)
			return c.complete(failure)
		}
	}
	c.state.Incremental = &own
	return nil
}

// read takes in the cursors of a page's rows.
func (i *Incremental) read(section *playbook.Incremental, rows []any, started time.Time) *interpreter.ErrorObject {
	start, dated := incremental.At(section.Type, started)
	bound := incremental.Before(section.Type, i.Newest, section.Lag) // nothing is below none
	newest := i.Newest
	for at, row := range rows {
		value, _ := incremental.Member(row, section.CursorPath)
		if value == nil {
			if section.OnMissing == playbook.MissingInclude {
				continue
			}
			return incrementalError(incremental.TypeMissing, fmt.Sprintf(
				"row %d: it has no %s; say `on_missing: include` or `exclude` where rows may lack it", at+1, section.CursorPath))
		}
		cursor, err := incremental.Parse(section.Type, value)
		if err != nil {
			return incrementalError(incremental.TypeCursor, fmt.Sprintf("row %d: %s: %s; `type` says what it is", at+1, section.CursorPath, err))
		}
		if section.Ascending && bytes.Compare(cursor.Position, bound.Position) < 0 {
			return incrementalError(incremental.TypeOrder, fmt.Sprintf(
				"row %d: %s is %s, below the %s of an earlier page, by more than `lag`: the source does not keep `row_order: asc`. "+
					"The watermark is where the call found it; leave row_order out, or sort the source",
				at+1, section.CursorPath, expression.Text(value), expression.Text(i.Newest.Value.Data)))
		}
		newest = incremental.Larger(newest, cursor)
		if dated && bytes.Compare(cursor.Position, start.Position) > 0 {
			i.Ahead++
			continue
		}
		if bytes.Compare(cursor.Position, i.Value.Position) < 0 {
			i.Below++
		}
		i.Largest = incremental.Larger(i.Largest, cursor)
	}
	if section.Ascending {
		i.Newest = newest
	}
	return nil
}

// withoutMissing is a page without the rows that have no cursor, where those are left out.
func (c *Config) withoutMissing(page any) any {
	section := c.keeps()
	rows, isList := page.([]any)
	if section == nil || section.OnMissing != playbook.MissingExclude || section.Token != nil || !isList {
		return page
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row any) bool {
		value, _ := incremental.Member(row, section.CursorPath)
		return value == nil
	})
}

// addPage collects the page of the last attempt, and gives what it contributes.
func (c *Call) addPage(decision retry.Decision) (expression.Value, error) {
	if c.config.keeps() == nil {
		return c.state.addPage(&c.config, decision, c.state.Last.Data, nil)
	}
	own := *c.state.Incremental
	c.state.Incremental = &own
	return c.state.addPage(&c.config, decision, c.state.Last.Data, func(page any) any {
		kept := c.config.withoutMissing(page)
		own.Without += len(incremental.Contributed(page)) - len(incremental.Contributed(kept))
		return kept
	})
}

// movesByPage reports whether the watermark moves with each page.
func (c *Config) movesByPage() bool {
	section := c.keeps()
	if section == nil || !section.Ascending || len(c.After) > 0 {
		return false
	}
	pages := 0
	for _, policy := range c.Policies {
		if policy.Then.Sink != nil {
			return false
		}
		if policy.Then.PerIteration != nil {
			pages++
		}
	}
	return pages == 1
}

// pageMove is the move behind the sink of a page, nil for none.
func (c *Call) pageMove() *incremental.Move {
	if !c.config.movesByPage() {
		return nil
	}
	return c.move(c.state.Incremental.Largest)
}

// move is that to a cursor, nil where the watermark is there already.
func (c *Call) move(to incremental.Cursor) *incremental.Move {
	own := c.state.Incremental
	at := own.Found
	if own.At != nil {
		at = *own.At
	}
	if to.IsZero() || to.Position != nil && bytes.Compare(to.Position, at.Position) <= 0 {
		return nil
	}
	return &incremental.Move{To: to, Rows: own.Rows}
}

// endMoves are the moves of the watermark with which a call ends, behind its sinks: where it has
// ended well, and back where its rows came out of order. The error is that of the token.
func (c *Call) endMoves(result *interpreter.CallResult) ([]Todo, error) {
	own := c.state.Incremental
	switch {
	case own == nil:
		return nil, nil
	case result.Failed():
		if failure := result.Error; failure.Kind == interpreter.KindIncremental && failure.Type == incremental.TypeOrder && own.At != nil {
			return moveTodo(&incremental.Move{To: own.Found, Back: true}), nil
		}
		return nil, nil
	}
	move, err := c.endMove(result)
	if err == nil && move != nil && !c.config.hasSinks() {
		result.Meta.Incremental = &interpreter.CallIncremental{Pending: own.write(move), Group: own.Group}
		move = nil
	}
	return moveTodo(move), err
}

// endMove is the move of a call that has ended well, nil for none.
func (c *Call) endMove(result *interpreter.CallResult) (*incremental.Move, error) {
	own, section := c.state.Incremental, c.config.keeps()
	if own.Stays || own.Rows == 0 || result.Meta.Truncated || c.config.movesByPage() {
		return nil, nil
	}
	if section.Token == nil {
		return c.move(own.Largest), nil
	}
	token, err := section.Token.Render(c.policyScope(), decisionBudget(result.Meta.EndedAt))
	if err != nil || token == nil {
		return nil, err
	}
	return &incremental.Move{To: incremental.Cursor{Value: expression.Of(token)}, Rows: own.Rows}, nil
}

// watermarkStays notes that the call ends without having read all.
func (c *Call) watermarkStays() {
	if c.state.Incremental != nil {
		own := *c.state.Incremental
		own.Stays = true
		c.state.Incremental = &own
	}
}

// restarted is what a call that begins again knows of its state. What it has written stays
// written; full has it read from the initial value.
func (i *Incremental) restarted(section *playbook.Incremental, full bool) *Incremental {
	if i == nil {
		return nil
	}
	own := Incremental{Name: i.Name, Group: i.Group, Holder: i.Holder, Writes: i.Writes, Found: i.Found, Value: i.Value, At: i.At}
	if full {
		own.Value = section.Initial()
	}
	return &own
}

// withPageMove is the sink of a page with the move behind it.
func (c *Call) withPageMove(page []Todo) []Todo {
	if len(page) == 0 || c.state.Incremental == nil {
		return page
	}
	return slices.Concat(page, moveTodo(c.pageMove()))
}

func moveTodo(move *incremental.Move) []Todo {
	if move == nil {
		return nil
	}
	return []Todo{{State: &PendingState{Move: move}}}
}

// hasSinks reports whether anything is written of a call that ends well.
func (c *Config) hasSinks() bool {
	return len(c.After) > 0 || slices.ContainsFunc(c.Policies, func(policy *playbook.Policy) bool {
		return policy.Then.PerIteration != nil || policy.Then.Sink != nil
	})
}

// sinkState is what the sink that is due does to the state; nil where it writes elsewhere.
func (c *Call) sinkState(pending pendingSink) *incremental.Write {
	own := c.state.Incremental
	if own == nil || pending.DeadLetter || !c.isHome(c.config.pendingSink(pending)) {
		return nil
	}
	write := own.write(nil)
	if next := c.state.Todo[1:]; len(next) > 0 && next[0].State != nil {
		write.Move = next[0].State.Move
	}
	write.Rows = c.rowsThatComeAgain(c.config.keeps(), write.Move)
	return write
}

// rowsThatComeAgain tells them apart. Below the floor nothing comes again: what the call has
// read may, until it has ended well, because it may begin again, or go back for its order.
func (c *Call) rowsThatComeAgain(section *playbook.Incremental, move *incremental.Move) *incremental.Rows {
	known := &incremental.Rows{CursorPath: section.CursorPath, Type: section.Type, Key: section.Key}
	known.Sweep = move != nil && c.state.last().End != nil
	floor := c.state.Incremental.Found
	if known.Sweep {
		floor = move.To
	}
	known.Floor = incremental.Before(section.Type, floor, section.Lag).Position
	if section.Token != nil && known.Sweep {
		known.Floor = incremental.AboveToken
	}
	return known
}

// isHome reports whether a sink writes to the database that keeps the state.
func (c *Call) isHome(sink *playbook.Sink) bool {
	home := c.config.Book.StateHome(c.config.Step)
	if home == nil {
		return false
	}
	return home == sink || c.samePlace(home, sink, c.state.StartedAt)
}

// samePlace reports whether two sinks write to tables of one database.
func (c *Call) samePlace(home, sink *playbook.Sink, now time.Time) bool {
	at, fixed := c.ledger(home, now)
	other, too := c.ledger(sink, now)
	if !fixed || !too || at.Tool != other.Tool || at.Auth != other.Auth {
		return false
	}
	for _, name := range []string{"database", "path", "file"} {
		if expression.Text(at.Fields[name].Data) != expression.Text(other.Fields[name].Data) {
			return false
		}
	}
	return other.Fields["table"].Data != nil
}

// stateWritten notes that a sink has written to the state, and drops the move that it made.
func (c *Call) stateWritten(write *incremental.Write) {
	if write == nil {
		return
	}
	c.state.moved(write.Move)
	if write.Move != nil {
		c.state.Todo = c.state.Todo[1:]
	}
}

// showIncremental completes the result with what became of the state, behind all sinks.
func (c *Call) showIncremental(result *interpreter.CallResult) {
	own := c.state.Incremental
	if own == nil {
		return
	}
	shown := interpreter.CallIncremental{State: own.Name, From: own.Value, Watermark: own.Found, Rows: own.Rows}
	if own.At != nil {
		shown.Watermark = *own.At
	}
	if before := result.Meta.Incremental; before != nil {
		shown.Pending, shown.Group = before.Pending, before.Group
	}
	result.Meta.Incremental = &shown
}

// warnOfRows says of rows what their author may not expect.
func (c *Call) warnOfRows(result *interpreter.CallResult) {
	own := c.state.Incremental
	if own == nil {
		return
	}
	where, section := c.config.where(), c.config.keeps()
	if own.Ahead > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf(
			"%s: %s dated later than the call began: written, not passed by the watermark, and read again", where, rows(own.Ahead)))
	}
	if own.Without > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: %s without %s left out (on_missing: exclude)", where, rows(own.Without), section.CursorPath))
	}
	if own.Below > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf(
			"%s: %s below incremental.value (%s); `lag` has to cover what the source answers beyond what it is asked for",
			where, rows(own.Below), expression.Text(own.Value.Value.Data)))
	}
}

// rows counts them in a message.
func rows(n int) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

// stateFor is what the write does to the state, told by its fields: rows are known again by the
// sink's key, and modes that take them need not know them.
func (s *sinkSource) stateFor(input *interpreter.ToolInput) *incremental.Write {
	if s.state == nil || s.state.Rows == nil {
		return s.state
	}
	write, known := *s.state, *s.state.Rows
	switch expression.Text(input.Fields["mode"].Data) {
	case "upsert", "replace":
		write.Rows = nil
		return &write
	}
	if len(known.Key) == 0 && known.Type != incremental.Token {
		known.Key = texts(input.Fields["key"].Data)
	}
	if write.Rows = &known; input.Result == nil {
		input.Result = &expression.Value{Data: s.Result} // which its args stand for, row by row
	}
	return &write
}

// texts are those of a text or of a list.
func texts(value any) []string {
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		all := make([]string, len(value))
		for i, one := range value {
			all[i] = expression.Text(one)
		}
		return all
	}
	return []string{expression.Text(value)}
}
