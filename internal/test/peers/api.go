package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	rowsOfAPage      = 100
	pagesOfAnElement = 4
)

// job is the data to load: the pages of one list, the pages of each element's list, or a file.
type job struct {
	elements, pages int
	rowsOfFile      int
}

func (j job) isFile() bool { return j.rowsOfFile > 0 }

func (j job) String() string {
	switch {
	case j.isFile():
		return fmt.Sprintf("a file of %d rows of 12 columns, CSV with gzip, copied into PostgreSQL", j.rowsOfFile)
	case j.elements == 0:
		return fmt.Sprintf("%d pages of %d rows of 12 columns, upserted into PostgreSQL by the key id", j.pages, rowsOfAPage)
	}
	return fmt.Sprintf("%d elements of %d pages of %d rows of 12 columns, upserted into PostgreSQL by the key id", j.elements, j.pages, rowsOfAPage)
}

// requestCount returns how many requests it takes to read the whole job once.
func (j job) requestCount() int {
	if j.isFile() {
		return 1
	}
	return max(1, j.elements) * j.pages
}

// rows returns how many rows the table has in the end.
func (j job) rows() int {
	if j.isFile() {
		return j.rowsOfFile
	}
	return j.requestCount() * rowsOfAPage
}

// row is a row of the API.
type row struct {
	ID       int64     `json:"id"`
	Name     string    `json:"name"`
	Email    string    `json:"email"`
	Amount   float64   `json:"amount"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Active   bool      `json:"active"`
	Score    float64   `json:"score"`
	Region   string    `json:"region"`
	Quantity int64     `json:"quantity"`
	Day      string    `json:"day"`
	Comment  string    `json:"comment"`
}

// page is a response of the API.
type page struct {
	Rows    []row `json:"rows"`
	Page    int   `json:"page"`
	HasMore bool  `json:"has_more"`
}

// createTable creates the table that all peers write to.
const createTable = `CREATE TABLE loaded (id bigint PRIMARY KEY, name text, email text, amount numeric, created timestamptz,
	updated timestamptz, active boolean, score double precision, region text, quantity integer, day date, comment text)`

func newRow(id int64) row {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(id) * time.Minute)
	return row{
		ID: id, Name: fmt.Sprintf("customer %d", id), Email: fmt.Sprintf("customer-%d@example.com", id), Amount: float64(id%100_000) / 4,
		Created: at, Updated: at.Add(time.Hour), Active: id%3 == 0, Score: float64(id) / 7, Region: []string{"north", "east", "south"}[id%3],
		Quantity: id % 50, Day: at.Format(time.DateOnly), Comment: "left at the door, to be called for",
	}
}

// api serves pages: /rows?page=1, and /elements/N/rows?page=1 for an element. It also serves a file, /rows.csv.gz.
type api struct {
	url    string
	server *http.Server
	file   string       // the path of the file
	asked  atomic.Int64 // how many requests came
	// pages is the number of pages of a list.
	pages atomic.Int64
	// reached is called with the running number of each request for a page, and with 0 when half of the file has been sent.
	reached atomic.Pointer[func(int64)]
}

func newAPI(ctx context.Context, file string) (*api, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a port for the API: %w", err)
	}
	a := &api{url: "http://" + listener.Addr().String(), file: file}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rows", func(w http.ResponseWriter, r *http.Request) { a.servePage(w, r, 0) })
	mux.HandleFunc("GET /elements/{element}/rows", func(w http.ResponseWriter, r *http.Request) {
		element, err := strconv.Atoi(r.PathValue("element"))
		if err != nil {
			http.Error(w, "an element is a number", http.StatusBadRequest)
			return
		}
		a.servePage(w, r, element)
	})
	mux.HandleFunc("GET /rows.csv.gz", func(w http.ResponseWriter, r *http.Request) {
		a.asked.Add(1)
		http.ServeFile(&halfwayWriter{ResponseWriter: w, api: a}, r, a.file)
	})
	a.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = a.server.Serve(listener) }()
	return a, nil
}

func (a *api) stopServing() { _ = a.server.Close() }

func (a *api) servePage(w http.ResponseWriter, r *http.Request, element int) {
	number, err := strconv.Atoi(r.FormValue("page"))
	pages := int(a.pages.Load())
	if err != nil || number < 1 || number > pages {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	n := a.asked.Add(1)
	if reached := a.reached.Load(); reached != nil {
		(*reached)(n)
	}
	first := int64(element*pages+number-1) * rowsOfAPage
	answer := page{Page: number, HasMore: number < pages, Rows: make([]row, rowsOfAPage)}
	for i := range answer.Rows {
		answer.Rows[i] = newRow(first + int64(i))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
