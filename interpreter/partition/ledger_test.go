package partition_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/partition"
)

func note(p partition.Partition, identity, run string, status partition.Status) partition.Note {
	return partition.Note{Playbook: "orders", Partition: p, Identity: identity, Run: run, Status: status}
}

// reread is the ledger as its next history has it.
func reread(t *testing.T, l *partition.Ledger) *partition.Ledger {
	t.Helper()
	packed, err := l.Snapshot()
	require.NoError(t, err)
	again, err := partition.ReadLedger(packed)
	require.NoError(t, err)
	repacked, err := again.Snapshot()
	require.NoError(t, err)
	require.Equal(t, packed, repacked)
	return again
}

// TestLedgerAgainstAMap: whatever is noted in whatever order, the ledger knows of each partition
// what was noted last, also in its next history.
func TestLedgerAgainstAMap(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(24, 9))
	all, err := set(t, "day", "2024-01-01", "Europe/Berlin").CompletePartitions(at(t, "2024-06-01T00:00:00Z"))
	require.NoError(t, err)
	for range 30 {
		l, last := &partition.Ledger{}, map[string]partition.Note{}
		for i := range 400 {
			p := all[random.IntN(len(all))]
			n := note(p, []string{"one", "two"}[random.IntN(2)], fmt.Sprint("run-", i), []partition.Status{partition.Done, partition.Done, partition.Failed}[random.IntN(3)])
			require.NoError(t, n.Check())
			require.NoError(t, l.ApplyNote(n))
			last[p.Key] = n
			if random.IntN(50) == 0 {
				l = reread(t, l)
			}
		}
		for _, p := range all {
			want := partition.Missing
			switch n, known := last[p.Key]; {
			case !known:
			case n.Status == partition.Failed:
				want = partition.Failed
			case n.Identity == "one":
				want = partition.Done
			default:
				want = partition.Stale
			}
			require.Equal(t, want, l.StatusOf(p, "one"), p.Key)
		}
	}
}

// TestLedgerIsRanges: ten thousand partitions that are done take one entry, whatever order they end
// in, and the status of all is known at once.
func TestLedgerIsRanges(t *testing.T) {
	t.Parallel()
	hours := set(t, "hour", "2024-01-01", "Europe/Berlin")
	all, err := hours.CompletePartitions(at(t, "2023-12-31T23:00:00Z").Add(10_000 * time.Hour))
	require.NoError(t, err)
	require.Len(t, all, 10_000)
	l := &partition.Ledger{}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(all)) {
		require.NoError(t, l.ApplyNote(note(all[i], "one", "run", partition.Done)))
	}
	require.Equal(t, 1, l.Len())
	require.NoError(t, l.ApplyNote(note(all[5000], "one", "run", partition.Failed)))
	require.Equal(t, 3, l.Len())
	for i, p := range all {
		want := partition.Done
		if i == 5000 {
			want = partition.Failed
		}
		require.Equal(t, want, l.StatusOf(p, "one"))
	}
	packed, err := l.Snapshot()
	require.NoError(t, err)
	require.Less(t, len(packed), 200)
}

// TestLedgerOfOtherPartitions: what was done in months is stale in days, and what was done in days
// is a part of a month, which is missing until all are.
func TestLedgerOfOtherPartitions(t *testing.T) {
	t.Parallel()
	until := at(t, "2024-04-01T00:00:00Z")
	days, err := set(t, "day", "2024-01-01", "").CompletePartitions(until)
	require.NoError(t, err)
	months, err := set(t, "month", "2024-01-01", "").CompletePartitions(until)
	require.NoError(t, err)
	l := &partition.Ledger{}
	require.NoError(t, l.ApplyNote(note(months[1], "months", "run", partition.Done)))
	require.Equal(t, partition.Missing, l.StatusOf(days[30], "days"))
	require.Equal(t, partition.Stale, l.StatusOf(days[31], "days"))
	require.Equal(t, partition.Stale, l.StatusOf(days[59], "days"))
	require.Equal(t, partition.Missing, l.StatusOf(days[60], "days"))
	for _, day := range days[:30] {
		require.NoError(t, l.ApplyNote(note(day, "days", "run", partition.Done)))
	}
	require.Equal(t, partition.Missing, l.StatusOf(months[0], "months"))
	require.NoError(t, l.ApplyNote(note(days[30], "days", "run", partition.Done)))
	require.Equal(t, partition.Stale, l.StatusOf(months[0], "months"))
	require.NoError(t, l.ApplyNote(note(days[35], "days", "run", partition.Failed)))
	require.Equal(t, partition.Failed, l.StatusOf(months[1], "months"))
}

// TestLedgerOfRuns: a run that has begun is known until it says how it ended; one that was
// cancelled leaves what was known before.
func TestLedgerOfRuns(t *testing.T) {
	t.Parallel()
	p := partition.Partition{Key: "eu"}
	l := &partition.Ledger{}
	require.Equal(t, partition.Missing, l.StatusOf(p, "one"))
	require.NoError(t, l.ApplyNote(note(p, "one", "a", partition.Running)))
	require.NoError(t, l.ApplyNote(note(p, "one", "b", partition.Running)))
	l = reread(t, l)
	require.Equal(t, "b", l.OpenRun(p))
	require.Equal(t, partition.Missing, l.StatusOf(p, "one"))
	require.NoError(t, l.ApplyNote(note(p, "one", "b", partition.Failed)))
	require.Equal(t, "a", l.OpenRun(p))
	require.Equal(t, partition.Failed, l.StatusOf(p, "one"))
	require.NoError(t, l.ApplyNote(note(p, "two", "a", partition.Done)))
	require.Empty(t, l.OpenRun(p))
	require.Equal(t, partition.Stale, l.StatusOf(p, "one"))
	require.NoError(t, l.ApplyNote(note(p, "one", "c", partition.Running)))
	require.NoError(t, l.ApplyNote(note(p, "one", "c", partition.Missing)))
	require.Empty(t, l.OpenRun(p))
	require.Equal(t, partition.Done, l.StatusOf(p, "two"))
	reread(t, l)
	require.Error(t, note(p, "", "a", partition.Done).Check())
	require.Error(t, note(p, "one", "a", partition.Stale).Check())
	_, err := partition.ReadLedger([]byte("nonsense"))
	require.ErrorContains(t, err, "read the partitions")
}
