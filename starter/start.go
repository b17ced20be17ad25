package main

import (
	"cmp"
	"context"
	"encoding/json"
	"os"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/payload"
	"reprise/internal/program/host"
	"reprise/internal/program/start"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// newPlan plans a run. folder is where a local worker finds playbooks by name.
func newPlan(checked checked, workload map[string]any, workflowID, folder string) (start.Plan, error) {
	values, err := expression.Canonical(workload)
	if err != nil {
		return start.Plan{}, usageError("the workload: %w", err)
	}
	book := checked.book
	return start.Plan{
		WorkflowID: cmp.Or(workflowID, start.NewID(book)), Playbook: book.Name, Labels: book.Labels, Schedule: book.Schedule,
		Partitioned: book.Partitions != nil, Codes: checked.codes(workload, folder),
		Expect:  book.Expect,
		Summary: book.Name, Details: start.Details(book, values, book.Description),
		Input: protocol.Input{
			Name: checked.file.Name, Source: string(checked.file.Bytes()), Workload: expression.Of(values),
			Files: checked.files,
		},
	}, nil
}

// target is where the runs of a session start.
func (s *session) target() start.Destination {
	return start.Destination{Client: s.client, TaskQueue: s.taskQueue, Key: s.key}
}

// start starts a run.
func (s *session) start(ctx context.Context, plan start.Plan, a *app) (client.WorkflowRun, error) {
	known, err := s.prepare(ctx, plan, a)
	if err != nil {
		return nil, err
	}
	return start.Run(ctx, s.target(), plan, known)
}

// prepare makes sure that the server accepts a plan, and gives the search attributes that
// its run may set. They are a convenience: a namespace without some of them runs playbooks
// all the same.
func (s *session) prepare(ctx context.Context, plan start.Plan, a *app) (connect.Attributes, error) {
	if err := s.fits(plan); err != nil {
		return connect.Attributes{}, err
	}
	known, err := connect.EnsureAttributes(ctx, s.client, s.namespace, protocol.SearchAttributes())
	switch {
	case ctx.Err() != nil:
		return known, start.ErrInterrupted
	case err == nil:
	case known.Has(start.LeastAttributes()...):
		a.notef("note: the run does not get all search attributes: %v", err)
	default:
		a.notef("note: the run gets no search attributes: %v", err)
	}
	return known, nil
}

// fits refuses a run whose input Temporal, or the payload store, would not take.
func (s *session) fits(plan start.Plan) error {
	most, err := s.mostBytes()
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(plan.Input)
	if err != nil {
		return usageError("the workload: %w", err)
	}
	if len(encoded) <= most {
		return nil
	}
	what := "the playbook and its workload"
	if plan.Input.Reprocess != nil {
		what = "the playbook, its workload and the elements to run again"
	}
	hint := "raise " + payload.MaxBytesVariable
	if s.store == nil {
		hint = "set --payload-store for starter and workers"
	}
	return usageError("%s have %d bytes, and a run can start with at most %d; %s",
		what, len(encoded), most, hint)
}

// mostBytes is how many bytes of JSON Temporal, or the payload store, takes at once.
func (s *session) mostBytes() (int, error) {
	payloads, err := host.Payloads(s.store, os.LookupEnv)
	if err != nil {
		return 0, withStatus(exitUsage, err)
	}
	return payloads.MaxBytes, nil
}
