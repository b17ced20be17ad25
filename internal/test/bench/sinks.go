package main

import (
	"context"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// Names of the tools that replace sqlite, to measure the cost of its ledger.
const (
	forgetfulName = "forgetful"
	historicName  = "historic"
)

// historic writes with sqlite but without a ledger, so each page is recorded in history before it is written.
type historic struct {
	name  string
	write attempt.Func
}

func newHistoric(c *activities.Catalogue) historic {
	h := historic{name: historicName}
	for _, a := range c.Attempts.Activities() {
		if a.Name == interpreter.WriteActivity("sqlite") {
			h.write = a.Run
		}
	}
	return h
}

func (h historic) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{
		Name: h.name, Summary: "Writes rows to SQLite.", Writes: true,
		Fields: []playbook.Field{
			{Name: "path", Kind: playbook.KindText, Doc: "The file."},
			{Name: "table", Kind: playbook.KindText, Doc: "The table."},
		},
	}
}

func (h historic) Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	return h.Write(ctx, in)
}

func (h historic) Write(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	in.Note = nil
	return h.write(ctx, in)
}

// forgetful claims to have a ledger and writes none: it has the costs of sinks without one.
type forgetful struct{ historic }

func newForgetful(c *activities.Catalogue) forgetful {
	f := forgetful{newHistoric(c)}
	f.name = forgetfulName
	return f
}

func (forgetful) RecordsWrite(interpreter.ToolInput) bool { return true }

func (forgetful) RecallNotes(context.Context, interpreter.ToolInput) ([]interpreter.LedgerEntry, error) {
	return nil, nil
}

func (forgetful) ForgetNotes(context.Context, interpreter.ToolInput, []string, bool) error {
	return nil
}
