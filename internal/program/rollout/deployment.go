// Package rollout shows the builds of a worker deployment, says which one gets new runs, and moves open runs between them.
package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// Statuses of a build.
const (
	Current  = "current"  // it gets new runs
	Ramping  = "ramping"  // it gets a part of the new runs
	Draining = "draining" // it gets no new runs, and has open ones
	Drained  = "drained"  // no open run is pinned to it
	Inactive = "inactive" // it has never been current or ramping
)

// ManyBuilds is the number of builds from which on a deployment should lose some: a server refuses the workers of the 101st build,
// and does not always clean up by itself (temporalio/temporal#10737).
const ManyBuilds = 75

// BuildStatus is a build of a deployment.
type BuildStatus struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	// Percent is the part of new runs that a ramping build gets.
	Percent float32   `json:"percent,omitempty"`
	Created time.Time `json:"created_at"`
	// Workers counts those that have polled in the last minute, over all task queues of the build.
	Workers   int       `json:"workers"`
	OpenRuns  int       `json:"open_runs"`
	OldestRun time.Time `json:"oldest_run,omitzero"` // its start; zero if there is none
	// queues are the task queues that its workers have polled.
	queues []string
}

// Builds are the builds of a deployment, the newest first.
type Builds struct {
	Deployment string        `json:"deployment"`
	Builds     []BuildStatus `json:"builds"`
}

// BuildNote is what an operator should do about the builds of a deployment.
type BuildNote struct {
	Text string
	// Stops is set if runs do not start or do not continue.
	Stops bool
}

// OperatorNotes returns what an operator should do about the builds.
func (b Builds) OperatorNotes() (notes []BuildNote) {
	current := false
	for _, one := range b.Builds {
		current = current || one.Status == Current
		if one.Workers == 0 && one.OpenRuns > 0 {
			notes = append(notes, BuildNote{fmt.Sprintf("build %s has %s and no workers; start one, or: %s builds retire %s", one.ID,
				terminal.Count(one.OpenRuns, "open run"), terminal.ProgramName(), terminal.ShellWord(one.ID)), true})
		}
	}
	if !current {
		notes = append(notes, BuildNote{fmt.Sprintf("no build of deployment %s is current, so its workers get no new runs; to choose one: %s builds current ID",
			b.Deployment, terminal.ProgramName()), true})
	}
	if n := len(b.Builds); n >= ManyBuilds {
		notes = append(notes, BuildNote{fmt.Sprintf("deployment %s has %d builds, and the server refuses workers of the 101st; delete drained ones: %s builds delete ID",
			b.Deployment, n, terminal.ProgramName()), false})
	}
	return notes
}

// Deployment is a worker deployment of a namespace.
type Deployment struct {
	Name   string
	Reader *runs.Reader
}

// NoDeploymentError says that there is no deployment, or that several are possible.
type NoDeploymentError struct {
	Name  string   // that was requested, "" for none
	Names []string // of the existing ones
}

func (e *NoDeploymentError) Error() string {
	switch {
	case len(e.Names) == 0:
		return "the namespace has no worker deployment; worker --deployment NAME makes one"
	case e.Name != "":
		return fmt.Sprintf("there is no worker deployment %q, but %s", e.Name, strings.Join(e.Names, ", "))
	}
	return "the namespace has several worker deployments: " + strings.Join(e.Names, ", ") + "; name one with --deployment"
}

// FindDeployment finds a deployment by its name; with "" the one of the task queue's builds, else the only one of the namespace. The error
// is a *NoDeploymentError where none is meant.
func FindDeployment(ctx context.Context, reader *runs.Reader, name, taskQueue string) (*Deployment, error) {
	if name == "" {
		of, err := NameOf(ctx, reader, taskQueue)
		if err != nil {
			return nil, err
		}
		name = of
	}
	entries, err := reader.Client.WorkerDeploymentClient().List(ctx, client.WorkerDeploymentListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the worker deployments: %w", err)
	}
	var names []string
	for entries.HasNext() {
		entry, err := entries.Next()
		if err != nil {
			return nil, fmt.Errorf("list the worker deployments: %w", err)
		}
		names = append(names, entry.Name)
	}
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	if name == "" || !slices.Contains(names, name) {
		return nil, &NoDeploymentError{Name: name, Names: names}
	}
	return &Deployment{Name: name, Reader: reader}, nil
}

// NameOf returns the name of the deployment of a task queue's builds, "" if its workers are none.
func NameOf(ctx context.Context, reader *runs.Reader, taskQueue string) (string, error) {
	described, err := reader.Client.DescribeTaskQueue(ctx, taskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return "", fmt.Errorf("describe the task queue %s: %w", taskQueue, err)
	}
	name := described.GetVersioningInfo().GetCurrentDeploymentVersion().GetDeploymentName()
	for _, poller := range described.GetPollers() {
		name = cmp.Or(name, versionedOf(poller))
	}
	return name, nil
}

// versionedOf is the deployment of a poller that is a build, "" for others.
func versionedOf(poller *taskqueuepb.PollerInfo) string {
	if poller.GetDeploymentOptions().GetWorkerVersioningMode() != enumspb.WORKER_VERSIONING_MODE_VERSIONED {
		return ""
	}
	return poller.GetDeploymentOptions().GetDeploymentName()
}

func (d *Deployment) handle() client.WorkerDeploymentHandle {
	return d.Reader.Client.WorkerDeploymentClient().GetHandle(d.Name)
}

