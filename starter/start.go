package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/connect"
	"reprise/internal/host"
	"reprise/internal/payload"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/workflows"
)

// plan is a run that may start.
type plan struct {
	workflowID       string
	playbook         string // its name
	summary, details string // that Temporal's UI shows
	input            workflows.Input
	schedule         *playbook.Schedule // that the playbook asks for, nil for none
	memo             map[string]any     // kept with the run
	once             bool               // there must never have been a run with the ID
	codes            []string           // of the playbook, which this starter vouches for
	fairness         temporal.Priority  // what the command line says of it
}

// newPlan plans a run. folder is where a local worker finds playbooks by name.
func newPlan(checked checked, workload map[string]any, workflowID, folder string) (plan, error) {
	values, err := expression.Canonical(workload)
	if err != nil {
		return plan{}, usageError("the workload: %w", err)
	}
	book := checked.book
	if workflowID == "" {
		workflowID = book.Name + "-" + strings.ToLower(rand.Text()[:6])
	}
	return plan{
		workflowID: workflowID, playbook: book.Name, schedule: book.Schedule, codes: checked.codes(workload, folder),
		summary: staticSummary(book), details: staticDetails(book, values, book.Description),
		input: workflows.Input{
			Name: checked.file.Name, Source: string(checked.file.Bytes()), Workload: expression.Of(values),
			Files: checked.files,
		},
	}, nil
}

// attributeDelay is how long a server may take until runs can use search
// attributes that were just added.
const attributeDelay = 5 * time.Second

// start starts the run.
func (s *session) start(ctx context.Context, planned plan, a *app) (run client.WorkflowRun, err error) {
	err = s.submit(ctx, planned, a, s.into(ctx, &run))
	return run, err
}

// into executes a plan and gives the run.
func (s *session) into(ctx context.Context, run *client.WorkflowRun) func(plan) error {
	return func(plan plan) (err error) {
		if *run, err = s.execute(ctx, plan); err != nil {
			return startError(plan, err)
		}
		return nil
	}
}

// submit hands a plan to the server, to be run now or later. Search attributes are a
// convenience: a namespace that does not take some of them runs playbooks without.
func (s *session) submit(ctx context.Context, plan plan, a *app, begin func(plan) error) error {
	if err := s.fits(plan); err != nil {
		return err
	}
	known, err := connect.EnsureAttributes(ctx, s.client, s.namespace, workflows.SearchAttributes())
	if ctx.Err() != nil {
		return errInterrupted
	}
	switch {
	case err == nil:
	case known.Has(leastAttributes...):
		a.notef("note: the run gets fewer search attributes: %v", err)
	default:
		a.notef("note: the run gets no search attributes: %v", err)
	}
	return s.handIn(ctx, plan, known, begin)
}

// leastAttributes are those without which a run gets none.
var leastAttributes = []string{workflows.StatusAttribute, workflows.PlaybookAttribute, workflows.OriginAttribute}

// errInterrupted is the end of a command before its run began.
var errInterrupted = withStatus(exitInterrupted, errors.New("interrupted before the run began"))

// begin starts the run, with the search attributes that the namespace should know.
func (s *session) begin(ctx context.Context, planned plan, known connect.Attributes) (run client.WorkflowRun, err error) {
	err = s.handIn(ctx, planned, known, s.into(ctx, &run))
	return run, err
}

// handIn hands a plan in, with the search attributes that the namespace should know.
func (s *session) handIn(ctx context.Context, plan plan, known connect.Attributes, begin func(plan) error) error {
	plan.uses(known)
	deadline := time.Now().Add(attributeDelay)
	for {
		err := begin(plan)
		switch {
		case err == nil:
			return nil
		case !connect.InvalidArgument(err) || !plan.input.SearchAttributes || !aboutAttributes(err):
			return err
		case time.Now().After(deadline):
			plan.uses(connect.Attributes{})
		case !pause(ctx, 200*time.Millisecond):
			return errInterrupted
		}
	}
}

