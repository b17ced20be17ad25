package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// peer is a way to load the rows of a job.
type peer interface {
	name() string
	// prepare starts the processes that run before the job is requested, such as a worker.
	prepare(ctx context.Context, w *world, j job) (*processes, error)
	// load does the job, and returns when it has completed or failed.
	load(ctx context.Context, w *world, j job, of *processes) error
}

// figures are the measurements of a pass.
type figures struct {
	took, cpu time.Duration
	memory    int64 // bytes
	written   int   // rows of the table that are as they should be
	asked     int64 // requests
	byHand    bool  // somebody had to start the job again after the SIGKILL
}

func (f figures) rows(j job) string {
	if f.written != j.rows() {
		return fmt.Sprintf("%d WRONG", f.written)
	}
	return fmt.Sprint(f.written)
}

// afterKillText describes what a SIGKILL in the middle cost.
func (f figures) afterKillText(j job) string {
	who := "continues by itself"
	if f.byHand {
		who = "started again by hand"
	}
	return fmt.Sprintf("%s, %d of %d requests again, %s rows", who, f.asked-int64(j.requestCount()), j.requestCount(), f.rows(j))
}

// measurePass has a peer do a job, with a SIGKILL after half of the pages were requested if killed is set.
func measurePass(ctx context.Context, w *world, p peer, j job, killed bool) (f figures, err error) {
	if err := execSQL(ctx, w.database.URL, "DROP TABLE IF EXISTS loaded", createTable); err != nil {
		return f, err
	}
	w.api.pages.Store(int64(j.pages))
	running, err := p.prepare(ctx, w, j)
	if err != nil {
		return f, err
	}
	defer func() { f.cpu, f.memory = running.stop() }()
	half := make(chan struct{})
	var once sync.Once
	middle := func(n int64) {
		if n == int64(j.requestCount()/2) {
			once.Do(func() { close(half) })
		}
	}
	w.api.asked.Store(0)
	w.api.reached.Store(&middle)
	defer w.api.reached.Store(nil)
	began := time.Now()
	loaded := make(chan error, 1)
	go func() { loaded <- p.load(ctx, w, j, running) }()
	if killed {
		select {
		case <-half:
		case err := <-loaded:
			return f, fmt.Errorf("it ended before its middle: %w", err)
		}
		if f.byHand, err = running.killLoader(ctx); err != nil {
			return f, err
		}
		if f.byHand {
			if err := <-loaded; err == nil {
				return f, errors.New("it has done the job in spite of the SIGKILL")
			}
			go func() { loaded <- p.load(ctx, w, j, running) }()
		}
	}
	if err := <-loaded; err != nil {
		return f, err
	}
	f.took, f.asked = time.Since(began), w.api.asked.Load()
	f.written, err = countRight(ctx, w.database.URL)
	return f, err
}

// execSQL executes SQL statements.
func execSQL(ctx context.Context, url string, statements ...string) error {
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = db.Close(ctx) }()
	for _, statement := range statements {
		if _, err := db.Exec(ctx, statement); err != nil {
			return fmt.Errorf("execute %q: %w", statement, err)
		}
	}
	return nil
}

// countRight counts the rows in the table that equal the API's.
func countRight(ctx context.Context, url string) (right int, err error) {
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = db.Close(ctx) }()
	rows, err := db.Query(ctx, "SELECT id, name, email, amount::float8, created, updated, active, score, region, quantity, day::text, comment FROM loaded")
	if err != nil {
		return 0, fmt.Errorf("read the table: %w", err)
	}
	var r row
	if _, err := pgx.ForEachRow(rows, []any{&r.ID, &r.Name, &r.Email, &r.Amount, &r.Created, &r.Updated, &r.Active, &r.Score, &r.Region, &r.Quantity, &r.Day, &r.Comment}, func() error {
		r.Created, r.Updated = r.Created.UTC(), r.Updated.UTC()
		if r == newRow(r.ID) {
			right++
		}
		return nil
	}); err != nil {
		return 0, fmt.Errorf("read the table: %w", err)
	}
	return right, nil
}
