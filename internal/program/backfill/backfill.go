// Package backfill reports which partitions of a playbook are done, failed or missing, and creates the playbook that
// runs some of them.
package backfill

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"reprise/internal/base/connect"
	"reprise/interpreter/lists"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
)

// Row is a partition with its status and the run that set it.
type Row struct {
	Key    string           `json:"key"`
	Start  time.Time        `json:"start,omitzero"`
	End    time.Time        `json:"end,omitzero"`
	Status partition.Status `json:"status"`
	Run    string           `json:"run,omitempty"` // that is open
	Index  int              `json:"-"`
}

// Matrix has the statuses of a playbook's partitions.
type Matrix struct {
	Playbook string                   `json:"playbook"`
	Identity string                   `json:"identity"`
	Counts   map[partition.Status]int `json:"counts"`
	Rows     []Row                    `json:"partitions"`
	unit     string                   // of the partitions, "" for those of a length or a list
	ledger   *partition.Ledger
}

// Read reads the statuses of all partitions whose time is over.
func Read(ctx context.Context, c client.Client, book *playbook.Playbook, now time.Time) (*Matrix, error) {
	m, err := readMatrix(ctx, c, book, now)
	if err != nil {
		return nil, err
	}
	if err := settleRuns(ctx, c, m.Rows); err != nil {
		return nil, err
	}
	m.countStatuses()
	return m, nil
}

// Gaps are the partitions of a playbook whose time is over and which no run has loaded.
type Gaps struct {
	Missing, Failed int
	Unit            string // what a partition is, such as "day"
}

// ReadGaps counts the gaps of a playbook in one call to the server. It does not find out whether recorded runs are still open.
func ReadGaps(ctx context.Context, c client.Client, book *playbook.Playbook, now time.Time) (Gaps, error) {
	gaps := Gaps{Unit: cmp.Or(book.Partitions.UnitName(), "partition")}
	m, err := readMatrix(ctx, c, book, now)
	if err != nil {
		return gaps, err
	}
	gaps.Failed = m.Counts[partition.Failed]
	for _, row := range m.Rows {
		if row.Status == partition.Missing && row.Run == "" {
			gaps.Missing++
		}
	}
	return gaps, nil
}

// readMatrix reads the statuses that the ledger has, in one call to the server.
func readMatrix(ctx context.Context, c client.Client, book *playbook.Playbook, now time.Time) (*Matrix, error) {
	all, err := book.Partitions.CompletePartitions(now)
	if err != nil {
		return nil, err
	}
	ledger, err := readLedger(ctx, c, book.Name)
	if err != nil {
		return nil, err
	}
	return newMatrix(book, all, ledger), nil
}

// newMatrix returns the statuses that a ledger has.
func newMatrix(book *playbook.Playbook, all []partition.Partition, ledger *partition.Ledger) *Matrix {
	m := &Matrix{Playbook: book.Name, Identity: book.ContentHash(), unit: book.Partitions.UnitName(), ledger: ledger}
	for _, p := range all {
		m.Rows = append(m.Rows, Row{Key: p.Key, Start: p.Start, End: p.End, Index: p.Index, Status: ledger.StatusOf(p, m.Identity), Run: ledger.OpenRun(p)})
	}
	m.countStatuses()
	return m
}

func (m *Matrix) countStatuses() {
	m.Counts = map[partition.Status]int{}
	for _, row := range m.Rows {
		m.Counts[row.Status]++
	}
}

func readLedger(ctx context.Context, c client.Client, name string) (*partition.Ledger, error) {
	var packed []byte
	answer, err := c.QueryWorkflow(ctx, partition.WorkflowID(name), "", partition.SnapshotQuery)
	switch {
	case connect.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("ask what is done of the partitions of %s: %w", name, err)
	default:
		if err := answer.Get(&packed); err != nil {
			return nil, fmt.Errorf("read what is done of the partitions of %s: %w", name, err)
		}
	}
	return partition.ReadLedger(packed)
}

// askedAtOnce is how many runs are described concurrently.
const askedAtOnce = 16

// settleRuns finds out whether runs that did not record their end are open. One that is not was terminated.
func settleRuns(ctx context.Context, c client.Client, rows []Row) error {
	var all errgroup.Group
	all.SetLimit(askedAtOnce)
	for i := range rows {
		if rows[i].Run != "" {
			all.Go(func() error { return settleRun(ctx, c, &rows[i]) })
		}
	}
	return all.Wait()
}

func settleRun(ctx context.Context, c client.Client, row *Row) error {
	first, err := openRun(ctx, c, row.Run)
	switch {
	case err != nil:
		return fmt.Errorf("ask about the run %s: %w", row.Run, err)
	case first != "":
		row.Status = partition.Running
		return nil
	}
	if row.Run = ""; row.Status == partition.Missing {
		row.Status = partition.Failed
	}
	return nil
}

