package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/childproc"
	"reprise/internal/base/seal"
	"reprise/internal/base/secrets"
	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/interpreter/login"
	"reprise/workflows/protocol"
)

// leakyAPI is an API that repeats every credential it is sent. It is a token endpoint, Vault and AWS Secrets Manager, too.
type leakyAPI struct {
	*httptest.Server

	stored map[string]string // secrets by name, as Vault and AWS have them
	mu     sync.Mutex
	issued []string        // tokens
	sent   map[string]bool // secrets that requests had
	spans  [][]byte
}

func newLeakyAPI(t *testing.T) *leakyAPI {
	t.Helper()
	api := &leakyAPI{stored: map[string]string{}, sent: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/call/{mode}", func(w http.ResponseWriter, r *http.Request) { api.leak(w, r.PathValue("mode"), api.credentials(r)) })
	mux.HandleFunc("/login/{mode}", api.logIn)
	mux.HandleFunc("/token/{mode}", api.exchange)
	mux.HandleFunc("/v1/kv/data/{name}", api.readVault)
	mux.HandleFunc("/v1/traces", api.takeSpans)
	mux.HandleFunc("/", api.readAWS)
	api.Server = httptest.NewServer(mux)
	t.Cleanup(api.Close)
	return api
}

// issue makes a token, which is a secret as well.
func (api *leakyAPI) issue() string {
	api.mu.Lock()
	defer api.mu.Unlock()
	token := newCanary(1000 + len(api.issued))
	api.issued = append(api.issued, token)
	return token
}

// note records that requests had secrets.
func (api *leakyAPI) note(all ...string) {
	api.mu.Lock()
	defer api.mu.Unlock()
	for _, one := range all {
		api.sent[one] = true
	}
}

// credentials returns those of a request.
func (api *leakyAPI) credentials(r *http.Request) []string {
	all := []string{r.Header.Get("X-Key"), r.Header.Get("X-Account"), r.URL.Query().Get("api_key"), strings.TrimPrefix(r.Header.Get("Cookie"), "sid=")}
	if _, password, ok := r.BasicAuth(); ok {
		all = append(all, password)
	} else {
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		all = append(all, token)
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	api.note(all...)
	return all
}

// leak responds with credentials, in a way that mode names.
func (api *leakyAPI) leak(w http.ResponseWriter, mode string, all []string) {
	var text strings.Builder
	for _, one := range all {
		for _, spell := range canarySpellings {
			text.WriteString("sent " + spell(one) + "\n")
		}
	}
	switch mode {
	case "text":
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusUnauthorized)
	case "json":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": text.String(), "sent": all})
		return
	case "headers":
		for i, one := range all {
			w.Header().Set(fmt.Sprintf("X-Sent-%d", i), one)
		}
		w.WriteHeader(http.StatusInternalServerError)
	case "redirect":
		w.Header().Set("Location", "http://127.0.0.1:1/"+url.PathEscape(strings.Join(all, "/")))
		w.WriteHeader(http.StatusFound)
		return
	case "invalid":
		w.Header().Set("Content-Type", "application/json")
	default: // the request succeeds, and its result has them
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"sent": all, "text": text.String()})
		return
	}
	_, _ = io.WriteString(w, text.String())
}

// logIn is the login of sessions. It refuses the login in a mode other than "ok".
func (api *leakyAPI) logIn(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Password string `json:"password"`
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	api.note(request.Password)
	if mode := r.PathValue("mode"); mode != "ok" {
		api.leak(w, mode, []string{request.Password})
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"token": api.issue()})
}

// exchange is the token endpoint. It refuses the exchange in a mode other than "ok".
func (api *leakyAPI) exchange(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	all := []string{}
	for _, key := range []string{"client_secret", "refresh_token", "assertion"} {
		if value := r.PostForm.Get(key); value != "" {
			all = append(all, value)
		}
	}
	if _, password, ok := r.BasicAuth(); ok {
		password, _ = url.QueryUnescape(password)
		all = append(all, password)
	}
	api.note(all...)
	w.Header().Set("Content-Type", "application/json")
	if r.PathValue("mode") != "ok" {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_client", "error_description": strings.Join(all, " ")})
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": api.issue(), "refresh_token": api.issue(), "token_type": "Bearer", "expires_in": 3600,
	})
}

