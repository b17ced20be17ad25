package chaos_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities/sqltool"
)

// TestRowsInBlocks: rows of wide pages are known in blocks, and come once where they come again in other pages.
func TestRowsInBlocks(t *testing.T) {
	t.Parallel()
	for number, sink := range []string{"postgres insert", "sqlite insert"} {
		t.Run(sink, func(t *testing.T) {
			t.Parallel()
			seed := drawSeed()
			pages := widePages(rand.New(rand.NewPCG(seed, uint64(number))))
			r := newIncrementalRound(t, number+1, seed, incrementalCase{sink: sink, order: "at", where: placePage, pages: pages})
			r.startWorker()
			blocks := 0
			for range 3 {
				r.finish(r.start())
				blocks = max(blocks, r.blocks())
				r.source.busy()
			}
			r.killInRun()
			r.source.rest()
			r.finish(r.start())
			r.worker.Stop()
			require.NotZero(t, blocks, "pages of %d rows have no block", pages.rows)
			require.Empty(t, r.faults())
		})
	}
}

// blocks counts those of the round's state.
func (r *incrementalRound) blocks() (count int) {
	r.t.Helper()
	const query = "SELECT count(*) AS n FROM " + sqltool.BlocksTable
	if r.of.isPostgres() {
		return int(r.db.Query(r.t, query)[0]["n"].(int64))
	}
	db := r.sqlite("kept.db")
	defer func() { require.NoError(r.t, db.Close()) }()
	require.NoError(r.t, db.QueryRowContext(r.t.Context(), query).Scan(&count))
	return count
}
