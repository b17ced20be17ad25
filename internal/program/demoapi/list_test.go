package demoapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
)

func TestPageNumbersReachEveryItem(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	var all []any
	for page := 1; page <= 4; page++ {
		a := get(t, fmt.Sprintf("%s/api/v1/assessments?page=%d&pageSize=10", base, page))
		require.Equal(t, 200, a.status)
		require.Equal(t, "application/json", a.header.Get("Content-Type"))
		require.Equal(t, map[string]any{
			"hasMore": page < 4, "page": float64(page), "pageSize": 10.0, "total": 35.0, "totalPages": 4.0,
		}, a.at("paging"))
		all = append(all, a.ids("data")...)
	}
	require.Equal(t, numbers(1, 35), all)

	first := get(t, base+"/api/v1/assessments")
	require.Equal(t, map[string]any{"id": 1.0, "patient_id": "p01", "score": 7.0}, first.at("data").([]any)[0])
	past := get(t, base+"/api/v1/assessments?page=5")
	require.Equal(t, []any{}, past.at("data"))
	require.Equal(t, false, past.at("paging", "hasMore"))
}

func TestOffsetsReachEveryItem(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	var all []any
	for offset, more := 0, true; more; offset += 10 {
		a := get(t, fmt.Sprintf("%s/api/v1/users?offset=%d&limit=10", base, offset))
		require.Equal(t, []any{float64(offset), 10.0, 35.0}, []any{a.at("offset"), a.at("limit"), a.at("total")})
		all = append(all, a.ids("data")...)
		more = a.at("has_more").(bool)
	}
	require.Equal(t, numbers(1, 35), all)
}

func TestCursorsReachEveryItem(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	var all []any
	requests := 0
	for cursor := any(""); cursor != nil; requests++ {
		a := get(t, base+"/api/v1/events?limit=10&cursor="+url.QueryEscape(cursor.(string)))
		require.Equal(t, 200, a.status)
		all = append(all, a.ids("events")...)
		cursor = a.at("next_cursor")
	}
	require.Equal(t, numbers(1, 35), all)
	require.Equal(t, 4, requests)
	for _, bad := range []string{"10", "YWZ0ZXI6LTE=", "YWZ0ZXI6OTk5"} {
		require.Equal(t, 400, get(t, base+"/api/v1/events?cursor="+bad).status, bad)
	}
}

func TestNextLinksReachEveryItem(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	var all []any
	next := any("/api/v1/orders")
	var seen []any
	for next != nil {
		a := get(t, base+next.(string))
		all = append(all, a.ids("data")...)
		next = a.at("links", "next")
		seen = append(seen, next)
		header := strings.Join(a.header.Values("Link"), ", ")
		if next == nil {
			require.NotContains(t, header, `rel="next"`)
		} else {
			require.Contains(t, header, fmt.Sprintf(`<%s>; rel="next"`, next))
		}
	}
	require.Equal(t, numbers(1, 35), all)
	require.Equal(t, []any{"/api/v1/orders?page=2", "/api/v1/orders?page=3", "/api/v1/orders?page=4", nil}, seen)

	answered := get(t, base+"/api/v1/orders?pageSize=30&fail_pages=2&scenario=s")
	require.Equal(t, "/api/v1/orders?fail_pages=2&page=2&pageSize=30&scenario=s", answered.at("links", "next"))
	require.Equal(t, 503, get(t, base+answered.at("links", "next").(string)).status)
}

func TestChosenPagesFail(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	for _, tt := range []struct {
		name, path string
		headers    []string
		statuses   []int
	}{
		{name: "once by default", path: "/api/v1/assessments?page=2&fail_pages=2", statuses: []int{503, 200, 200}},
		{name: "another page", path: "/api/v1/assessments?page=1&fail_pages=2,3", statuses: []int{200}},
		{name: "several pages", path: "/api/v1/assessments?page=3&fail_pages=2,3", statuses: []int{503, 200}},
		{name: "twice", path: "/api/v1/assessments?page=2&fail_pages=2&fail_times=2&fail_status=500", statuses: []int{500, 500, 200}},
		{name: "for ever", path: "/api/v1/assessments?page=2&fail_pages=2&fail_times=0", statuses: []int{503, 503, 503, 503}},
		{name: "offset", path: "/api/v1/users?offset=10&fail_pages=2", statuses: []int{503, 200}},
		{name: "cursor", path: "/api/v1/events?cursor=YWZ0ZXI6MTA%3D&fail_pages=2", statuses: []int{503, 200}},
		{name: "list without pages", path: "/api/v1/patients?fail_pages=1", statuses: []int{503, 200}},
		{name: "medications", path: "/api/v1/patients/p04/medications?page=2&fail_pages=2", statuses: []int{503, 200}},
		{
			name: "headers", path: "/api/v1/orders?page=2", statuses: []int{502, 502, 200},
			headers: []string{"X-Fail-Pages: 2", "X-Fail-Times: 2", "X-Fail-Status: 502"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			headers := append([]string{"X-Scenario: " + tt.name}, tt.headers...)
			for i, status := range tt.statuses {
				require.Equal(t, status, get(t, base+tt.path, headers...).status, "request %d", i+1)
			}
		})
	}
}

