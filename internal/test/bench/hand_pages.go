package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// handPagesInput is the input of a workflow by hand that collects pages, with one activity per page.
type handPagesInput struct {
	URL string `json:"url"`
	// File is the SQLite database in the worker's folder to which the activity writes the rows it fetched; if it is
	// "", the workflow collects them.
	File string `json:"file,omitempty"`
	// First is the index of the element that the pages belong to.
	First int `json:"first"`
}

// handPage is the result of the activity for a page.
type handPage struct {
	Rows []any `json:"rows,omitempty"` // where they are not written
	N    int   `json:"n"`
	More bool  `json:"more"`
}

// handPages collects pages until there are no more, and returns the number of rows.
func handPages(ctx workflow.Context, in handPagesInput) (int, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3},
	})
	var rows []any
	total := 0
	for page := 1; ; page++ {
		var got handPage
		if err := workflow.ExecuteActivity(ctx, handPageName, in, page).Get(ctx, &got); err != nil {
			return 0, fmt.Errorf("page %d: %w", page, err)
		}
		rows = append(rows, got.Rows...)
		total += got.N
		if !got.More {
			break
		}
	}
	if in.File == "" {
		total = len(rows)
	}
	return total, nil
}

// handElement fetches the pages of an element and writes them, as an iteration of a loop by hand.
func handElement(ctx workflow.Context, in handInput) (int, error) {
	pages := handPagesInput{URL: in.URL, File: in.ID + ".db", First: in.First}
	if _, err := handPages(ctx, pages); err != nil {
		return 0, err
	}
	return in.First, nil
}

// handWriter fetches and writes pages for the workflows by hand.
type handWriter struct {
	dir   string
	mu    sync.Mutex
	files map[string]*sql.DB
}

func (w *handWriter) page(ctx context.Context, in handPagesInput, page int) (handPage, error) {
	got, err := fetchPage(ctx, in.URL, page)
	if err != nil || in.File == "" {
		return got, err
	}
	db, err := w.openDatabase(ctx, in.File)
	if err != nil {
		return got, err
	}
	err = insertRows(ctx, db, got.Rows)
	got.Rows = nil
	return got, err
}

func (w *handWriter) openDatabase(ctx context.Context, file string) (*sql.DB, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if db := w.files[file]; db != nil {
		return db, nil
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dir, file)+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS assessments (id INTEGER, patient_id TEXT, score REAL)"); err != nil {
		return nil, fmt.Errorf("make the table of %s: %w", file, err)
	}
	if w.files == nil {
		w.files = map[string]*sql.DB{}
	}
	w.files[file] = db
	return db, nil
}

func insertRows(ctx context.Context, db *sql.DB, rows []any) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("write a page: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	insert, err := tx.PrepareContext(ctx, "INSERT INTO assessments (id, patient_id, score) VALUES (?, ?, ?)")
	if err != nil {
		return fmt.Errorf("write a page: %w", err)
	}
	for _, row := range rows {
		fields, _ := row.(map[string]any)
		if _, err := insert.ExecContext(ctx, fields["id"], fields["patient_id"], fields["score"]); err != nil {
			return fmt.Errorf("write a page: %w", err)
		}
	}
	return tx.Commit()
}

// fetchPage requests a page of 100 rows.
func fetchPage(ctx context.Context, url string, page int) (handPage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/api/v1/assessments?page=%d&pageSize=100", url, page), nil)
	if err != nil {
		return handPage{}, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return handPage{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	var body struct {
		Data   []any `json:"data"`
		Paging struct {
			HasMore bool `json:"hasMore"`
		} `json:"paging"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return handPage{}, fmt.Errorf("page %d, HTTP %d: %w", page, answer.StatusCode, err)
	}
	return handPage{Rows: body.Data, N: len(body.Data), More: body.Paging.HasMore}, nil
}

// plainPages collects pages in a plain program without Temporal, so nothing survives a crash.
func plainPages(ctx context.Context, url string) (int, error) {
	var rows []any
	for page := 1; ; page++ {
		got, err := fetchPage(ctx, url, page)
		if err != nil {
			return 0, err
		}
		rows = append(rows, got.Rows...)
		if !got.More {
			return len(rows), nil
		}
	}
}
