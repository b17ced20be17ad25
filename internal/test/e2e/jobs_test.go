package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Jobs that people have, each against an API that behaves like the real one, only
// smaller and faster. What a run gives is compared with what the API has served.

// job is the playbook of a job.
func job(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "jobs", name+".yaml"))
	require.NoError(t, err)
	return string(text)
}

// jobAPI is a handler that is asked one request at a time.
func jobAPI(t *testing.T, handle func(w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func answerJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// sortedTexts are the elements of a result that is a list of texts, in order.
func sortedTexts(t *testing.T, value any) []string {
	t.Helper()
	list, ok := value.([]any)
	require.True(t, ok, "%v", value)
	all := make([]string, len(list))
	for i, each := range list {
		all[i] = fmt.Sprint(each)
	}
	slices.Sort(all)
	return all
}

// graphQL is an API whose errors come in a 200: of some requests the first fails, one
// repository is gone, and behind so many points all are refused until the window ends.
type graphQL struct {
	points  int
	window  time.Duration
	until   time.Time
	left    int
	asked   map[string]int
	served  []string
	all     int
	refused int
}

type graphQLRequest struct {
	Variables struct {
		Repository string
		First      int
		After      *string
	}
}

func (g *graphQL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.all++
	now := time.Now()
	if now.After(g.until) {
		g.left, g.until = g.points, now.Add(g.window)
	}
	if g.left--; g.left < 0 {
		g.refused++
		answerJSON(w, http.StatusOK, map[string]any{
			"data":       nil,
			"errors":     []any{map[string]any{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}},
			"extensions": map[string]any{"reset_in": g.until.Sub(now).Seconds()},
		})
		return
	}
	var request graphQLRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		answerJSON(w, http.StatusBadRequest, map[string]any{"message": err.Error()})
		return
	}
	of, after := request.Variables.Repository, 0
	if request.Variables.After != nil {
		after, _ = strconv.Atoi(*request.Variables.After)
	}
	key := fmt.Sprintf("%s/%d", of, after)
	if g.asked[key]++; g.asked[key] == 1 && (of == "r3" || of == "" && after == 4) {
		answerJSON(w, http.StatusOK, map[string]any{"errors": []any{map[string]any{"type": "INTERNAL", "message": "something went wrong"}}})
		return
	}
	if of == "r5" {
		answerJSON(w, http.StatusOK, map[string]any{
			"data": nil, "errors": []any{map[string]any{"type": "NOT_FOUND", "message": "there is no repository r5"}},
		})
		return
	}
	field, name, count := "repositories", "name", 12
	if of != "" {
		number, _ := strconv.Atoi(of[1:])
		field, name, count = "issues", "id", number%5
	}
	nodes := []any{}
	for i := after; i < min(count, after+request.Variables.First); i++ {
		id := fmt.Sprintf("r%d", i)
		if of != "" {
			id = fmt.Sprintf("%s-i%d", of, i)
			g.served = append(g.served, id)
		}
		nodes = append(nodes, map[string]any{name: id})
	}
	end := after + request.Variables.First
	answerJSON(w, http.StatusOK, map[string]any{"data": map[string]any{field: map[string]any{
		"nodes": nodes, "pageInfo": map[string]any{"hasNextPage": end < count, "endCursor": strconv.Itoa(end)},
	}}})
}

// TestJobGraphQL pages through repositories and the issues of each, where errors and
// refusals come in a 200. One that is refused holds the others back.
func TestJobGraphQL(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	api := &graphQL{points: 14, window: 1500 * time.Millisecond, asked: map[string]int{}}
	result, err := w.run(job(t, "graphql_nested"), map[string]any{"api": jobAPI(t, api.ServeHTTP)})
	require.NoError(t, err)
	require.EqualValues(t, "partial_success", result.Status, "%+v", result.Error)
	data, ok := result.Result.Data.(map[string]any)
	require.True(t, ok)
	slices.Sort(api.served)
	require.Equal(t, slices.Compact(slices.Clone(api.served)), sortedTexts(t, data["rows"]), "no more and no less than was served")
	require.Equal(t, []any{"NOT_FOUND"}, data["errors"])
	require.Equal(t, map[string]any{"total": 12, "success": 11, "failed": 1, "truncated": 0, "cancelled": 0}, data["stats"])
	require.Positive(t, api.refused)
	t.Logf("%d requests, %d refused", api.all, api.refused)
	require.LessOrEqual(t, api.refused, 12, "those on their way when the first was refused, in two windows")
}

// TestJobStripe reads events from the newest back, while new ones come and requests meet
// locks and limits.
func TestJobStripe(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	const before = 23
	newest, asked := before, 0
	var served []string
	handle := func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch asked {
		case 2:
			answerJSON(w, http.StatusConflict, map[string]any{"error": map[string]any{"code": "lock_timeout"}})
			return
		case 4:
			answerJSON(w, http.StatusTooManyRequests, map[string]any{"error": map[string]any{"code": "rate_limit"}})
			return
		}
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from := newest
		if after := r.URL.Query().Get("starting_after"); after != "" {
			number, _ := strconv.Atoi(after[len("evt_"):])
			from = number - 1
		}
		newest++ // an event comes between any two reads
		data := []any{}
		for i := from; i > max(from-limit, 0); i-- {
			served = append(served, fmt.Sprintf("evt_%03d", i))
			data = append(data, map[string]any{"id": fmt.Sprintf("evt_%03d", i), "type": "charge.succeeded"})
		}
		answerJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data, "has_more": from-limit > 0})
	}
	result, err := w.run(job(t, "stripe_events"), map[string]any{"api": jobAPI(t, handle)})
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	slices.Sort(served)
	require.Len(t, served, before)
	require.Equal(t, served, sortedTexts(t, result.Result.Data))
}

