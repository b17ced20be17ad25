package oracle_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"
)

// newWideStory makes a story that may have a token in place of cursors, a table as its source,
// or runs that begin while another one holds the state. What is wide is drawn apart.
func newWideStory(seed uint64) *story {
	s := newStory(seed)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7))}
	switch g.IntN(4) {
	case 0, 1:
		g.tokens(s)
	case 2:
		g.queries(s)
	}
	if !s.sql && g.one(2) {
		g.overlaps(s)
	}
	if !s.sql && g.one(5) {
		s.limit, s.per = 1+g.IntN(2), time.Duration(2+g.IntN(3))*100*time.Millisecond
	}
	if apart := (&generator{Rand: rand.New(rand.NewPCG(seed, 11))}); !s.sql && s.token == "" && apart.one(2) {
		s.format = map[string]string{"time": pick(apart, "%d.%m.%Y %H:%M", "%m/%d/%y %I%p", "%s"), "date": "%d/%m/%Y"}[s.kind]
	}
	return s
}

// layouts are the formats in the words of package time.
var layouts = map[string]string{"%d.%m.%Y %H:%M": "02.01.2006 15:04", "%m/%d/%y %I%p": "01/02/06 03PM", "%d/%m/%Y": "02/01/2006"}

// formatted is a moment in the format of the source. Years of two digits end in 2068.
func (s *story) formatted(at position) string {
	moment := firstDay.Add(time.Duration(at) * time.Hour)
	switch {
	case at == farFuture:
		moment = time.Date(2068, 12, 31, 0, 0, 0, 0, time.UTC)
	case s.kind == "date":
		moment = firstDay.AddDate(0, 0, int(at))
	}
	if s.format == "%s" {
		return fmt.Sprint(moment.Unix())
	}
	return moment.Format(layouts[s.format])
}

// positionOfFormatted is the position of a text that formatted has made.
func (s *story) positionOfFormatted(text string) (position, error) {
	var seconds int64
	moment, err := time.Parse(layouts[s.format], text)
	if s.format == "%s" {
		_, err = fmt.Sscan(text, &seconds)
		moment = time.Unix(seconds, 0)
	}
	if s.kind == "date" {
		return position(moment.Sub(firstDay) / (24 * time.Hour)), err
	}
	return position(moment.Sub(firstDay) / time.Hour), err
}

// tokens has the source give a token to continue from. The language does not say what
// row_order means beside a token, nor what a key tells apart that has no cursor.
func (g *generator) tokens(s *story) {
	s.token = pick(g, "last", "each")
	s.lag, s.open, s.asc, s.key, s.onMissing = 0, false, false, false, "fail"
	newest := map[string]int{}
	for _, run := range s.runs {
		run.newest = map[string]int{}
		for _, shop := range s.shopsOf() {
			for _, r := range run.rows[shop] {
				if r.at < 0 || r.at == farFuture {
					r.at = position(newest[shop])
				}
				newest[shop] = max(newest[shop], int(r.at))
			}
			run.newest[shop] = newest[shop] + 1 // the token t0 is that of nothing
			if g.one(6) {
				run.newest[shop] = 0
			}
		}
	}
}

// queries has the source be a table, which asks for nothing twice and has no value without
// a type of its own.
func (g *generator) queries(s *story) {
	s.sql, s.restart = true, ""
	for _, run := range s.runs {
		run.trouble, run.gone = map[string]trouble5xx{}, map[string]int{}
		for _, shop := range s.shopsOf() {
			for _, r := range run.rows[shop] {
				if r.form = 0; r.at == noType {
					r.at = noCursor
				}
			}
		}
	}
}

// overlaps has runs begin while the one before holds the state. The language does not say
// when a run without a sink that waits begins: the state moves after the step has ended. Nor
// does it say what becomes of the iterations of a loop whose state another run holds.
func (g *generator) overlaps(s *story) {
	s.conflict = "queue"
	if s.mode == "none" || s.shops == nil && g.one(2) {
		s.conflict = "fail"
	}
	if s.conflict == "fail" && s.shops != nil {
		s.conflict = ""
		return
	}
	for _, run := range s.runs[1:] {
		run.overlaps = g.one(2)
	}
	s.runs[1+g.IntN(len(s.runs)-1)].overlaps = true
}

