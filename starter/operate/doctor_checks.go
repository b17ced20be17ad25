package operate

import (
	"context"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"reprise/internal/base/codec"
	"reprise/internal/base/connect"
	"reprise/internal/base/seal"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/program/rollout"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

const (
	// checkTimeout bounds each check: a server whose database does not respond must not hold up the others.
	checkTimeout = 15 * time.Second
	// shortRetention is a retention below which runs are gone before people look back at them.
	shortRetention = 24 * time.Hour
	// oldBacklog is the age of a waiting task from which on workers are too few or too slow, as in the alert RepriseBacklog.
	oldBacklog = 5 * time.Minute
	// checkedRuns bounds the open runs that are checked, the newest.
	checkedRuns = 500
)

// serverChecks makes the checks that need a server: the first says that it responds, the others have the names and the order
// of onServer.
func serverChecks(ctx context.Context, s *session.Session) []DoctorCheck {
	checks := []func(context.Context, *session.Session) DoctorCheck{
		checkServer, checkNamespace, checkAttributes, checkWorkers, checkBuilds, checkTaskQueue, checkOpenRuns, checkPayloadStore,
	}
	return lists.Map(checks, func(check func(context.Context, *session.Session) DoctorCheck) DoctorCheck {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		return check(ctx, s)
	})
}

// failedRequest is the check whose request to the server failed.
func failedRequest(name string, err error) DoctorCheck {
	return DoctorCheck{Name: name, Status: CheckFailed, Found: err.Error()}
}

func checkServer(ctx context.Context, s *session.Session) DoctorCheck {
	const name = "server"
	info, err := s.Client.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return failedRequest(name, err)
	}
	return DoctorCheck{Name: name, Status: CheckOK, Found: strings.TrimSpace("Temporal "+info.GetServerVersion()) + " at " + s.Address}
}

func checkNamespace(ctx context.Context, s *session.Session) DoctorCheck {
	const name = "namespace"
	described, err := s.Client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: s.Namespace})
	if err != nil {
		return failedRequest(name, err)
	}
	retention := described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	check := DoctorCheck{Name: name, Status: CheckOK, Found: fmt.Sprintf("%s; runs are kept for %s after they end", s.Namespace, terminal.Duration(retention))}
	if retention > 0 && retention < shortRetention {
		check.Status = CheckWarning
		check.Advice = []string{fmt.Sprintf("temporal operator namespace update --namespace %s --retention 168h", terminal.ShellWord(s.Namespace))}
	}
	return check
}

func checkAttributes(ctx context.Context, s *session.Session) DoctorCheck {
	const name = "search attributes"
	found, err := connect.CheckAttributes(ctx, s.Client, s.Namespace, protocol.SearchAttributes())
	if err != nil {
		return failedRequest(name, err)
	}
	problems := lists.Map(found.Mistyped, func(of connect.MistypedAttribute) string { return of.Error() })
	report := SetupReport{Address: s.Address, Namespace: s.Namespace, Attributes: found}
	if len(found.Missing) > 0 {
		problems = append(problems, "missing: "+strings.Join(found.Missing, ", "))
		report.addCommands(nil)
	}
	if len(problems) == 0 {
		return DoctorCheck{Name: name, Status: CheckOK, Found: fmt.Sprintf("all %d exist", len(found.Present))}
	}
	check := DoctorCheck{Name: name, Status: CheckFailed, Found: strings.Join(problems, "; ")}
	if len(found.Missing) > 0 {
		check.Advice = append([]string{terminal.ProgramName() + " setup" + s.Flags + ", or whoever has the permission:"}, report.ByHand...)
	}
	return check
}

