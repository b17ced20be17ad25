package demoapi

import (
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"
)

const (
	defaultPageSize = 10
	// maxPageSize is the API's limit for pageSize and limit. Exceeding it is a 400, which playbooks have to handle.
	maxPageSize = 100
)

// rowSpan returns at most limit rows after offset, numbered from 1, each made by row. It is never nil: an empty page
// is [] in JSON. Rows are structs, which are encoded several times faster than maps, so that benchmarks measure the
// client.
func rowSpan[Row any](items, offset, limit int, row func(n int) Row) []Row {
	rows := make([]Row, 0, min(limit, max(items-offset, 0)))
	for n := offset + 1; n <= min(offset+limit, items); n++ {
		rows = append(rows, row(n))
	}
	return rows
}

func (s *Server) totalPages(size int) int {
	return (s.options.Items + size - 1) / size
}

// pageParams reads page and pageSize. page is limited so that page*size does not overflow.
func pageParams(p *params) (page, size int) {
	return p.intValue("page", 1, 1, math.MaxInt32), p.intValue("pageSize", defaultPageSize, 1, maxPageSize)
}

type assessment struct {
	ID        int    `json:"id"`
	PatientID string `json:"patient_id"`
	Score     int    `json:"score"`
}

// listAssessments paginates by number.
func (s *Server) listAssessments(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	page, size := pageParams(p)
	if s.applyFaults(w, p, page, 0) {
		return
	}
	rows := rowSpan(s.options.Items, (page-1)*size, size, func(n int) assessment {
		return assessment{ID: n, PatientID: PatientID(n), Score: n * 7 % 100}
	})
	respondJSON(w, http.StatusOK, object{"data": rows, "paging": object{
		"hasMore": page < s.totalPages(size), "page": page, "pageSize": size,
		"total": s.options.Items, "totalPages": s.totalPages(size),
	}})
}

type user struct {
	Email string `json:"email"`
	ID    int    `json:"id"`
	Name  string `json:"name"`
}

// listUsers paginates by offset. For fail_pages, the page is offset / limit + 1.
func (s *Server) listUsers(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	offset, limit := p.intValue("offset", 0, 0, math.MaxInt32), p.intValue("limit", defaultPageSize, 1, maxPageSize)
	if s.applyFaults(w, p, offset/limit+1, 0) {
		return
	}
	rows := rowSpan(s.options.Items, offset, limit, func(n int) user {
		return user{ID: n, Name: fmt.Sprintf("User %02d", n), Email: fmt.Sprintf("user%02d@example.com", n)}
	})
	respondJSON(w, http.StatusOK, object{
		"data": rows, "has_more": offset+limit < s.options.Items,
		"offset": offset, "limit": limit, "total": s.options.Items,
	})
}

type event struct {
	ID        int    `json:"id"`
	PatientID string `json:"patient_id"`
	Type      string `json:"type"`
}

// listEvents paginates by an opaque cursor, which is null after the last page.
func (s *Server) listEvents(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	limit := p.intValue("limit", defaultPageSize, 1, maxPageSize)
	offset, err := s.readCursor(r.URL.Query().Get("cursor"))
	if err != nil {
		p.err = err
	}
	if s.applyFaults(w, p, offset/limit+1, 0) {
		return
	}
	kinds := []string{"admitted", "measured", "treated", "released"}
	rows := rowSpan(s.options.Items, offset, limit, func(n int) event {
		return event{ID: n, Type: kinds[(n-1)%len(kinds)], PatientID: PatientID(n)}
	})
	var next any
	if offset+limit < s.options.Items {
		next = writeCursor(offset + limit)
	}
	respondJSON(w, http.StatusOK, object{"events": rows, "next_cursor": next})
}

// writeCursor encodes the offset in URL-safe base64, whose padding "=" clients have to escape in queries.
func writeCursor(offset int) string {
	return base64.URLEncoding.EncodeToString([]byte("after:" + strconv.Itoa(offset)))
}

func (s *Server) readCursor(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	raw, err := base64.URLEncoding.DecodeString(cursor)
	if err == nil {
		text, found := strings.CutPrefix(string(raw), "after:")
		offset, err := strconv.Atoi(text)
		if found && err == nil && offset >= 0 && offset <= s.options.Items {
			return offset, nil
		}
	}
	return 0, fmt.Errorf("cursor %q does not belong to this list", cursor)
}

type order struct {
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
	ID       int    `json:"id"`
}

// listOrders paginates by link, in the body and in a Link header (RFC 8288). The links are relative and keep the
// other query parameters.
func (s *Server) listOrders(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	page, size := pageParams(p)
	if s.applyFaults(w, p, page, 0) {
		return
	}
	rows := rowSpan(s.options.Items, (page-1)*size, size, func(n int) order {
		return order{ID: n, Amount: n * 5, Currency: "EUR"}
	})
	var next any
	if page < s.totalPages(size) {
		link := pageLink(r.URL, page+1)
		next = link
		w.Header().Add("Link", fmt.Sprintf(`<%s>; rel="next"`, link))
	}
	if page > 1 { // a second relation, which clients must distinguish
		w.Header().Add("Link", fmt.Sprintf(`<%s>; rel="prev"`, pageLink(r.URL, page-1)))
	}
	respondJSON(w, http.StatusOK, object{"data": rows, "links": object{"next": next}})
}

func pageLink(u *url.URL, page int) string {
	query := u.Query()
	query.Set("page", strconv.Itoa(page))
	return u.Path + "?" + query.Encode()
}

// listLimited accepts rate_limit requests per second, 5 by default.
func (s *Server) listLimited(w http.ResponseWriter, r *http.Request) {
	if s.applyFaults(w, &params{r: r}, 1, 5) {
		return
	}
	respondJSON(w, http.StatusOK, object{"ok": true, "n": s.scenarioOf(r).countUp("limited")})
}

// exportUsers serves a file like those of legacy systems: compressed CSV in windows-1252 with semicolons, in which
// "-" is an empty value.
func (s *Server) exportUsers(w http.ResponseWriter, r *http.Request) {
	if s.applyFaults(w, &params{r: r}, 1, 0) {
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	packed := gzip.NewWriter(w)
	defer func() { _ = packed.Close() }() // whom it cannot be sent to has gone
	text := charmap.Windows1252.NewEncoder().Writer(packed)
	_, _ = fmt.Fprint(text, "id;name;left_at\r\n")
	for n := 1; n <= s.options.Items; n++ {
		left := "-"
		if n%5 == 0 {
			left = "2026-01-31"
		}
		_, _ = fmt.Fprintf(text, "%d;\"Müller; %02d\";%s\r\n", n, n, left)
	}
}
