package e2e_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// vendor is an API that behaves like one of those that jobs read. It knows which rows it
// has, and how often it refused a request.
type vendor struct {
	*http.ServeMux

	url string

	mu      sync.Mutex
	asked   int
	refused int
	state   map[string]int
	rows    []any // as the table has to hold them
}

func newVendor(t *testing.T, with func(*vendor)) *vendor {
	t.Helper()
	v := &vendor{ServeMux: http.NewServeMux(), state: map[string]int{}}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	v.url = server.URL
	with(v)
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	v.ServeMux.ServeHTTP(w, r)
}

// requests are how many came, and how many of them were refused.
func (v *vendor) requests() (asked, refused int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked, v.refused
}

// add adds a row that the table has to hold.
func (v *vendor) add(row map[string]any) map[string]any {
	v.rows = append(v.rows, row)
	return row
}

func (v *vendor) reply(w http.ResponseWriter, status int, body any) {
	if status >= http.StatusBadRequest {
		v.refused++
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// sent is the body of a request.
func sent(r *http.Request) (body map[string]any) {
	_ = json.NewDecoder(r.Body).Decode(&body)
	return body
}

func number(text string, otherwise int) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return otherwise
	}
	return n
}

// shop lists orders behind a leaky bucket of 10 requests that loses 5 a second. The next
// page is named by the header Link, and its page_info goes with no other filter.
func shop(v *vendor) {
	const size = 25
	for i := range 480 {
		v.add(map[string]any{"id": 5_000_000_000_000 + i, "name": fmt.Sprintf("#%d", 1001+i), "total": fmt.Sprintf("%d.%02d", i, i%100)})
	}
	level, last := 0.0, time.Now()
	v.HandleFunc("GET /admin/api/2025-01/orders.json", func(w http.ResponseWriter, r *http.Request) {
		level, last = max(0, level-5*time.Since(last).Seconds()), time.Now()
		if level+1 > 10 {
			w.Header().Set("Retry-After", "1.0")
			v.reply(w, http.StatusTooManyRequests, map[string]any{"errors": "Exceeded 5 calls per second for api client."})
			return
		}
		level++
		query := r.URL.Query()
		from := number(query.Get("page_info"), 0)
		if query.Has("page_info") && query.Has("status") {
			v.reply(w, http.StatusBadRequest, map[string]any{"errors": "status cannot be passed when page_info is present"})
			return
		}
		w.Header().Set("X-Shopify-Shop-Api-Call-Limit", fmt.Sprintf("%d/10", int(level)))
		if from+size < len(v.rows) {
			w.Header().Add("Link", fmt.Sprintf(`<%s/admin/api/2025-01/orders.json?limit=%d&page_info=%d>; rel="next"`, v.url, size, from+size))
		}
		v.reply(w, http.StatusOK, map[string]any{"orders": v.rows[from:min(from+size, len(v.rows))]})
	})
}

