package demoapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMemoryOfTheServer passes maxScenarios, maxIssued, maxMovingLog and maxOthers: what came first is forgotten first.
func TestMemoryOfTheServer(t *testing.T) {
	t.Parallel()
	all := &scenarios{limit: maxScenarios, byKey: map[string]*scenario{}}
	first := all.getScenario("0")
	for i := range maxScenarios {
		all.getScenario(fmt.Sprint(i + 1))
	}
	require.Len(t, all.byKey, maxScenarios)
	require.NotSame(t, first, all.getScenario("0"))

	var tokens tokenUses
	old := tokens.addToken(-1)
	require.True(t, tokens.useToken(old))
	for range maxIssued {
		tokens.addToken(-1)
	}
	require.False(t, tokens.useToken(old))

	c := newMoving("orders", movingSetup{rows: 1})
	for range maxMovingLog + 1 {
		c.readRows(MovingAnswer{Limit: 1})
	}
	require.Len(t, c.answers, maxMovingLog)
	require.Equal(t, 2, c.answers[0].N)

	s := first
	for i := range maxOthers + 2 {
		s.storeWrite("key", fmt.Append(nil, i))
	}
	stored, _, _ := s.storeWrite("key", []byte("0"))
	require.Len(t, stored.Others, maxOthers)
}

// TestRequestsBeyondTheServer passes maxMovingRows, maxCollections and maxSales.
func TestRequestsBeyondTheServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(New(Options{}))
	t.Cleanup(server.Close)
	status := func(method, path string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusBadRequest, status(http.MethodGet, fmt.Sprintf("/api/v1/moving/a?rows=%d", maxMovingRows+1)))
	full := &scenario{moving: map[string]*moving{}}
	for i := range maxCollections {
		full.moving[fmt.Sprint(i)] = nil
	}
	require.Nil(t, full.movingCollection("one more", movingSetup{rows: 1}))
	recorder, request := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "/", nil)
	request.SetPathValue("id", fmt.Sprint(maxSales+1))
	_, ok := saleID(recorder, request)
	require.False(t, ok)
	require.Equal(t, http.StatusBadRequest, recorder.Code)
}
