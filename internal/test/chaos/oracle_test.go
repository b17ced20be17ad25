package chaos_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
)

// The oracle of moving rounds. A source that moves answers the same request with other
// rows, so the result of a run cannot be predicted. Afterwards this can be checked: the
// answers that the API gave hold a path, on which each answers the request that follows
// from the one before, and the element's result and all that its sinks hold is what
// that path delivered, no more and no less.

// account is what one element has to answer for.
type account struct {
	name     string
	requests paging
	answers  []demoapi.MovingAnswer
	outcome  outcome
	sinks    []holding
}

// paging is how an element asks for its pages.
type paging struct {
	offset  bool // by offset, else by the last id
	collect bool // its result is the rows of all pages, else the last page
}

// outcome is how an element ended.
type outcome struct {
	failed bool
	status int // of the answer that failed it
	page   int // and the page it was to be
	// rows are those of the result, or those that were collected before the
	// failure.
	rows []demoapi.MovingRow
	more bool // what the last page says, where that is the result
}

// holding is what a sink holds of an element.
type holding struct {
	sink sink
	// writes are the rows of each write that can be told from others by its key;
	// other sinks hold one list of rows, in any order.
	writes  [][]demoapi.MovingRow
	trouble string // what must not be whatever the path
}

// path is what a run may have followed: answers, one after the other.
type path []demoapi.MovingAnswer

// maxSteps bounds the search for paths.
const maxSteps = 200_000

// paths calls visit for each path through the answers that ends where the element
// ended: after the last page, or at a request that was answered with the failure.
// It reports false if there are too many to be sure.
func (a *account) paths(visit func(path) (enough bool)) bool {
	steps := 0
	var extend func(made path) bool
	extend = func(made path) bool {
		if steps++; steps > maxSteps {
			return true
		}
		if len(made) > 0 && !made[len(made)-1].More {
			return !a.outcome.failed && visit(slices.Clone(made))
		}
		if a.outcome.failed && a.failsAfter(made) && visit(slices.Clone(made)) {
			return true
		}
		for _, answer := range a.answers {
			if answer.Status == http.StatusOK && answer.Sent && a.follows(made, answer) && extend(append(made, answer)) {
				return true
			}
		}
		return false
	}
	extend(nil)
	return steps <= maxSteps
}

// follows reports whether the answer is one to the request that comes after those
// pages. It was given after them.
func (a *account) follows(made path, answer demoapi.MovingAnswer) bool {
	after, offset := -1, -1
	if a.requests.offset {
		offset = 0
	}
	if len(made) > 0 {
		last := made[len(made)-1]
		if answer.N <= last.N {
			return false
		}
		if a.requests.offset {
			offset = last.Offset + last.Limit
		} else {
			after = last.Rows[len(last.Rows)-1].ID
		}
	}
	return answer.After == after && answer.Offset == offset
}

// failsAfter reports whether the request that comes after those pages was
// answered with the failure.
func (a *account) failsAfter(made path) bool {
	return slices.ContainsFunc(a.answers, func(answer demoapi.MovingAnswer) bool {
		return answer.Status == a.outcome.status && answer.Sent && a.follows(made, answer)
	})
}

func (p path) pages() [][]demoapi.MovingRow {
	pages := make([][]demoapi.MovingRow, len(p))
	for i, answer := range p {
		pages[i] = answer.Rows
	}
	return pages
}

// differences are all that is not as this path delivered it.
func (a *account) differences(p path) []string {
	var found []string
	pages := p.pages()
	result := slices.Concat(pages...)
	switch {
	case a.outcome.failed && a.outcome.page != len(p)+1:
		found = append(found, fmt.Sprintf("error.page is %d, and the path has %d pages before the failure", a.outcome.page, len(p)))
	case !a.outcome.failed && !a.requests.collect:
		result = p[len(p)-1].Rows
		if a.outcome.more {
			found = append(found, "the result says that there is more")
		}
	case !a.requests.collect:
		result = nil
	}
	if !slices.Equal(result, a.outcome.rows) {
		found = append(found, theResult+difference(result, a.outcome.rows))
	}
	for _, w := range a.sinks {
		if text := w.difference(a.outcome.failed, pages, result); text != "" {
			found = append(found, w.sink.String()+text)
		}
	}
	return found
}