func TestFailuresAreCountedPerScenarioUntilReset(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	page := api.URL() + "/api/v1/assessments?page=2&fail_pages=2&fail_retry_after=3&scenario="
	failed := get(t, page+"a")
	require.Equal(t, 503, failed.status)
	require.Equal(t, "3", failed.header.Get("Retry-After"))
	require.Equal(t, map[string]any{
		"status": 503.0, "code": "service_unavailable", "message": "page 2 fails, as requested (request 1)",
	}, failed.at("error"))
	require.Equal(t, 503, get(t, page+"b").status)
	require.Equal(t, 200, get(t, page+"a").status)
	require.Equal(t, 200, get(t, page+"ignored", "X-Scenario: a").status, "the header wins over the query")

	require.Equal(t, 204, send(t, "POST", api.URL()+"/reset?scenario=a", "").status)
	require.Equal(t, 503, get(t, page+"a").status)
	require.Equal(t, 200, get(t, page+"b").status, "the other scenario is untouched")

	require.Equal(t, 204, send(t, "POST", api.URL()+"/reset", "").status)
	require.Equal(t, 503, get(t, page+"a").status)
	require.Equal(t, 503, get(t, page+"b").status)
}

// TestParametersAreChecked passes maxPageSize.
func TestParametersAreChecked(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	for path, message := range map[string]string{
		"/api/v1/assessments?page=0":             `parameter "page" is "0", expected a whole number from 1 to 2147483647`,
		"/api/v1/assessments?pageSize=101":       `parameter "pageSize" is "101", expected a whole number from 1 to 100`,
		"/api/v1/users?offset=ten":               `parameter "offset" is "ten", expected a whole number from 0 to 2147483647`,
		"/api/v1/events?cursor=x":                `cursor "x" does not belong to this list`,
		"/api/v1/orders?fail_pages=1,b":          `parameter "fail_pages" is "b", expected a whole number from 1 to 2147483647`,
		"/api/v1/limited?rate_limit=0":           `parameter "rate_limit" is "0", expected a whole number from 1 to 1000000`,
		"/api/v1/jobs/j?ready_after=0":           `parameter "ready_after" is "0", expected a whole number from 1 to 1000000`,
		"/status/99":                             `status "99", expected a number from 200 to 599`,
		"/body?bytes=1":                          `parameter "bytes" is "1", expected a whole number from 2 to 1073741824`,
		"/api/v1/patients/p01/medications?page=": "",
	} {
		a := get(t, base+path)
		if message == "" {
			require.Equal(t, 200, a.status, path)
			continue
		}
		require.Equal(t, 400, a.status, path)
		require.Equal(t, message, a.at("error", "message"), path)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	clock := newClock()
	base := start(t, demoapi.Options{Now: clock.now}).URL()
	limited := base + "/api/v1/limited?rate_limit=2&scenario=a"
	require.Equal(t, 200, get(t, limited).status)
	clock.advance(400 * time.Millisecond)
	require.Equal(t, 2.0, get(t, limited).at("n"))
	refused := get(t, limited)
	require.Equal(t, 429, refused.status)
	require.Equal(t, "1", refused.header.Get("Retry-After"))
	require.Equal(t, 200, get(t, base+"/api/v1/limited?rate_limit=2&scenario=b").status, "per scenario")
	require.Equal(t, 200, get(t, base+"/api/v1/users?rate_limit=2&scenario=a").status, "per path")

	clock.advance(600 * time.Millisecond) // the first request is one second old
	require.Equal(t, 3.0, get(t, limited).at("n"))
	require.Equal(t, 429, get(t, limited).status)

	for range 5 {
		require.Equal(t, 200, get(t, base+"/api/v1/limited").status)
	}
	require.Equal(t, 429, get(t, base+"/api/v1/limited").status, "5 per second by default")
}

func TestItemsOption(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{Items: 3}).URL()
	a := get(t, base+"/api/v1/users?limit=3")
	require.Equal(t, numbers(1, 3), a.ids("data"))
	require.Equal(t, false, a.at("has_more"))
}
