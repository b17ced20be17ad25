// Package host binds Reprise's workflows and tools to a Temporal worker. The worker binary and the starter, which can
// run its own worker, share it.
package host

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/internal/base/codec"
	"reprise/internal/base/connect"
	"reprise/internal/base/connection"
	"reprise/internal/base/egress"
	"reprise/internal/base/meter"
	"reprise/internal/base/payload"
	"reprise/internal/base/seal"
	"reprise/internal/base/secretstore"
	"reprise/internal/observe/runs"
	"reprise/internal/program/telemetry"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows"
	"reprise/workflows/protocol"
)

// Options configure a worker. The zero value works.
type Options struct {
	TaskQueue string // "" is workflows.DefaultTaskQueue
	// MaxAttempts bounds the attempts of tools that run at the same time; 0 is 200.
	MaxAttempts int
	StopTimeout time.Duration // how long running attempts may continue at the end; 0 is 10 s
	// OnFatalError is called if the worker cannot continue, for example because its namespace was deleted; nil for
	// none.
	OnFatalError func(error)
	// Telemetry records the parts of runs; nil for none. The catalogue and the client must have the same.
	Telemetry *telemetry.Telemetry
	// Build turns Temporal's Worker Versioning on; the zero value leaves it off.
	Build OwnBuild
}

// OwnBuild is the build of a worker, by which the server keeps runs apart.
type OwnBuild struct {
	Deployment string // the name that all builds of these workers share, without . and :
	ID         string
	// AutoUpgrade moves runs to the current build with their next task. By default, a run and its children stay with the build
	// that has started them.
	AutoUpgrade bool
}

// workerOptions are the options of a worker of this build.
func (b OwnBuild) workerOptions() worker.DeploymentOptions {
	if b == (OwnBuild{}) {
		return worker.DeploymentOptions{}
	}
	behavior := workflow.VersioningBehaviorPinned
	if b.AutoUpgrade {
		behavior = workflow.VersioningBehaviorAutoUpgrade
	}
	return worker.DeploymentOptions{
		UseVersioning: true, DefaultVersioningBehavior: behavior,
		Version: worker.WorkerDeploymentVersion{DeploymentName: b.Deployment, BuildID: b.ID},
	}
}

const (
	defaultMaxAttempts = 200
	defaultStopTimeout = 10 * time.Second
	// returnTime is the time for attempts that were cut off at the end to return.
	returnTime = attempt.StopGrace + 2*time.Second
	// heartbeatThrottle bounds how long a cancellation takes to reach an attempt, with the response to a heartbeat.
	heartbeatThrottle = time.Second
	// mostThought is how long workflow code may run without yielding. The SDK's default of 1 s is as long as encoding
	// and measuring 64 MiB takes on a busy machine; the other work of workflow code has its own bounds.
	mostThought = 8 * time.Second
)

// NewWorker returns a worker that runs playbooks with the tools of a catalogue. The caller starts and stops it, and
// then closes the catalogue.
func NewWorker(c client.Client, catalogue *activities.Catalogue, options Options) worker.Worker {
	options.TaskQueue = cmp.Or(options.TaskQueue, protocol.DefaultTaskQueue)
	options.MaxAttempts = cmp.Or(options.MaxAttempts, defaultMaxAttempts)
	options.StopTimeout = cmp.Or(options.StopTimeout, defaultStopTimeout)
	background := attempt.WithWorker(context.Background(), attempt.Worker{
		Client: c, StopGrace: options.StopTimeout, Slots: options.MaxAttempts,
	})
	w := worker.New(c, options.TaskQueue, worker.Options{
		BackgroundActivityContext:          background,
		MaxConcurrentActivityExecutionSize: options.MaxAttempts,
		WorkflowTaskPollerBehavior:         workflowPollers(),
		MaxHeartbeatThrottleInterval:       heartbeatThrottle,
		WorkerStopTimeout:                  options.StopTimeout + returnTime,
		DeadlockDetectionTimeout:           mostThought,
		OnFatalError:                       options.OnFatalError,
		DeploymentOptions:                  options.Build.workerOptions(),
		Interceptors: append(append(options.Telemetry.Interceptors(), auditors(catalogue.Attempts.Resources.Audit, catalogue.Attempts.Resources.Logger)...),
			catalogue.Attempts.StoreOutcomes(), &refuseStandalone{}),
	})
	if gauges := options.Telemetry.Gauges(); gauges != nil {
		gauges.Set(meter.AttemptsMax, float64(options.MaxAttempts))
	}
	Register(w, catalogue)
	return w
}

// workflowPollers polls separately for the first tasks of runs and children, and for later tasks. By default, the SDK
// has two pollers for both kinds, and uses both for later tasks while the server's last hint says that some are
// waiting; if the hint is outdated, first tasks wait 5 to 10 s until the server forwards them.
func workflowPollers() worker.PollerBehavior {
	return worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
}

