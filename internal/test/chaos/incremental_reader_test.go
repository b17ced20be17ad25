package chaos_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

var samplesFlag = flag.Int("chaos.samples", 0, "how often TestWatermarkIsBehindItsRows reads state and table; 0 as often as it can in two deaths of the worker")

// TestWatermarkIsBehindItsRows: whoever reads state and table at one moment finds all rows
// below the watermark that were read until then, while runs write them and workers die.
func TestWatermarkIsBehindItsRows(t *testing.T) {
	t.Parallel()
	r := newIncrementalRound(t, 1, drawSeed(), incrementalCase{sink: "postgres insert", order: "at", where: placePage, pages: narrow})
	r.lag, r.source.late = "0s", 0 // a row that is read late is below it before it is written
	r.startWorker()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sampled := make(chan error, 1)
	var samples atomic.Int64
	go func() {
		defer stop()
		sampled <- r.sample(ctx, &samples)
	}()
	for cycle := 0; cycle < 2 || samples.Load() < int64(*samplesFlag) && ctx.Err() == nil; cycle++ {
		for range 3 {
			r.source.busy()
			r.finish(r.start())
		}
		r.source.busy()
		r.killInRun()
	}
	stop()
	require.NoError(t, testenv.Receive(t, sampled, "the end of the samples"))
	require.Greater(t, samples.Load(), int64(100))
	t.Logf("%d samples beside %d runs", samples.Load(), r.runs)
	r.worker.Stop()
}

// sample compares state and table, each time of one snapshot, with what the source has given
// before, and counts how often, until its context ends.
func (r *incrementalRound) sample(ctx context.Context, samples *atomic.Int64) error {
	conn, err := pgx.Connect(ctx, r.db.URL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		given := r.source.delivered()
		var watermark string
		rows := map[string]bool{}
		err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			var found bool
			if err := tx.QueryRow(ctx, "SELECT to_regclass('reprise_state') IS NOT NULL").Scan(&found); err != nil || !found {
				return err
			}
			err := tx.QueryRow(ctx, "SELECT coalesce(watermark, '') FROM reprise_state").Scan(&watermark)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			held, err := tx.Query(ctx, "SELECT shop || '/' || id || '/' || version || '/' || at FROM kept")
			if err != nil {
				return err
			}
			keys, err := pgx.CollectRows(held, pgx.RowTo[string])
			for _, key := range keys {
				rows[key] = true
			}
			return err
		})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if watermark == "" {
			continue
		}
		samples.Add(1)
		for _, row := range given {
			if row.At < strings.Trim(watermark, `"`) && !rows[row.key()] {
				return fmt.Errorf("sample %d: the watermark is %s, and %s was read and is not there", samples.Load(), watermark, row.key())
			}
		}
	}
	return nil
}
