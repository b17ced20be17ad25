package chaos_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// scenario is a playbook with one loop, what the API answers it, and so all
// that has to come of it.
type scenario struct {
	shape
	sink    string // where rows are written: page, call or loop
	upsert  bool   // rows are written by their key, else once per operation key
	keyed   bool   // the collection is a map, else a list
	scripts [][]answer
	// others are what the API answers before the loop begins, to items of higher
	// numbers.
	others [][]answer
}

// shape is what a disturbance asks of a scenario.
type shape struct {
	parallel bool
	width    int // max_concurrency of a parallel loop
	batch    int
	items    int
	waits    int      // about how many attempts fail and are made again after a wait
	polls    int      // polls or visits in one workflow, 0 for none
	long     string   // what they make long: the iteration, a call or the run
	sinks    []string // those to choose from, nil for all
	upsert   bool     // rows have to be upserted
	pages    int      // of an item at most, 0 for 3
	failing  int      // one item in so many fails for good, 0 for 5
}

func (s shape) String() string {
	mode := "sequential"
	if s.parallel {
		mode = fmt.Sprintf("parallel %d", s.width)
	}
	text := fmt.Sprintf("%d items, %s, batch %d", s.items, mode, s.batch)
	if s.polls > 0 {
		text += fmt.Sprintf(", %d polls in the %s", s.polls, s.long)
	}
	return text
}

func (s *scenario) String() string {
	text := fmt.Sprintf("%s, %s sink", s.shape, s.sink)
	if s.keyed {
		text += ", of a map"
	}
	return text
}

// Policies of the playbook for failures. Timers end up to a second late, so waits are
// long enough to tell them from shorter ones.
const (
	retryDelay  = 2 * time.Second
	maxAttempts = 3
	// longWait is one for which an iteration leaves its place in a parallel loop.
	longWait = 5 * time.Second
	// ballast makes some polls a history that is long enough to go on in another,
	// of which those are not a part that a batch makes in one activity.
	ballast         = 100_000
	pollsOfAHistory = 30
	polledTogether  = 10
)

func newScenario(random *rand.Rand, s shape) *scenario {
	if s.sinks == nil {
		s.sinks = []string{"page", "call", "loop"}
	}
	made := &scenario{
		shape: s, sink: s.sinks[random.IntN(len(s.sinks))], upsert: s.upsert || random.IntN(2) == 0,
		keyed: random.IntN(2) == 0, scripts: make([][]answer, s.items),
	}
	for i := range made.scripts {
		made.scripts[i] = pages(1 + random.IntN(cmp.Or(s.pages, 3)))
	}
	made.addFailures(random)
	made.addWaits(random)
	made.addPolls()
	return made
}

// pages are the answers to an item that goes well.
func pages(n int) []answer {
	script := make([]answer, n)
	for i := range script {
		script[i] = answer{Status: http.StatusOK, Page: i + 1, More: i+1 < n}
	}
	return script
}

// addFailures lets some items fail for good, at any page: the second, and a
// share of the others, a third of all at most, so that the run has an output. The
// first and the last go well.
func (s *scenario) addFailures(random *rand.Rand) {
	failing := 0
	for i := 1; i < s.items-1; i++ {
		if i > 1 && (random.IntN(cmp.Or(s.failing, 5)) > 0 || failing >= s.items/3) {
			continue
		}
		failing++
		script := s.scripts[i][:random.IntN(len(s.scripts[i]))]
		if random.IntN(3) > 0 {
			script = append(script, answer{Status: http.StatusNotFound})
		} else {
			for range maxAttempts {
				script = append(script, answer{Status: http.StatusInternalServerError})
			}
		}
		s.scripts[i] = script
	}
}

// addWaits lets requests of items fail that go well in the end. The first item
// is among them; where a batch of a parallel loop goes on in another history, it
// waits for long.
func (s *scenario) addWaits(random *rand.Rand) {
	for n := range s.waits {
		i := random.IntN(s.items)
		if n == 0 {
			i = 0
		}
		script := s.scripts[i]
		page := random.IntN(len(script))
		if script[page].Status != http.StatusOK || page > 0 && script[page-1].Status != http.StatusOK {
			continue // it fails already
		}
		failure := answer{Status: http.StatusServiceUnavailable}
		leaves := n == 0 && s.parallel && s.long == longIteration
		if random.IntN(2) == 0 || leaves {
			failure = answer{Status: http.StatusTooManyRequests, RetryAfter: time.Duration(1+random.IntN(3)) * time.Second}
			if s.parallel && random.IntN(4) == 0 || leaves {
				failure.RetryAfter += longWait
			}
		}
		failures := []answer{failure}
		if random.IntN(4) == 0 {
			failures = append(failures, answer{Status: http.StatusServiceUnavailable})
		}
		s.scripts[i] = append(append(append([]answer{}, script[:page]...), failures...), script[page:]...)
	}
}