// Registry registers workflows and activities: a worker, or the test environment.
type Registry interface {
	workflows.Registry
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// Register registers the workflows, the tools of a catalogue, and the activities that check runs.
func Register(registry Registry, catalogue *activities.Catalogue) {
	workflows.Register(registry)
	registry.RegisterActivityWithOptions((&begin{catalogue: catalogue}).checkRun, activity.RegisterOptions{Name: interpreter.CheckActivity})
	registry.RegisterActivityWithOptions(catalogue.Calls.Forget, activity.RegisterOptions{Name: interpreter.ForgetActivity})
	registry.RegisterActivityWithOptions(catalogue.Attempts.PauseRateLimit, activity.RegisterOptions{Name: interpreter.PauseRateLimitActivity})
	registry.RegisterActivityWithOptions(catalogue.States.Apply, activity.RegisterOptions{Name: interpreter.StateActivity})
	registry.RegisterActivityWithOptions(catalogue.States.Command, activity.RegisterOptions{Name: interpreter.StateCommandActivity})
	registry.RegisterActivityWithOptions(catalogue.Calls.Drive, activity.RegisterOptions{Name: call.DriveActivity})
	store, _ := catalogue.Attempts.Resources.Payloads.Store.(*payload.Store)
	for _, of := range []map[string]any{activities.ServiceActivities(catalogue), runs.RecallActivities(store)} {
		for name, run := range of {
			registry.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: name})
		}
	}
	for _, tool := range catalogue.Attempts.Activities() {
		registry.RegisterActivityWithOptions(tool.Run, activity.RegisterOptions{Name: tool.Name})
	}
}

// PayloadLimits returns the size limits for values of runs on a worker with the given payload store, nil for none:
// REPRISE_MAX_RESULT_BYTES for one value, without a store never more than Temporal accepts, and
// REPRISE_MAX_ANSWERS_BYTES for all that the worker holds at once. lookup is usually os.LookupEnv.
func PayloadLimits(store *payload.Store, lookup func(string) (string, bool)) (attempt.Payloads, error) {
	most, err := payload.MaxBytes(lookup)
	if err != nil {
		return attempt.Payloads{}, err
	}
	answers, err := activities.AnswersBytesFromEnv(lookup)
	if err != nil {
		return attempt.Payloads{}, err
	}
	if store == nil {
		return attempt.Payloads{MaxBytes: min(most, interpreter.MaxInlinePayload), AnswersBytes: answers}, nil
	}
	return attempt.Payloads{MaxBytes: most, AnswersBytes: answers, OffloadAbove: payload.Threshold, Store: store}, nil
}

// OperatorFiles are the operator's files; each is "" if there is none.
type OperatorFiles struct{ Connections, RateLimits, Egress string }

// ReadResources returns what the operator's files and the environment provide to tools: connections, rate limits, other
// limits, and the addresses that tools may reach. usual has the defaults of the egress rules.
func ReadResources(files OperatorFiles, usual *egress.Policy) (resources activities.Resources, err error) {
	if resources.Connections, err = ReadConnections(files.Connections); err != nil {
		return resources, err
	}
	resources.SecretsDirectory, resources.SecretStores = os.Getenv(connection.DirectoryVariable), secretstore.FromEnvironment(os.LookupEnv)
	resources.Private = PrivateFiles(files)
	if resources.RateLimits, err = RateLimits(files.RateLimits); err != nil {
		return resources, err
	}
	if resources.Egress, err = ReadEgress(files.Egress, usual); err != nil {
		return resources, err
	}
	resources.Limits, err = activities.LimitsFromEnv(os.LookupEnv)
	return resources, err
}

// PrivateFiles returns the operator's files, which playbooks can neither read nor write.
func PrivateFiles(files OperatorFiles) []string {
	return slices.DeleteFunc([]string{
		files.Connections, files.RateLimits, files.Egress, os.Getenv(connection.DirectoryVariable),
		os.Getenv(seal.FileVariable), os.Getenv(codec.FileVariable), os.Getenv(connect.KeyFileVariable), os.Getenv(secretstore.LoginFileVariable), usualConnections, usualCallers,
	}, func(path string) bool { return path == "" })
}

// Usual names of the files of connections and callers. A worker may share its folder with `starter serve`, whose
// flags it does not know.
const (
	usualConnections = "connections.yaml"
	usualCallers     = "callers.yaml"
)

// RateLimits reads the operator's rate limits from a YAML file, a map of keys to limits in the syntax of rate_limit.
// It returns nil if path is "".
func RateLimits(path string) (attempt.RateLimits, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the rate limits: %w", err)
	}
	file := source.NewFile(path, data)
	limits, found := playbook.OwnedLimits(file)
	if problems := found.Errors(); len(problems) > 0 {
		return nil, fmt.Errorf("read the rate limits: %s", file.FormatAll(problems[:1]))
	}
	return limits, nil
}

// ClientOptions returns options for a worker's client that keeps large values in the store, nil for none. logger
// reports runs that wait for the store; nil for none.
func ClientOptions(store *payload.Store, options client.Options, logger *slog.Logger) client.Options {
	logger = cmp.Or(logger, slog.New(slog.DiscardHandler))
	options = store.ClientOptions(options)
	interceptor := refuseLargeUpdates // which a store keeps, so that they may be taken
	if store != nil {
		interceptor = store.HoldTasks(logger, cancelledDetails)
	}
	options.ConnectionOptions.DialOptions = append(slices.Clip(options.ConnectionOptions.DialOptions),
		grpc.WithChainUnaryInterceptor(newLoopTasks().interceptPoll, interceptor))
	return options
}

// cancelledDetails returns the failure details of a workflow that was cancelled and cannot report its progress. Only
// runs have details: the parents of other workflows count their work as cancelled.
func cancelledDetails(workflowType, reason string) *commonpb.Payloads {
	if workflowType != protocol.PlaybookWorkflowName {
		return nil
	}
	details, err := converter.GetDefaultDataConverter().ToPayloads(protocol.Result{
		Status: interpreter.Cancelled, Steps: []protocol.StepRecord{}, Warnings: []string{reason},
	})
	if err != nil {
		return nil // a text can always be encoded
	}
	return details
}
