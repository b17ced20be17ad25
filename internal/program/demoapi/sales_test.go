package demoapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
)

// TestSalesFromATimeOn: the time itself is part of the range, several sales have one, and a sale
// that is changed comes again.
func TestSalesFromATimeOn(t *testing.T) {
	t.Parallel()
	list := start(t, demoapi.Options{}).URL() + "/api/v1/sales"
	require.Equal(t, numbers(1, 12), get(t, list+"?limit=20").ids("sales"))
	page := get(t, list+"?limit=10")
	require.Equal(t, numbers(1, 10), page.ids("sales"))
	require.Equal(t, true, page.at("has_more"))
	page = get(t, list+"?limit=10&offset=10")
	require.Equal(t, numbers(11, 12), page.ids("sales"))
	require.Equal(t, false, page.at("has_more"))
	require.Equal(t, numbers(10, 12), get(t, list+"?updated_since=2026-01-01T00:03:00Z").ids("sales"))
	require.Equal(t, numbers(10, 12), get(t, list+"?updated_since=2026-01-01T01:03:00%2B01:00").ids("sales"))
	require.Equal(t, []any{}, get(t, list+"?updated_since=2026-01-01T00:04:00Z").at("sales"))
	changed := send(t, http.MethodPut, list+"/5", "")
	require.Equal(t, map[string]any{"id": 5.0, "version": 2.0, "updated_at": "2026-01-01T00:04:00Z"}, changed.json)
	send(t, http.MethodPut, list+"/13", "")
	require.Equal(t, []any{5.0, 13.0}, get(t, list+"?updated_since=2026-01-01T00:04:00Z").ids("sales"))
	require.Equal(t, 400, get(t, list+"?updated_since=today").status)
	require.Equal(t, 400, send(t, http.MethodPut, list+"/none", "").status)
	require.Equal(t, 200, send(t, http.MethodDelete, list+"/13", "").status)
	require.Equal(t, []any{5.0}, get(t, list+"?updated_since=2026-01-01T00:04:00Z").ids("sales"))
	require.Equal(t, 404, send(t, http.MethodDelete, list+"/13", "").status)
	require.Equal(t, numbers(1, 12), get(t, list+"?limit=20", "X-Scenario: other").ids("sales"))
}
