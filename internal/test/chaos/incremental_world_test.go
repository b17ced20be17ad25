package chaos_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// clocked is a source whose clock has whole seconds, or tenths of them: rows share their times over several
// pages, are seen up to some time after they are dated, are changed and deleted between any
// two reads, and some are dated in the year 9999. It keeps every version of every row, and
// knows nothing of states.
type clocked struct {
	URL string

	mu       sync.Mutex
	random   *rand.Rand
	late     time.Duration // most time between a row's date and when it is seen, beyond that between its date and when it is made
	pages    pageShape
	shops    []string
	current  map[string]map[int]version // of each shop, by ID
	versions map[string]bool            // all that there ever were
	given    []version                  // that answers had, but for those replaced before they were asked for again
	number   int
	tokens   map[string]int // what a token has seen, by its text
	requests int
	quiet    bool
	hold     chan struct{} // closed when requests may go on
	holdAt   int           // from this request on
	waiting  int           // requests that are held
	failing  bool
}

// version is one of a row.
type version struct {
	ID      int    `json:"id"`
	Version int    `json:"version"`
	At      string `json:"at"`
	Shop    string `json:"shop"`

	seen    time.Time // from when on
	deleted bool
}

// isBefore reports whether a row is dated before a time, which may have another precision.
func (v version) isBefore(since string) bool {
	at, atErr := time.Parse(time.RFC3339, v.At)
	from, fromErr := time.Parse(time.RFC3339, since)
	if atErr != nil || fromErr != nil {
		return v.At < since
	}
	return at.Before(from)
}

func (v version) key() string { return fmt.Sprintf("%s/%d/%d/%s", v.Shop, v.ID, v.Version, v.At) }

// pageShape is how a source gives its rows.
type pageShape struct {
	rows int // of a page
	// tick is the unit of the source's clock, and layout how it writes times.
	tick   time.Duration
	layout string
	// changes are how many changes the source has for each that one of narrow pages has, and dated is how long before
	// they are made rows are dated at most.
	changes int
	dated   time.Duration
}

// narrow pages are the usual ones; their rows are made as they are dated.
var narrow = pageShape{rows: 4, tick: time.Second, layout: time.RFC3339, changes: 1}

// widePages have enough rows for what is known of them to be kept in blocks: their rows have many times, of which pages
// share those of their first and last rows, and a run has pages of new rows behind those that it reads again.
func widePages(random *rand.Rand) pageShape {
	rows := 18 + random.IntN(23)
	return pageShape{rows: rows, tick: 100 * time.Millisecond, layout: "2006-01-02T15:04:05.000Z07:00", changes: rows / 4, dated: 20 * time.Second}
}

// first is how many changes a source has had before the first run.
func (p pageShape) first() int {
	if p == narrow {
		return 3 * p.rows
	}
	return 8 * p.rows
}

func newClocked(t *testing.T, random *rand.Rand, late time.Duration, pages pageShape, shops ...string) *clocked {
	t.Helper()
	c := &clocked{
		random: random, late: late, pages: pages, shops: shops, current: map[string]map[int]version{}, versions: map[string]bool{}, tokens: map[string]int{},
	}
	for _, shop := range shops {
		c.current[shop] = map[int]version{}
		for range pages.first() {
			c.change(shop)
		}
		if pages != narrow { // several pages are there for the first run
			c.show(shop)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// change makes a row, or changes or deletes one.
func (c *clocked) change(shop string) {
	rows := c.current[shop]
	made := c.made(shop, len(rows)+1)
	switch c.random.IntN(6) {
	case 0, 1:
		if len(rows) > 0 {
			made.ID = 1 + c.random.IntN(len(rows))
		}
	case 2:
		if len(rows) > 0 {
			made.ID, made.deleted = 1+c.random.IntN(len(rows)), true
		}
	case 3:
		if c.random.IntN(4) == 0 {
			made.At = "9999-12-31T00:00:00Z"
		}
	}
	rows[made.ID] = made
	c.versions[made.key()] = true
}

// show has all rows of a shop seen from now on.
func (c *clocked) show(shop string) {
	for id, row := range c.current[shop] {
		row.seen = time.Now()
		c.current[shop][id] = row
	}
}

// made is a version of now.
func (c *clocked) made(shop string, id int) version {
	now := time.Now()
	c.number++
	return version{
		ID: id, Version: c.number, At: c.dated(now).UTC().Truncate(c.pages.tick).Format(c.pages.layout), Shop: shop,
		seen: now.Add(time.Duration(c.random.Int64N(int64(c.late) + 1))),
	}
}

// dated is the date of a row that is made now.
func (c *clocked) dated(now time.Time) time.Time {
	if c.pages.dated == 0 {
		return now
	}
	most := c.pages.dated
	if c.random.IntN(3) > 0 {
		most /= 6 // most rows are new, whatever was read before
	}
	return now.Add(-time.Duration(c.random.Int64N(int64(most))))
}

// overtake changes the rows of the last answer: who asks for it again is given others.
func (c *clocked) overtake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, row := range c.given[max(0, len(c.given)-c.pages.rows):] {
		made := c.made(row.Shop, row.ID)
		c.current[row.Shop][row.ID] = made
		c.versions[made.key()] = true
	}
}

// rest lets nothing change from now on, and returns once all is seen.
func (c *clocked) rest() {
	c.mu.Lock()
	c.quiet, c.failing = true, false
	c.mu.Unlock()
	time.Sleep(c.late + 1100*time.Millisecond)
}

// fail has all requests answered with 503 until it is told otherwise.
func (c *clocked) fail(fails bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = fails
}

// stop holds requests behind some more; the function lets them go on.
func (c *clocked) stop(behind int) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := make(chan struct{})
	c.hold, c.holdAt = held, c.requests+behind+1
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hold = nil
		close(held)
	})
}

