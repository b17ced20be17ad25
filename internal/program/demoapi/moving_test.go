package demoapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
	"reprise/interpreter/lists"
)

// TestMovingByHand: without a seed a collection changes by PUT and DELETE alone.
func TestMovingByHand(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	list := api.URL() + "/api/v1/moving/list"
	first := get(t, list)
	require.Equal(t, numbers(1, 3), first.ids("rows"))
	require.Equal(t, map[string]any{"collection": "list", "id": 1.0, "version": 1.0}, first.at("rows").([]any)[0])
	require.Equal(t, []any{true, 3.0, 3.0}, []any{first.at("more"), first.at("next"), first.at("next_offset")})
	require.Equal(t, numbers(4, 6), get(t, list+"?after=3").ids("rows"))

	require.Equal(t, 204, send(t, "DELETE", list+"/5", "").status)
	require.Equal(t, 404, send(t, "DELETE", list+"/5", "").status)
	require.Equal(t, 400, send(t, "PUT", list+"/five", "").status)
	require.Equal(t, 400, get(t, list+"?limit=0").status)
	require.Equal(t, []any{4.0, 6.0, 7.0}, get(t, list+"?after=3", "X-Attempt: k:1").ids("rows"))
	require.Equal(t, []any{4.0, 6.0}, get(t, list+"?offset=3&limit=2").ids("rows"))
	require.Equal(t, 204, send(t, "PUT", list+"/6", "").status)
	require.Equal(t, 204, send(t, "PUT", list+"/13", "").status)
	last := get(t, list+"?after=11", "Idempotency-Key: k")
	require.Equal(t, []any{12.0, 13.0}, last.ids("rows"))
	require.Equal(t, []any{false, nil, nil}, []any{last.at("more"), last.at("next"), last.at("next_offset")})
	require.Equal(t, []any{}, get(t, list+"?after=13").at("rows"))

	answers := api.MovingAnswers("", "list")
	require.Len(t, answers, 6)
	require.Equal(t, []string{"5 deleted"}, answers[2].Changes)
	require.Equal(t, []string{"6 updated", "13 inserted"}, answers[4].Changes)
	require.Equal(t, []string{"k:1", "k"}, []string{answers[2].Key, answers[4].Key})
	require.Equal(t, []demoapi.MovingRow{{"list", 12, 12}, {"list", 13, 15}}, answers[4].Rows)
	require.Equal(t, []any{11, -1, 3, true}, []any{answers[4].After, answers[4].Offset, answers[4].Limit, answers[4].Sent})
	require.Equal(t, 6.0, get(t, api.URL()+"/moving/list").at("total"))
	require.Equal(t, 0.0, get(t, api.URL()+"/moving/other").at("total"))
	require.Equal(t, numbers(4, 6), get(t, list+"?after=3&scenario=other").ids("rows"))
	api.Reset("default")
	require.Equal(t, numbers(4, 6), get(t, list+"?after=3").ids("rows"))
}

// TestMovingBetweenReads: rows are inserted, updated and deleted between any two
// reads, the same ones from the same seed, and the log has every version.
func TestMovingBetweenReads(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	other := 0
	for seed := 1; seed <= 20; seed++ {
		api := start(t, demoapi.Options{})
		list := fmt.Sprintf("%s/api/v1/moving/list?seed=%d", api.URL(), seed)
		read := func(scenario string) []demoapi.MovingAnswer {
			for _, query := range []string{"", "&after=30", "&after=30", "&after=60", "&offset=3", "&after=200"} {
				require.Equal(t, 200, get(t, list+query+"&scenario="+scenario).status)
			}
			return api.MovingAnswers(scenario, "list")
		}
		answers := read("one")
		again := read("two")
		for i, answer := range answers {
			require.Equal(t, answer.Rows, again[i].Rows)
			require.Equal(t, i > 0, len(answer.Changes) == 3)
			require.True(t, slices.IsSortedFunc(answer.Rows, func(a, b demoapi.MovingRow) int { return a.ID - b.ID }))
			for _, change := range answer.Changes {
				kinds[change[strings.Index(change, " ")+1:]]++
			}
		}
		if !slices.Equal(answers[1].Rows, answers[2].Rows) {
			other++
		}
	}
	require.Len(t, kinds, 3, "%v", kinds)
	require.Greater(t, other, 10, "a page that is read again is another, mostly")
}

