package demoapi

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"reprise/interpreter/lists"
)

const (
	// maxMovingRows bounds the initial rows of a moving collection, and twice as many later ones: anybody who reaches
	// the server may create a collection.
	maxMovingRows = 1_000
	// maxCollections bounds the moving collections of one scenario, which are in memory.
	maxCollections = 1_000
	// maxMovingLog bounds the logged responses of one moving collection, which are in memory; the oldest are
	// forgotten first.
	maxMovingLog = 1_000
	// movingGap is the distance between the initial ids of a moving collection, so that rows can be inserted between
	// them.
	movingGap = 10
)

// MovingRow is a row of a moving collection.
type MovingRow struct {
	Collection string `json:"collection"`
	ID         int    `json:"id"`
	Version    int    `json:"version"` // another for every change in the collection
}

// MovingAnswer is the response to one read of a moving collection.
type MovingAnswer struct {
	N       int         `json:"n"`       // from 1, in order of the reads
	Query   string      `json:"query"`   // raw, without "?"
	Key     string      `json:"key"`     // the header Idempotency-Key, else X-Attempt
	AtMS    int64       `json:"at_ms"`   // milliseconds since the server was made
	After   int         `json:"after"`   // the cursor that was asked for, -1 for none
	Offset  int         `json:"offset"`  // -1 where the read did not name one
	Limit   int         `json:"limit"`   // rows on a page
	Status  int         `json:"status"`  // of the answer
	Rows    []MovingRow `json:"rows"`    // those that were answered, in order
	More    bool        `json:"more"`    // whether the answer says that more follow
	Sent    bool        `json:"sent"`    // whether all of it went out to a client that was there
	Changes []string    `json:"changes"` // what happened to the collection since the read before
}

// moving is a collection whose rows change between any two reads. The changes are determined by its seed.
type moving struct {
	mu      sync.Mutex
	name    string
	random  *rand.Rand
	changes int // between two reads
	rows    []MovingRow
	first   int // how many rows there were
	highest int // no row has a higher id, so that pages end
	version int
	reads   int
	asked   MovingAnswer // the last read
	byHand  []string     // changes since, that clients made
	answers []*MovingAnswer
}

// movingSetup is the initial state of a moving collection.
type movingSetup struct {
	seed, rows, changes int
}

func newMoving(name string, setup movingSetup) *moving {
	c := &moving{name: name, first: setup.rows}
	gap := 1
	if setup.seed > 0 {
		gap, c.changes = movingGap, setup.changes
		c.random = rand.New(rand.NewPCG(uint64(setup.seed), 0)) // it repeats on purpose
	}
	c.highest = (setup.rows+1)*gap - 1
	for n := 1; n <= setup.rows; n++ {
		c.putRow(n * gap)
	}
	return c
}

// putRow inserts a row, or gives it a new version, and describes what it did.
func (c *moving) putRow(id int) string {
	c.version++
	made := MovingRow{Collection: c.name, ID: id, Version: c.version}
	at, found := slices.BinarySearchFunc(c.rows, id, byID)
	if found {
		c.rows[at] = made
		return fmt.Sprintf("%d updated", id)
	}
	c.rows = slices.Insert(c.rows, at, made)
	return fmt.Sprintf("%d inserted", id)
}

// removeRow deletes a row and reports whether it existed.
func (c *moving) removeRow(id int) bool {
	at, found := slices.BinarySearchFunc(c.rows, id, byID)
	if found {
		c.version++
		c.rows = slices.Delete(c.rows, at, at+1)
	}
	return found
}

func byID(row MovingRow, id int) int { return row.ID - id }

// moveRows changes some rows, half of them among those of the last response, where a client that reads again notices
// it. Some rows are always left, and there are never more than twice the initial number.
func (c *moving) moveRows() []string {
	made := c.byHand
	c.byHand = nil
	if c.random == nil || c.reads == 0 {
		return made
	}
	for range c.changes {
		low, high := 1, c.highest
		if rows := c.asked.Rows; len(rows) > 0 && c.random.IntN(2) == 0 {
			low, high = rows[0].ID, min(rows[len(rows)-1].ID+movingGap-1, c.highest)
		}
		id, kind := low+c.random.IntN(high-low+1), c.random.IntN(3)
		at, found := slices.BinarySearchFunc(c.rows, id, byID)
		switch {
		case len(c.rows) >= 2*c.first:
			kind = 0
		case len(c.rows) <= (c.first+1)/2:
			kind = 2
		}
		if kind < 2 && !found { // there is none of this id: the next one changes
			id = c.rows[min(at, len(c.rows)-1)].ID
		}
		if kind == 0 {
			c.removeRow(id)
			made = append(made, fmt.Sprintf("%d deleted", id))
		} else {
			made = append(made, c.putRow(id))
		}
	}
	return made
}

// readRows moves the collection, then reads the requested rows. It logs the response, which has not been sent yet.
func (c *moving) readRows(request MovingAnswer) MovingAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	request.Changes = c.moveRows()
	c.reads++
	request.N = c.reads
	from := max(request.Offset, 0)
	if request.Offset < 0 {
		from, _ = slices.BinarySearchFunc(c.rows, request.After+1, byID)
	}
	from = min(from, len(c.rows))
	to := min(from+request.Limit, len(c.rows))
	request.Rows, request.More = slices.Clone(c.rows[from:to]), to < len(c.rows)
	c.asked = request
	if len(c.answers) >= maxMovingLog {
		c.answers = slices.Delete(c.answers, 0, 1)
	}
	c.answers = append(c.answers, &request)
	return request
}

