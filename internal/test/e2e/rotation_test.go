package e2e_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/internal/base/connect"
	"reprise/internal/base/connection"
	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// How often TestSecretsRotate changes each secret, and how many runs use them meanwhile: make rotations.
var (
	rotations    = flag.Int("rotations", 1, "how often each secret changes in TestSecretsRotate")
	rotationRuns = flag.Int("rotation.runs", 24, "runs that use the secrets meanwhile")
)

// callingRuns are at most how many of the runs call all the time, so that each of them uses each secret. The others wait between their calls.
const (
	callingRuns  = 240
	waitingPause = "60" // seconds
)

// secretKinds are connections with a secret, and whether a request was made with one.
var secretKinds = map[string]struct {
	settings string
	has      func(r *http.Request, secret string) bool
}{
	"bearer": {`"bearer": %s, "headers": {"X-Worker": %q}`, func(r *http.Request, secret string) bool { return bearerOf(r) == secret }},
	"basic": {`"basic": {"user": "ana", "password": %s}, "headers": {"X-Worker": %q}`, func(r *http.Request, secret string) bool {
		_, password, _ := r.BasicAuth()
		return password == secret
	}},
	"query":  {`"query": {"api_key": %s}, "headers": {"X-Worker": %q}`, func(r *http.Request, secret string) bool { return r.URL.Query().Get("api_key") == secret }},
	"header": {`"headers": {"X-Key": %s, "X-Worker": %q}`, func(r *http.Request, secret string) bool { return r.Header.Get("X-Key") == secret }},
	"jwt":    {`"jwt": {"issuer": "ana", "secret": %s}, "headers": {"X-Worker": %q}`, hasSignedToken},
	"aws": {
		`"aws": {"service": "execute-api", "region": "eu-central-1", "access_key_id": "ID", "secret_access_key": %s}, "headers": {"X-Worker": %q}`,
		hasSignature,
	},
	sessionKind: {
		`"session": {"login": {"url": "/login", "method": "POST", "body": {"password": %s}}, "token": "{{ response.token }}", "send": {"header": "Authorization", "value": "Bearer {{ token }}"}}, "headers": {"X-Worker": %q}`,
		func(r *http.Request, secret string) bool { return bearerOf(r) == tokenPrefix+secret },
	},
}

// sessionKind is a connection that gets a token for its secret, at /login.
const (
	sessionKind = "session"
	tokenPrefix = "token of "
)