// ListBuilds reads the builds: a handful of calls to the server for each.
func (d *Deployment) ListBuilds(ctx context.Context, now time.Time) (Builds, error) {
	all := Builds{Deployment: d.Name, Builds: []BuildStatus{}}
	described, err := d.handle().Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	if err != nil {
		return all, fmt.Errorf("describe the deployment %s: %w", d.Name, err)
	}
	workers := map[string]map[string]bool{} // identities by build
	seen := map[string]bool{}
	for _, summary := range described.Info.VersionSummaries {
		build := BuildStatus{ID: summary.Version.BuildID, Created: summary.CreateTime}
		build.Status, build.Percent = statusOf(summary, described.Info.RoutingConfig)
		if err := d.readBuild(ctx, &build, now); err != nil {
			return all, err
		}
		for _, queue := range build.queues {
			if seen[queue] {
				continue
			}
			seen[queue] = true
			if err := d.addWorkers(ctx, workers, queue, now); err != nil {
				return all, err
			}
		}
		all.Builds = append(all.Builds, build)
	}
	for i := range all.Builds {
		all.Builds[i].Workers = len(workers[all.Builds[i].ID])
	}
	slices.SortFunc(all.Builds, func(a, b BuildStatus) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// statusOf is the status of a build, and which part of new runs it gets while it ramps.
func statusOf(summary client.WorkerDeploymentVersionSummary, routing client.WorkerDeploymentRoutingConfig) (string, float32) {
	switch {
	case routing.CurrentVersion != nil && routing.CurrentVersion.BuildID == summary.Version.BuildID:
		return Current, 0
	case routing.RampingVersion != nil && routing.RampingVersion.BuildID == summary.Version.BuildID:
		return Ramping, routing.RampingVersionPercentage
	case summary.DrainageStatus == client.WorkerDeploymentVersionDrainageStatusDraining:
		return Draining, 0
	case summary.DrainageStatus == client.WorkerDeploymentVersionDrainageStatusDrained:
		return Drained, 0
	}
	return Inactive, 0
}

// readBuild reads the task queues and the open runs of a build.
func (d *Deployment) readBuild(ctx context.Context, build *BuildStatus, now time.Time) error {
	described, err := d.handle().DescribeVersion(ctx, client.WorkerDeploymentDescribeVersionOptions{BuildID: build.ID})
	if err != nil {
		return fmt.Errorf("describe the build %s: %w", build.ID, err)
	}
	for _, queue := range described.Info.TaskQueuesInfos {
		if !slices.Contains(build.queues, queue.Name) {
			build.queues = append(build.queues, queue.Name)
		}
	}
	filter := runs.OpenFilter(interpreter.Running, false)
	filter.Build = runs.Build{Deployment: d.Name, ID: build.ID}
	if build.OpenRuns, err = runs.CountRuns(ctx, d.Reader, filter); err == nil && build.OpenRuns > 0 {
		build.OldestRun, err = runs.OldestStart(ctx, d.Reader, filter, time.Time{}, now)
	}
	return err
}

// addWorkers adds the workers of a task queue to their builds.
func (d *Deployment) addWorkers(ctx context.Context, of map[string]map[string]bool, queue string, now time.Time) error {
	described, err := d.Reader.Client.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return fmt.Errorf("describe the task queue %s: %w", queue, err)
	}
	for _, poller := range described.GetPollers() {
		polls := runs.Workers{Count: 1, LastPoll: poller.GetLastAccessTime().AsTime()}.HavePolled(now)
		if versionedOf(poller) != d.Name || !polls {
			continue
		}
		id := poller.GetDeploymentOptions().GetBuildId()
		if of[id] == nil {
			of[id] = map[string]bool{}
		}
		of[id][poller.GetIdentity()] = true
	}
	return nil
}

// ErrRefused is wrapped by errors about a change that the server refuses.
var ErrRefused = errors.New("the server refuses this")

// MakeCurrent has a build get new runs. The error wraps ErrRefused if the build is unknown or no worker of it polls.
func (d *Deployment) MakeCurrent(ctx context.Context, id string) error {
	_, err := d.handle().SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: id})
	return wrapRefusal(err)
}

// RampBuild has a build get a part of new runs, 0 to 100 percent. The error is that of MakeCurrent.
func (d *Deployment) RampBuild(ctx context.Context, id string, percent float32) error {
	_, err := d.handle().SetRampingVersion(ctx, client.WorkerDeploymentSetRampingVersionOptions{BuildID: id, Percentage: percent})
	return wrapRefusal(err)
}

// DeleteBuild removes a build from the deployment. The error wraps ErrRefused if it is current, ramping or draining, or has workers.
func (d *Deployment) DeleteBuild(ctx context.Context, id string) error {
	_, err := d.handle().DeleteVersion(ctx, client.WorkerDeploymentDeleteVersionOptions{BuildID: id})
	return wrapRefusal(err)
}

// wrapRefusal wraps ErrRefused around errors that are about the request and not the server.
func wrapRefusal(err error) error {
	if connect.IsUnknownID(err) || connect.IsPreconditionFailed(err) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// GetsNew reports whether a build gets new runs: it is current or ramping.
func (d *Deployment) GetsNew(ctx context.Context, id string) (bool, error) {
	described, err := d.handle().Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	if err != nil {
		return false, fmt.Errorf("describe the deployment %s: %w", d.Name, err)
	}
	current, ramping := described.Info.RoutingConfig.CurrentVersion, described.Info.RoutingConfig.RampingVersion
	return current != nil && current.BuildID == id || ramping != nil && ramping.BuildID == id, nil
}

// CheckKnown returns an error wrapping ErrRefused unless the deployment has the build.
func (d *Deployment) CheckKnown(ctx context.Context, id string) error {
	_, err := d.handle().DescribeVersion(ctx, client.WorkerDeploymentDescribeVersionOptions{BuildID: id})
	return wrapRefusal(err)
}
