package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"reprise/activities/tool"
)

// rowsAPI serves pages of 100 rows. Rows are dated a second apart, or all the same. It serves one load at a time.
type rowsAPI struct {
	*httptest.Server

	mu          sync.Mutex
	first, last time.Time // requests of the load
	requests    int
}

func newRowsAPI() *rowsAPI {
	a := &rowsAPI{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		a.recordRequest()
		serveRows(w, request)
	}))
	return a
}

func (a *rowsAPI) recordRequest() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = time.Now()
	if a.requests++; a.requests == 1 {
		a.first = a.last
	}
}

// perPage returns the mean time between the requests of a load, and resets the count for the next one.
func (a *rowsAPI) perPage() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	mean := a.last.Sub(a.first) / time.Duration(max(a.requests-1, 1))
	a.requests = 0
	return mean
}

func (a *rowsAPI) rowsURL(pages int, same bool) string {
	return fmt.Sprintf("%s/rows/%d/%t", a.URL, pages, same)
}

const rowsPerPage = 100

var firstRow = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func serveRows(w http.ResponseWriter, request *http.Request) {
	var pages int
	var same bool
	_, err := fmt.Sscanf(request.URL.Path, "/rows/%d/%t", &pages, &same)
	page, parsed := strconv.Atoi(request.URL.Query().Get("page"))
	if err != nil || parsed != nil {
		http.Error(w, "no such page", http.StatusBadRequest)
		return
	}
	body := []byte(`{"rows":[`)
	for id := (page - 1) * rowsPerPage; id < page*rowsPerPage; id++ {
		at := firstRow
		if !same {
			at = at.Add(time.Duration(id) * time.Second)
		}
		if id%rowsPerPage > 0 {
			body = append(body, ',')
		}
		body = strconv.AppendInt(append(body, `{"id":`...), int64(id), 10)
		body = at.AppendFormat(append(body, `,"at":"`...), time.RFC3339)
		body = strconv.AppendInt(append(body, `","name":"patient `...), int64(id), 10)
		body = strconv.AppendInt(append(body, `","score":`...), int64(id*7%100), 10)
		body = append(body, '}')
	}
	body = append(body, `],"next":`...)
	if page < pages {
		body = strconv.AppendInt(body, int64(page+1), 10)
	} else {
		body = append(body, "null"...)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '}'))
}

// loadedRow is a row as a program decodes it.
type loadedRow struct {
	ID    int64     `json:"id"`
	At    time.Time `json:"at"`
	Name  string    `json:"name"`
	Score float64   `json:"score"`
}

// runPlain loads the pages in another process of this program, because a worker is also a separate process from the
// API. The measurement starts when that process has connected.
func runPlain(ctx context.Context, job one, load string) (f figures, err error) {
	f.one = job
	binary, err := os.Executable()
	if err != nil {
		return f, fmt.Errorf("find the program: %w", err)
	}
	cmd := exec.CommandContext(ctx, binary, "-plain", load)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return f, fmt.Errorf("start the plain program: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return f, fmt.Errorf("start the plain program: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return f, fmt.Errorf("start the plain program: %w", err)
	}
	var ready string
	var rows int
	_, err = fmt.Fscanln(stdout, &ready)
	began := time.Now()
	if err == nil {
		_, err = fmt.Fprintln(stdin, "go")
	}
	if err == nil {
		_, err = fmt.Fscanln(stdout, &rows)
	}
	f.took = time.Since(began)
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return f, fmt.Errorf("the plain program: %w", err)
	}
	if rows != job.n*rowsPerPage {
		return f, fmt.Errorf("the plain program loaded %d rows of %d pages", rows, job.n)
	}
	f.cpu, f.memory = usageOf(cmd.ProcessState)
	return f, nil
}

// plainMain is the main function of that process: it loads the pages once it reads a line from stdin.
func plainMain(ctx context.Context, load string, stdin io.Reader, stdout io.Writer) error {
	var url, table, mode, start string
	if _, err := fmt.Sscan(load, &url, &table, &mode); err != nil {
		return fmt.Errorf("-plain %q: %w", load, err)
	}
	db, err := pgx.Connect(ctx, os.Getenv(tool.ConnectionVariable(benchConnection)))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	_, _ = fmt.Fprintln(stdout, "ready")
	if _, err := fmt.Fscanln(stdin, &start); err != nil {
		return fmt.Errorf("wait for the start: %w", err)
	}
	rows, err := loadPlainly(ctx, db, url, table, mode)
	if err == nil {
		_, err = fmt.Fprintln(stdout, rows)
	}
	return err
}

// loadPlainly is the program that somebody would write for the job without regard to crashes: it fetches a page,
// inserts it in a transaction with its watermark, and fetches the next.
func loadPlainly(ctx context.Context, db *pgx.Conn, url, name, mode string) (rows int, err error) {
	if _, err := db.Exec(ctx, "CREATE TABLE IF NOT EXISTS plain_watermarks (name text PRIMARY KEY, watermark timestamptz)"); err != nil {
		return 0, err
	}
	insert := "INSERT INTO " + name + " (id, at, name, score) SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::float8[])"
	if mode == "upsert" {
		insert += " ON CONFLICT (id) DO UPDATE SET at = excluded.at, name = excluded.name, score = excluded.score"
	}
	const move = "INSERT INTO plain_watermarks VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET watermark = excluded.watermark"
	for page := 1; page != 0; {
		got, err := getPage(ctx, fmt.Sprintf("%s?since=%s&page=%d", url, firstRow.Format(time.RFC3339), page))
		if err != nil {
			return rows, err
		}
		var ids []int64
		var times []time.Time
		var names []string
		var scores []float64
		for _, row := range got.Rows {
			ids, times, names, scores = append(ids, row.ID), append(times, row.At), append(names, row.Name), append(scores, row.Score)
		}
		err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, insert, ids, times, names, scores); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, move, name, times[len(times)-1])
			return err
		})
		if err != nil {
			return rows, fmt.Errorf("write page %d: %w", page, err)
		}
		rows, page = rows+len(got.Rows), got.Next
	}
	return rows, nil
}

// loadedPage is a page of rows; Next is 0 on the last page.
type loadedPage struct {
	Rows []loadedRow `json:"rows"`
	Next int         `json:"next"`
}

func getPage(ctx context.Context, url string) (page loadedPage, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return page, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return page, err
	}
	defer func() { _ = answer.Body.Close() }()
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil {
		return page, fmt.Errorf("%s, HTTP %d: %w", url, answer.StatusCode, err)
	}
	return page, nil
}