func bearerOf(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// hasSignedToken reports whether the request has a JWT that was signed with the secret.
func hasSignedToken(r *http.Request, secret string) bool {
	_, err := jwt.Parse(bearerOf(r), func(*jwt.Token) (any, error) { return []byte(secret), nil }, jwt.WithValidMethods([]string{"HS256"}))
	return err == nil
}

// hasSignature reports whether the request has a signature of AWS that was made with the secret.
func hasSignature(r *http.Request, secret string) bool {
	given := r.Header.Get("Authorization")
	_, signed, _ := strings.Cut(given, "SignedHeaders=")
	signed, _, _ = strings.Cut(signed, ",")
	again := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: http.Header{}}
	for _, name := range strings.Split(signed, ";") {
		if name != "host" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	digest := sha256.Sum256(nil)
	key := aws.Credentials{AccessKeyID: "ID", SecretAccessKey: secret}
	err = v4.NewSigner().SignHTTP(r.Context(), key, again, hex.EncodeToString(digest[:]), "execute-api", "eu-central-1", at)
	return err == nil && again.Header.Get("Authorization") == given
}

// postgresKind is a database whose role gets new passwords.
const postgresKind = "postgres"

// secretSources are where the secret of a kind is. Files are read again as soon as they change, the others after a refusal.
var secretSources = map[string]string{
	"file":  `{"from": "file", "path": "%s"}`,
	"vault": `{"from": "vault", "path": "kv/data/%s", "field": "secret"}`,
	"aws":   `{"from": "aws", "name": "%s", "field": "secret"}`,
}

// rotating is a world whose secrets change while runs use them.
type rotating struct {
	t      *testing.T
	api    *httptest.Server
	folder string // of the secrets
	db     *testenv.Database
	role   string

	mu      sync.Mutex
	stored  map[string]string    // what Vault and AWS have, by kind
	secret  map[string]string    // what is accepted
	next    map[string]string    // accepted too, while secrets change
	served  map[string]int       // accepted requests by the number of the run, since the last rotation
	refused map[string]int       // requests with an old secret, by connection
	learned map[string]time.Time // when Vault or AWS told a worker the newest secret, by kind, source and worker
	vain    []string             // requests with an old secret that began after that
	knowing int                  // accepted requests that began after that
	over    bool                 // runs may end
}

func newRotating(t *testing.T) *rotating {
	t.Helper()
	r := &rotating{t: t, folder: t.TempDir(), db: testenv.Postgres(t), role: "ana_" + strings.ToLower(rand.Text()[:10]), secret: map[string]string{}, refused: map[string]int{}}
	r.db.Exec(t, "CREATE ROLE "+r.role+" LOGIN; CREATE TABLE rounds (round int, over boolean); INSERT INTO rounds VALUES (0, false);"+
		"CREATE TABLE served (run int, round int); GRANT SELECT, INSERT ON rounds, served TO "+r.role)
	t.Cleanup(func() { r.db.Exec(t, "DROP OWNED BY "+r.role+"; DROP ROLE "+r.role) })
	r.api = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.api.Close)
	r.rotate(0)
	return r
}

// serve accepts requests with the secret of their kind, /KIND-SOURCE?run=…. It is Vault and AWS Secrets Manager, too.
func (r *rotating) serve(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch kind, isVault := strings.CutPrefix(q.URL.Path, "/v1/kv/data/"); {
	case isVault:
		_ = json.NewEncoder(w).Encode(map[string]any{"lease_id": "", "data": map[string]any{
			"data": r.tell(kind+"-vault"+q.Header.Get("X-Vault-Token"), kind), "metadata": map[string]any{"version": 1},
		}})
	case q.Header.Get("X-Amz-Target") != "":
		r.serveSecret(w, q)
	case q.URL.Path == "/login":
		r.logIn(w, q)
	default:
		r.serveRun(w, q)
	}
}

// tell returns the secret of a kind, and records that somebody knows it.
func (r *rotating) tell(whom, kind string) map[string]string {
	if r.learned[whom].IsZero() {
		r.learned[whom] = time.Now()
	}
	return map[string]string{"secret": r.stored[kind]}
}

// serveSecret responds as AWS Secrets Manager. A worker is known by the ID of its key.
func (r *rotating) serveSecret(w http.ResponseWriter, q *http.Request) {
	var request struct {
		SecretID string `json:"SecretId"`
	}
	_ = json.NewDecoder(q.Body).Decode(&request)
	_, worker, _ := strings.Cut(q.Header.Get("Authorization"), "Credential=")
	worker, _, _ = strings.Cut(worker, "/")
	text, _ := json.Marshal(r.tell(request.SecretID+"-aws"+worker, request.SecretID))
	_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": string(text)})
}

// logIn responds with a token for the password of a session, which is good for as long as the password is.
func (r *rotating) logIn(w http.ResponseWriter, q *http.Request) {
	var request struct {
		Password string `json:"password"`
	}
	_ = json.NewDecoder(q.Body).Decode(&request)
	if request.Password != r.secret[sessionKind] && request.Password != r.next[sessionKind] {
		r.refused["login"]++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"token": tokenPrefix + request.Password})
}

