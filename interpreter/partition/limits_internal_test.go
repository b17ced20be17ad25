package partition

import (
	"bytes"
	"compress/flate"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// everyOther is the n-th hour of those of which one is left out between two.
func everyOther(n int) Partition {
	start := time.Unix(int64(n)*7200, 0).UTC()
	return Partition{Key: fmt.Sprint(n), Start: start, End: start.Add(time.Hour)}
}

// TestClaimOfManySpans passes maxClaimSpans: the claim has one span over all, and a written one is refused.
func TestClaimOfManySpans(t *testing.T) {
	t.Parallel()
	var all []Partition
	for i := range maxClaimSpans + 1 {
		all = append(all, everyOther(i))
	}
	require.Len(t, ClaimOf("orders", all[1:]).Spans, 2*maxClaimSpans)
	require.Equal(t, []int64{0, int64(maxClaimSpans)*7200 + 3600}, ClaimOf("orders", all).Spans)
	written := BackfillClaim{Holder: Holder{Run: "run", First: "first"}}
	for _, p := range all {
		written.Spans = append(written.Spans, p.Start.Unix(), p.End.Unix())
	}
	require.ErrorContains(t, written.Check(), "a claim of 1002 times")
}

// TestLedgerIsFull passes maxSpans and maxRunning. What is known stays; of runs the oldest are forgotten.
func TestLedgerIsFull(t *testing.T) {
	t.Parallel()
	l := &Ledger{}
	for i := range maxSpans {
		p := everyOther(i)
		l.spans = append(l.spans, span{p.Start.Unix(), p.End.Unix(), "one", false})
	}
	done := func(n int) Note {
		return Note{Playbook: "orders", Partition: everyOther(n), Identity: "one", Run: "run", Status: Done}
	}
	require.EqualError(t, l.ApplyNote(done(maxSpans)), "200000 spans of time are kept, and there is no room for another one")
	require.NoError(t, l.ApplyNote(done(maxSpans-1)))
	require.Equal(t, Done, l.StatusOf(everyOther(maxSpans-1), "one"))

	for i := range maxSpans / 100 {
		require.NoError(t, l.listPartition(listedPartition{Key: fmt.Sprint("listed ", i)}))
	}
	require.ErrorContains(t, l.listPartition(listedPartition{Key: "one more"}), "there is no room for another one")
	require.NoError(t, l.listPartition(listedPartition{Key: "listed 0", Failed: true}))

	for i := range maxRunning + 1 {
		require.NoError(t, l.ApplyNote(Note{Playbook: "orders", Partition: everyOther(i), Identity: "one", Run: fmt.Sprint("run ", i), Status: Running}))
	}
	require.Empty(t, l.OpenRun(everyOther(0)))
	require.Equal(t, "run 1", l.OpenRun(everyOther(1)))
	require.Equal(t, fmt.Sprint("run ", maxRunning), l.OpenRun(everyOther(maxRunning)))
}

// TestForeignLedgers passes maxSnapshot, of which a few packed bytes unpack to more.
func TestForeignLedgers(t *testing.T) {
	t.Parallel()
	for blanks, says := range map[int]string{maxSnapshot - 2: "", maxSnapshot - 1: "read the partitions: "} {
		var packed bytes.Buffer
		writer, err := flate.NewWriter(&packed, flate.BestSpeed)
		require.NoError(t, err)
		_, err = writer.Write([]byte(strings.Repeat(" ", blanks) + "{}"))
		require.NoError(t, err)
		require.NoError(t, writer.Close())
		if _, err = ReadLedger(packed.Bytes()); says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, says)
		}
	}
}
