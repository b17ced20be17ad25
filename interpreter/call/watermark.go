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

// readCursors reads the cursors of what a page contributes. The failure is one that ends the
// call; the page is not written then.
func (c *Call) readCursors() *interpreter.ErrorObject {
	section := c.config.incremental()
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
			i.Future++
			continue
		}
		if bytes.Compare(cursor.Position, i.Value.Position) < 0 {
			i.BelowValue++
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
	section := c.incremental()
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
	if c.config.incremental() == nil {
		return c.state.addPage(&c.config, decision, c.state.Last.Data, nil)
	}
	own := *c.state.Incremental
	c.state.Incremental = &own
	return c.state.addPage(&c.config, decision, c.state.Last.Data, func(page any) any {
		kept := c.config.withoutMissing(page)
		own.Missing += len(incremental.Contributed(page)) - len(incremental.Contributed(kept))
		return kept
	})
}

// movesByPage reports whether the watermark moves with each page.
func (c *Config) movesByPage() bool {
	section := c.incremental()
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
	return c.move(c.state.Incremental.Largest, c.config.Book.StateHome(c.config.Step) != nil)
}

// move is that to a cursor. Where the watermark is there already it is one that counts the rows,
// and changes nothing else, or nil.
func (c *Call) move(to incremental.Cursor, counts bool) *incremental.Move {
	own := c.state.Incremental
	switch {
	case to.IsZero():
		return nil
	case to.Position == nil || bytes.Compare(to.Position, own.reached().Position) > 0:
		return &incremental.Move{To: to, Rows: own.Rows}
	case counts:
		return &incremental.Move{To: own.reached(), Rows: own.Rows}
	}
	return nil
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
		result.Meta.Incremental = &interpreter.CallIncremental{Pending: own.moves(move)}
		move = nil
	}
	return moveTodo(move), err
}

// endMove is the move of a call that has ended well, nil for none.
func (c *Call) endMove(result *interpreter.CallResult) (*incremental.Move, error) {
	own, section := c.state.Incremental, c.config.incremental()
	if c.state.Incomplete || own.Rows == 0 || result.Meta.Truncated || c.config.movesByPage() {
		return nil, nil
	}
	if section.Token == nil {
		return c.move(own.Largest, c.config.hasSinks()), nil
	}
	token, err := section.Token.Render(c.policyScope(), decisionBudget(result.Meta.EndedAt))
	if err != nil || token == nil {
		return nil, err
	}
	return &incremental.Move{To: incremental.Cursor{Value: expression.Of(token)}, Rows: own.Rows}, nil
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
	write.Rows = c.rowsThatComeAgain(c.config.incremental(), write.Move)
	return write
}

// rowsThatComeAgain finds them. Below the floor nothing comes again: what the call has
// read may, until it has ended well, because it may begin again, or go back for its order.
func (c *Call) rowsThatComeAgain(section *playbook.Incremental, move *incremental.Move) *incremental.Rows {
	known := &incremental.Rows{CursorPath: section.CursorPath, Type: section.Type, Key: section.Key, Ordered: section.Ascending}
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
	return home == sink || c.sameDatabase(home, sink, c.state.StartedAt)
}

// sameDatabase reports whether two sinks write to tables of one database.
func (c *Call) sameDatabase(home, sink *playbook.Sink, now time.Time) bool {
	at, fixed := c.ledger(home, now)
	other, alsoFixed := c.ledger(sink, now)
	return fixed && alsoFixed && at.Tool == other.Tool && at.Auth == other.Auth && other.Fields["table"].Data != nil &&
		expression.Text(at.Fields["path"].Data) == expression.Text(other.Fields["path"].Data)
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
	shown := interpreter.CallIncremental{
		State: own.Name, Type: c.config.incremental().Type, From: own.Value, Watermark: own.reached(), Rows: own.Rows, Moved: own.At != nil,
	}
	if before := result.Meta.Incremental; before != nil {
		shown.Pending = before.Pending
	}
	result.Meta.Incremental = &shown
}

// warnOfRows says of rows what their author may not expect.
func (c *Call) warnOfRows(result *interpreter.CallResult) {
	own := c.state.Incremental
	if own == nil {
		return
	}
	where, section := c.config.where(), c.config.incremental()
	if own.Future > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf(
			"%s: %s dated later than the call began: written, not passed by the watermark, and read again", where, rows(own.Future)))
	}
	if own.Missing > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: %s without %s left out (on_missing: exclude)", where, rows(own.Missing), section.CursorPath))
	}
	if own.BelowValue > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf(
			"%s: %s below incremental.value (%s); `lag` has to cover what the source answers beyond what it is asked for",
			where, rows(own.BelowValue), expression.Text(own.Value.Value.Data)))
	}
}

// rows counts them in a message.
func rows(n int) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

// stateFor is what the write does to the state, derived from its fields: rows are recognised by the
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
