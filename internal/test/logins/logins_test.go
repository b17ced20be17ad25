package logins_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"

	"reprise/activities"
	"reprise/internal/base/seal"
	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
	"reprise/interpreter/expression"
	"reprise/interpreter/login"
	"reprise/workflows/protocol"
)

// kills is how often something is killed: make logins. By default each point comes once.
var kills = flag.Int("logins.kills", 0, "kills at points of exchanges, with 4 workers")

// killedAt are the points of TestManyKills.
var killedAt = flag.String("logins.points", strings.Join(exchangePoints, ","), "points at which to kill")

// exchangePoints are the points of an exchange, in their order.
var exchangePoints = []string{"asks", "marks", "marked", "received", "committed", "answered", "reported"}

// stage is a login with its endpoint, its workers and runs that use it.
type stage struct {
	t        *testing.T
	endpoint *endpoint
	env      *testenv.Env
	server   *testenv.Server // nil for the one of all tests
	queue    string
	name     string // of the connection
	options  testworker.Options
	// killsServer has the server be killed too.
	killsServer bool

	mu      sync.Mutex
	workers []*testworker.Process
}

func newStage(t *testing.T, ownServer bool) *stage {
	t.Helper()
	s := &stage{t: t, endpoint: newEndpoint(t)}
	if ownServer {
		s.server = testenv.TemporalServer(t)
		s.env = s.server.Env
	} else {
		s.env = testenv.Temporal(t)
	}
	s.queue = s.env.NewTaskQueue()
	s.name = "shop_" + s.queue[len("test-"):]
	connection, err := json.Marshal(map[string]any{
		"host": s.endpoint.URL,
		"oauth2": map[string]any{
			"grant": "refresh_token", "token_url": s.endpoint.URL + "/token", "client_id": "reprise", "client_secret": canaryPrefix + "secret-of-client",
			"refresh_token": s.endpoint.given,
		},
	})
	require.NoError(t, err)
	s.options = testworker.Options{
		Address: s.env.Address, Namespace: s.env.Namespace, TaskQueue: s.queue, Directory: t.TempDir(), Spool: t.TempDir(),
		Connections: activities.Connections{s.name: string(connection)}, Env: []string{seal.Variable + "=" + seal.NewKey()},
	}
	return s
}

// spawn starts workers that kill themselves at a point, "" for none.
func (s *stage) spawn(n int, point string) {
	s.t.Helper()
	options := s.options
	options.Env = append(slices.Clone(options.Env), pointVariable+"="+point, onceVariable+"="+filepath.Join(s.options.Directory, "killed-"+point))
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.workers = append(s.workers, testworker.Start(s.t, options))
	}
}

// killAll kills all workers.
func (s *stage) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, worker := range s.workers {
		worker.Kill()
	}
	s.workers = nil
}

// book has a timeout that is longer than an attempt waits for a token. With a shorter one, a token may arrive when the time
// of an attempt is almost over: its request is answered, but the attempt is not there any more, and the policy repeats it.
const book = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: orders}
workflow:
  - step: read
    tool: http
    auth: "{{ workload.connection }}"
    url: "/api?element={{ i }}"
    timeout: 150s
    loop: {collection: "{{ 1..workload.n }}", element: i, mode: parallel, max_concurrency: 8}
    retry:
      - when: "{{ error.type != 'login_required' && error.class == 'retryable' }}"
        then: {max_attempts: 100, backoff: fixed, delay: 1s}