// difference says how the sink differs from what it should hold, "" if it does
// not.
func (w holding) difference(failed bool, pages [][]demoapi.MovingRow, result []demoapi.MovingRow) string {
	due := pages
	if w.sink.place != placePage {
		if due = [][]demoapi.MovingRow{result}; failed {
			due = nil
		}
	}
	switch w.sink.holds() {
	case lastVersions:
		return difference(sorted(latest(due)), sorted(slices.Concat(w.writes...)))
	case rowsOnce:
		return difference(sorted(slices.Concat(due...)), sorted(slices.Concat(w.writes...)))
	case rowsByKey: // a write without rows leaves nothing, and a row that is in it twice is there once
		due = slices.DeleteFunc(slices.Clone(due), func(rows []demoapi.MovingRow) bool { return len(rows) == 0 })
		for i, rows := range due {
			due[i] = slices.Compact(sorted(rows))
		}
	case bodiesByKey:
	}
	if text := difference(lists(due), lists(w.writes)); text != "" {
		return fmt.Sprintf(" has %d writes, %d are due:%s", len(w.writes), len(due), text)
	}
	return ""
}

// latest are the rows of writes, one after the other, of which each replaces
// those of the same id.
func latest(writes [][]demoapi.MovingRow) []demoapi.MovingRow {
	var rows []demoapi.MovingRow
	for _, row := range slices.Concat(writes...) {
		rows = slices.DeleteFunc(rows, func(before demoapi.MovingRow) bool { return before.ID == row.ID })
		rows = append(rows, row)
	}
	return rows
}

func sorted(rows []demoapi.MovingRow) []demoapi.MovingRow {
	return slices.SortedFunc(slices.Values(rows), func(a, b demoapi.MovingRow) int {
		return cmp.Or(a.ID-b.ID, a.Version-b.Version, strings.Compare(a.Collection, b.Collection))
	})
}

// lists are writes as text, in an order of their own.
func lists(writes [][]demoapi.MovingRow) []string {
	all := make([]string, len(writes))
	for i, rows := range writes {
		all[i] = "[" + strings.TrimSpace(short(rows)) + "]"
	}
	slices.Sort(all)
	return all
}

// difference says what is missing from a list that is there and what is too
// much, "" for lists of the same.
func difference[E comparable](due, there []E) string {
	if slices.Equal(due, there) {
		return ""
	}
	count := map[E]int{}
	for _, one := range due {
		count[one]++
	}
	var more []E
	for _, one := range there {
		if count[one]--; count[one] < 0 {
			more = append(more, one)
		}
	}
	var missing []E
	for _, one := range due {
		if count[one] > 0 {
			count[one]--
			missing = append(missing, one)
		}
	}
	if len(missing) == 0 && len(more) == 0 {
		return " has another order"
	}
	text := ""
	if len(missing) > 0 {
		text += " misses" + short(missing)
	}
	if len(more) > 0 {
		text += " has beyond the path" + short(more)
	}
	return text
}

// short is rows for people: the id of each and its version.
func short[E any](rows []E) string {
	var text strings.Builder
	for _, one := range rows {
		if row, ok := any(one).(demoapi.MovingRow); ok {
			fmt.Fprintf(&text, " %d.v%d", row.ID, row.Version)
		} else {
			fmt.Fprintf(&text, " %v", one)
		}
	}
	return text.String()
}

// check looks for a path that accounts for everything; where there is none it
// explains itself.
func (a *account) check() string {
	var best []string
	var closest path
	found, tried, least := false, 0, 0
	for _, w := range a.sinks {
		if w.trouble != "" {
			return a.explain([]string{w.sink.String() + ": " + w.trouble}, nil, 0)
		}
	}
	sure := a.paths(func(p path) bool {
		tried++
		differences := a.differences(p)
		if n := distance(differences); tried == 1 || n < least {
			best, closest, least = differences, p, n
		}
		found = len(differences) == 0
		return found
	})
	switch {
	case found:
		return ""
	case !sure:
		return a.explain([]string{"there are too many paths to try them all"}, closest, tried)
	case tried == 0:
		return a.explain([]string{"no chain of answers ends as the element did"}, nil, 0)
	}
	return a.explain(best, closest, tried)
}

