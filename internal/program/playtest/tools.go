package playtest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"reprise/activities/attempt"
	"reprise/activities/sqlite"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// aroundTool wraps a tool: it answers attempts from the script instead, records what tests compare, and keeps
// attempts within the test's folder.
func (s *stage) aroundTool(name string, run attempt.Func) attempt.Func {
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		attempt := &doing{in: in}
		ctx = context.WithValue(ctx, doingKey{}, attempt)
		who, writes := s.callerOf(ctx, in), name == interpreter.WriteActivity(in.Tool)
		if why := s.stopped.Load(); why != nil {
			return interpreter.ToolResult{}, testFailedf("the test failed: %s", *why)
		}
		if s.attemptsMade.Add(1) > mostAttempts {
			s.script.addComplaint(s.test.Pos, fmt.Sprintf("the run made more than %d attempts; check that it can end", mostAttempts))
			s.stopRun("too many attempts")
		}
		if err := s.fenceFiles(in); err != nil {
			return interpreter.ToolResult{}, err
		}
		sends := in.Tool == "http" || in.Sends != "" || s.fetchesBody(in)
		if !sends {
			s.seen.addRequest(who, s.sinceBegin(), in.OperationKey, requestOf(in))
		}
		result, answered, err := interpreter.ToolResult{}, false, error(nil)
		if !sends {
			result, answered, err = s.answerAttempt(ctx, who, in, writes)
		}
		if !answered && err == nil {
			result, err = run(ctx, in)
		}
		switch {
		case attempt.unanswered:
			err = testFailedf("step %q: %v", in.Step, errUnanswered)
		case attempt.timedOut && err != nil:
			err = timedOut(in)
		}
		if err == nil && writes {
			s.seen.addRows(who, in, writtenBy(in))
		}
		return result, err
	}
}

// answerAttempt answers an attempt of a tool other than http from the script; false if the tool must run.
func (s *stage) answerAttempt(ctx context.Context, who caller, in interpreter.ToolInput, writes bool) (interpreter.ToolResult, bool, error) {
	if s.script.losesWorker(who) {
		return interpreter.ToolResult{}, false, loseWorker(ctx)
	}
	if page, follows := s.files.nextPage(who, in); follows {
		return page, true, tool.BeginAttempt(ctx)
	}
	answer := s.script.nextAnswer(who, func(a *playbook.TestAnswer) bool {
		return a.Error != "" || a.Lost || a.Words.Has("result")
	})
	scripted := s.isScripted(in)
	switch {
	case answer == nil && scripted && !writes && !s.script.hasAnswers(who) && changesTables(in):
		return interpreter.ToolResult{Data: expression.Of(map[string]any{"rows_affected": 0})}, true, tool.BeginAttempt(ctx)
	case answer == nil && scripted && !writes:
		s.script.addMiss(unansweredRequest{who: who, request: requestOf(in), needs: "{result: []}"})
		s.stopRun("a query has no answer")
		return interpreter.ToolResult{}, true, testFailedf("the test has no more answers for this query")
	case answer == nil && scripted:
		return interpreter.ToolResult{}, true, tool.BeginAttempt(ctx)
	case answer == nil:
		return interpreter.ToolResult{}, false, nil
	}
	if answer.Lost {
		return interpreter.ToolResult{}, false, loseWorker(ctx)
	}
	if err := tool.BeginAttempt(ctx); err != nil {
		return interpreter.ToolResult{}, true, err
	}
	switch answer.Error {
	case playbook.TestErrorConnection:
		return interpreter.ToolResult{}, true, &tool.Error{
			Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable,
			Message: fmt.Sprintf("step %q: the connection was refused", in.Step),
		}
	case playbook.TestErrorTimeout:
		return interpreter.ToolResult{}, true, timedOut(in)
	}
	return s.files.firstPage(who, in, answer.Result), true, nil
}

// isScripted reports whether an attempt needs a database or a store that the test does not have, so that it must be
// answered from the script.
func (s *stage) isScripted(in interpreter.ToolInput) bool {
	return slices.ContainsFunc(movedBetween(in), func(of interpreter.ToolInput) bool {
		return of.Tool == "postgres" && s.database == nil || of.Tool == "file" && of.Auth != "" && !s.hasFolder(of.Auth)
	})
}