// held is how many requests are.
func (c *clocked) held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

// delivered are the versions that answers had until now.
func (c *clocked) delivered() []version {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.given)
}

// busy has much changed, as it does between runs.
func (c *clocked) busy() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.pages.changes * (6 + c.random.IntN(20)) {
		c.change(c.shops[c.random.IntN(len(c.shops))])
	}
}

// changeUntilLate makes a change, and reports whether a row is seen while one of an earlier tick is not yet: a run that begins now
// reads past it, however fast the machine is.
func (c *clocked) changeUntilLate() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	shop := c.shops[0]
	c.change(shop)
	newest := ""
	for _, row := range c.visible(shop) {
		if row.At < "9999" {
			newest = max(newest, row.At)
		}
	}
	for _, row := range c.current[shop] {
		if !row.deleted && time.Now().Before(row.seen) && row.At < newest {
			return true
		}
	}
	return false
}

// await lets a request go on that is not held, or no more.
func (c *clocked) await(request *http.Request) {
	c.mu.Lock()
	c.requests++
	held := c.hold
	if held == nil || c.requests < c.holdAt {
		c.mu.Unlock()
		return
	}
	c.waiting++
	c.mu.Unlock()
	select {
	case <-held:
	case <-request.Context().Done():
	}
	c.mu.Lock()
	c.waiting--
	c.mu.Unlock()
}

func (c *clocked) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// serve answers /SHOP?since=TIME&order=at|id&after=PLACE, and with ?token=TOKEN the rows that
// were seen since.
func (c *clocked) serve(w http.ResponseWriter, request *http.Request) {
	c.await(request)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failing {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	shop, query := strings.Trim(request.URL.Path, "/"), request.URL.Query()
	answer := c.page(shop, query.Get("since"), query.Get("order"), query.Get("after"))
	if query.Has("token") {
		answer = c.since(shop, query.Get("token"), query.Get("after"))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
	if !c.quiet {
		for range c.pages.changes * c.random.IntN(3) {
			c.change(c.shops[c.random.IntN(len(c.shops))])
		}
	}
}

// visible are the rows of a shop that can be seen now.
func (c *clocked) visible(shop string) []version {
	var rows []version
	for _, row := range c.current[shop] {
		if !row.deleted && !time.Now().Before(row.seen) {
			rows = append(rows, row)
		}
	}
	return rows
}

// page is the page behind a place, of rows from a time on.
func (c *clocked) page(shop, since, order, after string) map[string]any {
	place := func(row version) string {
		if order == "at" {
			return row.At + "~" + fmt.Sprintf("%06d", row.ID)
		}
		return fmt.Sprintf("%06d", row.ID)
	}
	rows := slices.DeleteFunc(c.visible(shop), func(row version) bool { return row.isBefore(since) || place(row) <= after })
	slices.SortFunc(rows, func(a, b version) int { return strings.Compare(place(a), place(b)) })
	c.given = slices.DeleteFunc(c.given, func(row version) bool { // whoever asks again has not kept what came before
		return row.Shop == shop && !row.isBefore(since) && place(row) > after && c.current[shop][row.ID].Version != row.Version
	})
	c.given = append(c.given, rows[:min(len(rows), c.pages.rows)]...)
	answer := map[string]any{"rows": rows[:min(len(rows), c.pages.rows)], "next": nil}
	if len(rows) > c.pages.rows {
		answer["next"] = place(rows[c.pages.rows-1])
	}
	return answer
}

// since are the rows that a token has not seen. The token of the last page has seen all that
// was there when the first was asked for.
func (c *clocked) since(shop, token, after string) map[string]any {
	from := time.Unix(0, int64(c.tokens[token]))
	upto, begin, _ := strings.Cut(after, "~")
	if after == "" {
		upto = strconv.FormatInt(time.Now().UnixNano(), 10)
	}
	until, _ := strconv.ParseInt(upto, 10, 64)
	rows := slices.DeleteFunc(c.visible(shop), func(row version) bool {
		return !row.seen.After(from) || row.seen.UnixNano() > until || fmt.Sprintf("%06d", row.ID) <= begin
	})
	slices.SortFunc(rows, func(a, b version) int { return a.ID - b.ID })
	answer := map[string]any{"rows": rows[:min(len(rows), c.pages.rows)], "next": nil}
	if len(rows) > c.pages.rows {
		answer["next"] = fmt.Sprintf("%s~%06d", upto, rows[c.pages.rows-1].ID)
		return answer
	}
	given := "token-" + upto
	c.tokens[given] = int(until)
	answer["token"] = given
	return answer
}
