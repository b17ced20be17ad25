package activities

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// Bounds of a CheckResult, which each run's history contains even if there is a payload store.
const (
	// maxProblems bounds the text of all problems together, in bytes. A CheckResult is in the
	// history of each run, even if there is a payload store.
	maxProblems = 64 << 10
	// maxWarnings bounds the warnings of a CheckResult, each of at most tool.MaxMessage bytes.
	maxWarnings = 100
	// maxRecorded bounds the playbooks from the worker's folder that a run records, in bytes of
	// JSON: Temporal refuses a result over 2 MB and the run would hang.
	maxRecorded = 1_500_000
)

// CheckPlaybook validates a playbook against the tools of this worker. It resolves no connection and
// changes nothing; if playbooks may run Python, it compiles their code.
func CheckPlaybook(c *Catalogue, in interpreter.CheckInput) interpreter.CheckResult {
	_, result := checkedBook(c, in)
	return result
}

// checkedBook is CheckPlaybook, and as much of the playbook as can be read.
func checkedBook(c *Catalogue, in interpreter.CheckInput) (*playbook.Playbook, interpreter.CheckResult) {
	file := source.NewFile(in.Name, []byte(in.Source))
	workload, ok := in.Workload.Data.(map[string]any)
	if !ok && in.Workload.Data != nil {
		return nil, interpreter.CheckResult{
			Problems: fmt.Sprintf("%s: the workload is a %s; it must be a map", in.Name, expression.TypeName(in.Workload.Data)),
			Count:    1,
		}
	}
	files := check.NewFiles(filesOf(c.res.Playbooks, in.Files))
	book, found := check.Validate(file, c, check.Options{Workload: workload, Limits: c.res.Limits, Files: files})
	result := interpreter.CheckResult{Limits: interpreter.NewRunLimits(c.res.Limits), Files: recordedFiles(files, in.Files)}
	result.Limits.MaxPayload = c.res.Payloads.MaxBytes
	result.Limits.OffloadAbove = c.res.Payloads.OffloadAbove
	if c.res.Heartbeat != interpreter.DefaultHeartbeat {
		result.Limits.HeartbeatSeconds = c.res.Heartbeat.Seconds()
	}
	if problems := found.Errors(); len(problems) > 0 {
		result.Files = nil
		result.Problems = tool.CutText(file.FormatFirst(problems, playbook.MaxShown), maxProblems)
		result.Count = len(problems)
	}
	if size := interpreter.EncodedSize(result.Files); size > maxRecorded && result.Count == 0 {
		result.Files = nil
		result.Problems = fmt.Sprintf("%s: the playbooks that it runs have %d bytes, and a run can record %d; "+
			"run the largest one by path", in.Name, size, maxRecorded)
		result.Count = 1
	}
	if wanted := in.Partition; wanted != nil && result.Count == 0 {
		partition, err := book.RunPartition(wanted.Key, wanted.At)
		if err != nil {
			result.Files, result.Problems, result.Count = nil, fmt.Sprintf("%s: %v", in.Name, err), 1
		}
		if result.Partition = partition; partition != nil {
			result.Identity = book.ContentHash()
		}
	}
	result.ValidationWarnings = boundWarnings(lists.Map(found.Warnings(), func(warning source.Diagnostic) string {
		warning.Severity = source.Error // the list says that they are warnings
		return warning.String()
	}))
	if result.Count == 0 {
		result.Warnings = boundWarnings(c.res.RateLimits.Warnings(book))
	}
	return book, result
}

// boundWarnings returns the first warnings, each cut to a length, so that they fit into the history.
func boundWarnings(warnings []string) []string {
	if len(warnings) == 0 {
		return nil
	}
	return lists.Map(warnings[:min(len(warnings), maxWarnings)], func(warning string) string { return tool.CutText(warning, tool.MaxMessage) })
}

// CheckRun is CheckPlaybook for a run that begins: it also finds out whether this worker has the connections that
// sinks of the run are certain to need.
func CheckRun(c *Catalogue, in interpreter.CheckInput) interpreter.CheckResult {
	book, result := checkedBook(c, in)
	if result.Count > 0 {
		return result
	}
	files := map[string]string{}
	maps.Copy(files, in.Files)
	maps.Copy(files, result.FileSources())
	workload, _ := in.Workload.Data.(map[string]any)
	ctx := tool.WithCaller(context.Background(), interpreter.ToolInput{Playbook: book.Name, Attestation: book.Attestation()})
	checked := checkSinks(ctx, c, call.StartConnections(book, workload, files, time.Now()))
	result.Sinks = &checked
	return result
}

// RefuseUnknown says why this worker does not run a playbook that can be read, since it does not know its bytes; "" if it runs it.
// file names it in the text.
func RefuseUnknown(c *Catalogue, file, text string) string {
	book, err := interpreter.LoadPlaybook(file, text)
	if err != nil {
		return ""
	}
	if refusal := c.res.Known.RefusalText(book.Name, book.Attestation()); refusal != "" {
		return file + ": " + refusal
	}
	return ""
}

// checkSinks finds out whether this worker has some connections, for the caller of the context. It does not connect.
func checkSinks(ctx context.Context, c *Catalogue, sinks []interpreter.SinkConnection) (checked interpreter.SinkCheck) {
	for _, sink := range sinks {
		checked.Names = lists.AddUnique(checked.Names, sink.Auth)
	}
	if err := c.Attempts.CheckConnections(ctx, sinks); err != nil {
		checked.Names, checked.Missing = nil, &interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true, Message: err.Error(),
		}
		if denied, ok := errors.AsType[*tool.Error](err); ok {
			checked.Missing.Type = denied.Type
		}
	}
	return checked
}