// addPolls adds answers that make the history of a workflow long. Around the point
// at which an iteration goes on in another one it waits between them, so that it
// goes on in the middle of a wait.
func (s *scenario) addPolls() {
	polls := make([]answer, s.polls)
	for i := range polls {
		polls[i] = answer{Status: http.StatusOK, Pending: true, Bytes: ballast}
		at := i + 1
		if s.batch > 1 {
			at -= polledTogether
		}
		polls[i].Slow = s.long == longIteration && at >= pollsOfAHistory-1 && at <= pollsOfAHistory+2
	}
	switch s.long {
	case longIteration:
		s.scripts[s.items/2] = append(polls, s.scripts[s.items/2]...)
	case longCall:
		s.others = [][]answer{append(polls, answer{Status: http.StatusOK, Page: 1})}
	case longRun:
		for _, poll := range polls {
			s.others = append(s.others, []answer{poll})
		}
	}
}

// collection is what the loop runs over: the numbers of the items, in their order.
func (s *scenario) collection() any {
	list, entries := make([]any, s.items), make(map[string]any, s.items)
	for i := range list {
		list[i], entries[keyOf(i)] = i, i
	}
	if s.keyed {
		return entries
	}
	return list
}

// keyOf is that of an item in a map: their order is that of the items.
func keyOf(item int) string { return fmt.Sprintf("item %04d", item) }

// element is that of an item in the loop.
func (s *scenario) element(item int) any {
	if s.keyed {
		return map[string]any{"key": keyOf(item), "value": item}
	}
	return item
}

// row is what the API has on a page and the sinks write.
type row struct {
	id         string
	item, page int
}

func rowsOf(item, page int) []row {
	rows := make([]row, 1+(item+page)%3)
	for i := range rows {
		rows[i] = row{id: fmt.Sprintf("%04d-%d-%d", item, page, i), item: item, page: page}
	}
	return rows
}

func pageRows(item, page int) []any {
	var list []any
	for _, r := range rowsOf(item, page) {
		list = append(list, map[string]any{"id": r.id, "item": r.item, "page": r.page})
	}
	return list
}

// fails reports whether an item fails for good.
func (s *scenario) fails(item int) bool { return s.last(item).Status != http.StatusOK }

func (s *scenario) last(item int) answer { return s.scripts[item][len(s.scripts[item])-1] }

func (s *scenario) failed() int {
	n := 0
	for i := range s.scripts {
		if s.fails(i) {
			n++
		}
	}
	return n
}

// all are the scripts of the loop's items and of the others.
func (s *scenario) all() [][]answer { return slices.Concat(s.scripts, s.others) }

// attempts is how many there are in all.
func (s *scenario) attempts() int {
	n := 0
	for _, script := range s.all() {
		n += len(script)
	}
	return n
}

// waitAfter is the wait that is due after an attempt, 0 for none; the first
// attempt is 1.
func waitAfter(script []answer, attempt int) time.Duration {
	said := script[attempt-1]
	switch {
	case said.Slow:
		return retryDelay
	case said.Status == http.StatusOK || attempt == len(script):
		return 0
	case said.RetryAfter > 0:
		return said.RetryAfter
	}
	return retryDelay
}

// writesAlone reports whether the sink of an item, or its dead letter, is an activity of its own where each item has its
// workflow: the item waits. Of one that does not wait, the activity that makes its attempts writes too.
func (s *scenario) writesAlone(failed bool) bool {
	for i, script := range s.scripts {
		for attempt := range script {
			if s.fails(i) == failed && waitAfter(script, attempt+1) > 0 {
				return true
			}
		}
	}
	return false
}

// dueWaits are the waits of all items, and how long they take at least: one
// after the other in a sequential loop, else the item that waits longest.
func (s *scenario) dueWaits() (waits []time.Duration, least time.Duration) {
	for _, script := range s.scripts {
		var item time.Duration
		for attempt := range script {
			if wait := waitAfter(script, attempt+1); wait > 0 {
				waits = append(waits, wait)
				item += wait
			}
		}
		if s.parallel {
			least = max(least, item)
		} else {
			least += item
		}
	}
	return waits, least
}

