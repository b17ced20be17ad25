package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/internal/program/host"
	"reprise/internal/program/serve"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

var patience = testenv.Within(time.Minute)

// Tokens of the callers that every world has, and the secret of its triggers.
const secret = "an-ordinary-secret-of-a-webhook"

// hello is a playbook that ends at once.
const hello = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: hello}
workload: {name: world}
workflow: [{step: start, vars: {greeting: "hello {{ name }}"}}]
output: "{{ vars.greeting }}"
`

// signed is a playbook that GitHub and others start.
const signed = `apiVersion: reprise/v1
kind: Playbook
metadata:
  name: signed
  triggers:
    - {sender: github, secret: hook, events: [push]}
    - {sender: stripe, secret: pay}
    - {sender: slack, secret: chat}
    - {sender: hmac, secret: shop, header: X-Shop-Signature, prefix: "v1=", algorithm: sha512, encoding: base64, body: text, headers: [X-Shop-Topic]}
    - {sender: hmac, secret: bank, header: X-Bank-Signature, id: event.id}
    - {sender: hmac, name: bank, secret: new_bank, header: X-Bank-Signature, id: event.id}
    - {sender: hmac, secret: missing, header: X-Lost-Signature}
    - {sender: hmac, secret: short, header: X-Short-Signature}
workflow: [{step: start}]
output: "{{ trigger }}"
`

// world is a server with a folder of playbooks, callers and a task queue of its own.
type world struct {
	t        *testing.T
	env      *testenv.Env
	queue    string
	folder   string
	callers  string // file of callers
	ci, ops  string // tokens; ops may start hello alone
	options  serve.Options
	url      string
	document *openapi3.T
	router   routers.Router
	log      *testenv.Output
	stop     func() // ends the server
}

func newWorld(t *testing.T, change ...func(*serve.Options)) *world {
	t.Helper()
	env := testenv.Temporal(t)
	w := &world{t: t, env: env, queue: env.NewTaskQueue(), folder: t.TempDir(), log: &testenv.Output{}}
	w.write("hello", hello)
	w.write("signed", signed)
	w.write("broken", "apiVersion: reprise/v1\nkind: Playbook\n")
	ci, first, err := serve.NewToken("ci", nil, serve.RoleNone)
	require.NoError(t, err)
	ops, second, err := serve.NewToken("ops", []string{"hello"}, serve.RoleNone)
	require.NoError(t, err)
	w.ci, w.ops, w.callers = ci, ops, filepath.Join(t.TempDir(), "callers.yaml")
	require.NoError(t, os.WriteFile(w.callers, []byte(first+"\n"+second+"\n"), 0o600))
	callers, err := serve.OpenCallers(w.callers)
	require.NoError(t, err)
	w.options = serve.Options{
		Client: env.Client(), Namespace: env.Namespace, Start: w.begin, Playbooks: w.folder, Callers: callers,
		Secrets: activities.Connections{
			"hook": secret, "pay": secret, "chat": secret, "shop": secret, "bank": secret, "new_bank": secret + "-2", "short": "0123456789",
		},
		Logger: slog.New(slog.NewJSONHandler(w.log, nil)),
	}
	for _, one := range change {
		one(&w.options)
	}
	w.serve()
	w.document, err = openapi3.NewLoader().LoadFromData(w.ask(http.MethodGet, "/v1/openapi.json", "", nil).body)
	require.NoError(t, err)
	w.router, err = gorillamux.NewRouter(w.document)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, hidden := range []string{ci, ops, secret} {
			require.NotContains(t, w.log.String(), hidden)
		}
	})
	return w
}

// serve starts the server, which ends with the test if not before.
func (w *world) serve() {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	w.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- serve.New(w.options).Run(ctx, listener, nil) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, testenv.Receive(w.t, ended, "the end of the server"))
	})
	w.t.Cleanup(w.stop)
}

// begin starts a run, as the command does.
func (w *world) begin(ctx context.Context, order serve.Order) (serve.Begun, error) {
	run, err := w.env.Client().ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: order.WorkflowID, TaskQueue: w.queue, Memo: order.Memo, WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}, protocol.PlaybookWorkflowName,
		protocol.Input{Name: order.File, Source: string(order.Source), Workload: expression.Of(order.Workload)})
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		return serve.Begun{}, &serve.StartedError{WorkflowID: order.WorkflowID}
	}
	if err != nil {
		return serve.Begun{}, err
	}
	return serve.Begun{RunID: run.GetRunID()}, nil
}

// work starts a worker.
func (w *world) work() {
	w.t.Helper()
	catalogue := activities.NewCatalogue(activities.Resources{})
	worker := host.NewWorker(w.env.Client(), catalogue, host.Options{TaskQueue: w.queue, StopTimeout: time.Second})
	require.NoError(w.t, worker.Start())
	w.t.Cleanup(func() {
		worker.Stop()
		require.NoError(w.t, catalogue.Close())
	})
}

func (w *world) write(name, text string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(filepath.Join(w.folder, name+".yaml"), []byte(text), 0o600))
}

// reply is a response that was read.
type reply struct {
	status int
	header http.Header
	body   []byte
	values map[string]any // of the body
}

// ask sends a request with a token, "" for none, and headers in pairs. The answer
// must be one that the OpenAPI document has.
func (w *world) ask(method, path, token string, body io.Reader, header ...string) reply {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, body)
	require.NoError(w.t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Add(header[i], header[i+1])
	}
	response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
	require.NoError(w.t, err)
	return w.read(request, response)
}

// read takes an answer and checks it.
func (w *world) read(request *http.Request, response *http.Response) reply {
	w.t.Helper()
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(w.t, err)
	given := reply{status: response.StatusCode, header: response.Header, body: body}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") && response.StatusCode != http.StatusSeeOther {
		require.NoError(w.t, json.Unmarshal(body, &given.values), string(body))
	}
	require.Equal(w.t, "nosniff", response.Header.Get("X-Content-Type-Options"))
	if w.router == nil {
		return given
	}
	route, parameters, err := w.router.FindRoute(request)
	if err != nil {
		require.Contains(w.t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, given.status)
		return given
	}
	require.NoError(w.t, openapi3filter.ValidateResponse(w.t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, PathParams: parameters, Route: route},
		Status:                 given.status, Header: given.header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}), "%s", body)
	return given
}

// start asks for a run of a playbook with a JSON body.
func (w *world) start(playbook, token, body string, header ...string) reply {
	w.t.Helper()
	return w.ask(http.MethodPost, "/v1/playbooks/"+playbook, token, strings.NewReader(body),
		append([]string{"Content-Type", "application/json"}, header...)...)
}
