package lowcode_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// answer is one of the API.
type answer struct {
	status  int
	headers map[string]string
	body    any
}

// headerNames are the headers as templates read them: links are a map.
func (a answer) headerNames() map[string]any {
	out := map[string]any{"link": map[string]any{}}
	for name, value := range a.headers {
		if name != "Link" {
			out[name] = value
			continue
		}
		address, attributes, _ := strings.Cut(strings.TrimPrefix(value, "<"), ">")
		next := map[string]any{"url": address}
		for _, found := range attributeOf.FindAllStringSubmatch(attributes, -1) {
			next[found[1]] = found[2]
		}
		out["link"] = map[string]any{"next": next}
	}
	return out
}

// attributeOf is an attribute of a link.
var attributeOf = regexp.MustCompile(`(\w+)="([^"]*)"`)

// exchange is a request with its answer.
type exchange struct {
	request request
	answer  answer
	faults  []int // statuses that come before it
	asked   int   // times, by the run
}

// api makes answers for the requests that a reader makes, and gives the same to those of a run.
type api struct {
	address  string
	manifest component
	seed     string
	read     func(path string) ([]byte, error) // files beside the manifest
	now      time.Time

	mu         sync.Mutex
	exchanges  map[string]*exchange
	unexpected []string
	number     int             // of records so far
	tokens     map[string]bool // of pages
	failed     map[int]bool    // statuses that came before an answer: one of each
	logins     map[string]bool // paths that give tokens
}

// draw is a number below n that a name always draws.
func (a *api) draw(n int, name ...any) int {
	h := fnv.New64a()
	fmt.Fprint(h, a.seed, name)
	return int(h.Sum64() >> 1 % uint64(n))
}

