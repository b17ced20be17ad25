package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"reprise/activities"
	"reprise/internal/base/terminal"
	"reprise/internal/program/backfill"
	"reprise/internal/program/start"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/session"
)

// DefaultBackfillConcurrency is the default number of concurrent runs of a backfill.
const DefaultBackfillConcurrency = 4

// Backfill describes a run that runs a playbook for some of its partitions.
type Backfill struct {
	Of   load.CheckedPlaybook
	Keys []string
	// Workload is the workload of each run.
	Workload    map[string]any
	WorkflowID  string // "" for one made of the playbook's name
	Folder      string // of the playbooks that are run by name
	Concurrency int
	Fairness    temporal.Priority
	// Called reads the playbooks that the playbook calls by path.
	Called func(name string) ([]byte, error)
}

// RunPlan returns the plan of the run.
func (b Backfill) RunPlan() (start.Plan, error) {
	text := backfill.PlaybookSource(b.Of.Book, b.Of.File.Name, b.Concurrency)
	file := source.NewFile(backfill.FileName(b.Of.File.Name), text)
	files := check.NewFiles(func(name string) ([]byte, error) {
		if name == backfill.CalledName(b.Of.File.Name) {
			return b.Of.File.Bytes(), nil
		}
		return b.Called(name)
	})
	book, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{Zone: cli.KnownZone, Files: files, Now: time.Now()})
	if found.HasErrors() {
		return start.Plan{}, fmt.Errorf("the backfill of %s: %w", b.Of.File.Name, found.Errors())
	}
	made := load.CheckedPlaybook{File: file, Book: book, Files: files.Texts()}
	plan, err := NewPlan(made, backfill.BackfillWorkload(b.Keys, b.Workload), b.WorkflowID, b.Folder)
	plan.Fairness = b.Fairness
	return plan, err
}

// MissingPlan returns the plan of a run for the missing partitions of a playbook in a folder.
func MissingPlan(ctx context.Context, s *session.Session, of load.CheckedPlaybook, folder string) (start.Plan, error) {
	if of.Book.Partitions == nil {
		return start.Plan{}, errors.New("the playbook has no partitions")
	}
	matrix, err := ReadMatrix(ctx, s, of.Book, time.Now())
	if err != nil {
		return start.Plan{}, err
	}
	keys := matrix.SelectKeys(backfill.OnlyMissing)
	if len(keys) == 0 {
		return start.Plan{}, errors.New("no partition is missing")
	}
	claim := matrix.BackfillClaim(keys)
	if err := CheckClaim(ctx, s, matrix, claim); err != nil {
		return start.Plan{}, err
	}
	plan, err := Backfill{
		Of: of, Keys: keys, Folder: folder, Concurrency: DefaultBackfillConcurrency, Called: load.FolderReader(folder),
		Fairness: temporal.Priority{PriorityKey: LastPriority},
	}.RunPlan()
	plan.Input.Claim = &claim
	return plan, err
}

// CheckClaim returns an error if another running backfill has claimed some of the partitions. If both start at the
// same time, the run itself detects that.
func CheckClaim(ctx context.Context, s *session.Session, matrix *backfill.Matrix, claim partition.BackfillClaim) error {
	id, keys, err := matrix.FindOpen(ctx, s.Client, claim)
	if err != nil || id == "" {
		return err
	}
	shared := keys[0]
	if len(keys) > 1 {
		shared = fmt.Sprintf("%d of these partitions, %s to %s", len(keys), keys[0], keys[len(keys)-1])
	}
	return fmt.Errorf("the backfill %s of %s has not ended and runs %s; nothing was started. Run others with --from and --to, "+
		"wait for its end, which %s follow %s shows, or cancel it", id, matrix.Playbook, shared, terminal.ProgramName(), terminal.ShellWord(id))
}

// ReadMatrix reads the states of a playbook's partitions.
func ReadMatrix(ctx context.Context, s *session.Session, book *playbook.Playbook, now time.Time) (*backfill.Matrix, error) {
	if err := s.NeedsWorker(ctx, "what is done is read by one"); err != nil {
		return nil, err
	}
	matrix, err := backfill.Read(ctx, s.Client, book, now)
	if err != nil && ctx.Err() != nil {
		return nil, start.ErrInterrupted
	}
	return matrix, err
}