// fits refuses a run whose input Temporal, or the payload store, would not take.
func (s *session) fits(plan plan) error {
	most, err := s.mostBytes()
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(plan.input)
	if err != nil {
		return usageError("the workload: %w", err)
	}
	if len(encoded) <= most {
		return nil
	}
	what := "the playbook and its workload"
	if plan.input.Reprocess != nil {
		what = "the playbook, its workload and the elements to run again"
	}
	hint := "raise " + payload.MaxBytesVariable
	if s.store == nil {
		hint = "give starter and workers a --payload-store"
	}
	return usageError("%s are %d bytes, more than the %d that a run may begin with; %s",
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

func aboutAttributes(err error) bool {
	names := append(slices.Collect(maps.Keys(workflows.SearchAttributes())), "search attribute")
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(err.Error(), name) })
}

func (s *session) execute(ctx context.Context, plan plan) (client.WorkflowRun, error) {
	options := client.StartWorkflowOptions{
		ID: plan.workflowID, TaskQueue: s.taskQueue,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            plan.summary,
		StaticDetails:                            plan.details,
		Priority:                                 plan.priority(),
	}
	if plan.input.SearchAttributes {
		options.TypedSearchAttributes = plan.attributes()
	}
	options.Memo = maps.Clone(plan.memo)
	if s.key != "" && len(plan.codes) > 0 {
		vouched := host.Vouch(s.key, plan.workflowID, plan.codes)
		maps.Copy(vouched, options.Memo)
		options.Memo = vouched
	}
	if plan.once || plan.input.Reprocess != nil { // the ID of a reprocess stands for what it does, so it is done once
		options.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	}
	return s.client.ExecuteWorkflow(ctx, options, workflows.PlaybookWorkflowName, plan.input)
}

// uses has the run set the search attributes that its namespace knows. The server
// refuses the run until those of leastAttributes can be used, and so others that were
// added with them; one that was added alone waits for the next run.
func (p *plan) uses(known connect.Attributes) {
	has := func(name string) bool {
		alone := slices.Contains(known.Added, name) && !slices.Contains(known.Added, workflows.PlaybookAttribute)
		return p.input.SearchAttributes && known.Has(name) && !alone
	}
	p.input.SearchAttributes = known.Has(leastAttributes...)
	p.input.DeadLetters, p.input.NextRetry = has(workflows.DeadLettersAttribute), has(workflows.NextRetryAttribute)
}

func (p plan) attributes() temporal.SearchAttributes {
	name := temporal.NewSearchAttributeKeyKeyword(workflows.PlaybookAttribute)
	attributes := []temporal.SearchAttributeUpdate{name.ValueSet(p.playbook)}
	if again := p.input.Reprocess; again != nil {
		origin := temporal.NewSearchAttributeKeyKeyword(workflows.OriginAttribute)
		attributes = append(attributes, origin.ValueSet(again.Origin.WorkflowID))
	}
	return temporal.NewSearchAttributes(attributes...)
}

// startedError says that there is a run with the ID already.
type startedError struct{ workflowID, runID string }

func (e *startedError) Error() string {
	return fmt.Sprintf("a run with the ID %q is under way; choose another --workflow-id, or leave it out", e.workflowID)
}

// unsureError says that the answer to a start was lost: the run may have begun.
type unsureError struct {
	workflowID string
	err        error
}

func (e *unsureError) Error() string {
	return fmt.Sprintf("start the run: %v; whether %s has begun is unknown", e.err, e.workflowID)
}

func (e *unsureError) Unwrap() error { return e.err }

func startError(plan plan, err error) error {
	if runID, started := connect.AlreadyStarted(err); started {
		return &startedError{workflowID: plan.workflowID, runID: runID}
	}
	if connect.Unreachable(err) {
		return withStatus(exitNoServer, &unsureError{workflowID: plan.workflowID, err: err})
	}
	return fmt.Errorf("start the run: %w", err)
}

// pause waits and reports false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