// TestMovingEnds: pages end, whatever is inserted, and rows never run out.
func TestMovingEnds(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	for seed := 1; seed <= 20; seed++ {
		for _, style := range [][2]string{{"after", "next"}, {"offset", "next_offset"}} {
			list := fmt.Sprintf("%s/api/v1/moving/%d-%s?seed=%d&rows=5&limit=2", api.URL(), seed, style[0], seed)
			page := get(t, list)
			for reads := 1; page.at("more") == true; reads++ {
				require.Less(t, reads, 40)
				page = get(t, fmt.Sprintf("%s&%s=%v", list, style[0], page.at(style[1])))
			}
			require.NotEmpty(t, get(t, list).at("rows"))
		}
	}
}

func TestMovingFails(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	list := api.URL() + "/api/v1/moving/list?fail_pages=2&fail_from=6"
	require.Equal(t, 200, get(t, list).status)
	require.Equal(t, 503, get(t, list+"&after=3").status, "the second read")
	require.Equal(t, 200, get(t, list+"&after=3").status)
	require.Equal(t, 404, get(t, list+"&after=6&fail_status=404").status)
	require.Equal(t, 404, get(t, list+"&after=7&fail_status=404").status)
	statuses := func() []int {
		return lists.Map(api.MovingAnswers("", "list"), func(answer demoapi.MovingAnswer) int { return answer.Status })
	}
	// The server notes an answer after it is sent, so its reader may be here first.
	require.Eventually(t, func() bool { return slices.Equal([]int{200, 503, 200, 404, 404}, statuses()) },
		testenv.Within(10*time.Second), time.Millisecond, "%v", statuses())
	require.Empty(t, api.MovingAnswers("", "list")[3].Rows)
}

// TestHold: requests wait before they are carried out, or for their answer, and
// one whose client has gone is not answered.
func TestHold(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	held := func(h *demoapi.Barrier, n int) {
		require.Eventually(t, func() bool { return h.HeldRequests() == n }, testenv.Within(10*time.Second), 5*time.Millisecond)
	}
	reads := api.HoldRequests(func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/v1/moving/") })
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		request, _ := http.NewRequestWithContext(ctx, "GET", api.URL()+"/api/v1/moving/list", nil)
		_, err := http.DefaultClient.Do(request)
		gone <- err
	}()
	held(reads, 1)
	cancel()
	require.ErrorIs(t, testenv.Receive(t, gone, "the end of the request"), context.Canceled)
	rest := make(chan int, 1)
	go func() {
		response, err := http.Get(api.URL() + "/api/v1/moving/list")
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			rest <- response.StatusCode
		}
	}()
	held(reads, 2)
	require.Empty(t, api.MovingAnswers("", "list"))
	reads.Release()
	reads.Release()
	require.Equal(t, 200, testenv.Receive(t, rest, "the answer to the read"))
	require.Len(t, api.MovingAnswers("", "list"), 1)

	writes := api.HoldAnswer(func(r *http.Request) bool { return r.Method == http.MethodPost })
	go func() {
		request, _ := http.NewRequest("POST", api.URL()+"/api/v1/writes", strings.NewReader("1"))
		request.Header.Set("Idempotency-Key", "k")
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			rest <- response.StatusCode
		}
	}()
	held(writes, 1)
	require.Len(t, api.Writes(""), 1, "it is written, and nobody knows")
	require.Empty(t, rest)
	writes.Release()
	require.Equal(t, 201, testenv.Receive(t, rest, "the answer to the write"))
}
