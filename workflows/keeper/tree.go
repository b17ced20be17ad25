package keeper

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/tree"
	"reprise/workflows/gate"
)

const (
	// treeIdle is how long the workflow of a tree stays open without requests. The next request starts it again,
	// with the count of the previous one.
	treeIdle = 10 * time.Minute
)

// TreeWorkflow counts the runs that start in the tree of a first run.
func TreeWorkflow(ctx workflow.Context, census tree.Census) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancel would make it forget
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{})
	if err := census.Check(); err != nil {
		return gate.UnfitError(err)
	}
	k := &treeService{census: census, seen: -1}
	err := errors.Join(
		workflow.SetUpdateHandlerWithOptions(ctx, tree.AdmitUpdate,
			func(ctx workflow.Context, admission tree.Admission) (tree.AdmissionAnswer, error) {
				k.requests++
				admitted := k.census.AdmitRuns(admission)
				workflow.SetCurrentDetails(ctx, fmt.Sprintf("%d runs of %d were admitted", k.census.Admitted, admission.Tree.Most))
				return admitted, nil
			},
			workflow.UpdateHandlerOptions{Validator: tree.Admission.Check}),
		workflow.SetQueryHandler(ctx, tree.CensusQuery, func() (tree.Census, error) { return k.census, nil }),
	)
	if err != nil {
		return err
	}
	return serveUntilOver(ctx, k)
}

// treeService connects the census of a tree to its workflow.
type treeService struct {
	census         tree.Census
	requests, seen int // received so far, and at the begin of the last wait
	idle           workflow.Future
}

func (k *treeService) isOver(ctx workflow.Context) bool {
	return k.seen == k.requests && !k.isLong(ctx)
}

func (k *treeService) isLong(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

func (k *treeService) actWhenDue(ctx workflow.Context) {
	k.seen = k.requests
	k.idle = workflow.NewTimerWithOptions(ctx, treeIdle, workflow.TimerOptions{Summary: "idle"})
}

func (k *treeService) isDue(workflow.Context) bool { return k.idle.IsReady() }

func (k *treeService) afterWait(workflow.Context) {}

func (k *treeService) continueAsNew(ctx workflow.Context) (failure *interpreter.ErrorObject, next error) {
	return gate.ContinueAsNew(ctx, tree.WorkflowName, k.census, "the count of a tree's runs")
}