func (r *rotating) serveRun(w http.ResponseWriter, q *http.Request) {
	name := strings.TrimPrefix(q.URL.Path, "/")
	kind, source, _ := strings.Cut(name, "-")
	if source == "file" {
		source = "vault" // the file changed before Vault had the secret
	}
	began, err := time.Parse(time.RFC3339Nano, q.URL.Query().Get("began"))
	learned := r.learned[kind+"-"+source+q.Header.Get("X-Worker")]
	knows := err != nil || !learned.IsZero() && began.After(learned)
	if has := secretKinds[kind].has; !has(q, r.secret[kind]) && !has(q, r.next[kind]) {
		r.refused[name]++
		if knows {
			r.vain = append(r.vain, fmt.Sprintf("%s, began %s, the worker knew at %s: %v", q.URL, began, learned, err))
		}
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if knows {
		r.knowing++
	}
	r.served[q.URL.Query().Get("run")]++
	_ = json.NewEncoder(w).Encode(map[string]any{"more": !r.over, "at": time.Now()})
}

// rotate stores new secrets, which the API accepts already, and then has the API and the database accept no others. A database
// has one password at a time. Sessions that wait for a statement end.
func (r *rotating) rotate(round int) {
	r.t.Helper()
	password := "s-" + rand.Text()
	fresh := map[string]string{postgresKind: password}
	for kind := range secretKinds {
		fresh[kind] = "s-" + rand.Text()
	}
	r.mu.Lock()
	r.stored, r.next, r.learned = fresh, fresh, map[string]time.Time{}
	r.mu.Unlock()
	for kind, secret := range fresh {
		r.write(kind, secret)
	}
	r.mu.Lock()
	r.secret, r.served = fresh, map[string]int{}
	r.mu.Unlock()
	r.db.Exec(r.t, fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'; UPDATE rounds SET round = %d;"+
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '%s' AND state = 'idle'", r.role, password, round, r.role))
}

func (r *rotating) write(name, secret string) {
	r.t.Helper()
	path := filepath.Join(r.folder, name)
	require.NoError(r.t, os.WriteFile(path+".new", []byte(secret), 0o600))
	require.NoError(r.t, os.Rename(path+".new", path))
}

// connections are those of a worker, which tells the API and Vault who it is.
func (r *rotating) connections(worker string) activities.Connections {
	all := activities.Connections{}
	address, err := url.Parse(r.db.URL)
	require.NoError(r.t, err)
	address.User = url.User(r.role)
	for source, text := range secretSources {
		for kind, of := range secretKinds {
			all[kind+"-"+source] = fmt.Sprintf(`{`+of.settings+`, "host": %q}`, fmt.Sprintf(text, kind), worker, r.api.URL)
		}
		all[postgresKind+"-"+source] = fmt.Sprintf(`{"url": %q, "password": %s}`, address, fmt.Sprintf(text, postgresKind))
	}
	return all
}

// The runs call until their secrets have changed often enough. PAUSE is the time between two calls.
const rotatingBook = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: rotating}
workload: {connection: "", number: 0}
workflow:
  - step: call
    tool: http
    auth: "{{ workload.connection }}"
    url: "/{{ workload.connection }}"
    params: {run: "{{ workload.number }}", began: "{{ now() }}"}
    retry: [{when: response.more, then: {max_attempts: 100000, delay: PAUSE, next_call: {params: {began: "{{ now() }}"}}}}]
`

const rotatingDatabaseBook = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: rotating_database}
workload: {connection: "", number: 0}
workflow:
  - step: call
    tool: postgres
    auth: "{{ workload.connection }}"
    statement: "INSERT INTO served SELECT {{ workload.number }}, round FROM rounds RETURNING (SELECT NOT over FROM rounds) AS more"
    retry:
      - {when: error.class == 'retryable' or error.type == '28P01', then: {max_attempts: 100, delay: 0.1}}
      - {when: "{{ response[0].more }}", then: {max_attempts: 100000, delay: PAUSE}}
`

// everybodyCalled reports whether each of the runs has made requests since the last rotation.
func (r *rotating) everybodyCalled(connections []string, round int) bool {
	r.mu.Lock()
	served := maps.Clone(r.served)
	r.mu.Unlock()
	databases := 0
	for number, name := range connections {
		if strings.HasPrefix(name, postgresKind) {
			databases++
		} else if served[strconv.Itoa(number)] < 3 { // the third began when its worker knew the secret
			return false
		}
	}
	return databases == 0 || int(r.db.Query(r.t, "SELECT count(DISTINCT run) AS n FROM served WHERE round = $1 AND run < $2", round, len(connections))[0]["n"].(int64)) == databases
}

// TestSecretsRotate: while runs call APIs and a database, their secrets change again and again. No run fails, and a worker
// sends no old secret once it knows the new one: what is refused is one request for each worker and change, and those that are on
// their way with it.
func TestSecretsRotate(t *testing.T) {
	t.Parallel()
	const workers = 2
	r, env := newRotating(t), testenv.Temporal(t)
	queue := env.NewTaskQueue()
	for n := range workers {
		worker := fmt.Sprintf("worker-%d", n)
		testworker.Start(t, testworker.Options{
			Address: env.Address, Namespace: env.Namespace, TaskQueue: queue, Directory: t.TempDir(), Connections: r.connections(worker),
			Env: []string{
				connection.DirectoryVariable + "=" + r.folder, "VAULT_ADDR=" + r.api.URL, "VAULT_TOKEN=" + worker,
				"AWS_ENDPOINT_URL=" + r.api.URL, "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=" + worker, "AWS_SECRET_ACCESS_KEY=key",
			},
		})
	}
	calling := min(*rotationRuns, callingRuns)
	pause := fmt.Sprint(max(0.2, float64(calling)/100)) // seconds between two requests of a run
	all := slices.Sorted(maps.Keys(r.connections("")))
	var connections []string // by the number of the run
	ends := make(chan protocol.Result, *rotationRuns)
	for number := range *rotationRuns {
		name, book := all[number%len(all)], rotatingBook
		if strings.HasPrefix(name, postgresKind) {
			book = rotatingDatabaseBook
		}
		if number == calling {
			pause = waitingPause
		}
		workload, err := expression.Canonical(map[string]any{"connection": name, "number": number})
		require.NoError(t, err)
		run, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, protocol.PlaybookWorkflowName,
			protocol.Input{Name: "rotating.yaml", Source: strings.ReplaceAll(book, "PAUSE", pause), Workload: expression.Of(workload)})
		require.NoError(t, err)
		connections = append(connections, name)
		go func() {
			result, err := ending.WaitForResult(t.Context(), run)
			for connect.IsUnreachable(err) && t.Context().Err() == nil { // a busy machine
				result, err = ending.WaitForResult(t.Context(), run)
			}
			if t.Context().Err() == nil {
				assert.NoError(t, err)
			}
			ends <- result
		}()
	}
	for round := range *rotations + 1 {
		if round > 0 {
			r.rotate(round)
		}
		require.Eventually(t, func() bool { return len(ends) > 0 || r.everybodyCalled(connections[:calling], round) }, patience, 20*time.Millisecond)
	}
	select {
	case early := <-ends:
		t.Fatalf("a run has ended as %s: %+v", early.Status, early.Error)
	default:
	}
	r.mu.Lock()
	r.over = true
	refused, vain, knowing := r.refused, r.vain, r.knowing
	r.mu.Unlock()
	r.db.Exec(t, "UPDATE rounds SET over = true")
	for range connections {
		result := testenv.Receive(t, ends, "the end of a run")
		require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
	}
	t.Logf("%d rotations, %d workers, %d runs: refused requests %v; %d began with a new secret known", *rotations, workers, len(connections), refused, knowing)
	require.NotZero(t, knowing)
	require.Empty(t, vain, "a worker that knows a new secret sends no old one")
}
