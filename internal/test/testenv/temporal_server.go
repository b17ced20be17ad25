package testenv

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"reprise/internal/program/localserver"
)

// Server is a Temporal server of one test, which may kill and restart it. Its state is in a file.
type Server struct {
	*Env

	options localserver.Options
	running *localserver.Server
	metered bool // it has metrics
}

// TemporalServer starts a server that only this test uses, and that ends with it. Its state is in a file, or where
// TEST_TEMPORAL_STORE says.
func TemporalServer(t testing.TB) *Server {
	t.Helper()
	if onPostgres() {
		s, _ := TemporalOnPostgres(t)
		return s
	}
	return startServer(t, localserver.Options{DBFile: filepath.Join(t.TempDir(), "temporal.db")})
}

// MeteredServer starts a server that only this test uses, with its state in memory and with metrics.
func MeteredServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{options: localserver.Options{Env: collectRarely}, metered: true}
	s.startFor(t)
	return s
}

// Actions returns the actions that the server has counted in its namespace since it started, by their kind: what
// Temporal Cloud bills.
func (s *Server) Actions(t testing.TB) map[string]int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", s.options.MetricsPort), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	actions, lines := map[string]int{}, bufio.NewScanner(response.Body)
	for lines.Scan() {
		if found := actionLine.FindStringSubmatch(lines.Text()); found != nil && strings.Contains(found[1], `namespace="`+s.Namespace+`"`) {
			n, err := strconv.ParseFloat(found[3], 64)
			if err != nil {
				t.Fatalf("read the metrics of the server: %v", err)
			}
			actions[found[2]] += int(n)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("read the metrics of the server: %v", err)
	}
	return actions
}

// actionLine is a series of the metric of actions, with its labels, the kind of action and the count.
var actionLine = regexp.MustCompile(`^action(?:_total)?\{(.*\baction_type="([^"]*)".*)\} (\S+)$`)

// TemporalOnPostgres starts a server that only this test uses, with its state in a PostgreSQL that the test may stop, kill and
// start again.
func TemporalOnPostgres(t testing.TB) (*Server, *Database) {
	t.Helper()
	db := PostgresServer(t)
	return startServer(t, localserver.Options{Env: []string{storedAt(db.URL)}}), db
}

// storeVariable selects where servers keep their state: postgres, or as they do without it.
const storeVariable = "TEST_TEMPORAL_STORE"

func onPostgres() bool { return os.Getenv(storeVariable) == "postgres" }

// storedAt is the variable with which a server of bin/devserver keeps its state in a database.
func storedAt(url string) string { return "DEVSERVER_POSTGRES=" + url }

// startServer starts a server that ends with the test.
func startServer(t testing.TB, options localserver.Options) *Server {
	t.Helper()
	s := &Server{options: options}
	s.startFor(t)
	return s
}

func (s *Server) startFor(t testing.TB) {
	t.Helper()
	binary, err := findDevServer()
	if err != nil {
		t.Fatal(err)
	}
	s.options.Binary, s.options.ReadyTimeout = binary, Within(startTimeout)
	if err := s.startAnywhere(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.running.Kill() })
	s.Env = &Env{
		Address: "127.0.0.1:" + strconv.Itoa(s.options.Port), Namespace: s.running.Namespace, UIURL: s.running.UIURL,
	}
	ctx, cancel := context.WithTimeout(t.Context(), Within(startTimeout))
	defer cancel()
	if err := s.connectClient(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
}

// chosenPorts are the ports of the server that are free ones.
func (s *Server) chosenPorts() []*int {
	ports := []*int{&s.options.Port, &s.options.UIPort}
	if s.metered {
		ports = append(ports, &s.options.MetricsPort)
	}
	return ports
}

// startAnywhere starts the server on free ports. It retries, because a port can be taken before the server listens.
func (s *Server) startAnywhere(ctx context.Context) (err error) {
	for range 3 {
		for _, port := range s.chosenPorts() {
			if *port, err = freePort(); err != nil {
				return err
			}
		}
		if s.running, err = localserver.Start(ctx, s.options); err == nil {
			return nil
		}
	}
	return err
}

// Kill ends the server with SIGKILL.
func (s *Server) Kill() { s.running.Kill() }

// Start starts the server again after Kill, with the same file and ports, and returns once it serves.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	running, err := localserver.Start(t.Context(), s.options)
	if err != nil {
		t.Fatal(err)
	}
	s.running = running
}