output: "{{ read.errors }}"
`

// begin starts a run that makes so many requests.
func (s *stage) begin(n int) client.WorkflowRun {
	s.t.Helper()
	workload, err := expression.Canonical(map[string]any{"connection": s.name, "n": n})
	require.NoError(s.t, err)
	run, err := s.env.Client().ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{TaskQueue: s.queue},
		protocol.PlaybookWorkflowName, protocol.Input{Name: "orders.yaml", Source: book, Workload: expression.Of(workload)})
	require.NoError(s.t, err)
	return run
}

// status is that of the login.
func (s *stage) status() (status login.TokenStatus) {
	s.t.Helper()
	answer, err := s.env.Client().QueryWorkflow(s.t.Context(), login.WorkflowID(s.name), "", login.StatusQuery)
	require.NoError(s.t, err)
	require.NoError(s.t, answer.Get(&status))
	return status
}

// patience is how long a run may take.
var patience = testenv.Within(3 * time.Minute)

func (s *stage) outcome(run client.WorkflowRun) protocol.Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	result, err := ending.WaitForResult(ctx, run)
	require.NoError(s.t, err)
	return result
}

// requireNoToken searches the histories and the spool for tokens.
func (s *stage) requireNoToken() {
	s.t.Helper()
	ctx := s.t.Context()
	for _, id := range []string{login.WorkflowID(s.name)} {
		history := s.env.Client().GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		events := 0
		for history.HasNext() {
			event, err := history.Next()
			require.NoError(s.t, err)
			data, err := protojson.Marshal(event)
			require.NoError(s.t, err)
			require.NotContains(s.t, sentText(event), canaryPrefix, string(data))
			events++
		}
		require.NotZero(s.t, events)
	}
	require.NoError(s.t, filepath.WalkDir(s.options.Spool, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			data, _ := os.ReadFile(path)
			require.NotContains(s.t, string(data), canaryPrefix)
		}
		return err
	}))
}

// TestTokensAreSharedByWorkers: four workers make one exchange for each token, whoever needs it.
func TestTokensAreSharedByWorkers(t *testing.T) {
	t.Parallel()
	s := newStage(t, false)
	s.endpoint.life = time.Hour
	s.spawn(4, "")
	require.EqualValues(t, "completed", s.outcome(s.begin(60)).Status)
	require.Equal(t, endpointCounts{made: 1, most: 1, requests: 60}, s.endpoint.counts())
	status := s.status()
	require.Equal(t, login.ByConfiguration, status.By)
	require.Equal(t, []string{"orders", "items"}, status.Scopes)
	require.WithinDuration(t, time.Now().Add(59*time.Minute), status.NextRefresh, time.Minute)

	s.endpoint.forgetAccess() // each worker asks once for a newer one, and they get the same
	require.EqualValues(t, "completed", s.outcome(s.begin(60)).Status)
	require.Equal(t, endpointCounts{made: 2, most: 1, requests: 120}, s.endpoint.counts())
	s.requireNoToken()
}

// TestALoginThatIsRevokedIsReported: attempts fail finally, with what is to be done.
func TestALoginThatIsRevokedIsReported(t *testing.T) {
	t.Parallel()
	s := newStage(t, false)
	s.endpoint.revoked = true
	s.spawn(1, "")
	result := s.outcome(s.begin(3))
	require.EqualValues(t, "failed", result.Status)
	require.Contains(t, result.Error.Message, "needs a login: the token endpoint at "+s.endpoint.URL+" returned HTTP 400 (invalid_grant); give the connection a new refresh_token")
	status := s.status()
	require.False(t, status.LoggedIn)
	require.Contains(t, status.Required, "invalid_grant")
	s.requireNoToken()
}

// TestKills: whoever is killed at whatever point of an exchange, never are there two at once, and no login is lost that the
// endpoint lets anybody keep.
func TestKills(t *testing.T) {
	t.Parallel()
	for _, point := range exchangePoints {
		for _, grace := range []time.Duration{0, time.Minute} {
			if grace > 0 && point != "committed" {
				continue // nothing is sent again that was exchanged
			}
			t.Run(fmt.Sprintf("%s, grace %s", point, grace), func(t *testing.T) {
				t.Parallel()
				s := newStage(t, false)
				s.endpoint.grace = testenv.Within(grace)
				s.strike(2, point)
			})
		}
	}
}

// strike kills the workers at a point of the first exchange, starts others, and checks what became of the login.
func (s *stage) strike(workers int, point string) {
	struck := make(chan struct{})
	var once sync.Once
	s.endpoint.at = func(at string) (dropped bool) {
		if at == point {
			once.Do(func() { s.killAll(); close(struck); dropped = true })
		}
		return dropped
	}
	s.spawn(workers, point)
	run := s.begin(40)
	if _, own := ownPoints[point]; own {
		once.Do(func() {
			s.awaitFile(filepath.Join(s.options.Directory, "killed-"+point))
			close(struck)
		})
	}
	testenv.Receive(s.t, struck, "the kill")
	if s.killsServer {
		s.server.Kill()
		s.server.Start(s.t)
	}
	s.spawn(workers, "")
	result, counts := s.outcome(run), s.endpoint.counts()
	require.Equal(s.t, 1, counts.most, "two exchanges at once")
	status := s.status()
	if point == "committed" && s.endpoint.grace == 0 {
		require.Equal(s.t, 1, counts.reused, "the announced one")
		require.False(s.t, status.LoggedIn)
		require.Contains(s.t, status.Required, "invalid_grant")
		require.EqualValues(s.t, "failed", result.Status)
	} else {
		require.Equal(s.t, point == "committed", counts.reused == 1, "%d", counts.reused)
		require.True(s.t, status.LoggedIn, status.Required)
		require.False(s.t, counts.revoked)
		require.EqualValues(s.t, "completed", result.Status)
		require.Empty(s.t, result.Result.Data, "errors of elements")
		require.Empty(s.t, s.endpoint.askedAgain())
		require.Equal(s.t, 40, counts.requests)
	}
	s.requireNoToken()
}

// awaitFile waits for a file.
func (s *stage) awaitFile(path string) {
	require.Eventually(s.t, func() bool { _, err := os.Stat(path); return err == nil }, patience, 20*time.Millisecond)
}

// TestManyKills strikes with 4 workers as often as -logins.kills says, at points in turn, workers and servers with them.
func TestManyKills(t *testing.T) {
	t.Parallel()
	if *kills == 0 {
		t.Skip("make logins")
	}
	points := strings.Split(*killedAt, ",")
	for n := range *kills {
		point, grace := points[n%len(points)], time.Duration(n/len(points)%2)*time.Minute
		t.Run(fmt.Sprintf("%d, %s, grace %s", n, point, grace), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, n%3 > 0)
			s.endpoint.grace, s.killsServer = testenv.Within(grace), n%3 > 0
			s.strike(4, point)
		})
	}
}
