package partition_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/partition"
)

// claimOf is what a run claims of the days of January 2024, or of a list.
func claimOf(t *testing.T, run string, all ...partition.Partition) partition.ClaimRequest {
	t.Helper()
	claim := partition.ClaimOf("orders", all)
	claim.Holder = partition.Holder{Run: run, First: run + "-1"}
	require.NoError(t, claim.Check())
	return partition.ClaimRequest{BackfillClaim: claim}
}

// TestClaims: backfills hold disjoint partitions at a time, whatever their order, also in the next
// history of the ledger; a claim that overlaps is refused until the other is released or its run has ended.
func TestClaims(t *testing.T) {
	t.Parallel()
	days, err := set(t, "day", "2024-01-01", "Europe/Berlin").CompletePartitions(at(t, "2024-02-01T12:00:00Z"))
	require.NoError(t, err)
	l := &partition.Ledger{}
	require.Empty(t, l.RecordClaim(claimOf(t, "a", days[:10]...)))
	require.Empty(t, l.RecordClaim(claimOf(t, "a", days[:10]...)), "the same request again")
	require.Equal(t, 1, l.Len())
	require.Empty(t, l.RecordClaim(claimOf(t, "b", days[20], days[22], days[30])))
	l = reread(t, l)
	for name, row := range map[string]struct {
		days    []partition.Partition
		overlap string
	}{
		"the day behind the first claim":  {days[10:20], ""},
		"its last day":                    {days[9:11], "from 2024-01-09T23:00:00Z to 2024-01-10T23:00:00Z"},
		"a day that the other leaves out": {days[21:22], ""},
		"one of three": {
			days[21:30], "from 2024-01-22T23:00:00Z to 2024-01-23T23:00:00Z",
		},
		"two of three": {
			days[19:24], "from 2024-01-20T23:00:00Z to 2024-01-21T23:00:00Z, from 2024-01-22T23:00:00Z to 2024-01-23T23:00:00Z",
		},
	} {
		request := claimOf(t, name, row.days...)
		found := l.ClaimsOverlapping(request.BackfillClaim)
		if row.overlap == "" {
			require.Empty(t, found, name)
			continue
		}
		require.Len(t, found, 1, name)
		require.Equal(t, row.overlap, found[0].OverlapWith(request.BackfillClaim).ClaimText(), name)
		require.Equal(t, found, l.RecordClaim(request), name)
	}
	release := claimOf(t, "a", days[:10]...)
	release.Release = true
	require.Empty(t, l.RecordClaim(release))
	require.Empty(t, l.RecordClaim(claimOf(t, "c", days[:10]...)))
	request := claimOf(t, "d", days[22])
	request.Ended = []partition.Holder{{Run: "b", First: "of another b"}}
	require.Len(t, l.RecordClaim(request), 1)
	request.Ended = []partition.Holder{{Run: "b", First: "b-1"}}
	require.Empty(t, l.RecordClaim(request))
	require.Equal(t, 2, l.Len())
}

// TestClaimsOfALists: partitions without times are claimed by their keys.
func TestClaimsOfALists(t *testing.T) {
	t.Parallel()
	eu, us, asia := partition.Partition{Key: "eu"}, partition.Partition{Key: "us", Index: 1}, partition.Partition{Key: "asia", Index: 2}
	l := &partition.Ledger{}
	require.Empty(t, l.RecordClaim(claimOf(t, "a", eu, us)))
	require.Empty(t, l.RecordClaim(claimOf(t, "b", asia)))
	refused := claimOf(t, "c", us, asia)
	others := reread(t, l).RecordClaim(refused)
	require.Len(t, others, 2)
	require.Equal(t, "us", others[0].OverlapWith(refused.BackfillClaim).ClaimText())
	require.True(t, others[1].HoldsPartition(asia))
	require.False(t, others[1].HoldsPartition(eu))
}

// TestManyClaims: a claim of more spans than are kept is one of all that lies between, and claims of
// runs that never released theirs are found by the one for which there is no room.
// It passes maxClaims.
func TestManyClaims(t *testing.T) {
	t.Parallel()
	start := at(t, "2024-01-01T00:00:00Z")
	hour := func(i int) partition.Partition {
		from := start.Add(time.Duration(i) * time.Hour)
		return partition.Partition{Key: from.Format(time.RFC3339), Index: i, Start: from, End: from.Add(time.Hour)}
	}
	var odd []partition.Partition
	for i := range 1000 {
		odd = append(odd, hour(2*i))
	}
	require.True(t, partition.ClaimOf("orders", odd).HoldsPartition(hour(3)))
	require.False(t, partition.ClaimOf("orders", odd[:100]).HoldsPartition(hour(3)))
	require.Equal(t, "from 2024-01-01T00:00:00Z to 2024-01-01T01:00:00Z, from 2024-01-01T02:00:00Z to 2024-01-01T03:00:00Z, "+
		"from 2024-01-01T04:00:00Z to 2024-01-01T05:00:00Z, from 2024-01-01T06:00:00Z to 2024-01-01T07:00:00Z, "+
		"from 2024-01-01T08:00:00Z to 2024-01-01T09:00:00Z and 95 more", partition.ClaimOf("orders", odd[:100]).ClaimText())
	l := &partition.Ledger{}
	for i := range 100 {
		require.Empty(t, l.RecordClaim(claimOf(t, hour(i).Key, hour(i))))
	}
	last := claimOf(t, "last", hour(500))
	ended := l.RecordClaim(last)
	require.Len(t, ended, 100)
	last.Ended = []partition.Holder{ended[3].Holder}
	require.Empty(t, l.RecordClaim(last))
}

// TestClaimCheck: what no backfill claims is refused.
func TestClaimCheck(t *testing.T) {
	t.Parallel()
	holder := partition.Holder{Run: "run", First: "first"}
	for message, claim := range map[string]partition.BackfillClaim{
		"a claim needs a run": {Spans: []int64{1, 2}},
		"a claim of 1 times that are no spans in their order": {Holder: holder, Spans: []int64{1}},
		"a claim of 4 times that are no spans in their order": {Holder: holder, Spans: []int64{1, 2, 4, 3}},
		"a claim of 1001 partitions of a list, more than":     {Holder: holder, Keys: make([]string, partition.MaxListed+1)},
	} {
		require.ErrorContains(t, claim.Check(), message)
	}
}