// TestJobHubSpot searches for more contacts than one search gives.
func TestJobHubSpot(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	const contacts, most = 95, 30
	refused := 0
	var served []string
	handle := func(w http.ResponseWriter, r *http.Request) {
		var search struct {
			FilterGroups []struct {
				Filters []struct{ PropertyName, Operator, Value string }
			}
			Limit int
			After *string
		}
		if err := json.NewDecoder(r.Body).Decode(&search); err != nil || len(search.FilterGroups) != 1 || search.Limit == 0 {
			answerJSON(w, http.StatusBadRequest, map[string]any{"message": fmt.Sprint(err)})
			return
		}
		above, _ := strconv.Atoi(search.FilterGroups[0].Filters[0].Value)
		offset := 0
		if search.After != nil {
			offset, _ = strconv.Atoi(*search.After)
		}
		if offset >= most {
			refused++
			answerJSON(w, http.StatusBadRequest, map[string]any{"message": "the search gives no more than so many results"})
			return
		}
		results := []any{}
		first := above + offset + 1
		for id := first; id < first+search.Limit && id <= contacts; id++ {
			served = append(served, fmt.Sprintf("%d", id))
			results = append(results, map[string]any{"id": fmt.Sprintf("%d", id)})
		}
		answer := map[string]any{"total": contacts - above, "results": results}
		if next := offset + search.Limit; above+next < contacts {
			answer["paging"] = map[string]any{"next": map[string]any{"after": strconv.Itoa(next)}}
		}
		answerJSON(w, http.StatusOK, answer)
	}
	result, err := w.run(job(t, "hubspot_search"), map[string]any{"api": jobAPI(t, handle), "most": most, "limit": 10})
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Zero(t, refused)
	slices.Sort(served)
	require.Len(t, served, contacts)
	require.Equal(t, served, sortedTexts(t, result.Result.Data))
}

// TestJobShopify reads orders of four kinds side by side from an API with a leaky bucket.
func TestJobShopify(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	const size, leaks = 6.0, 20.0 // of the bucket, and a second
	level, last, refused := 0.0, time.Now(), 0
	var served []string
	handle := func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		level, last = max(0, level-now.Sub(last).Seconds()*leaks), now
		if level+1 > size {
			refused++
			w.Header().Set("Retry-After", "0.2")
			answerJSON(w, http.StatusTooManyRequests, map[string]any{"errors": "Exceeded 2 calls per second for api client."})
			return
		}
		level++
		query := r.URL.Query()
		page, _ := strconv.Atoi(query.Get("page_info"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		status := query.Get("status")
		const all = 16
		orders := []any{}
		for i := page * limit; i < min(all, (page+1)*limit); i++ {
			id := fmt.Sprintf("%s-%d", status, i)
			served = append(served, id)
			orders = append(orders, map[string]any{"id": id})
		}
		if (page+1)*limit < all {
			query.Set("page_info", strconv.Itoa(page+1))
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?%s>; rel="next"`, r.Host, r.URL.Path, query.Encode()))
		}
		w.Header().Set("X-Shopify-Shop-Api-Call-Limit", fmt.Sprintf("%.0f/%.0f", level, size))
		answerJSON(w, http.StatusOK, map[string]any{"orders": orders})
	}
	result, err := w.run(job(t, "shopify_orders"), map[string]any{"api": jobAPI(t, handle)})
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	data, ok := result.Result.Data.(map[string]any)
	require.True(t, ok)
	slices.Sort(served)
	require.Len(t, served, 64)
	require.Equal(t, served, sortedTexts(t, data["rows"]))
	require.LessOrEqual(t, refused, 4)
}
