package main

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"
)

// writeFile writes the file that the API serves.
func (a *api) writeFile(rows int) (err error) {
	file, err := os.Create(a.file)
	if err != nil {
		return fmt.Errorf("write the file of the API: %w", err)
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	packed := gzip.NewWriter(file)
	out := csv.NewWriter(packed)
	if err := out.Write([]string{"id", "name", "email", "amount", "created", "updated", "active", "score", "region", "quantity", "day", "comment"}); err != nil {
		return fmt.Errorf("write the file of the API: %w", err)
	}
	for id := range int64(rows) {
		r := newRow(id)
		record := []string{
			strconv.FormatInt(r.ID, 10), r.Name, r.Email, strconv.FormatFloat(r.Amount, 'f', -1, 64), r.Created.Format(time.RFC3339),
			r.Updated.Format(time.RFC3339), strconv.FormatBool(r.Active), strconv.FormatFloat(r.Score, 'g', -1, 64), r.Region,
			strconv.FormatInt(r.Quantity, 10), r.Day, r.Comment,
		}
		if err := out.Write(record); err != nil {
			return fmt.Errorf("write the file of the API: %w", err)
		}
	}
	if out.Flush(); out.Error() != nil {
		return fmt.Errorf("write the file of the API: %w", out.Error())
	}
	if err := packed.Close(); err != nil {
		return fmt.Errorf("write the file of the API: %w", err)
	}
	return nil
}

// halfwayWriter reports to the API when half of a body has been sent.
type halfwayWriter struct {
	http.ResponseWriter

	api  *api
	half int64 // bytes before that moment
}

func (w *halfwayWriter) WriteHeader(status int) {
	if length, err := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64); err == nil {
		w.half = length / 2
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *halfwayWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	before := w.half > 0
	if w.half -= int64(n); before && w.half <= 0 {
		if reached := w.api.reached.Load(); reached != nil {
			(*reached)(0)
		}
	}
	return n, err //nolint:wrapcheck // of the connection
}

// copyWay is what people write in a shell.
type copyWay struct{}

func (copyWay) name() string { return "curl|gunzip|psql" }

func (copyWay) prepare(context.Context, *world, job) (*processes, error) { return &processes{}, nil }

func (copyWay) load(ctx context.Context, w *world, _ job, of *processes) error {
	program := fmt.Sprintf("\\copy loaded from program 'curl -fsS %s/rows.csv.gz | gunzip' csv header", w.api.url)
	return of.runCommand(ctx, w.directory, nil, "psql", w.database.URL, "-qc", program)
}