func checkWorkers(ctx context.Context, s *session.Session) DoctorCheck {
	const name = "workers"
	workers, err := s.Runs().Workers(ctx, s.TaskQueue)
	switch {
	case err != nil:
		return failedRequest(name, err)
	case workers.HavePolled(time.Now()):
		return DoctorCheck{Name: name, Status: CheckOK, Found: terminal.Count(workers.Count, "worker") + " of new runs on the task queue " + s.TaskQueue}
	}
	check := DoctorCheck{Name: name, Status: CheckFailed, Found: "no worker of new runs polls the task queue " + s.TaskQueue, Advice: []string{render.StartWorker(s.TaskQueue, s.Flags)}}
	if workers.Deployment != "" {
		check.Found += "; those that poll it are builds of the deployment " + workers.Deployment + ", none of which is current"
		check.Advice = []string{terminal.ProgramName() + " builds current ID" + s.Flags}
	}
	return check
}

func checkBuilds(ctx context.Context, s *session.Session) DoctorCheck {
	const name = "builds"
	deployment, err := rollout.NameOf(ctx, s.Runs(), s.TaskQueue)
	if err != nil {
		return failedRequest(name, err)
	}
	if deployment == "" {
		return DoctorCheck{Name: name, Status: CheckSkipped, Found: "the workers of the task queue are no builds"}
	}
	all, err := (&rollout.Deployment{Name: deployment, Reader: s.Runs()}).ListBuilds(ctx, time.Now())
	if err != nil {
		return failedRequest(name, err)
	}
	return buildsCheck(name, all)
}

// buildsCheck judges the builds of a deployment.
func buildsCheck(name string, all rollout.Builds) DoctorCheck {
	shown := "none is current"
	for _, one := range all.Builds {
		if one.Status == rollout.Current {
			shown = one.ID + " is current"
		}
	}
	check := DoctorCheck{Name: name, Status: CheckOK, Found: fmt.Sprintf("deployment %s has %s; %s", all.Deployment, terminal.Count(len(all.Builds), "build"), shown)}
	for _, note := range all.OperatorNotes() {
		check.Advice = append(check.Advice, note.Text)
		if note.Stops {
			check.Status = CheckFailed
		} else if check.Status == CheckOK {
			check.Status = CheckWarning
		}
	}
	return check
}

func checkTaskQueue(ctx context.Context, s *session.Session) DoctorCheck {
	const name = "task queue"
	var tasks int64
	var age time.Duration
	for _, kind := range []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY} {
		described, err := s.Client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: s.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: s.TaskQueue}, TaskQueueType: kind, ReportStats: true,
		})
		if err != nil {
			return failedRequest(name, err)
		}
		tasks += described.GetStats().GetApproximateBacklogCount()
		age = max(age, described.GetStats().GetApproximateBacklogAge().AsDuration())
	}
	check := DoctorCheck{Name: name, Status: CheckOK, Found: fmt.Sprintf("%s: %s", s.TaskQueue, terminal.Count(int(tasks), "waiting task"))}
	if age >= oldBacklog {
		check.Status, check.Advice = CheckWarning, []string{"start more workers, or raise --max-attempts of worker"}
		check.Found += ", the oldest since " + terminal.Duration(age)
	}
	return check
}

func checkOpenRuns(ctx context.Context, s *session.Session) DoctorCheck {
	const name = "open runs"
	now := time.Now()
	list, err := s.Runs().List(ctx, runs.Filter{Status: interpreter.Running, Limit: checkedRuns})
	if err != nil {
		return failedRequest(name, err)
	}
	s.Runs().FindUnpolled(ctx, &list, now)
	list.DescribeOpen(now)
	check := DoctorCheck{Name: name, Status: CheckOK, Found: terminal.Count(len(list.Runs), "open run")}
	if list.More {
		check.Found = fmt.Sprintf("the newest %d open runs", checkedRuns)
	}
	if stopped, found := stoppedRun(ctx, s, list.Runs); found {
		check.Status, check.Found = CheckFailed, check.Found+"; "+stopped
		return check
	}
	stuck := lists.Filter(list.Runs, func(run runs.Found) bool { return run.HeldBy == runs.HeldByNoWorker })
	if len(stuck) == 0 {
		return check
	}
	check.Status, check.Found = CheckFailed, check.Found+fmt.Sprintf("; no worker continues %d of them, such as %s", len(stuck), stuck[0].WorkflowID)
	for _, build := range list.NoWorkerBuilds {
		check.Advice = append(check.Advice, fmt.Sprintf("build %s of deployment %s has no workers; start it, or: %s builds retire %s", build.ID, build.Deployment, terminal.ProgramName(), terminal.ShellWord(build.ID)))
	}
	for _, queue := range list.NoWorker {
		check.Advice = append(check.Advice, render.StartWorker(queue, s.Flags))
	}
	return check
}