// readVault responds as Vault. Of a secret that it does not have, the error repeats the token of the request.
func (api *leakyAPI) readVault(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get("X-Vault-Token")
	api.note(token)
	value, found := api.stored[r.PathValue("name")]
	if !found {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []string{"the token " + token + " may not read this"}})
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"data": map[string]string{"secret": value}, "metadata": map[string]any{"version": 1}}})
}

// readAWS responds as AWS Secrets Manager.
func (api *leakyAPI) readAWS(w http.ResponseWriter, r *http.Request) {
	var request struct {
		SecretID string `json:"SecretId"`
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	text, _ := json.Marshal(map[string]string{"secret": api.stored[request.SecretID]})
	_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": string(text)})
}

func (api *leakyAPI) takeSpans(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	api.mu.Lock()
	defer api.mu.Unlock()
	api.spans = append(api.spans, body)
}

// newCanary returns a secret that is found wherever it is.
func newCanary(n int) string {
	return fmt.Sprintf("Cn%04dQx%s", n, base64.RawURLEncoding.EncodeToString([]byte{byte(n * 37), byte(n*91 + 5), 0x9f, byte(n), 0x3c, 7, byte(n >> 3), 0xe1}))
}

// canarySpellings are ways in which others write a secret.
var canarySpellings = map[string]func(string) string{
	"plain":  func(s string) string { return s },
	"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"hex":    func(s string) string { return hex.EncodeToString([]byte(s)) },
	"basic":  func(s string) string { return base64.StdEncoding.EncodeToString([]byte("ana:" + s)) },
	"upper":  strings.ToUpper,
}

// canaryKinds are connections with a secret, SECRET, to an API. A kind that logs in does so in a mode, MODE.
var canaryKinds = map[string]string{
	"bearer":  `{"bearer": SECRET, "host": "API"}`,
	"basic":   `{"basic": {"user": "ana", "password": SECRET}, "host": "API"}`,
	"query":   `{"query": {"api_key": SECRET}, "host": "API"}`,
	"headers": `{"headers": {"X-Key": SECRET, "X-Account": "ana"}, "host": "API"}`,
	"jwt":     `{"jwt": {"issuer": "ana", "secret": SECRET}, "host": "API"}`,
	"aws":     `{"aws": {"service": "execute-api", "region": "eu-central-1", "access_key_id": "ID", "secret_access_key": SECRET}, "host": "API"}`,
	"session": `{"session": {"login": {"url": "/login/MODE", "method": "POST", "body": {"password": SECRET}}, "token": "{{ response.token }}", ` +
		`"send": {"header": "Authorization", "value": "Bearer {{ token }}"}}, "host": "API"}`,
	"client":  `{"oauth2": {"token_url": "API/token/MODE", "client_id": "reprise", "client_secret": SECRET}, "host": "API"}`,
	"refresh": `{"oauth2": {"grant": "refresh_token", "token_url": "API/token/MODE", "client_id": "reprise", "client_secret": "known", "refresh_token": SECRET}, "host": "API"}`,
}

// canarySources are where the secret of a connection is, which has the NAME of the connection.
var canarySources = map[string]string{
	"file":  `{"from": "file", "path": "NAME"}`,
	"env":   `{"from": "env", "name": "NAME"}`,
	"vault": `{"from": "vault", "path": "kv/data/NAME", "field": "secret"}`,
	"aws":   `{"from": "aws", "name": "NAME", "field": "secret"}`,
}

// canaryModes are the ways in which calls end.
var canaryModes = []string{"text", "json", "headers", "redirect", "invalid", "ok"}

// canaryBook calls an API with each connection in each way, and a database whose password is wrong.
const canaryBook = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: canaries}
workload: {calls: [], databases: []}
workflow:
  - step: call
    tool: http
    auth: "{{ call.auth }}"
    url: "{{ call.url }}"
    timeout: 60s
    loop:
      in: "{{ workload.calls }}"
      iterator: call
      mode: parallel
      batch: 30
      sink: {tool: file, path: rows.jsonl, args: {row: "{{ result }}"}}
      dead_letter: {sink: {tool: file, path: letters.jsonl, args: {why: "{{ error }}"}}}
    next: [{when: "{{ error is defined }}", step: query}]
  - step: query
    tool: postgres
    auth: "{{ name }}"
    statement: SELECT 1
    loop: {in: "{{ workload.databases }}", iterator: name, mode: parallel}
