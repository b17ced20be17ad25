package oracle_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// style is how the API answers requests of one step.
type style struct {
	pages    int      // of each collection
	troubles []string // what may be answered in place of a page
	most     int      // of them before a page is given
	pending  int      // of answers before a page that say that it is not ready
	dead     float64  // share of requests that are never answered well
	back     bool     // the last page names the first as its next one
	flat     bool     // pages do not tell their number
	told     bool     // answers that are not ready say when to ask again
	apart    bool     // rows are not in every page
	coded    int      // of answers before a page that say they worked and did not
	seldom   float64  // share of requests that have trouble at all
	answers  []string // of webhooks: complete, fail, refuse, progress, none
}

// answer is one answer of the API.
type answer struct {
	status  int
	headers map[string]string
	body    any
	broken  string // drop: no answer at all; json: no JSON
	// outside is what another system says after a request of tool webhook.
	outside []said
}

// said is what is said of an attempt from outside.
type said struct {
	verb  string
	after time.Duration
	value any
	final bool
}

// asked is a request as it is sent.
type asked struct {
	method, path, query, body, headers string
}

// key is what a request is told apart by.
func (a asked) key() string {
	return a.method + " " + a.path + "?" + a.query + " " + a.body + " " + a.headers
}

// step is whose request it is: the first part of the path.
func (a asked) step() string { return strings.Split(strings.TrimPrefix(a.path, "/"), "/")[0] }

func (a asked) page() int {
	if _, page, found := strings.Cut(a.headers, "X-Page:"); found {
		n, _ := strconv.Atoi(page)
		return n
	}
	values, err := url.ParseQuery(a.query)
	if err == nil && values.Has("page") {
		n, _ := strconv.Atoi(values.Get("page"))
		return n
	}
	var body struct{ Page *int }
	if json.Unmarshal([]byte(a.body), &body) == nil && body.Page != nil {
		return *body.Page
	}
	return 1
}