// distance tells paths apart that do not fit: the result says best which one was
// followed.
func distance(differences []string) int {
	n := 2 * len(differences)
	if len(differences) > 0 && strings.HasPrefix(differences[0], theResult) {
		n++
	}
	return n
}

// theResult is how a difference of the result begins.
const theResult = "the result"

// explain tells people what is wrong with an element.
func (a *account) explain(problems []string, closest path, tried int) string {
	var text strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	say("%s: no path of answers gives its result and what its sinks hold (%d tried)", a.name, tried)
	for _, problem := range problems {
		say("  - %s", problem)
	}
	result := "result:"
	if a.outcome.failed {
		result = fmt.Sprintf("failed with %d at page %d, collected:", a.outcome.status, a.outcome.page)
	}
	say("  %-28s%s", result, short(a.outcome.rows))
	for _, w := range a.sinks {
		say("  %-28s%s", w.sink.String()+":", strings.Join(lists(w.writes), " "))
	}
	for _, answer := range a.answers {
		on := " "
		if slices.ContainsFunc(closest, func(other demoapi.MovingAnswer) bool { return other.N == answer.N }) {
			on = "*"
		}
		ask := fmt.Sprintf("after %d", answer.After)
		switch {
		case answer.Offset >= 0:
			ask = fmt.Sprintf("offset %d", answer.Offset)
		case answer.After < 0:
			ask = "first"
		}
		end := ", the last page"
		switch {
		case answer.Status != http.StatusOK:
			end = fmt.Sprintf("HTTP %d", answer.Status)
		case answer.More:
			end = ", more"
		}
		if !answer.Sent {
			end += ", not sent"
		}
		say("  %s answer %2d to %-10s:%s%s", on, answer.N, ask, short(answer.Rows), end)
	}
	return text.String()
}

// reads makes answers for the oracle's own tests: of a collection that is asked
// for its rows after some id (-1 for the first page).
func read(n, after int, more bool, ids ...int) demoapi.MovingAnswer {
	answer := demoapi.MovingAnswer{N: n, After: after, Offset: -1, Limit: 3, Status: http.StatusOK, More: more, Sent: true}
	for _, id := range ids {
		answer.Rows = append(answer.Rows, demoapi.MovingRow{Collection: "c", ID: id, Version: id})
	}
	return answer
}

func rowsWith(ids ...int) []demoapi.MovingRow { return read(0, 0, false, ids...).Rows }

