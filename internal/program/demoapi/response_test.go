package demoapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
)

func TestJobsBecomeDoneAtTheNthRequest(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	created := send(t, "POST", base+"/api/v1/jobs", "")
	require.Equal(t, 202, created.status)
	require.Equal(t, "job-1", created.at("id"))
	require.Equal(t, "/api/v1/jobs/job-1", created.header.Get("Location"))
	require.Equal(t, "job-2", send(t, "POST", base+"/api/v1/jobs", "").at("id"))

	job := base + "/api/v1/jobs/job-1?ready_after=3"
	require.Equal(t, map[string]any{"id": "job-1", "status": "pending", "polls": 1.0}, get(t, job).json)
	require.Equal(t, "pending", get(t, job).at("status"))
	done := map[string]any{"id": "job-1", "status": "done", "polls": 3.0, "result": map[string]any{"rows": 35.0}}
	require.Equal(t, done, get(t, job).json)
	require.Equal(t, "pending", get(t, job, "X-Scenario: other").at("status"))

	failed := get(t, base+"/api/v1/jobs/x?outcome=failed")
	require.Equal(t, "failed", failed.at("status"))
	require.Equal(t, "the job failed, as requested", failed.at("error"))
}

func TestStatus(t *testing.T) {
	t.Parallel()
	clock := newClock()
	base := start(t, demoapi.Options{Now: clock.now}).URL()
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		require.Equal(t, 418, send(t, method, base+"/status/418", "").status, method)
	}
	require.Equal(t, map[string]any{"status": 201.0}, get(t, base+"/status/201").json)
	require.Equal(t, "not_found", get(t, base+"/status/404").at("error", "code"))
	require.Equal(t, "status_599", get(t, base+"/status/599").at("error", "code"))
	require.Empty(t, get(t, base+"/status/204").text)
	require.Equal(t, "soon", get(t, base+"/status/429?retry_after=soon").header.Get("Retry-After"))
	require.Equal(t, "Fri, 02 Jan 2026 03:04:07 GMT", get(t, base+"/status/503?retry_after_date=2").header.Get("Retry-After"))
}

func TestFlaky(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	flaky := base + "/flaky?times=2&status=502&retry_after=4"
	first := get(t, flaky)
	require.Equal(t, 502, first.status)
	require.Equal(t, "4", first.header.Get("Retry-After"))
	require.Equal(t, 502, get(t, flaky).status)
	require.Equal(t, 502, get(t, flaky+"&key=another").status)
	require.Equal(t, map[string]any{"ok": true, "attempts": 3.0}, get(t, flaky).json)
}

func TestSlow(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	begin := time.Now()
	require.Equal(t, 30.0, get(t, base+"/slow?ms=30").at("slept_ms"))
	require.GreaterOrEqual(t, time.Since(begin), 30*time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", base+"/slow?ms=60000", nil)
	require.NoError(t, err)
	_, err = http.DefaultClient.Do(request)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestEcho passes maxBody.
func TestEcho(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	a := send(t, "PUT", base+"/echo?a=1&a=2&b=", `{"x":[1]}`, "Content-Type: application/json", "X-Token: t")
	require.Equal(t, "PUT", a.at("method"))
	require.Equal(t, "/echo", a.at("path"))
	require.Equal(t, map[string]any{"a": []any{"1", "2"}, "b": []any{""}}, a.at("query"))
	require.Equal(t, "t", a.at("headers", "X-Token"))
	require.Equal(t, `{"x":[1]}`, a.at("body"))
	require.Equal(t, map[string]any{"x": []any{1.0}}, a.at("json"))
	require.Nil(t, a.at("form"))

	form := send(t, "POST", base+"/echo", "k=v+w&k=x", "Content-Type: application/x-www-form-urlencoded; charset=utf-8")
	require.Equal(t, map[string]any{"k": []any{"v w", "x"}}, form.at("form"))
	require.Nil(t, send(t, "POST", base+"/echo", "plain").at("json"))
	require.Equal(t, 413, send(t, "POST", base+"/echo", strings.Repeat("x", 1<<20+1)).status)
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	a := get(t, base+"/redirect?to=/echo%3Fa=1&status=307")
	require.Equal(t, 307, a.status)
	require.Equal(t, "/echo?a=1", a.header.Get("Location"))
	require.Equal(t, 302, get(t, base+"/redirect").status)
	response, err := http.Get(base + "/redirect?to=/redirect%3Fto=/echo")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, "/echo", response.Request.URL.Path)
}

func TestAuth(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	base := api.URL()
	require.Equal(t, 200, get(t, base+"/auth/bearer?token=t1", "Authorization: Bearer t1").status)
	wrong := get(t, base+"/auth/bearer?token=t1", "Authorization: Bearer t2")
	require.Equal(t, 401, wrong.status)
	require.Equal(t, `Bearer realm="demo"`, wrong.header.Get("WWW-Authenticate"))
	require.Equal(t, 401, get(t, base+"/auth/bearer", "Authorization: Bearer ").status)

	basic := base + "/auth/basic?user=u&password=p"
	require.Equal(t, "u", get(t, basic, "Authorization: Basic dTpw").at("user"))
	require.Equal(t, 401, get(t, basic).status)
	require.Equal(t, 401, get(t, basic, "Authorization: Basic dTpx").status)
	client := "Authorization: Basic ZGVtbzpkZW1vLXNlY3JldA=="
	const form = "Content-Type: application/x-www-form-urlencoded"
	fetched := send(t, "POST", base+"/auth/token?uses=2", "grant_type=client_credentials", form, client)
	token, _ := fetched.at("access_token").(string)
	require.NotEmpty(t, token)
	for _, status := range []int{200, 200, 401} {
		require.Equal(t, status, get(t, base+"/auth/oauth2", "Authorization: Bearer "+token).status)
	}
	require.Equal(t, 200, send(t, "POST", base+"/auth/token", "grant_type=client_credentials&client_id=demo&client_secret=demo-secret", form).status)
	refused := send(t, "POST", base+"/auth/token", "grant_type=client_credentials&client_id=demo&client_secret=x", form)
	require.Equal(t, 401, refused.status)
	require.Equal(t, "invalid_client", refused.at("error"))
	require.Equal(t, 400, get(t, base+"/auth/token", client).status)

	for _, request := range api.Requests("") {
		require.NotContains(t, request.Headers["Authorization"], " ", "the log keeps the scheme alone")
	}
}
