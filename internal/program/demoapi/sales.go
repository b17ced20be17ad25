package demoapi

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"reprise/interpreter/lists"
)

const (
	firstSales = 12
	// maxSales bounds the IDs of sales; a higher ID is a 400.
	maxSales    = 1_000
	salesInTime = 3 // so many have one time
)

// salesBegin is the time of the first sale.
var salesBegin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// sale is a row that can change. Its times depend only on the number of changes before it.
type sale struct {
	ID        int    `json:"id"`
	Version   int    `json:"version"` // from 1
	UpdatedAt string `json:"updated_at"`
}

// sales are the sales of a scenario, in the order of their changes.
type sales struct {
	rows    []sale
	changes int
}

func newSales() *sales {
	s := &sales{}
	for id := 1; id <= firstSales; id++ {
		s.putSale(id)
	}
	return s
}

// putSale inserts or changes a sale; a changed sale comes last.
func (s *sales) putSale(id int) sale {
	at := salesBegin.Add(time.Duration(s.changes/salesInTime) * time.Minute)
	made := sale{ID: id, Version: 1, UpdatedAt: at.Format(time.RFC3339)}
	if i := slices.IndexFunc(s.rows, func(one sale) bool { return one.ID == id }); i >= 0 {
		made.Version = s.rows[i].Version + 1
		s.rows = slices.Delete(s.rows, i, i+1)
	}
	s.changes++
	s.rows = append(s.rows, made)
	return made
}

// removeSale deletes a sale, and returns false if there is none.
func (s *sales) removeSale(id int) bool {
	before := len(s.rows)
	s.rows = slices.DeleteFunc(s.rows, func(one sale) bool { return one.ID == id })
	return len(s.rows) < before
}

// changedSince returns the sales changed at that time or later; those of the same time are sorted by id.
func (s *sales) changedSince(updatedSince string) []sale {
	found := lists.Filter(s.rows, func(one sale) bool { return one.UpdatedAt >= updatedSince })
	slices.SortStableFunc(found, func(a, b sale) int {
		return cmp.Or(cmp.Compare(a.UpdatedAt, b.UpdatedAt), cmp.Compare(a.ID, b.ID))
	})
	return found
}

// allSales returns the sales of the scenario. The caller must hold its lock.
func (s *scenario) allSales() *sales {
	if s.sold == nil {
		s.sold = newSales()
	}
	return s.sold
}

// readSales answers with the sales changed at updated_since or later, in the order of the changes, paginated by
// offset.
func (s *Server) readSales(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	offset, limit := p.intValue("offset", 0, 0, math.MaxInt32), p.intValue("limit", defaultPageSize, 1, maxPageSize)
	since := p.textValue("updated_since")
	if since != "" {
		at, err := time.Parse(time.RFC3339, since)
		if err != nil && p.err == nil {
			p.err = fmt.Errorf("parameter \"updated_since\" is %q, expected a time such as %s", since, salesBegin.Format(time.RFC3339))
		}
		since = at.UTC().Format(time.RFC3339)
	}
	if s.applyFaults(w, p, offset/limit+1, 0) {
		return
	}
	state := s.scenarioOf(r)
	state.mu.Lock()
	found := state.allSales().changedSince(since)
	state.mu.Unlock()
	to := min(offset+limit, len(found))
	respondJSON(w, http.StatusOK, object{"sales": append([]sale{}, found[min(offset, to):to]...), "has_more": to < len(found), "total": len(found)})
}

// changeSale creates a sale, or a new version of one.
func (s *Server) changeSale(w http.ResponseWriter, r *http.Request) {
	id, ok := saleID(w, r)
	if !ok {
		return
	}
	state := s.scenarioOf(r)
	state.mu.Lock()
	defer state.mu.Unlock()
	respondJSON(w, http.StatusOK, state.allSales().putSale(id))
}

// deleteSale deletes a sale.
func (s *Server) deleteSale(w http.ResponseWriter, r *http.Request) {
	id, ok := saleID(w, r)
	if !ok {
		return
	}
	state := s.scenarioOf(r)
	state.mu.Lock()
	defer state.mu.Unlock()
	if !state.allSales().removeSale(id) {
		respondError(w, http.StatusNotFound, "no sale %d", id)
		return
	}
	respondJSON(w, http.StatusOK, object{"deleted": id})
}

// saleID returns the id in the path. If it is invalid, it answers the request and returns false.
func saleID(w http.ResponseWriter, r *http.Request) (id int, ok bool) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || id < 1 || id > maxSales {
		respondError(w, http.StatusBadRequest, "id %q is not a whole number from 1 to %d", r.PathValue("id"), maxSales)
		return 0, false
	}
	return id, true
}