// TestOracle: what a run of a source that moves may give, and what not. Page 2
// was read twice, with 5 and without.
func TestOracle(t *testing.T) {
	t.Parallel()
	answers := []demoapi.MovingAnswer{
		read(1, -1, true, 1, 2, 3), read(2, 3, true, 4, 5, 6), read(3, 3, true, 4, 6, 7),
		read(4, 6, false, 7, 8), read(5, 7, false, 8), read(6, 6, false, 8),
	}
	lost := read(7, 6, false, 8, 9)
	lost.Sent = false
	answers = append(answers, lost)
	insert, upsert := sink{placePage, "postgres insert"}, sink{placePage, "sqlite upsert"}
	web, statement, call := sink{placePage, "http"}, sink{placePage, "postgres statement"}, sink{placeCall, "file"}
	type lists = [][]demoapi.MovingRow
	with, without := rowsWith(1, 2, 3, 4, 5, 6, 7, 8), rowsWith(1, 2, 3, 4, 6, 7, 8)
	for name, c := range map[string]struct {
		rows   []demoapi.MovingRow
		sink   sink
		writes lists
		wrong  string // "" for what may be
	}{
		"one path":            {with, insert, lists{with}, ""},
		"the other path":      {without, insert, lists{without}, ""},
		"any order":           {without, insert, lists{rowsWith(8, 7, 6, 4, 3, 2, 1)}, ""},
		"a row is lost":       {without, insert, lists{rowsWith(1, 2, 3, 4, 5, 6, 8)}, "misses 7.v7 has beyond the path 5.v5"},
		"a row is doubled":    {with, insert, lists{append(rowsWith(1), with...)}, "has beyond the path 1.v1"},
		"a row is left over":  {without, upsert, lists{with}, "has beyond the path 5.v5"},
		"of another answer":   {rowsWith(1, 2, 3, 4, 5, 6, 8), insert, lists{rowsWith(1, 2, 3, 4, 5, 6, 8)}, ""},
		"before it was asked": {rowsWith(1, 2, 3, 4, 6, 7), insert, lists{rowsWith(1, 2, 3, 4, 6, 7)}, "misses"},
		"never sent":          {append(rowsWith(1, 2, 3, 4, 5, 6), rowsWith(8, 9)...), insert, lists{append(rowsWith(1, 2, 3, 4, 5, 6), rowsWith(8, 9)...)}, "has beyond the path 9.v9"},
		"a body per page":     {without, web, lists{rowsWith(1, 2, 3), rowsWith(4, 6, 7), rowsWith(8)}, ""},
		"another body":        {without, web, lists{rowsWith(1, 2, 3), rowsWith(4, 5, 6), rowsWith(8)}, "misses"},
		"a body too many":     {without, web, lists{rowsWith(1, 2, 3), rowsWith(4, 6, 7), rowsWith(8), rowsWith(8)}, "has 4 writes, 3 are due"},
		"rows by key":         {without, statement, lists{rowsWith(8), rowsWith(1, 2, 3), rowsWith(4, 6, 7)}, ""},
		"call":                {without, call, lists{without}, ""},
		"call of another":     {without, call, lists{with}, "has beyond the path 5.v5"},
		"call twice":          {without, call, lists{slices.Concat(without, without)}, "has beyond the path"},
		"call never":          {without, call, nil, "misses"},
	} {
		a := &account{
			name: name, requests: paging{collect: true}, answers: answers, outcome: outcome{rows: c.rows},
			sinks: []holding{{sink: c.sink, writes: c.writes}},
		}
		said := a.check()
		if c.wrong == "" {
			require.Empty(t, said, name)
		} else {
			require.Contains(t, said, c.wrong, name)
		}
	}
}

// TestOracleOfFailures: an element that failed has written a prefix of a path and
// says so; without collect the pages are in the sink alone.
func TestOracleOfFailures(t *testing.T) {
	t.Parallel()
	refused := demoapi.MovingAnswer{N: 4, After: 6, Offset: -1, Limit: 3, Status: http.StatusNotFound, Sent: true}
	answers := []demoapi.MovingAnswer{read(1, -1, true, 1, 2, 3), read(2, 3, true, 4, 5, 6), read(3, 3, true, 4, 6, 7), refused}
	page, call := sink{placePage, "file"}, sink{placeCall, "file"}
	written := rowsWith(1, 2, 3, 4, 5, 6)
	check := func(collect bool, rows []demoapi.MovingRow, sinks ...holding) string {
		a := &account{
			name: "c", requests: paging{collect: collect}, answers: answers, sinks: sinks,
			outcome: outcome{failed: true, status: http.StatusNotFound, page: 3, rows: rows},
		}
		return a.check()
	}
	require.Empty(t, check(true, written, holding{sink: page, writes: [][]demoapi.MovingRow{written}}, holding{sink: call}))
	require.Empty(t, check(false, nil, holding{sink: page, writes: [][]demoapi.MovingRow{written}}))
	require.Contains(t, check(true, rowsWith(1, 2, 3), holding{sink: page, writes: [][]demoapi.MovingRow{written}}), "the result misses")
	require.Contains(t, check(true, written, holding{sink: call, writes: [][]demoapi.MovingRow{written}}), "beyond the path")
	require.Contains(t, check(true, rowsWith(1, 2, 3, 4, 6, 7)), "the result misses 5.v5")
}