// limited says that the requests of a visit came faster than their limit lets them: at most so
// many in each span of time. A request may be on its way for longer than the next ones, by half
// a span. Nothing is said of how slow they may be.
func (v *visit) limited(s *story) (d disagreements) {
	if s.limit == 0 || len(v.times) == 0 {
		return nil
	}
	n := len(v.times)
	spans := (n+s.limit-1)/s.limit - 1
	least := time.Duration(spans)*s.per - s.per/2
	if took := v.times[n-1].Sub(v.times[0]); took < least {
		d.say("%d requests came within %s, where %d may come in %s", n, took, s.limit, s.per)
	}
	return d
}

// query is the statement of a source that is a table. Moments are compared as such.
func (s *story) query() fields {
	column, value := "at", "{{ incremental.value }}"
	if s.kind == "time" {
		column, value = "datetime(at)", "datetime({{ incremental.value }})"
	}
	compare := ">="
	if s.open {
		compare = ">"
	}
	statement := fmt.Sprintf("SELECT id, at, v FROM source WHERE shop = '%s' AND (at IS NULL OR %s %s %s) ORDER BY place LIMIT %d OFFSET {{ args.offset }}",
		s.shopName(), column, compare, value, s.size)
	return fields{{"tool", bare("sqlite")}, {"path", bare("source.db")}, {"args", fields{{"offset", 0}}}, {"statement", statement}}
}

// paging is the condition and the policy that go from page to page.
func (s *story) paging() (when bare, then fields) {
	if s.sql {
		next := fields{{"args", fields{{"offset", bare(fmt.Sprintf(`"{{ args.offset + %d }}"`, s.size))}}}}
		return bare(fmt.Sprintf(`"{{ (response | length) == %d }}"`, s.size)),
			fields{{"max_attempts", s.most}, {"next_call", next}, {"collect", fields{{"strategy", bare("append")}}}}
	}
	return bare(`"{{ response.next is defined }}"`), fields{
		{"max_attempts", s.most},
		{"next_call", fields{{"params", fields{{"page", bare(`"{{ response.next }}"`)}}}}},
		{"collect", fields{{"path", bare("rows")}}},
	}
}

// pageOf are the rows of a page from a position on, and whether the source says that there are more.
func (s *story) pageOf(run *storyRun, shop string, from position, page int) (rows []*versioned, more bool) {
	var found []*versioned
	for _, r := range run.rows[shop] {
		if s.answers(r, from) {
			found = append(found, r)
		}
	}
	first, last := min((page-1)*s.size, len(found)), min(page*s.size, len(found))
	if s.sql {
		return found[first:last], last-first == s.size
	}
	return found[first:last], last < len(found)
}

// tokenOf is the number of the token of an answer, 0 for none.
func (s *story) tokenOf(run *storyRun, shop string, rows []*versioned, more bool) int {
	switch {
	case !more:
		return run.newest[shop]
	case s.token == "each":
		return int(rows[len(rows)-1].at) + 1
	}
	return 0
}

// movesToken moves the state to the token of the last answer of a call.
func (c *calling) movesToken() {
	if c.given == 0 || len(c.rows) == 0 {
		return
	}
	c.state.watermark, c.state.moved = position(c.given), true
	c.state.forms = []string{fmt.Sprint(c.value(c.state.watermark, 0))}
}

// fillSource has the table that is the source hold what it has in a run.
func (w *told) fillSource(run *storyRun) {
	w.t.Helper()
	if !w.s.sql {
		return
	}
	db, err := sql.Open("sqlite", w.dir+"/source.db")
	require.NoError(w.t, err)
	defer db.Close()
	statements := []string{"CREATE TABLE IF NOT EXISTS source (place INTEGER PRIMARY KEY, shop, id, at, v)", "DELETE FROM source"}
	for _, each := range statements {
		_, err := db.ExecContext(w.t.Context(), each)
		require.NoError(w.t, err)
	}
	for _, shop := range w.s.shopsOf() {
		for _, r := range run.rows[shop] {
			_, err := db.ExecContext(w.t.Context(), "INSERT INTO source (shop, id, at, v) VALUES (?, ?, ?, ?)", shop, r.id, w.s.cursor(r.at, r.form), r.version)
			require.NoError(w.t, err)
		}
	}
}