// noteAnswer records how a read ended. A failed read had no rows.
func (c *moving) noteAnswer(n, status int, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, answer := range c.answers {
		if answer.N == n {
			answer.Status, answer.Sent = status, sent
			if status != http.StatusOK {
				answer.Rows, answer.More = nil, false
			}
		}
	}
}

// movingCollection returns a collection of the scenario, created by the first request for it; nil if there are too
// many.
func (s *scenario) movingCollection(name string, setup movingSetup) *moving {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.moving[name]
	if !ok && len(s.moving) < maxCollections {
		found = newMoving(name, setup)
		s.moving[name] = found
	}
	return found
}

// MovingAnswers returns the responses to the reads of a collection, in order.
func (s *Server) MovingAnswers(scenario, collection string) []MovingAnswer {
	scenario = cmp.Or(scenario, defaultScenario)
	state := s.scenarios.getScenario(scenario)
	state.mu.Lock()
	c := state.moving[collection]
	state.mu.Unlock()
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return lists.Map(c.answers, func(answer *MovingAnswer) MovingAnswer { return *answer })
}

func (s *Server) addMoving() {
	s.handleAPI("GET /api/v1/moving/{collection}", s.readMoving)
	s.handleAPI("PUT /api/v1/moving/{collection}/{id}", s.changeMoving)
	s.handleAPI("DELETE /api/v1/moving/{collection}/{id}", s.changeMoving)
	s.handleRoute("GET /moving/{collection}", func(w http.ResponseWriter, r *http.Request) {
		answers := s.MovingAnswers(scenarioKey(r), r.PathValue("collection"))
		respondJSON(w, http.StatusOK, object{"answers": answers, "total": len(answers)})
	})
}

// movingCollection returns the collection that the path names. If there is an error, it answers the request and
// returns nil.
func (s *Server) movingCollection(w http.ResponseWriter, p *params) *moving {
	setup := movingSetup{
		seed: p.intValue("seed", 0, 0, math.MaxInt32), rows: p.intValue("rows", 12, 1, maxMovingRows),
		changes: p.intValue("changes", 3, 0, maxMovingRows),
	}
	if p.rejectBad(w) {
		return nil
	}
	c := s.scenarioOf(p.r).movingCollection(p.r.PathValue("collection"), setup)
	if c == nil {
		respondError(w, http.StatusInsufficientStorage, "the scenario already has %d moving collections", maxCollections)
	}
	return c
}

// readMoving paginates by the id of the last row (after), or by offset, through a collection that changes between any
// two reads. Without a seed, only PUT and DELETE change it. For fail_pages, the page is the number of the read; with
// fail_from, every read after that id fails.
func (s *Server) readMoving(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	request := MovingAnswer{
		Query: r.URL.RawQuery, Key: cmp.Or(r.Header.Get("Idempotency-Key"), r.Header.Get("X-Attempt")), AtMS: s.log.sinceStart(),
		After: p.intValue("after", -1, 0, math.MaxInt32), Offset: p.intValue("offset", -1, 0, math.MaxInt32),
		Limit: p.intValue("limit", 3, 1, maxPageSize),
	}
	failFrom, failure := p.intValue("fail_from", 0, 1, math.MaxInt32), readFault(p)
	c := s.movingCollection(w, p)
	if c == nil {
		return
	}
	answer := c.readRows(request)
	recorder := &statusRecorder{ResponseWriter: w}
	switch {
	case s.applyFaults(recorder, p, answer.N, 0):
	case failFrom > 0 && max(request.After, request.Offset) >= failFrom:
		respondError(recorder, failure.status, "the page after %d fails, as requested", failFrom)
	default:
		respondJSON(recorder, http.StatusOK, movingPage(answer))
	}
	sent := http.NewResponseController(recorder).Flush() == nil && r.Context().Err() == nil
	c.noteAnswer(answer.N, recorder.status, sent)
}

// movingPage returns the body of a response. The members for continuing are null on the last page.
func movingPage(answer MovingAnswer) object {
	page := object{"rows": answer.Rows, "more": answer.More, "next": nil, "next_offset": nil}
	if answer.More {
		page["next"] = answer.Rows[len(answer.Rows)-1].ID
		page["next_offset"] = max(answer.Offset, 0) + answer.Limit
	}
	return page
}

// changeMoving inserts, updates or deletes one row.
func (s *Server) changeMoving(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	c := s.movingCollection(w, p)
	if c == nil {
		return
	}
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || id < 1 {
		respondError(w, http.StatusBadRequest, "id %q is not a whole number from 1", r.PathValue("id"))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.Method == http.MethodPut && len(c.rows) >= 2*maxMovingRows:
		respondError(w, http.StatusInsufficientStorage, "the collection already has %d rows", len(c.rows))
		return
	case r.Method == http.MethodPut:
		c.byHand = append(c.byHand, c.putRow(id))
	case !c.removeRow(id):
		respondError(w, http.StatusNotFound, "no row %d", id)
		return
	default:
		c.byHand = append(c.byHand, fmt.Sprintf("%d deleted", id))
	}
	w.WriteHeader(http.StatusNoContent)
}