// hasFolder reports whether a connection is a folder of the test, such as file:lake.
func (s *stage) hasFolder(auth string) bool {
	url, _ := s.test.Connections[auth].(string)
	folder, isFolder := strings.CutPrefix(url, "file:")
	return isFolder && filepath.IsLocal(folder)
}

// movedBetween returns the source and destination of an attempt that moves rows; any other attempt unchanged.
func movedBetween(in interpreter.ToolInput) []interpreter.ToolInput {
	from, err := in.NestedCall(playbook.FieldFrom)
	to, other := in.NestedCall(playbook.FieldTo)
	if err != nil || other != nil || !playbook.TraitsOf(in.Tool).Moves {
		return []interpreter.ToolInput{in}
	}
	return []interpreter.ToolInput{from, to}
}

// fetchesBody reports whether an attempt moves a response body, which the test provides as for http.
func (s *stage) fetchesBody(in interpreter.ToolInput) bool {
	from, err := in.NestedCall(playbook.FieldFrom)
	return err == nil && playbook.TraitsOf(in.Tool).Moves && from.Tool == "http" && !s.isScripted(in)
}

// typeTestFailed is the type of errors that the test causes, not the playbook.
const typeTestFailed = "TestFailed"

// testFailedf returns the error of an attempt that was not made because the test has failed.
func testFailedf(format string, args ...any) *tool.Error {
	failure := tool.ConfigErrorf(format, args...)
	failure.Type = typeTestFailed
	return failure
}

// timedOut returns the error of an attempt that timed out. It does not advance the test's clock.
func timedOut(in interpreter.ToolInput) error {
	return &tool.Error{
		Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable,
		Message: fmt.Sprintf("step %q: the attempt took longer than its timeout of %s", in.Step, in.Timeout()),
	}
}

// changesTables reports whether a statement is DDL, which has no result.
func changesTables(in interpreter.ToolInput) bool {
	words := strings.Fields(expression.Text(in.Fields[playbook.FieldStatement].Data))
	return len(words) > 0 && slices.Contains([]string{"CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT", "SET"}, strings.ToUpper(words[0]))
}

// requestOf returns the request of an attempt of a tool other than http: its fields, args and the values of a
// statement.
func requestOf(in interpreter.ToolInput) map[string]any {
	request := map[string]any{}
	for name, value := range in.Fields {
		request[name] = value.Data
	}
	if in.Args != nil {
		request["args"] = in.Args.Data
	}
	if len(in.Params) > 0 {
		request["values"] = valuesOf(in)
	}
	return request
}

func valuesOf(in interpreter.ToolInput) []any {
	return lists.Map(in.Params, func(value expression.Value) any { return value.Data })
}

// writtenBy returns what a sink writes: rows, or the values of a statement.
func writtenBy(in interpreter.ToolInput) []any {
	if statement, isStatement := in.Fields[playbook.FieldStatement]; isStatement {
		return []any{map[string]any{"statement": statement.Data, "values": valuesOf(in)}}
	}
	if in.Tool == "http" {
		if body, has := in.Fields[playbook.FieldBody]; has {
			return []any{body.Data}
		}
	}
	return in.SinkRows()
}

// fenceFiles refuses files outside of the test's folder.
func (s *stage) fenceFiles(in interpreter.ToolInput) error {
	for _, of := range movedBetween(in) {
		if err := s.fenceFile(of); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) fenceFile(in interpreter.ToolInput) error {
	if in.Tool != "sqlite" {
		return nil // file keeps to its folder by itself
	}
	where := expression.Text(in.Fields["path"].Data)
	if in.Auth != "" {
		url := in.Auth
		if tool.IsConnectionName(url) {
			url, _ = s.test.Connections[in.Auth].(string)
		}
		var isFile bool
		if where, isFile = sqlite.FileOf(url); !isFile {
			return nil // the tool refuses it
		}
	}
	if where != "" && !filepath.IsLocal(where) {
		return tool.ConfigErrorf("step %q: a test writes only to its own folder, and %q is outside of it; give the test a workload or a connection with a relative path", in.Step, where)
	}
	return nil
}
