// Package launch plans runs and starts them.
package launch

import (
	"cmp"
	"context"
	"encoding/json"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/payload"
	"reprise/internal/program/start"
	"reprise/interpreter/expression"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// NewPlan returns the plan of a run. folder is where a local worker finds the playbooks that this one calls by name.
func NewPlan(checked load.CheckedPlaybook, workload map[string]any, workflowID, folder string) (start.Plan, error) {
	values, err := expression.Canonical(workload)
	if err != nil {
		return start.Plan{}, cli.UsageError("the workload: %w", err)
	}
	book := checked.Book
	return start.Plan{
		WorkflowID: cmp.Or(workflowID, start.NewID(book)), Playbook: book.Name, Labels: book.Labels, Schedule: book.Schedule,
		Partitioned: book.Partitions != nil, Codes: checked.PythonCodes(workload, folder),
		Expect:  book.Expect,
		Summary: book.Name, Details: start.DetailsMarkdown(book, values, book.Description),
		Input: protocol.Input{
			Name: checked.File.Name, Source: string(checked.File.Bytes()), Workload: expression.Of(values),
			Files: checked.Files,
		},
	}, nil
}

// StartRun starts a run.
func StartRun(ctx context.Context, s *session.Session, plan start.Plan, streams cli.Streams) (client.WorkflowRun, error) {
	known, err := PrepareRun(ctx, s, plan, streams)
	if err != nil {
		return nil, err
	}
	return start.StartRun(ctx, s.Destination(), plan, known)
}

// PrepareRun checks that the server accepts a plan, and returns the search attributes that the run may set. They are
// optional: a run works without them.
func PrepareRun(ctx context.Context, s *session.Session, plan start.Plan, streams cli.Streams) (connect.Attributes, error) {
	if err := CheckFits(s, plan); err != nil {
		return connect.Attributes{}, err
	}
	known, err := connect.EnsureAttributes(ctx, s.Client, s.Namespace, protocol.SearchAttributes())
	switch {
	case ctx.Err() != nil:
		return known, start.ErrInterrupted
	case err == nil:
	case known.Has(start.LeastAttributes()...):
		streams.Notef("note: the run does not get all search attributes: %v", err)
	default:
		streams.Notef("note: the run gets no search attributes: %v", err)
	}
	return known, nil
}

// CheckFits returns an error if the input of a run is too large for Temporal or the payload store.
func CheckFits(s *session.Session, plan start.Plan) error {
	most, err := s.MostBytes()
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(plan.Input)
	if err != nil {
		return cli.UsageError("the workload: %w", err)
	}
	if len(encoded) <= most {
		return nil
	}
	what := "the playbook and its workload"
	if plan.Input.Reprocess != nil {
		what = "the playbook, its workload and the elements to run again"
	}
	hint := "raise " + payload.MaxBytesVariable
	if s.Store == nil {
		hint = "set --payload-store for starter and workers"
	}
	return cli.UsageError("%s have %d bytes, and a run can start with at most %d; %s",
		what, len(encoded), most, hint)
}
