package runs

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"reprise/internal/base/terminal"
	"reprise/internal/base/visibility"
)

// Build is the build of workers that a run is on, under Temporal's Worker Versioning.
type Build struct {
	Deployment string `json:"deployment"`
	ID         string `json:"id"`
	// Pinned says that the run stays with the build. Others move to the current build with their next task.
	Pinned bool `json:"pinned"`
}

// Search attributes in which the server keeps the build of a workflow.
const (
	buildAttribute    = "TemporalWorkerDeploymentVersion" // DEPLOYMENT:ID
	behaviorAttribute = "TemporalWorkflowVersioningBehavior"
)

// listFilter selects the workflows that are on the build.
func (b Build) listFilter() string {
	return buildAttribute + " = " + visibility.Quote(b.Deployment+":"+b.ID)
}

// BuildOf returns the build that a workflow is on, as far as the server says so; nil for none.
func BuildOf(info *workflowpb.WorkflowExecutionInfo) *Build {
	if versioning := info.GetVersioningInfo(); versioning != nil {
		return describedBuild(versioning)
	}
	return listedBuild(info.GetSearchAttributes().GetIndexedFields())
}

// describedBuild returns the build of a workflow that was described.
func describedBuild(versioning *workflowpb.WorkflowExecutionVersioningInfo) *Build {
	version, behavior := versioning.GetDeploymentVersion(), versioning.GetBehavior()
	if pinned := versioning.GetVersioningOverride().GetPinned().GetVersion(); pinned != nil {
		version, behavior = pinned, enumspb.VERSIONING_BEHAVIOR_PINNED
	}
	if version == nil || behavior == enumspb.VERSIONING_BEHAVIOR_UNSPECIFIED {
		return nil
	}
	return &Build{Deployment: version.GetDeploymentName(), ID: version.GetBuildId(), Pinned: behavior == enumspb.VERSIONING_BEHAVIOR_PINNED}
}

// listedBuild returns the build of a workflow in a list.
func listedBuild(fields map[string]*commonpb.Payload) *Build {
	var version, behavior string
	readAttribute(fields, buildAttribute, &version)
	readAttribute(fields, behaviorAttribute, &behavior)
	deployment, id, found := strings.Cut(version, ":") // which names of deployments do not contain
	if !found {
		return nil
	}
	return &Build{Deployment: deployment, ID: id, Pinned: behavior == enumspb.VERSIONING_BEHAVIOR_PINNED.String()}
}

// Workers are the workers that a Temporal server knows to poll a task queue for workflow tasks, and that get those of a
// certain run, or of new runs.
type Workers struct {
	Count int
	// LastPoll is the start of the last of their polls. It is zero if there are none: the server lists dead workers for minutes.
	LastPoll time.Time
	// Deployment is a deployment without a current build, so that its workers get no new runs; "" for none.
	Deployment string
}

// longestPoll is more than a poll takes: a worker that waits for tasks polls again once a minute.
const longestPoll = 75 * time.Second

// HavePolled reports whether one of them has polled lately.
func (w Workers) HavePolled(now time.Time) bool {
	return w.Count > 0 && now.Sub(w.LastPoll) <= longestPoll
}

// Workers finds the workers of a task queue that get new runs.
func (r *Reader) Workers(ctx context.Context, taskQueue string) (Workers, error) {
	return r.workersOf(ctx, taskQueue, nil)
}

// WorkersOf finds the workers that get the tasks of a run: those of its build if it is pinned, else those that get new runs.
func (r *Reader) WorkersOf(ctx context.Context, run Found) (Workers, error) {
	return r.workersOf(ctx, run.TaskQueue, run.Build)
}