var (
	moments = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[-+]\d\d:?\d\d)?`)
	epochs  = regexp.MustCompile(`\b\d{10}(?:\d{3}|\d{6})?\b`)
	digit   = regexp.MustCompile(`\d`)
)

// withoutClock is a text in which times that are whole hours before now, or some minutes behind such, are only said to be
// times: those of a run are later than those of a reader.
func (a *api) withoutClock(text string) string {
	near := func(at time.Time) bool {
		behind := (at.Sub(a.now)%time.Hour + time.Hour) % time.Hour
		return behind < 10*time.Minute || behind > time.Hour-time.Minute
	}
	text = moments.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse("2006-01-02T15:04:05.999999999Z0700", strings.Replace(strings.Replace(found, " ", "T", 1), ":00Z", ":00Z", 1))
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02T15:04Z07:00"} {
			if err != nil {
				at, err = time.Parse(layout, strings.Replace(found, " ", "T", 1))
			}
		}
		if err != nil || !near(at) {
			return found
		}
		return fmt.Sprintf("<%s %d hours before now>", digit.ReplaceAllString(found, "#"), int(a.now.Sub(at).Round(time.Hour).Hours()))
	})
	return epochs.ReplaceAllStringFunc(text, func(found string) string {
		n, _ := strconv.ParseInt((found + "000000")[:16], 10, 64)
		if at := time.UnixMicro(n); near(at) {
			return fmt.Sprintf("<epoch of %d digits %d hours before now>", len(found), int(a.now.Sub(at).Round(time.Hour).Hours()))
		}
		return found
	})
}

// key tells requests apart.
func (a *api) key(of request) string {
	body := of.form
	if of.body != nil {
		encoded, _ := json.Marshal(of.body)
		body = string(encoded)
	}
	at, _ := url.Parse(of.url)
	path := strings.TrimRight(at.Path, "/")
	var query []string
	for name, values := range of.query {
		for _, value := range values {
			query = append(query, name+"="+value)
		}
	}
	slices.Sort(query)
	return a.withoutClock(of.method + " " + path + "?" + strings.Join(query, "&") + " " + body)
}

// answer is that to a request of a reader. The same request has the same answer.
func (a *api) answer(r *reader, stream component, one part, pager *pager, asked request, page int, token any) answer {
	key := a.key(asked)
	if found := a.exchanges[key]; found != nil {
		return found.answer
	}
	made := &exchange{request: asked, answer: a.make(r, stream, one, pager, asked, page)}
	for _, status := range []int{429, 503} {
		failed := answer{status: status, body: map[string]any{"error": "again"}}
		if action := r.action(stream, failed); !a.failed[status] && a.draw(2, "fault", key, status) == 0 && (action == "RETRY" || action == "RATE_LIMITED") {
			made.faults, a.failed[status] = append(made.faults, status), true
		}
	}
	a.exchanges[key] = made
	return made.answer
}

// action is what the error handlers say of an answer.
func (r *reader) action(stream component, found answer) string {
	handlers := []component{stream.of("retriever").of("requester").of("error_handler")}
	if handlers[0].kind("") == "CompositeErrorHandler" {
		handlers = handlers[0].list("error_handlers")
	}
	for _, handler := range handlers {
		if handler.kind("DefaultErrorHandler") != "DefaultErrorHandler" {
			panic(unplayable("a handler of type " + handler.kind("")))
		}
		for _, filter := range handler.list("response_filters") {
			if r.matches(filter, found) {
				return filter.text("action")
			}
		}
	}
	switch {
	case found.status < 400:
		return "SUCCESS"
	case found.status == 429:
		return "RATE_LIMITED"
	case found.status >= 500:
		return "RETRY"
	}
	return "FAIL"
}

func (r *reader) matches(filter component, found answer) bool {
	for _, code := range listOf(filter["http_codes"]) {
		if textOf(plainJSON(code)) == strconv.Itoa(found.status) {
			return true
		}
	}
	in := r.in(filter, names{"response": found.body, "headers": found.headerNames()})
	if predicate := filter.text("predicate"); predicate != "" && holds(predicate, in) {
		return true
	}
	part := filter.text("error_message_contains")
	encoded, _ := json.Marshal(found.body)
	return part != "" && found.status >= 400 && strings.Contains(string(encoded), part)
}

// make makes an answer.
func (a *api) make(r *reader, stream component, one part, pager *pager, asked request, page int) answer {
	if ignored, is := a.refusal(r, stream, one, asked); is {
		return ignored
	}
	name := []any{stream.text("name"), one.key, one.from.String()}
	total := 1 + a.draw(3, name...)
	switch {
	case pager.kind == "NoPagination":
		return a.page(r, stream, one, 1, 2+a.draw(3, name...))
	case pager.kind == "CursorPagination":
		return a.cursorPage(r, stream, one, pager, asked, page, total)
	case page <= total && pager.size > 60:
		panic(unplayable(fmt.Sprintf("pages of %d rows", pager.size)))
	case page < total && pager.size > 0:
		return a.page(r, stream, one, page, pager.size)
	case page <= total && pager.size > 0:
		return a.page(r, stream, one, page, a.draw(pager.size, append(name, "last")...))
	case page <= total:
		return a.page(r, stream, one, page, 3)
	}
	return a.page(r, stream, one, page, 0)
}

// refusal is an answer that the manifest ignores, for some parts of a stream with several.
func (a *api) refusal(r *reader, stream component, one part, asked request) (answer, bool) {
	if one.key == "" || a.draw(4, "refused", asked.url, one.key) != 0 {
		return answer{}, false
	}
	for _, status := range []int{404, 403, 400, 402, 410, 500} {
		refused := answer{status: status, body: map[string]any{"error": "refused"}}
		if r.action(stream, refused) == "IGNORE" {
			return refused, true
		}
	}
	return answer{}, false
}

// page is an answer with that many rows.
func (a *api) page(r *reader, stream component, one part, page, rows int) answer {
	return a.answerOf(r, stream, a.rows(r, stream, one, page, rows))
}

// answerOf is an answer that has rows where the extractor looks for them.
func (a *api) answerOf(r *reader, stream component, rows []any) answer {
	path := r.fieldPath(stream.of("retriever").of("record_selector").of("extractor"))
	return answer{status: 200, headers: map[string]string{}, body: placed(rows, path)}
}

// placed are rows below a path. A star is a list, or at the end a map.
func placed(rows []any, path []string) any {
	if len(path) == 0 {
		return rows
	}
	if path[0] != "*" {
		return map[string]any{path[0]: placed(rows, path[1:])}
	}
	if len(path) == 1 {
		return rows
	}
	if slices.Contains(path[1:], "*") && len(rows) > 1 {
		return []any{placed(rows[:1], path[1:]), placed(rows[1:], path[1:])}
	}
	out := make([]any, len(rows))
	for i, row := range rows {
		out[i] = placedRow(row, path[1:])
	}
	return out
}

func placedRow(row any, path []string) any {
	if len(path) == 0 {
		return row
	}
	if path[0] == "*" {
		return []any{placedRow(row, path[1:])}
	}
	return map[string]any{path[0]: placedRow(row, path[1:])}
}