// crm searches contacts, and answers none beyond the first 1,000 results of a search.
func crm(v *vendor) {
	const most = 1000
	for i := range 2350 {
		v.add(map[string]any{"id": strconv.Itoa(100 + 3*i), "email": fmt.Sprintf("p%d@example.com", i)})
	}
	v.HandleFunc("POST /crm/v3/objects/contacts/search", func(w http.ResponseWriter, r *http.Request) {
		var search struct {
			Limit        int
			After        string
			FilterGroups []struct {
				Filters []struct{ PropertyName, Operator, Value string }
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&search)
		found := v.rows
		if groups := search.FilterGroups; len(groups) == 1 && len(groups[0].Filters) == 1 && groups[0].Filters[0].Operator == "GT" {
			above := number(groups[0].Filters[0].Value, 0)
			found = slices.DeleteFunc(slices.Clone(found), func(row any) bool { return number(row.(map[string]any)["id"].(string), 0) <= above })
		}
		from := number(search.After, 0)
		if from+search.Limit > most {
			v.reply(w, http.StatusBadRequest, map[string]any{"status": "error", "message": "the search is limited to 1000 results"})
			return
		}
		to := min(from+search.Limit, len(found))
		var results []any
		for _, row := range found[from:to] {
			contact := row.(map[string]any)
			results = append(results, map[string]any{"id": contact["id"], "properties": map[string]any{"email": contact["email"]}})
		}
		answer := map[string]any{"total": len(found), "results": results}
		if to < len(found) {
			answer["paging"] = map[string]any{"next": map[string]any{"after": strconv.Itoa(to)}}
		}
		v.reply(w, http.StatusOK, answer)
	})
}

// ads makes a report that takes three polls, and gives it as packed CSV.
func ads(v *vendor) {
	var table bytes.Buffer
	packed := gzip.NewWriter(&table)
	fmt.Fprintln(packed, "campaign_id;name;cost;clicks")
	for i := range 1200 {
		name := fmt.Sprintf("Campaign; \"%d\"\nsecond line", i)
		v.add(map[string]any{"campaign_id": strconv.Itoa(7000 + i), "name": name, "cost": fmt.Sprintf("%d.5", i), "clicks": nil})
		fmt.Fprintf(packed, "%d;\"%s\";%d.5;--\n", 7000+i, strings.ReplaceAll(name, `"`, `""`), i)
	}
	_ = packed.Close()
	v.HandleFunc("POST /v1/reports", func(w http.ResponseWriter, r *http.Request) {
		v.reply(w, http.StatusAccepted, map[string]any{"report_id": "r-" + fmt.Sprint(sent(r)["day"])})
	})
	v.HandleFunc("GET /v1/reports/{id}", func(w http.ResponseWriter, r *http.Request) {
		v.state["polls"]++
		if v.state["polls"] < 3 {
			v.reply(w, http.StatusOK, map[string]any{"status": "IN_PROGRESS"})
			return
		}
		v.reply(w, http.StatusOK, map[string]any{"status": "SUCCESS", "url": v.url + "/files/" + r.PathValue("id") + ".csv.gz?signature=s3cr3t"})
	})
	v.HandleFunc("GET /files/{name}", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("signature") != "s3cr3t" {
			v.reply(w, http.StatusForbidden, nil)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(table.Bytes())
	})
}

// notes has pages with blocks, both in lists that go on from a cursor of the answer.
func notes(v *vendor) {
	blocks := map[string][]any{}
	var pages []any
	for i := range 30 {
		page := fmt.Sprintf("page-%02d", i)
		pages = append(pages, map[string]any{"object": "page", "id": page})
		for j := range i % 7 {
			blocks[page] = append(blocks[page], v.add(map[string]any{"id": fmt.Sprintf("%s-%d", page, j), "page_id": page, "text": fmt.Sprintf("Ünïcode 🎈 %d", j)}))
		}
	}
	list := func(w http.ResponseWriter, all []any, cursor string, size int) {
		if v.asked%9 == 0 {
			w.Header().Set("Retry-After", "1")
			v.reply(w, http.StatusTooManyRequests, map[string]any{"object": "error", "code": "rate_limited"})
			return
		}
		from := number(cursor, 0)
		to := min(from+size, len(all))
		answer := map[string]any{"object": "list", "results": append([]any{}, all[from:to]...), "has_more": to < len(all), "next_cursor": nil}
		if to < len(all) {
			answer["next_cursor"] = strconv.Itoa(to)
		}
		v.reply(w, http.StatusOK, answer)
	}
	v.HandleFunc("POST /v1/databases/d1/query", func(w http.ResponseWriter, r *http.Request) {
		body := sent(r)
		if cursor, given := body["start_cursor"]; given && cursor == nil {
			v.reply(w, http.StatusBadRequest, map[string]any{"code": "validation_error", "message": "start_cursor should be a string"})
			return
		}
		cursor, _ := body["start_cursor"].(string)
		list(w, pages, cursor, 10)
	})
	v.HandleFunc("GET /v1/blocks/{page}/children", func(w http.ResponseWriter, r *http.Request) {
		list(w, blocks[r.PathValue("page")], r.URL.Query().Get("start_cursor"), 3)
	})
}

// payments lists events, newest first, behind the last one that was read. A new one comes
// in front while pages are read.
func payments(v *vendor) {
	var events []any
	for i := range 230 {
		events = append(events, v.add(map[string]any{"id": fmt.Sprintf("evt_%04d", i), "type": "charge.succeeded", "created": 1_700_000_000 + i}))
	}
	v.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk_test_4242" {
			v.reply(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"type": "invalid_request_error"}})
			return
		}
		newest := slices.Clone(events)
		slices.Reverse(newest)
		from, behind := 0, r.URL.Query().Get("starting_after")
		if behind != "" {
			from = 1 + slices.IndexFunc(newest, func(e any) bool { return e.(map[string]any)["id"] == behind })
		}
		to := min(from+number(r.URL.Query().Get("limit"), 10), len(newest))
		v.reply(w, http.StatusOK, map[string]any{"object": "list", "data": newest[from:to], "has_more": to < len(newest)})
		events = append(events, map[string]any{"id": fmt.Sprintf("evt_%04d", len(events)), "type": "charge.refunded", "created": 1_800_000_000})
	})
}

// accounts lets a token read four times, and its refresh token is good for one other.
func accounts(v *vendor) {
	token, uses := "", 0
	v.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if r.PostForm.Get("client_secret") != "rotating-secret" {
			v.reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
			return
		}
		v.state["tokens"]++
		token, uses = fmt.Sprintf("rotating-token-%d", v.state["tokens"]), 4
		v.reply(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600})
	})
	for i := range 60 {
		v.add(map[string]any{"id": i, "owner": fmt.Sprintf("o%d", i%7)})
	}
	v.HandleFunc("GET /accounts", func(w http.ResponseWriter, r *http.Request) {
		if uses == 0 || r.Header.Get("Authorization") != "Bearer "+token {
			v.reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_token"})
			return
		}
		uses--
		page := number(r.URL.Query().Get("page"), 1)
		v.reply(w, http.StatusOK, map[string]any{"data": v.rows[(page-1)*5 : page*5], "last_page": len(v.rows) / 5})
	})
}