func (r *Reader) workersOf(ctx context.Context, taskQueue string, build *Build) (Workers, error) {
	ctx, cancel := context.WithTimeout(ctx, r.patienceTime())
	defer cancel()
	described, err := r.Client.DescribeTaskQueue(ctx, taskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return Workers{}, err
	}
	gets := newRunPollers(described.GetVersioningInfo())
	if build != nil && build.Pinned {
		gets = func(of *deploymentpb.WorkerDeploymentOptions) bool {
			return isVersioned(of) && of.GetDeploymentName() == build.Deployment && of.GetBuildId() == build.ID
		}
	}
	var workers Workers
	for _, poller := range described.GetPollers() {
		of := poller.GetDeploymentOptions()
		if !gets(of) {
			if isVersioned(of) && described.GetVersioningInfo().GetCurrentDeploymentVersion() == nil {
				workers.Deployment = of.GetDeploymentName()
			}
			continue
		}
		workers.Count++
		if at := poller.GetLastAccessTime().AsTime(); at.After(workers.LastPoll) {
			workers.LastPoll = at
		}
	}
	return workers, nil
}

// isVersioned reports whether a poller is a build of a deployment.
func isVersioned(of *deploymentpb.WorkerDeploymentOptions) bool {
	return of.GetWorkerVersioningMode() == enumspb.WORKER_VERSIONING_MODE_VERSIONED
}

// newRunPollers says which pollers of a task queue get new runs: those of the current and of the ramping build; without a current one, those
// without a build.
func newRunPollers(routing *taskqueuepb.TaskQueueVersioningInfo) func(of *deploymentpb.WorkerDeploymentOptions) bool {
	current, ramping := routing.GetCurrentDeploymentVersion(), routing.GetRampingDeploymentVersion()
	return func(of *deploymentpb.WorkerDeploymentOptions) bool {
		if !isVersioned(of) {
			return current == nil
		}
		for _, version := range []*deploymentpb.WorkerDeploymentVersion{current, ramping} {
			if version != nil && version.GetDeploymentName() == of.GetDeploymentName() && version.GetBuildId() == of.GetBuildId() {
				return true
			}
		}
		return false
	}
}

// AbsenceReason says why none of these workers gets a run, and Remedy what helps.
func (w Workers) AbsenceReason(run Found) string {
	switch {
	case run.pinned():
		return fmt.Sprintf("the run is pinned to build %s, which has no workers", run.Build.ID)
	case w.Deployment != "":
		return fmt.Sprintf("no build of deployment %s is current, so its workers get no runs", w.Deployment)
	}
	return fmt.Sprintf("no worker polls the task queue %q", run.TaskQueue)
}

// Remedy says how a run continues that none of these workers gets.
func (w Workers) Remedy(run Found) string {
	switch {
	case run.pinned():
		return fmt.Sprintf("start it, or: %s builds move %s --to BUILD", terminal.ProgramName(), terminal.ShellWord(run.WorkflowID))
	case w.Deployment != "":
		return fmt.Sprintf("to choose one: %s builds current BUILD", terminal.ProgramName())
	}
	return "it continues when a worker starts"
}

// pinned reports whether the run stays with its build.
func (f Found) pinned() bool { return f.Build != nil && f.Build.Pinned }

// WorkersKey identifies the workers that get the tasks of the run: those of its task queue or, if it is pinned, of its build.
func (f Found) WorkersKey() string {
	if !f.pinned() {
		return f.TaskQueue
	}
	return f.TaskQueue + "\n" + f.Build.Deployment + ":" + f.Build.ID // a line break is in no name
}

// HasWorkersOf reports whether the same workers get both runs.
func (f Found) HasWorkersOf(other Found) bool { return f.WorkersKey() == other.WorkersKey() }

// PinnedTo finds the runs that are pinned to a build, or have workflows that are, by the workflow IDs of the first of their trees.
func (r *Reader) PinnedTo(ctx context.Context, build Build) ([]string, error) {
	query := build.listFilter() + " AND " + behaviorAttribute + " = 'Pinned' AND ExecutionStatus = 'Running'"
	var roots []string
	seen := map[string]bool{}
	for token, first := []byte(nil), true; first || len(token) > 0; first = false {
		page, err := r.listRuns(ctx, query, listPage, token)
		if err != nil {
			return nil, err
		}
		for _, info := range page.GetExecutions() {
			root := cmp.Or(info.GetRootExecution().GetWorkflowId(), info.GetExecution().GetWorkflowId())
			if !seen[root] {
				seen[root] = true
				roots = append(roots, root)
			}
		}
		token = page.GetNextPageToken()
	}
	return roots, nil
}
