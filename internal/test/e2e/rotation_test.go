package e2e_test

import (
	"crypto/rand"
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
	rotationRuns = flag.Int("rotation.runs", 10, "runs that use the secrets meanwhile")
)

// secretKinds are connections with a secret in a file, and how an API finds it in a request.
var secretKinds = map[string]struct {
	settings string
	given    func(*http.Request) string
}{
	"bearer": {`"bearer": %s, "headers": {"X-Worker": %q}`, func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") }},
	"basic":  {`"basic": {"user": "ana", "password": %s}, "headers": {"X-Worker": %q}`, func(r *http.Request) string { _, p, _ := r.BasicAuth(); return p }},
	"query":  {`"query": {"api_key": %s}, "headers": {"X-Worker": %q}`, func(r *http.Request) string { return r.URL.Query().Get("api_key") }},
	"header": {`"headers": {"X-Key": %s, "X-Worker": %q}`, func(r *http.Request) string { return r.Header.Get("X-Key") }},
}

// postgresKind is a database whose role gets new passwords.
const postgresKind = "postgres"

// secretSources are where the secret of a kind is. Files are read again as soon as they change, Vault after a refusal.
var secretSources = map[string]string{
	"file":  `{"from": "file", "path": "%s"}`,
	"vault": `{"from": "vault", "path": "kv/data/%s", "field": "secret"}`,
}

// rotating is a world whose secrets change while runs use them.
type rotating struct {
	t      *testing.T
	api    *httptest.Server
	folder string // of the secrets
	db     *testenv.Database
	role   string

	mu      sync.Mutex
	stored  map[string]string    // what Vault has, by kind
	secret  map[string]string    // what is accepted
	next    map[string]string    // accepted too, while secrets change
	served  map[string]int       // accepted requests by the number of the run, since the last rotation
	refused map[string]int       // requests with an old secret, by connection
	learned map[string]time.Time // when Vault told a worker the newest secret, by kind and worker
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

// serve accepts requests with the secret of their kind, /KIND-SOURCE?run=…. It is Vault, too.
func (r *rotating) serve(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if kind, isVault := strings.CutPrefix(q.URL.Path, "/v1/kv/data/"); isVault {
		if told := kind + q.Header.Get("X-Vault-Token"); r.learned[told].IsZero() {
			r.learned[told] = time.Now()
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"lease_id": "", "data": map[string]any{
			"data": map[string]any{"secret": r.stored[kind]}, "metadata": map[string]any{"version": 1},
		}})
		return
	}
	name := strings.TrimPrefix(q.URL.Path, "/")
	kind, _, _ := strings.Cut(name, "-")
	began, err := time.Parse(time.RFC3339Nano, q.URL.Query().Get("began"))
	learned := r.learned[kind+q.Header.Get("X-Worker")]
	knows := err != nil || !learned.IsZero() && began.After(learned)
	if given := secretKinds[kind].given(q); given != r.secret[kind] && given != r.next[kind] {
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

// everybodyCalled reports whether each run has made requests since the last rotation.
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
	return databases == 0 || int(r.db.Query(r.t, "SELECT count(DISTINCT run) AS n FROM served WHERE round = $1", round)[0]["n"].(int64)) == databases
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
			Env: []string{connection.DirectoryVariable + "=" + r.folder, "VAULT_ADDR=" + r.api.URL, "VAULT_TOKEN=" + worker},
		})
	}
	pause := fmt.Sprint(max(0.2, float64(*rotationRuns)/100)) // seconds between two requests of a run
	all := slices.Sorted(maps.Keys(r.connections("")))
	var connections []string // by the number of the run
	ends := make(chan protocol.Result, *rotationRuns)
	for number := range *rotationRuns {
		name, book := all[number%len(all)], rotatingBook
		if strings.HasPrefix(name, postgresKind) {
			book = rotatingDatabaseBook
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
		require.Eventually(t, func() bool { return len(ends) > 0 || r.everybodyCalled(connections, round) }, patience, 20*time.Millisecond)
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