// script is the fixed list of answers to a request; the last one is given from then on.
func (s style) script(seed uint64, a asked) []answer {
	h := fnv.New64a()
	_, _ = io.WriteString(h, a.key())
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	var all []answer
	if len(s.troubles) > 0 && r.Float64() < s.seldom {
		for range r.IntN(s.most + 1) {
			all = append(all, trouble(s.troubles[r.IntN(len(s.troubles))], r))
		}
		if r.Float64() < s.dead {
			return append(all, trouble(pickUntold(s.troubles, r), r))
		}
	}
	if len(s.answers) > 0 {
		all = append(all, s.fromOutside(r))
	}
	if s.pending > 0 {
		for range r.IntN(s.pending + 1) {
			all = append(all, s.notReady(a.page(), r))
		}
	}
	if s.coded > 0 {
		for range r.IntN(s.coded + 1) {
			all = append(all, s.code(a, r))
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return append(all, answer{status: http.StatusOK, body: s.pageOf(a, r)})
}

// pickUntold picks a trouble that does not say when to come again: it would be asked for ever.
func pickUntold(all []string, r *rand.Rand) string {
	word := all[r.IntN(len(all))]
	if strings.HasSuffix(word, "told") || word == "403spent" {
		return "500"
	}
	return word
}

func (s style) notReady(page int, r *rand.Rand) answer {
	a := answer{status: http.StatusOK, body: map[string]any{"state": "pending", "page": page, "more": false, "items": []any{}}}
	if s.told && r.IntN(2) == 0 {
		a.status, a.headers = http.StatusAccepted, map[string]string{"Retry-After": strconv.Itoa(1 + r.IntN(9))}
	}
	return a
}

// code is an answer with a page that says it worked and did not.
func (s style) code(asked asked, r *rand.Rand) answer {
	a := answer{status: http.StatusOK, body: s.pageOf(asked, r)}
	body := a.body.(map[string]any)
	body["code"], body["wait"] = []string{"BUSY", "LIMIT"}[r.IntN(2)], r.IntN(4)
	if s.told && r.IntN(3) == 0 {
		a.headers = map[string]string{"Retry-After": strconv.Itoa(1 + r.IntN(4))}
	}
	return a
}

// pageOf is the body of a page.
func (s style) pageOf(a asked, r *rand.Rand) any {
	page := a.page()
	if s.flat {
		page = 1
	}
	body := map[string]any{"state": "done", "page": page, "more": page < s.pages, "n": r.IntN(10)}
	items := make([]any, r.IntN(3))
	for i := range items {
		items[i] = fmt.Sprintf("%s-%d-%d", a.path, page, i)
	}
	body["items"] = items
	body["info"] = map[string]any{"rows": items, "deep": map[string]any{fmt.Sprintf("k%d", page): page, "last": page}}
	switch r.IntN(6) {
	case 0:
		body["info"].(map[string]any)["rows"] = nil
	case 1:
		body["info"].(map[string]any)["rows"] = map[string]any{"one": page}
	}
	if s.apart && r.IntN(2) == 0 {
		delete(body, "items")
	}
	next := page + 1
	if page == s.pages && s.back {
		next = 1
	}
	// A page after the last one, which a policy gets that counts, has no next one: the call would have 10,000 pages.
	if page < s.pages || page == s.pages && s.back {
		body["next"], body["next_url"] = next, fmt.Sprintf("?page=%d", next)
		body["more"] = true
	}
	return body
}

// trouble is an answer that is no success.
func trouble(word string, r *rand.Rand) answer {
	a := answer{headers: map[string]string{}, body: map[string]any{"oops": r.IntN(100)}}
	told := strconv.Itoa(r.IntN(10) - 2)
	switch word {
	case "drop", "json":
		return answer{status: http.StatusOK, broken: word}
	case "429told":
		a.status, a.headers["Retry-After"] = http.StatusTooManyRequests, told
	case "503told":
		a.status, a.headers["Retry-After"] = http.StatusServiceUnavailable, told
	case "404told":
		a.status, a.headers["Retry-After"] = http.StatusNotFound, told
	case "403spent":
		a.status, a.headers["X-RateLimit-Remaining"], a.headers["X-RateLimit-Reset"] = http.StatusForbidden, "0", told
	case "403left":
		a.status, a.headers["X-RateLimit-Remaining"], a.headers["X-RateLimit-Reset"] = http.StatusForbidden, "5", told
	default:
		status, err := strconv.Atoi(word)
		if err != nil {
			panic(word)
		}
		a.status = status
	}
	return a
}

func (s style) fromOutside(r *rand.Rand) answer {
	a := answer{status: http.StatusOK, body: map[string]any{}}
	after := time.Duration(1+r.IntN(20))*time.Second + 300*time.Millisecond
	word := s.answers[r.IntN(len(s.answers))]
	if word == "progress" {
		for range 1 + r.IntN(3) {
			a.outside = append(a.outside, said{verb: "progress", after: after})
			// Never as long as a timeout, which is of whole seconds: an answer at that very moment may come first or not.
			after += time.Duration(1+r.IntN(25))*time.Second + 100*time.Millisecond
		}
		word = "complete"
	}
	switch word {
	case "complete":
		a.outside = append(a.outside, said{verb: "complete", after: after, value: map[string]any{"n": r.IntN(9), "more": r.IntN(3) == 0}})
	case "fail":
		a.outside = append(a.outside, said{verb: "fail", after: after, value: map[string]any{"d": r.IntN(9)}})
	case "final":
		a.outside = append(a.outside, said{verb: "fail", after: after, final: true})
	}
	return a
}

// api is the server that answers by the script, and notes what it is asked.
type api struct {
	seed    uint64
	styles  map[string]style
	now     func() time.Duration
	outside func(a asked, n int, header http.Header, all []said)
	mu      sync.Mutex
	counts  map[string]int
	log     []made
}

// made is one request, as it came or as it was predicted.
type made struct {
	at time.Duration
	asked
	key  string // Idempotency-Key, or what it has to stand for
	said string // the answer
	open bool   // it may also not have been made
	call string // that it is predicted of
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q := asked{method: r.Method, path: r.URL.Path, query: r.URL.Query().Encode(), body: normalJSON(body), headers: headersOf(r.Header.Get)}
	a.mu.Lock()
	n := a.counts[q.key()]
	a.counts[q.key()]++
	style, known := a.styles[q.step()]
	if !known {
		style.pages = 1
	}
	list := style.script(a.seed, q)
	given := list[min(n, len(list)-1)]
	a.log = append(a.log, made{at: a.now(), asked: q, key: r.Header.Get("Idempotency-Key"), said: given.short()})
	a.mu.Unlock()
	if len(given.outside) > 0 {
		a.outside(q, n, r.Header, given.outside)
	}
	given.write(w)
}

func (a answer) write(w http.ResponseWriter) {
	switch a.broken {
	case "drop":
		connection, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = connection.Close()
		}
		return
	case "json":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"half": `)
		return
	}
	for name, value := range a.headers {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body)
}

func (a answer) short() string {
	if a.broken != "" {
		return a.broken
	}
	text := fmt.Sprintf("%d %s", a.status, canonical(a.body))
	for _, name := range slices.Sorted(mapKeys(a.headers)) {
		text += fmt.Sprintf(" %s: %s", name, a.headers[name])
	}
	for _, s := range a.outside {
		text += fmt.Sprintf(" (%s after %s)", s.verb, s.after)
	}
	return text
}

// headersOf are the headers that requests are told apart by.
func headersOf(get func(string) string) string {
	var all []string
	for _, name := range []string{"X-First", "X-Page"} {
		if value := get(name); value != "" {
			all = append(all, name+":"+value)
		}
	}
	return strings.Join(all, " ")
}

// normalJSON is a body with its keys sorted.
func normalJSON(body []byte) string {
	if len(bytes.TrimSpace(body)) == 0 {
		return ""
	}
	value, err := parse(body)
	if err != nil {
		return string(body)
	}
	return canonical(normal(value))
}

// parse reads JSON with numbers as int where they are whole.
func parse(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return whole(value), nil
}

func whole(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	}
	return value
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// normal leaves of errors, wherever they stand, what is predicted of them. An empty
// value says nothing: it may be that nothing was collected yet, or empty pages.
func normal(value any) any {
	switch v := value.(type) {
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = normal(v[i])
		}
		return all
	case map[string]any:
		_, kind := v["kind"]
		_, class := v["class"]
		all := map[string]any{}
		for k, each := range v {
			if kind && class && (!slices.Contains(predictedOfErrors, k) || each == nil || each == false || each == 0 || len(canonical(each)) == 2) {
				continue
			}
			all[k] = normal(each)
		}
		return all
	}
	return value
}

// predictedOfErrors are the members of an error that the oracle tells.
var predictedOfErrors = []string{"kind", "class", "status", "attempt", "exhausted", "collected"}
