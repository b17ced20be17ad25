package serve_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/serve"
)

// TestTheDocumentIsTheServer: the OpenAPI document is one, has the routes of the server
// and no others, and each of its answers can be had. Every answer of every test is
// checked to be one of them.
func TestTheDocumentIsTheServer(t *testing.T) {
	t.Parallel()
	a := newStaff(t, map[string][]string{"steward": {"*=admin"}}, func(o *serve.Options) {
		begin := o.Start
		o.Start = func(ctx context.Context, order serve.Order) (serve.Begun, error) {
			if order.Workload["fail"] != nil {
				return serve.Begun{}, errors.New("no")
			}
			return begin(ctx, order)
		}
	})
	w := a.world
	require.Equal(t, "3.1.0", w.document.OpenAPI)
	require.NoError(t, w.document.Validate(t.Context()))
	var wanted, routes []string
	for path, item := range w.document.Paths.Map() {
		for method, operation := range item.Operations() {
			routes = append(routes, method+" "+path)
			for status := range operation.Responses.Map() {
				wanted = append(wanted, method+" "+path+" "+status)
			}
		}
	}
	require.ElementsMatch(t, serve.New(w.options).Routes(), routes)
	for path, item := range w.document.Paths.Map() {
		for method, operation := range item.Operations() {
			var parameters []string
			for _, parameter := range operation.Parameters {
				if parameter.Value.In == "query" {
					parameters = append(parameters, parameter.Value.Name)
				}
			}
			require.ElementsMatch(t, serve.New(w.options).QueryOf()[method+" "+path], parameters, path)
		}
	}
	for range 2 {
		w.start("hello/runs", w.ci, `{}`, "Idempotency-Key", "kept")
	}
	var seen []string
	see := func(path string, given reply) {
		seen = append(seen, fmt.Sprintf("%s %d", path, given.status))
	}
	_, completed := a.ask("completed", webhook)
	_, failed := a.ask("failed", webhook)
	_, open := a.ask("open", webhook)
	_, first := a.ask("first", approval)
	_, second := a.ask("second", approval)
	_, _ = a.ask("fourth", approval)
	_, third := a.ask("third", approval) // before an attempt fails, and the next has a token too
	const start, run = "POST /v1/playbooks/{name}/runs", "GET /v1/runs/{id}"
	see("GET /v1/openapi.json", w.ask(http.MethodGet, "/v1/openapi.json", "", nil))
	see("GET /healthz", w.ask(http.MethodGet, "/healthz", "", nil))
	see("GET /v1/openapi.json", w.ask(http.MethodGet, "/v1/openapi.json?x=1", "", nil))
	see("GET /healthz", w.ask(http.MethodGet, "/healthz?x=1", "", nil))
	see(start, w.start("hello/runs", w.ci, `{}`, "Idempotency-Key", "kept"))
	see(start, w.start("hello/runs", w.ci, `{}`))
	see(start, w.start("hello/runs", w.ci, `{`))
	see(start, w.start("hello/runs", "", `{}`))
	see(start, w.start("absent/runs", w.ci, `{}`))
	see(start, w.start("hello/runs", w.ci, strings.Repeat(" ", serve.MaxBody+1)))
	see(start, w.start("hello/runs", w.ci, `{}`, "Content-Encoding", "br"))
	see(start, w.start("hello/runs", w.ci, `{"name": 1}`, "Idempotency-Key", "kept"))
	see(start, w.start("hello/runs", w.ci, `{"fail": 1}`))
	for range 2 { // the second has the body of the first
		const body = `{"event": {"id": "2"}}`
		see(start, w.deliver(body, "X-Shop-Topic", "orders", "X-Shop-Signature", "v1="+base64.StdEncoding.EncodeToString(mac512(secret, body))))
	}
	see(run, w.ask(http.MethodGet, "/v1/runs/hello:ci:kept", w.ci, nil))
	see(run, w.ask(http.MethodGet, "/v1/runs/hello:ci:kept?wait=x", w.ci, nil))
	see(run, w.ask(http.MethodGet, "/v1/runs/hello:ci:kept", "", nil))
	see(run, w.ask(http.MethodGet, "/v1/runs/absent", w.ci, nil))

	answer := func(w *world, verb, token, body string, header ...string) {
		header = append([]string{"Content-Type", "application/json"}, header...)
		see("POST /v1/callbacks/{token}/"+verb, w.ask(http.MethodPost, "/v1/callbacks/"+token+"/"+verb, "", strings.NewReader(body), header...))
	}
	verbs := map[string]string{"complete": `{}`, "fail": `{"message": "x"}`, "progress": `{"done": 1}`}
	for verb, body := range verbs {
		answer(w, verb, open, `{`)
		answer(w, verb, open, strings.Repeat(" ", serve.MaxBody+1))
		answer(w, verb, open, body, "Content-Encoding", "br")
		answer(w, verb, "unknown", body)
	}
	answer(w, "complete", open, `{"option": "approve"}`)
	answer(w, "progress", open, `{"done": 1}`)
	for range 2 {
		answer(w, "complete", completed, `{}`)
		answer(w, "fail", failed, `{"message": "x"}`)
	}
	answer(w, "complete", failed, `{}`)
	answer(w, "fail", completed, `{"message": "x"}`)
	answer(w, "progress", failed, `{"done": 1}`)

	const command, respond = "POST /v1/runs/{id}/{command}", "POST /v1/runs/{id}/answer"
	asked := a.queue + "-first"
	steer := func(w *world, name, body string, header ...string) {
		route := command
		if name == "answer" {
			route = respond
		}
		header = append([]string{"Content-Type", "application/json"}, header...)
		see(route, w.ask(http.MethodPost, "/v1/runs/"+asked+"/"+name, a.tokens["steward"], strings.NewReader(body), header...))
	}
	for _, name := range []string{"pause", "answer"} {
		route := map[string]string{"pause": command, "answer": respond}[name]
		steer(w, name, `{`)
		steer(w, name, strings.Repeat(" ", serve.MaxBody+1))
		steer(w, name, `{}`, "Content-Encoding", "br")
		see(route, w.ask(http.MethodPost, "/v1/runs/absent/"+name, a.tokens["steward"], strings.NewReader(map[string]string{"answer": `{"option": "approve"}`}[name]), "Content-Type", "application/json"))
		see(route, w.ask(http.MethodPost, "/v1/runs/"+asked+"/"+name, "", nil))
	}
	steer(w, "resume", `{}`)
	steer(w, "pause", `{"step": "absent"}`)
	steer(w, "answer", `{"option": "approve", "step": "absent"}`)
	steer(w, "answer", `{"option": "maybe"}`)
	asked = a.queue + "-fourth"
	steer(w, "answer", `{"option": "reject"}`)
	asked = a.queue + "-first"

	const show, post = "GET /v1/approvals/{token}", "POST /v1/approvals/{token}"
	path := "/v1/approvals/" + first
	typed := func(w *world, path, body string, header ...string) {
		header = append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)
		see(post, w.ask(http.MethodPost, path, "", strings.NewReader(body), header...))
	}
	see(show, w.ask(http.MethodGet, path, "", nil))
	see(show, w.ask(http.MethodGet, "/v1/approvals/unknown", "", nil))
	typed(w, "/v1/approvals/unknown", `by=ada&option=approve`)
	typed(w, path, `%zz`)
	typed(w, path, `by=ada&option=approve`, "Origin", "http://evil.example")
	typed(w, path, strings.Repeat(" ", serve.MaxBody+1))
	typed(w, path, `x`, "Content-Encoding", "br")
	typed(w, path, `option=approve`)
	copied := *w
	copied.options.Client = storingClient{w.env.Client()}
	copied.serve()
	typed(&copied, path, `by=bob&option=reject`)
	asked = a.queue + "-second"
	path = "/v1/approvals/" + second
	typed(w, path, `by=ada&option=reject`)
	typed(w, path, `by=bob&option=reject`)

	full := *w
	full.options.Client = fullClient{w.env.Client()}
	full.serve()
	answer(&full, "complete", open, `{}`)
	answer(&full, "fail", open, `{"message": "x"}`)
	typed(&full, "/v1/approvals/"+third, `by=ada&option=reject`)
	asked = a.queue + "-third"
	steer(&full, "answer", `{"option": "reject"}`)

	for _, err := range []error{errAway, errors.New("no")} {
		failing := *w
		failing.options.Client = failingClient{w.env.Client(), err}
		failing.options.Start = func(context.Context, serve.Order) (serve.Begun, error) { return serve.Begun{}, err }
		failing.serve()
		see(start, failing.start("hello/runs", w.ci, `{}`))
		see(run, failing.ask(http.MethodGet, "/v1/runs/hello:ci:kept", w.ci, nil))
		see("GET /healthz", failing.ask(http.MethodGet, "/healthz", "", nil))
		steer(&failing, "pause", `{}`)
		steer(&failing, "answer", `{"option": "reject"}`)
		for verb, body := range verbs {
			answer(&failing, verb, open, body)
		}
		failing.options.Client = brokenClient{w.env.Client(), err}
		failing.serve()
		see(show, failing.ask(http.MethodGet, path, "", nil))
		typed(&failing, path, `by=ada&option=approve`)
	}
	slow := *w
	slow.options.Limits = serve.Limits{Body: tick}
	slow.serve()
	see(respond, w.ask(http.MethodPost, "/v1/runs/"+a.queue+"-completed/answer", a.tokens["steward"], strings.NewReader(`{"option": "reject"}`), "Content-Type", "application/json"))
	for route, path := range map[string]string{
		start: "/v1/playbooks/hello/runs", "POST /v1/callbacks/{token}/complete": "/v1/callbacks/" + open + "/complete",
		"POST /v1/callbacks/{token}/fail":     "/v1/callbacks/" + open + "/fail",
		"POST /v1/callbacks/{token}/progress": "/v1/callbacks/" + open + "/progress",
		post:                                  path,
		command:                               "/v1/runs/" + asked + "/pause",
		respond:                               "/v1/runs/" + asked + "/answer",
	} {
		kind := "application/json"
		if route == post {
			kind = "application/x-www-form-urlencoded"
		}
		authorization := ""
		if route == command || route == respond {
			authorization = "Authorization: Bearer " + a.tokens["steward"] + "\r\n"
		}
		status := slow.raw("POST " + path + " HTTP/1.1\r\nHost: x\r\n" + authorization + "Content-Type: " + kind + "\r\nContent-Length: 9\r\n\r\n").StatusCode
		see(route, reply{status: status})
	}
	slices.Sort(seen)
	require.ElementsMatch(t, wanted, slices.Compact(seen))
}
