package host

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/internal/base/audit"
	"reprise/internal/program/backfill"
	"reprise/internal/program/timetable"
	"reprise/interpreter"
	"reprise/interpreter/partition"
)

// begin validates a run at its start and, for scheduled runs, updates the schedule if needed.
type begin struct {
	catalogue *activities.Catalogue
	renewed   sync.Map // schedule to the day on which this worker has looked at it last
}

// checkRun validates a starting run. For a backfill of missing partitions, it also finds them.
func (b *begin) checkRun(ctx context.Context, in interpreter.CheckInput) (interpreter.CheckResult, error) {
	c := attempt.WorkerOf(ctx).Client
	b.renewSchedule(ctx, c)
	if refusal := activities.RefuseUnknown(b.catalogue, in.Name, in.Source); refusal != "" && !isBackfill(in) {
		b.logUnknown(ctx, in.Name)
		return interpreter.CheckResult{Problems: refusal, Count: 1, Refusal: interpreter.UnknownPlaybook}, nil
	}
	result := activities.CheckRun(b.catalogue, in)
	if result.Count > 0 || !in.Missing || in.Partition == nil {
		return result, nil
	}
	missing, more, err := missingPartitions(ctx, c, in)
	if result.Missing = missing; more > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%d partitions that are missing as well are left to the next run: a run runs %d", more, mostMissing))
	}
	return result, err
}

// logUnknown writes to the audit log that an unknown playbook was refused.
func (b *begin) logUnknown(ctx context.Context, name string) {
	target := audit.ActionTarget{Playbook: name}
	if activity.IsActivity(ctx) {
		run := activity.GetInfo(ctx).WorkflowExecution
		target.Run, target.RunID = run.ID, run.RunID
	}
	resources := b.catalogue.Attempts.Resources
	denied := audit.LoggedAction{Proof: audit.ProofNone, Action: audit.Start, Target: target, Outcome: audit.Denied, Type: interpreter.UnknownPlaybook}
	if err := resources.Audit.Write(denied); err != nil {
		resources.Logger.Error("a denial is not in the audit log", "type", denied.Type, "workflow_id", target.Run, "error", err)
	}
}

// isBackfill reports whether a playbook is the one that starter writes to run another one for partitions, byte for byte. That
// other one is checked when it runs.
func isBackfill(in interpreter.CheckInput) bool {
	of, is := strings.CutSuffix(in.Name, backfill.FileName(""))
	called, err := interpreter.LoadPlaybook(backfill.CalledName(of), in.Files[backfill.CalledName(of)])
	if !is || err != nil {
		return false
	}
	book, err := interpreter.LoadPlaybook(in.Name, in.Source)
	if err != nil || len(book.Steps) != 1 || book.Steps[0].Loop == nil {
		return false
	}
	return in.Source == string(backfill.PlaybookSource(called, of, book.Steps[0].Loop.MaxConcurrency))
}

// scheduledID matches the workflow IDs of scheduled runs.
var scheduledID = regexp.MustCompile(`^(.+)-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// renewTime bounds how long a run waits for its schedule.
const renewTime = 5 * time.Second

// renewSchedule updates a run's schedule, at most once a day, for clock changes that have become known. If that
// fails, the schedule still has the clock changes of ten years, and later runs try again.
func (b *begin) renewSchedule(ctx context.Context, c client.Client) {
	if c == nil || !activity.IsActivity(ctx) {
		return
	}
	name := scheduledID.FindStringSubmatch(activity.GetInfo(ctx).WorkflowExecution.ID)
	now := time.Now().UTC()
	if name == nil {
		return
	}
	today := now.Format(time.DateOnly)
	if day, known := b.renewed.Swap(name[1], today); known && day == today {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	if _, err := timetable.RenewSchedule(ctx, c, name[1], now); err != nil {
		activity.GetLogger(ctx).Debug("the moves of clocks that a schedule provides for were not renewed", "schedule", name[1], "error", err)
	}
}

// mostMissing bounds the partitions of one run. A run for years of hours would be one loop of tens of thousands of
// iterations; the next run takes the rest.
const mostMissing = 1000

// missingPartitions returns the missing partitions of the playbook that a backfill calls, and how many there are
// beyond mostMissing.
func missingPartitions(ctx context.Context, c client.Client, in interpreter.CheckInput) (*partition.Selection, int, error) {
	called := backfill.CalledName(strings.TrimSuffix(in.Name, backfill.FileName("")))
	book, err := interpreter.LoadPlaybook(called, in.Files[called])
	if err != nil {
		return nil, 0, err
	}
	if book.Partitions == nil {
		return nil, 0, fmt.Errorf("%s has no partitions", called)
	}
	matrix, err := backfill.Read(ctx, c, book, in.Partition.At)
	if err != nil {
		return nil, 0, err
	}
	keys, more := keysOfRun(matrix.SelectKeys(backfill.OnlyMissing))
	return &partition.Selection{Keys: keys, Claim: matrix.BackfillClaim(keys)}, more, nil
}

// keysOfRun returns the keys for one run, and how many are left.
func keysOfRun(all []string) (keys []string, more int) {
	more = max(len(all)-mostMissing, 0)
	return all[:len(all)-more], more
}