// askedRuns bounds the open runs that are asked for a failed workflow task, the newest: what fails one for lack of a key or
// of the payload store fails all.
const askedRuns = 5

// stoppedRun returns why the workers of an open run cannot continue it, of the first that has such a reason.
func stoppedRun(ctx context.Context, s *session.Session, open []runs.Found) (text string, found bool) {
	for _, run := range open[:min(len(open), askedRuns)] {
		if run.HeldBy == runs.HeldByNoWorker {
			continue
		}
		if silence := s.Runs().Silence(ctx, run, nil); silence.HeldBy != runs.HeldByNoWorker {
			return fmt.Sprintf("%s waits: %s", run.WorkflowID, silence.Text(run, "")), true
		}
	}
	return "", false
}

func checkPayloadStore(ctx context.Context, s *session.Session) DoctorCheck {
	const name = "payload store"
	if s.Store == nil {
		return DoctorCheck{Name: name, Status: CheckSkipped, Found: "none is set here; if workers have one, set the same with --payload-store"}
	}
	err := s.Store.UnavailableReason(ctx) // which says of a folder what it lacks
	if err == nil {
		err = s.Store.CheckReady(ctx)
	}
	if err != nil {
		return failedRequest(name, err)
	}
	return DoctorCheck{Name: name, Status: CheckOK, Found: s.Store.Name() + " accepts values from this machine"}
}

// checkSecretKey checks the keys in the environment. lookup is usually os.LookupEnv.
func checkSecretKey(lookup func(string) (string, bool)) DoctorCheck {
	const name = "secret key"
	keys, err := seal.FromEnvironment(lookup)
	switch {
	case err != nil:
		return failedRequest(name, err)
	case keys == nil:
		return DoctorCheck{Name: name, Status: CheckSkipped, Found: seal.Variable + " is not set here"}
	}
	return DoctorCheck{Name: name, Status: CheckOK, Found: "key IDs, which must be those of all workers: " + strings.Join(keys.IDs(), ", ")}
}

// checkCodecKey checks the keys of encryption in the environment. lookup is usually os.LookupEnv.
func checkCodecKey(lookup func(string) (string, bool)) DoctorCheck {
	const name = "codec key"
	encryption, err := codec.FromEnvironment(lookup, false)
	switch {
	case err != nil:
		return failedRequest(name, err)
	case len(encryption.IDs()) == 0:
		return DoctorCheck{Name: name, Status: CheckSkipped, Found: codec.Variable + " is not set here; values are not encrypted"}
	}
	check := DoctorCheck{Name: name, Status: CheckOK, Found: "key IDs, which all programs must have: " + strings.Join(encryption.IDs(), ", ")}
	if encryption.Required() {
		check.Found += "; plain values are refused"
	}
	return check
}

// checkConnections checks the connections of a file, and of the environment.
func checkConnections(path string) DoctorCheck {
	const name = "connections"
	names, problems, err := host.CheckConnections(path)
	switch {
	case err != nil:
		return failedRequest(name, err)
	case len(problems) > 0:
		return DoctorCheck{Name: name, Status: CheckFailed, Found: strings.Join(problems, "; ")}
	case path == "":
		return DoctorCheck{Name: name, Status: CheckSkipped, Found: "no file is named; --connections FILE checks one"}
	}
	return DoctorCheck{Name: name, Status: CheckOK, Found: terminal.Count(len(names), "connection") + " can be read on this machine; no server of theirs is asked"}
}