const playbookText = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: chaos}
workload: {api: "", items: []}
workflow:
  BEFORE
  - step: fetch
    tool: http
    url: "{{ api }}/items/{{ ITEM }}"
    params: {page: 1}
    headers: {X-Attempt: "{{ attempt_key }}"}
    loop:
      collection: "{{ items }}"
      batch: BATCH
      MODE
      dead_letter:
        sink: {tool: postgres, auth: pg, table: dead, RETRY,
          args: {item: "{{ result.index }}", status: "{{ error.status }}", attempts: "{{ result.attempts }}"}}
      LOOP_SINK
    retry:
      - when: "{{ error.class in ['retryable', 'rate_limited'] }}"
        then: {max_attempts: 3, delay: 2s, jitter: none}
      POLL
      - when: "{{ response.more }}"
        then:
          max_attempts: 1000
          next_call: {params: {page: "{{ response.page + 1 }}"}}
          collect: {path: rows}
          PAGE_SINK
    sink: {tool: postgres, auth: pg, table: runs, RETRY,
      args: {run: "{{ execution_id }}", total: "{{ result.stats.total }}", success: "{{ result.stats.success }}",
        failed: "{{ result.stats.failed }}", cancelled: "{{ result.stats.cancelled }}"}}
output: "{{ fetch }}"
`

// poll asks again until the item is done.
const poll = `- when: "{{ response.state == 'pending' and response.slow }}"
        then: {max_attempts: 1000, delay: 2s, jitter: none}
      - when: "{{ response.state == 'pending' }}"
        then: {max_attempts: 1000, backoff: none}`

// Steps whose history may become long before the loop begins.
const (
	longIteration = "iteration"
	longCall      = "call"
	longRun       = "run"
)

// callText is a call of many polls, in the place of BEFORE.
const callText = `- step: await
    tool: http
    url: "{{ api }}/items/FIRST"
    params: {page: 1}
    headers: {X-Attempt: "{{ attempt_key }}"}
    retry:
      POLL
    next: fetch`

// cycleText visits a step many times.
const cycleText = `- step: begin
    vars: {n: FIRST}
    next: turn
  - step: turn
    tool: http
    url: "{{ api }}/items/{{ vars.n }}"
    params: {page: 1}
    headers: {X-Attempt: "{{ attempt_key }}"}
    vars: {n: "{{ vars.n + 1 }}"}
    next:
      - {when: "{{ vars.n < END }}", step: turn}
      - {else: fetch}`

// sinkRetry survives a database that is away for 20 s and more.
const sinkRetry = `retry: [{when: "{{ error.class == 'retryable' }}",
          then: {max_attempts: 11, initial_delay: 0.5s, max_delay: 5s, jitter: none}}]`

// playbook is the scenario's source.
func (s *scenario) playbook() string {
	mode, loopSink, pageSink := "mode: sequential", "", ""
	if s.parallel {
		mode = fmt.Sprintf("mode: parallel\n      max_concurrency: %d", s.width)
	}
	write := "mode: insert"
	if s.upsert {
		write = "mode: upsert, key: id"
	}
	sink := "sink: {tool: postgres, auth: pg, table: rows, " + write + ", RETRY}"
	switch s.sink {
	case "loop":
		loopSink = sink
	case "call":
		pageSink = sink
	case "page":
		pageSink = "per_iteration: {" + sink + "}"
	}
	item := "item"
	if s.keyed {
		item = "item.value"
	}
	before := map[string]string{longCall: callText, longRun: cycleText}[s.long]
	text := playbookText
	for _, fill := range [][2]string{ // in this order: texts hold further names
		{"BEFORE", before},
		{"ITEM", item},
		{"FIRST", fmt.Sprint(s.items)},
		{"END", fmt.Sprint(s.items + len(s.others))},
		{"BATCH", fmt.Sprint(max(s.batch, 1))},
		{"MODE", mode},
		{"LOOP_SINK", loopSink},
		{"PAGE_SINK", pageSink},
		{"POLL", poll},
		{"RETRY", sinkRetry},
	} {
		text = strings.ReplaceAll(text, fill[0], fill[1])
	}
	return text
}

// tables creates those of the sinks.
func (s *scenario) tables() string {
	key := ""
	if s.upsert {
		key = "PRIMARY KEY"
	}
	return fmt.Sprintf(`CREATE TABLE rows (id text %s, item bigint, page bigint);
		CREATE TABLE dead (item bigint, status bigint, attempts bigint);
		CREATE TABLE runs (run text, total bigint, success bigint, failed bigint, cancelled bigint)`, key)
}