output: "{{ [call.stats, query.stats] }}"
`

// canaryWorld is a worker with secrets in all stores.
type canaryWorld struct {
	*testing.T

	env           *testenv.Env
	api           *leakyAPI
	queue, folder string
	variables     []string          // of the worker
	canaries      map[string]string // secrets by connection, or by what they are
	logins        []string          // workflows of refresh tokens

	connections      map[string]json.RawMessage
	calls, databases []any // what the playbook is to try
}

func newCanaryWorld(t *testing.T) *canaryWorld {
	t.Helper()
	w := &canaryWorld{T: t, env: testenv.Temporal(t), api: newLeakyAPI(t), folder: t.TempDir()}
	w.queue = w.env.NewTaskQueue()
	for _, name := range []string{"files", "secrets", "spool"} {
		require.NoError(t, os.Mkdir(filepath.Join(w.folder, name), 0o700))
	}
	vaultToken, awsKey, sealing := newCanary(1), newCanary(2), seal.NewKey()
	w.canaries = map[string]string{"the token of Vault": vaultToken, "the key of AWS": awsKey, "the key that encrypts": sealing}
	w.variables = []string{
		workerVariable + "=1", seal.Variable + "=" + sealing, "VAULT_ADDR=" + w.api.URL, "VAULT_TOKEN=" + vaultToken, "AWS_ENDPOINT_URL=" + w.api.URL,
		"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=ID", "AWS_SECRET_ACCESS_KEY=" + awsKey, "OTEL_EXPORTER_OTLP_ENDPOINT=" + w.api.URL,
	}
	w.connections = map[string]json.RawMessage{"broken": json.RawMessage(fmt.Sprintf(`{"bearer": {"from": "vault", "path": "kv/data/nothing"}, "host": %q}`, w.api.URL))}
	w.calls = []any{map[string]any{"auth": "broken", "url": "/call/text"}}
	database, err := url.Parse(testenv.Postgres(t).URL)
	require.NoError(t, err)
	database.User = url.User("nobody")
	for source := range canarySources {
		for kind, settings := range canaryKinds {
			w.connect(kind, source, settings)
		}
		w.connect(canaryDatabase, source, fmt.Sprintf(`{"url": %q, "password": SECRET}`, database))
	}
	return w
}

// canaryDatabase is the kind of a connection with a password that its database refuses.
const canaryDatabase = "database"

// connect adds a connection whose secret is in a store. Half of those that log in are refused.
func (w *canaryWorld) connect(kind, source, settings string) {
	w.Helper()
	name := strings.ReplaceAll(w.queue, "-", "_") + "_" + kind + "_" + source
	canary := newCanary(10 + len(w.canaries))
	w.canaries[name], w.api.stored[name] = canary, canary
	require.NoError(w, os.WriteFile(filepath.Join(w.folder, "secrets", name), []byte(canary), 0o600))
	w.variables = append(w.variables, name+"="+canary)
	mode := "text"
	if source == "file" || source == "vault" {
		mode = "ok"
	}
	secret := strings.ReplaceAll(canarySources[source], "NAME", name)
	w.connections[name] = json.RawMessage(strings.NewReplacer("SECRET", secret, "API", w.api.URL, "MODE", mode).Replace(settings))
	switch kind {
	case canaryDatabase:
		w.databases = append(w.databases, name)
		return
	case "refresh":
		w.logins = append(w.logins, login.WorkflowID(name))
	}
	for _, mode := range canaryModes {
		w.calls = append(w.calls, map[string]any{"auth": name, "url": "/call/" + mode})
	}
}

// startWorker starts the worker with all its outputs, and returns where its metrics are.
func (w *canaryWorld) startWorker() (process *childproc.Process, metrics string) {
	w.Helper()
	text, err := json.Marshal(w.connections)
	require.NoError(w, err)
	require.NoError(w, os.WriteFile(filepath.Join(w.folder, "connections.yaml"), text, 0o600))
	require.NoError(w, os.WriteFile(filepath.Join(w.folder, "egress.yaml"), []byte("private: allow\n"), 0o600))
	command := exec.Command(os.Args[0], "--address", w.env.Address, "--namespace", w.env.Namespace, "--task-queue", w.queue, "--log-level", "debug", "--log-format", "json",
		"--metrics-address", "127.0.0.1:0", "--log-file", "worker.jsonl", "--connections", "connections.yaml", "--egress", "egress.yaml", "--secrets-directory", "secrets",
		"--token-spool", "spool", "--audit-log", "audit.jsonl", "--directory", "files", "--payload-store", "file://"+filepath.Join(w.folder, "payloads")+"?create_dir=true")
	command.Dir, command.Env = w.folder, append(os.Environ(), w.variables...)
	process, err = childproc.Start(command)
	require.NoError(w, err)
	w.Cleanup(process.Kill)
	var said struct{ Metrics string }
	require.Eventually(w, func() bool {
		for line := range strings.Lines(process.Output.String()) {
			if strings.Contains(line, `"metrics"`) && json.Unmarshal([]byte(line), &said) == nil {
				return true
			}
		}
		return false
	}, testenv.Within(time.Minute), 20*time.Millisecond, "%s", process.Output)
	return process, said.Metrics
}

// TestNoStoredSecretIsLeft: secrets of each kind of connection come from each store, are refused, repeated and exchanged for tokens, which
// are repeated too. A worker with all its outputs leaves none of them anywhere.
func TestNoStoredSecretIsLeft(t *testing.T) {
	t.Parallel()
	w := newCanaryWorld(t)
	process, metrics := w.startWorker()
	workload, err := expression.Canonical(map[string]any{"calls": w.calls, "databases": w.databases})
	require.NoError(t, err)
	run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: w.queue, TaskQueue: w.queue}, protocol.PlaybookWorkflowName,
		protocol.Input{Name: "canaries.yaml", Source: canaryBook, Workload: expression.Of(workload)})
	require.NoError(t, err)
	result, err := ending.WaitForResult(t.Context(), run)
	require.NoError(t, err)
	require.EqualValues(t, "failed", result.Status)

	encoded, err := json.Marshal(result)
	require.NoError(t, err)
	found := map[string][]byte{"result": encoded, "metrics": body(t, metrics)}
	for _, id := range append(w.logins, w.queue) {
		for _, history := range testenv.Histories(t, w.env.Client(), id, "") {
			data, err := proto.Marshal(history.History)
			require.NoError(t, err)
			found["histories"] = append(found["histories"], data...)
		}
	}
	process.Stop(os.Interrupt, testenv.Within(time.Minute))
	found["log"] = []byte(process.Output.String())
	w.api.mu.Lock()
	found["traces"] = bytes.Join(w.api.spans, nil)
	for i, token := range w.api.issued {
		w.canaries[fmt.Sprint("token ", i)] = token
	}
	w.api.mu.Unlock()
	readFolder(t, w.folder, found)
	searchCanaries(t, w.canaries, found)
	require.GreaterOrEqual(t, len(w.canaries), 60)
	for name := range w.connections {
		sends := !strings.Contains(name, "_jwt_") && !strings.Contains(name, "_aws_") && !strings.Contains(name, canaryDatabase) // the others send a signature
		if sends && name != "broken" {
			require.True(t, w.api.sent[w.canaries[name]], "%s was never sent", name)
		}
	}
}

// readFolder adds what a worker has written to files.
func readFolder(t *testing.T, folder string, found map[string][]byte) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(folder, path)
		if err != nil || entry.IsDir() || name == "connections.yaml" || strings.HasPrefix(name, "secrets"+string(filepath.Separator)) {
			return err
		}
		text, err := os.ReadFile(path)
		place, _, _ := strings.Cut(name, string(filepath.Separator))
		found[place] = append(found[place], text...)
		return err
	}))
}

// searchCanaries fails if a secret is in what was found, by place, in any spelling, or if nothing was masked where secrets were told.
func searchCanaries(t *testing.T, canaries map[string]string, found map[string][]byte) {
	t.Helper()
	for _, place := range []string{"metrics", "traces", "log", "worker.jsonl", "audit.jsonl", "histories", "files"} {
		require.NotEmpty(t, found[place], "nothing was found in: %s", place)
	}
	for _, place := range []string{"log", "histories", "files", "result"} {
		require.Contains(t, string(found[place]), secrets.Stars, "nothing was masked in: %s", place)
	}
	for place, text := range found {
		for name, canary := range canaries {
			for how, spell := range canarySpellings {
				at := bytes.Index(text, []byte(spell(canary)))
				require.Negative(t, at, "%s, %s, is in %s: …%q…", name, how, place, text[max(0, at-80):min(len(text), max(0, at)+80)])
			}
		}
	}
}

// body is the body of the response to a GET.
func body(t *testing.T, url string) []byte {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return text
}
