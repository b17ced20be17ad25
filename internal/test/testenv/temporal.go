package testenv

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"reprise/internal/base/connect"
	"reprise/internal/base/sleep"
	"reprise/internal/program/localserver"
)

// Env is a Temporal server that this test process uses. All tests share it; task queues and workflow IDs keep them
// apart.
type Env struct {
	Address   string // host:port of the frontend
	Namespace string
	UIURL     string // base URL of the web UI without a trailing slash, "" if unknown

	client client.Client
}

// Client returns the client that all tests of the process share. Do not close it.
func (e *Env) Client() client.Client { return e.client }

// NewTaskQueue returns a unique name.
func (e *Env) NewTaskQueue() string { return "test-" + rand.Text()[:12] }

// Dial returns another client for this server, closed when the test ends. HostPort, Namespace, Logger and
// ExternalStorage have defaults: like Client, the default storage reads stored values and stores none.
func (e *Env) Dial(t testing.TB, options client.Options) client.Client {
	t.Helper()
	options.HostPort = cmp.Or(options.HostPort, e.Address)
	options.Namespace = cmp.Or(options.Namespace, e.Namespace)
	if options.Logger == nil {
		options.Logger = newLogger(slog.LevelError)
	}
	if options.ExternalStorage.Drivers == nil {
		options.ExternalStorage = PayloadStore(t).ReadOnly()
	}
	c, err := client.DialContext(t.Context(), connect.WithoutCompression(options))
	if err != nil {
		t.Fatalf("dial Temporal at %s: %v", options.HostPort, err)
	}
	t.Cleanup(c.Close)
	return c
}

// Temporal returns the Temporal server of the process and starts it if necessary. The test fails if there is no
// server to use or to start.
func Temporal(t testing.TB) *Env {
	t.Helper()
	env, err := sharedTemporal()
	if err != nil {
		t.Fatal(err)
	}
	return env
}

var sharedTemporal = sync.OnceValues(func() (*Env, error) {
	env, err := openTemporal()
	if err == nil {
		atExit(env.client.Close)
	}
	return env, err
})

const startTimeout = 90 * time.Second

func openTemporal() (*Env, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Within(startTimeout))
	defer cancel()
	if address := os.Getenv("TEST_TEMPORAL_ADDRESS"); address != "" {
		env := &Env{
			Address:   address,
			Namespace: cmp.Or(os.Getenv("TEST_TEMPORAL_NAMESPACE"), "default"),
			UIURL:     strings.TrimRight(os.Getenv("TEST_TEMPORAL_UI_URL"), "/"),
		}
		if err := env.connectClient(ctx); err != nil {
			return nil, fmt.Errorf("use the Temporal server of TEST_TEMPORAL_ADDRESS: %w", err)
		}
		return env, nil
	}
	binary, err := findDevServer()
	if err != nil {
		return nil, err
	}
	return startDevServer(ctx, binary)
}

// findDevServer returns the path of a binary that has the command "server start-dev".
func findDevServer() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	if path := os.Getenv("TEST_DEVSERVER"); path != "" {
		if strings.ContainsRune(path, filepath.Separator) && !filepath.IsAbs(path) {
			path = filepath.Join(root, path) // each package's tests run in another directory
		}
		if _, err := exec.LookPath(path); err != nil {
			return "", fmt.Errorf("use the dev server of TEST_DEVSERVER: %w", err)
		}
		return path, nil
	}
	built := filepath.Join(root, "bin", "devserver")
	if _, err := exec.LookPath(built); err == nil {
		return built, nil
	}
	if path, err := exec.LookPath("temporal"); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("no Temporal server to test with: neither %s nor temporal on PATH exists.\n"+
		"build it (some minutes, once): cd %s && go build -o ../bin/devserver .\n"+
		"or set TEST_TEMPORAL_ADDRESS to a running server", built, filepath.Join(root, "devserver"))
}

// moduleRoot returns the directory of the main module's go.mod, searched from the package under test upwards.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module root: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && slices.Contains(strings.Split(string(text), "\n"), "module reprise") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the module root: no go.mod of module reprise above %s", start)
		}
	}
}

// collectRarely makes a server collect garbage less often: with many concurrent tests, the collector took a sixth of
// its time. Near the memory limit it collects as often as necessary. SQLite's in-memory state is not part of that
// limit.
var collectRarely = []string{"GOGC=400", "GOMEMLIMIT=1536MiB"}

// startDevServer starts the server of the process, with its state in memory or where TEST_TEMPORAL_STORE says.
func startDevServer(ctx context.Context, binary string) (*Env, error) {
	options := localserver.Options{Binary: binary, Env: collectRarely, ReadyTimeout: Within(startTimeout)}
	if onPostgres() {
		database, err := newPGServer(ctx, false)
		if err != nil {
			return nil, err
		}
		atExit(func() { _ = database.removeServer() })
		options.Env = append(slices.Clone(options.Env), storedAt(database.databaseURL("temporal")))
	}
	server, err := localserver.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	env := &Env{Address: server.Address, Namespace: server.Namespace, UIURL: server.UIURL}
	if err := env.connectClient(ctx); err != nil {
		server.Stop()
		return nil, fmt.Errorf("%w\nits last output:\n%s", err, server.Output())
	}
	atExit(server.Stop)
	return env, nil
}

// connectClient dials until the namespace responds or ctx ends.
func (e *Env) connectClient(ctx context.Context) error {
	for {
		c, err := dialNamespace(ctx, e.Address, e.Namespace)
		if err == nil {
			e.client = c
			return nil
		}
		if sleep.For(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("no answer from %s, namespace %q: %w", e.Address, e.Namespace, err)
		}
	}
}

func dialNamespace(ctx context.Context, address, namespace string) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	store, err := sharedStore()
	if err != nil {
		return nil, err
	}
	c, err := client.DialContext(ctx, connect.WithoutCompression(client.Options{
		HostPort: address, Namespace: namespace, Logger: newLogger(slog.LevelError), ExternalStorage: store.ReadOnly(),
	}))
	if err != nil {
		return nil, err
	}
	_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// newLogger returns a logger to stderr with the level of TEST_LOG_LEVEL, or with the given level if that is unset.
func newLogger(level slog.Level) log.Logger {
	if text := os.Getenv("TEST_LOG_LEVEL"); text != "" {
		if err := level.UnmarshalText([]byte(text)); err != nil {
			panic(fmt.Sprintf("TEST_LOG_LEVEL: %v, expected debug, info, warn or error", err))
		}
	}
	return log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
}