// openRun returns the first run ID of an open run; "" if it is not open.
func openRun(ctx context.Context, c client.Client, id string) (first string, err error) {
	found, err := c.DescribeWorkflowExecution(ctx, id, "")
	info := found.GetWorkflowExecutionInfo()
	switch {
	case connect.IsNotFound(err), err == nil && info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return "", nil
	case err != nil:
		return "", err
	}
	return info.GetFirstRunId(), nil
}

// BackfillClaim returns the claim of a backfill for some partitions.
func (m *Matrix) BackfillClaim(keys []string) partition.BackfillClaim {
	chosen := make(map[string]bool, len(keys))
	for _, key := range keys {
		chosen[key] = true
	}
	var all []partition.Partition
	for _, row := range m.Rows {
		if chosen[row.Key] {
			all = append(all, partition.Partition{Key: row.Key, Index: row.Index, Start: row.Start, End: row.End})
		}
	}
	return partition.ClaimOf(m.Playbook, all)
}

// FindOpen returns the workflow ID of an open backfill that runs some of the claimed partitions, and the keys of
// these; "" if there is none.
func (m *Matrix) FindOpen(ctx context.Context, c client.Client, claim partition.BackfillClaim) (id string, keys []string, err error) {
	for _, other := range m.ledger.ClaimsOverlapping(claim) {
		first, err := openRun(ctx, c, other.Run)
		if err != nil {
			return "", nil, fmt.Errorf("find out whether the backfill %s is open: %w", other.Run, err)
		}
		if first != other.First {
			continue
		}
		both := other.OverlapWith(claim)
		for _, row := range m.Rows {
			if both.HoldsPartition(partition.Partition{Key: row.Key, Start: row.Start, End: row.End}) {
				keys = append(keys, row.Key)
			}
		}
		return other.Run, keys, nil
	}
	return "", nil, nil
}

// Choices of the partitions to backfill.
const (
	OnlyMissing = "missing"
	OnlyFailed  = "failed"
	OnlyStale   = "stale"
	OnlyAll     = "all"
)

// Only lists the choices.
var Only = []string{OnlyMissing, OnlyFailed, OnlyStale, OnlyAll}

// SelectKeys returns the keys of the partitions that a choice selects. Running partitions are never selected, and missing
// includes failed.
func (m *Matrix) SelectKeys(only string) []string {
	wanted := map[string][]partition.Status{
		OnlyMissing: {partition.Missing, partition.Failed},
		OnlyFailed:  {partition.Failed},
		OnlyStale:   {partition.Stale},
		OnlyAll:     {partition.Missing, partition.Failed, partition.Stale, partition.Done},
	}[only]
	keys := []string{}
	for _, row := range m.Rows {
		if slices.Contains(wanted, row.Status) {
			keys = append(keys, row.Key)
		}
	}
	return keys
}

// LimitRange keeps only the partitions with indexes from one to another, inclusive.
func (m *Matrix) LimitRange(from, to int) {
	m.Rows = slices.DeleteFunc(m.Rows, func(row Row) bool { return row.Index < from || row.Index > to })
	m.countStatuses()
}

// FileName returns the name of the backfill playbook for a playbook file.
func FileName(file string) string { return file + "#backfill" }

// CalledName returns the name by which the backfill playbook calls the file.
func CalledName(file string) string { return playbook.PathFrom(FileName(file), pathOf(file)) }

func pathOf(file string) string {
	_, name, found := strings.Cut(file, ":")
	if !found {
		name = file
	}
	return path.Base(strings.ReplaceAll(name, `\`, "/"))
}

// Suffix is appended to a playbook's name to name its backfill playbook.
const Suffix = ".backfill"

// PlaybookName returns the name of a playbook's backfill playbook.
func PlaybookName(book *playbook.Playbook) string { return book.Name + Suffix }

// PlaybookSource returns the backfill playbook: a loop over keys whose step runs the playbook. Its workload has the keys, and
// as given the workload of each run. A failed partition makes it a partial success.
func PlaybookSource(book *playbook.Playbook, file string, concurrency int) []byte {
	return fmt.Appendf(nil, `apiVersion: reprise/v1
kind: Playbook
metadata: {name: %q, description: %q}
workload: {keys: [], given: {}}
workflow:
  - step: backfill
    tool: playbook
    path: %q
    partition: "{{ each_partition }}"
    workload: "{{ workload.given }}"
    loop:
      collection: "{{ workload.keys }}"
      element: each_partition
      mode: parallel
      max_concurrency: %d
      results: stats
      thresholds: {completed: 1}
output: "{{ backfill.stats }}"
`, PlaybookName(book), "Runs "+book.Name+" for partitions of it.", pathOf(file), concurrency)
}

// BackfillWorkload returns the workload of the backfill playbook.
func BackfillWorkload(keys []string, given map[string]any) map[string]any {
	if given == nil {
		given = map[string]any{}
	}
	return map[string]any{"keys": lists.Map(keys, func(key string) any { return key }), "given": given}
}