// stocks is away for two seconds in the middle of the job: half of its refusals say 503,
// the others break the connection.
func stocks(v *vendor) {
	var away time.Time
	for i := range 500 {
		v.add(map[string]any{"id": i + 1, "quantity": (i * 37) % 101})
	}
	v.HandleFunc("GET /items/{id}", func(w http.ResponseWriter, r *http.Request) {
		v.state["items"]++
		if v.state["items"] == 150 {
			away = time.Now().Add(2 * time.Second)
		}
		if time.Now().Before(away) {
			if v.state["items"]%2 == 0 {
				v.refused++
				panic(http.ErrAbortHandler)
			}
			v.reply(w, http.StatusServiceUnavailable, map[string]any{"error": "maintenance"})
			return
		}
		v.reply(w, http.StatusOK, v.rows[number(r.PathValue("id"), 1)-1])
	})
}

// changes lists what has changed from a time on, which it counts as the same or later.
func changes(v *vendor) {
	for i := range 90 {
		v.add(map[string]any{"id": i, "updated_at": fmt.Sprintf("2026-01-01T00:%02d:00Z", i/3)})
	}
	v.HandleFunc("GET /changes", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		found := slices.DeleteFunc(slices.Clone(v.rows), func(row any) bool {
			at := row.(map[string]any)["updated_at"].(string)
			return at < query.Get("since") || at > query.Get("until") && query.Has("until")
		})
		from := number(query.Get("offset"), 0)
		v.reply(w, http.StatusOK, map[string]any{"rows": append([]any{}, found[min(from, len(found)):min(from+20, len(found))]...)})
	})
}

// graph answers repositories and their issues, both in pages, with errors in a 200: points
// run out, and once it has no time.
func graph(v *vendor) {
	issues := map[string][]any{}
	var names []string
	for i := range 12 {
		name := fmt.Sprintf("repo-%02d", i)
		names = append(names, name)
		for j := range (i * 5) % 13 {
			issues[name] = append(issues[name], v.add(map[string]any{"id": fmt.Sprintf("%s#%d", name, j), "repository": name, "title": fmt.Sprintf("it's %d", j)}))
		}
	}
	fails := func(w http.ResponseWriter, kind, message string) {
		v.refused++
		v.reply(w, http.StatusOK, map[string]any{"data": nil, "errors": []any{map[string]any{"type": kind, "message": message}}})
	}
	page := func(all []any, after string) map[string]any {
		from := number(after, 0)
		to := min(from+4, len(all))
		info := map[string]any{"hasNextPage": to < len(all), "endCursor": nil}
		if to > from {
			info["endCursor"] = strconv.Itoa(to)
		}
		return map[string]any{"nodes": append([]any{}, all[from:to]...), "pageInfo": info}
	}
	points, last := 20.0, time.Now()
	v.HandleFunc("POST /graphql", func(w http.ResponseWriter, r *http.Request) {
		body := sent(r)
		variables, _ := body["variables"].(map[string]any)
		after, _ := variables["after"].(string)
		points, last = min(20, points+10*time.Since(last).Seconds()), time.Now()
		v.state["asked"]++
		switch name, _ := variables["name"].(string); {
		case points < 1:
			fails(w, "RATE_LIMITED", "API rate limit exceeded")
		case v.state["asked"] == 7:
			fails(w, "TIMEOUT", "Something went wrong while executing your query")
		case strings.Contains(fmt.Sprint(body["query"]), "repositories"):
			points--
			var all []any
			for _, name := range names {
				all = append(all, map[string]any{"name": name})
			}
			v.reply(w, http.StatusOK, map[string]any{"data": map[string]any{"viewer": map[string]any{"repositories": page(all, after)}}})
		case name == "":
			fails(w, "INVALID", "variable name is missing")
		default:
			points--
			v.reply(w, http.StatusOK, map[string]any{"data": map[string]any{"repository": map[string]any{"issues": page(issues[name], after)}}})
		}
	})
}

// invoices are to be paid once a person has said so.
func invoices(v *vendor) {
	for i := range 5 {
		v.add(map[string]any{"id": i, "amount": 100 * i})
	}
	v.HandleFunc("GET /invoices", func(w http.ResponseWriter, _ *http.Request) { v.reply(w, http.StatusOK, v.rows) })
}

// canonicalRows are rows as SQLite gives them back.
func canonicalRows(t *testing.T, rows []any) []any {
	t.Helper()
	all := make([]any, len(rows))
	for i, row := range rows {
		var err error
		all[i], err = expression.Canonical(row)
		require.NoError(t, err)
	}
	return all
}

// sortedRows are rows in the order of a column.
func sortedRows(rows []any, column string) []any {
	return slices.SortedFunc(slices.Values(rows), func(a, b any) int {
		return cmp.Compare(fmt.Sprint(a.(map[string]any)[column]), fmt.Sprint(b.(map[string]any)[column]))
	})
}
