package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// byHandCommand runs this program as a hand-written Go loader. Its arguments are API, database, elements.
const byHandCommand = "load-by-hand"

// byHandWay is a plain program that fetches, writes and retries.
type byHandWay struct{}

func (byHandWay) name() string { return "Go by hand" }

func (byHandWay) prepare(context.Context, *world, job) (*processes, error) { return &processes{}, nil }

func (byHandWay) load(ctx context.Context, w *world, j job, of *processes) error {
	return of.runCommand(ctx, w.directory, nil, w.executed, byHandCommand, w.api.url, w.database.URL, strconv.Itoa(j.elements))
}

func loadByHand(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%w: %s API DATABASE ELEMENTS", errUsage, byHandCommand)
	}
	elements, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("%w: %s is not a number", errUsage, args[2])
	}
	db, err := pgxpool.New(ctx, args[1])
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer db.Close()
	all := func(ctx context.Context, list string) error {
		for number := 1; ; number++ {
			got, err := fetchPage(ctx, list, number)
			if err == nil {
				err = writeRows(ctx, db, got.Rows)
			}
			if err != nil || !got.HasMore {
				return err
			}
		}
	}
	if elements == 0 {
		return all(ctx, args[0]+"/rows")
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(width)
	for n := range elements {
		group.Go(func() error { return all(ctx, fmt.Sprintf("%s/elements/%d/rows", args[0], n)) })
	}
	return group.Wait()
}

// fetchPage requests a page, with up to five attempts.
func fetchPage(ctx context.Context, list string, number int) (got page, err error) {
	for attempt := range 5 {
		if got, err = getPage(ctx, list, number); err == nil {
			return got, nil
		}
		select {
		case <-time.After(time.Second << attempt):
		case <-ctx.Done():
			return got, context.Cause(ctx)
		}
	}
	return got, err
}

func getPage(ctx context.Context, list string, number int) (got page, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, list+"?page="+strconv.Itoa(number), nil)
	if err != nil {
		return got, fmt.Errorf("page %d: %w", number, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return got, fmt.Errorf("page %d: %w", number, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return got, fmt.Errorf("page %d: %s", number, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		return got, fmt.Errorf("page %d: %w", number, err)
	}
	return got, nil
}

const upsert = `INSERT INTO loaded VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (id) DO UPDATE SET
	name = excluded.name, email = excluded.email, amount = excluded.amount, created = excluded.created, updated = excluded.updated,
	active = excluded.active, score = excluded.score, region = excluded.region, quantity = excluded.quantity, day = excluded.day,
	comment = excluded.comment`

// writeRows writes a page in one transaction and one batch.
func writeRows(ctx context.Context, db *pgxpool.Pool, rows []row) error {
	batch := &pgx.Batch{}
	for _, r := range rows {
		day, err := time.Parse(time.DateOnly, r.Day)
		if err != nil {
			return fmt.Errorf("row %d: %w", r.ID, err)
		}
		batch.Queue(upsert, r.ID, r.Name, r.Email, r.Amount, r.Created, r.Updated, r.Active, r.Score, r.Region, r.Quantity, day, r.Comment)
	}
	if err := db.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("write %d rows: %w", len(rows), err)
	}
	return nil
}
