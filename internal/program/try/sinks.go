package try

import (
	"context"
	"fmt"
	"slices"
	"time"

	"reprise/activities/attempt"
	"reprise/activities/sqltool"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// readingVerbs begin statements that the database can run as read-only (tool.ReadOnly). Other statements are refused
// before they are sent.
var readingVerbs = []string{"select", "with", "values", "explain", "show", "table", "pragma"}

// trySink shows what a sink would get, and writes it if that is allowed.
func (t *trial) trySink(ctx context.Context, sink *call.Call) error {
	command := sink.Next(time.Now().UTC())
	if command.Kind != call.DoAttempt { // its fields cannot be rendered
		t.report.Sinks = append(t.report.Sinks, Sink{Place: sink.Config().StepOrSink(), Rows: []any{}, Error: t.maskedText(failureOf(command.Result))})
		t.call.SinkDone(command.Result, time.Now().UTC())
		return nil
	}
	in := command.Input
	shown := Sink{Place: in.Place, Tool: in.Tool, Auth: in.Auth, Target: t.sinkTarget(in), Page: in.Page, Rows: []any{}}
	if in.Staging != nil && in.Staging.Do != "" { // it writes no rows, but publishes those that were staged
		result, err := succeeded, error(nil)
		if t.Write {
			result, err = t.writeSink(ctx, sink)
		}
		t.call.SinkDone(result, time.Now().UTC())
		return err
	}
	reshaped, err := attempt.ReshapeRows(ctx, in)
	if err != nil {
		failed := unwrittenResult("sink " + in.Place + ": " + err.Error())
		shown.Error = t.maskedText(failureOf(failed))
		t.report.Sinks = append(t.report.Sinks, shown)
		t.call.SinkDone(failed, time.Now().UTC())
		return nil
	}
	in = in.WithRows(reshaped)
	shown.Paths = t.countPaths(reshaped.Paths)
	if rows, isList := t.maskedValue(in.SinkRows()).([]any); isList && len(in.Params) == 0 {
		shown.Rows, shown.Columns = rows, columnsOf(rows)
	}
	problem := t.showTables(in, &shown)
	for _, param := range in.Params {
		shown.Params = append(shown.Params, expression.Of(t.maskedValue(param.Data)))
	}
	result := succeeded
	if problem != nil && !t.Write { // or the write reports it
		result = unwrittenResult("sink " + in.Place + ": " + problem.Error())
		shown.Error = t.maskedText(failureOf(result))
	}
	result.Warnings = lists.Map(reshaped.Notes, func(note string) string { return "sink " + in.Place + ": " + note })
	if t.Write {
		if result, err = t.writeSink(ctx, sink); err != nil {
			return err
		}
		shown.Written, shown.Error = !result.Failed(), t.maskedText(failureOf(result))
	}
	t.report.Sinks = append(t.report.Sinks, shown)
	t.call.SinkDone(result, time.Now().UTC())
	return nil
}

// showTables shows the rows of each table, where lists in the rows of the sink become tables of their own. The error is that of a list that cannot.
func (t *trial) showTables(in interpreter.ToolInput, shown *Sink) error {
	_, described := in.Fields[playbook.FieldChildren]
	_, nested := in.Fields[playbook.FieldNested]
	if !playbook.TraitsOf(in.Tool).KeepsStates || in.Fields["table"].Data == nil || !described && !nested {
		return nil
	}
	tables, err := sqltool.RowsOfTables(in)
	for i, table := range tables {
		rows, _ := t.maskedValue(table.Rows).([]any)
		if i == 0 {
			shown.Rows, shown.Columns = rows, columnsOf(rows)
			continue
		}
		shown.Tables = append(shown.Tables, SinkTable{Table: table.Table, Key: table.Key, Rows: rows, Columns: columnsOf(rows)})
	}
	return err
}

// countPaths returns how many rows go to each path.
func (t *trial) countPaths(paths []string) (counted []SinkPath) {
	paths = slices.Sorted(slices.Values(paths))
	for i, path := range paths {
		if i == 0 || paths[i-1] != path {
			counted = append(counted, SinkPath{Path: t.maskedText(path)})
		}
		counted[len(counted)-1].Rows++
	}
	return counted
}

// succeeded is the result of a sink that was not written to.
var succeeded = interpreter.CallResult{Status: interpreter.StatusSuccess}

// unwrittenResult returns the result of a sink that was abandoned.
func unwrittenResult(why string) interpreter.CallResult {
	return interpreter.CallResult{Status: interpreter.StatusError, Error: &interpreter.ErrorObject{
		Kind: interpreter.KindSink, Class: interpreter.ClassFinal, Message: why,
	}}
}

// failureOf returns the message of a failed result; "" for others.
func failureOf(result interpreter.CallResult) string {
	if result.Error == nil {
		return ""
	}
	return result.Error.Message
}

// writeSink makes the call of a sink until it ends, including waits of its policies.
func (t *trial) writeSink(ctx context.Context, sink *call.Call) (interpreter.CallResult, error) {
	for ctx.Err() == nil {
		switch command := sink.Next(time.Now().UTC()); command.Kind {
		case call.DoAttempt:
			t.exchanges.forgetExchanges()
			outcome, err := t.catalogue.Attempts.TryOnce(ctx, command.Input)
			if err != nil {
				return interpreter.CallResult{}, err
			}
			sink.ApplyOutcome(outcome, time.Now().UTC())
			t.recordAnswer(command.Input.Place, outcome, t.exchanges.lastExchange())
		case call.DoWait:
			if command.Wait.Delay > t.MaxWait {
				return unwrittenResult("the next wait is longer than --max-wait: " + command.Wait.Summary), nil
			}
			if err := t.Sleep(ctx, command.Wait.Delay); err != nil {
				return interpreter.CallResult{}, err
			}
			sink.EndWait()
		case call.DoFinish:
			return command.Result, nil
		default:
			return unwrittenResult("the sink is held for people, who decide how it continues"), nil
		}
	}
	return interpreter.CallResult{}, context.Cause(ctx)
}

// shownTarget bounds the text of a target, in characters.
const shownTarget = 200

// sinkTarget returns the URL, table or path that a sink writes to.
func (t *trial) sinkTarget(in interpreter.ToolInput) string {
	text := func(name string) string { return expression.Text(in.Fields[name].Data) }
	target := text(playbook.FieldURL)
	switch {
	case target != "":
		target = t.shownURL(target)
	case text("table") != "" && text(playbook.FieldPath) != "":
		target = fmt.Sprintf("table %s of %s", text("table"), text(playbook.FieldPath))
	case text("table") != "":
		target = "table " + text("table")
	case text(playbook.FieldPath) != "":
		target = text(playbook.FieldPath)
		if in.Shape != nil && in.Shape.Path != nil {
			target += "/" + in.Shape.Path.Template
		}
	case text(playbook.FieldStatement) != "":
		target = text(playbook.FieldStatement)
	}
	return source.CutText(t.maskedText(target), shownTarget)
}
