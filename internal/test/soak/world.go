package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/childproc"
	"reprise/internal/base/connect"
	"reprise/internal/base/seal"
	"reprise/internal/program/localserver"
	"reprise/internal/test/testenv"
)

// taskQueue is that of the workers, and the name of their deployment.
const taskQueue = "soak"

// startPatience is how long a process may take to start, and stopPatience how long to stop.
const startPatience, stopPatience = 2 * time.Minute, 40 * time.Second

// world is what the load runs on.
type world struct {
	directory string
	programs  string // folder of starter, worker and devserver
	api       *api
	database  *testenv.LocalDatabase
	server    *localserver.Server
	serverAt  string // URL of the server's metrics
	client    client.Client
	serve     *node
	serveURL  string
	token     string   // of the caller that starts the runs
	env       []string // of workers and serve
}

// newWorld starts everything but the workers. The caller stops it, even if it is not whole.
func newWorld(ctx context.Context) (*world, error) {
	w := &world{}
	return w, errors.Join(w.startServers(ctx), ctx.Err())
}

func (w *world) startServers(ctx context.Context) (err error) {
	if w.directory, err = os.MkdirTemp("", "soak-"); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	if w.programs, err = filepath.Abs("bin"); err != nil {
		return fmt.Errorf("find the programs: %w", err)
	}
	if w.api, err = newAPI(ctx); err != nil {
		return err
	}
	// A server that tests use is too short-lived to need autovacuum; this one is not.
	if w.database, err = testenv.LocalPostgres(ctx, "autovacuum=on"); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := w.createTables(ctx); err != nil {
		return err
	}
	if err := w.startTemporal(ctx); err != nil {
		return err
	}
	return w.startServe(ctx)
}

// createTables creates what the runs write to. Nothing is a key, so that rows can be there twice.
func (w *world) createTables(ctx context.Context) error {
	db, err := pgx.Connect(ctx, w.database.URL)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = db.Close(ctx) }()
	_, err = db.Exec(ctx, `CREATE TABLE loaded (kind text NOT NULL, run int NOT NULL, n int NOT NULL); CREATE INDEX ON loaded (run);
		CREATE TABLE changes (id int NOT NULL, at timestamptz NOT NULL)`)
	if err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	return nil
}

func (w *world) startTemporal(ctx context.Context) error {
	metrics, err := freePort(ctx)
	if err != nil {
		return err
	}
	// The server keeps its state in a database of its own, which it creates.
	state := strings.Replace(w.database.URL, "/postgres?", "/temporal?", 1)
	w.server, err = localserver.Start(ctx, localserver.Options{
		Binary: filepath.Join(w.programs, "devserver"), MetricsPort: metrics, ReadyTimeout: startPatience, Env: []string{"DEVSERVER_POSTGRES=" + state},
		// The cache of workflows is full after some minutes. By default it grows for an hour, so that a leak would not show.
		Settings: []string{"history.hostLevelCacheMaxSize=500"},
	})
	if err != nil {
		return fmt.Errorf("start Temporal: %w", err)
	}
	w.serverAt = fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics)
	if w.client, err = connect.Dial(ctx, client.Options{HostPort: w.server.Address, Namespace: w.server.Namespace}, nil, nil); err != nil {
		return fmt.Errorf("connect to Temporal: %w", err)
	}
	_, err = w.starter(ctx, "setup")
	return err
}

// startServe starts the server of HTTP that starts runs and takes answers.
func (w *world) startServe(ctx context.Context) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	w.serveURL = "http://127.0.0.1:" + strconv.Itoa(port)
	w.env = []string{
		"REPRISE_AUTH_WAREHOUSE=" + w.database.URL, seal.Variable + "=" + seal.NewKey(), "REPRISE_CALLBACK_URL=" + w.serveURL,
		"REPRISE_TASK_QUEUE=" + taskQueue,
	}
	for name, text := range files() {
		if err := w.write(name, text); err != nil {
			return err
		}
	}
	made, err := w.starter(ctx, "serve", "token", "new", "soak", "--roles", "*=admin")
	if err != nil {
		return err
	}
	first, line, _ := strings.Cut(made, "\n")
	_, line, _ = strings.Cut(line, "\n")
	w.token = strings.TrimPrefix(first, "token: ")
	if err := w.write("callers.yaml", line); err != nil {
		return err
	}
	metrics, err := freePort(ctx)
	if err != nil {
		return err
	}
	w.serve, err = w.startNode(ctx, metrics, "starter", "serve", "--address", w.server.Address, "--playbooks", "playbooks", "--tokens", "callers.yaml",
		"--listen", "127.0.0.1:"+strconv.Itoa(port), "--metrics-address", "127.0.0.1:"+strconv.Itoa(metrics))
	return err
}

// files are the playbooks and what else the processes read.
func files() map[string]string {
	all := map[string]string{
		"egress.yaml": "private: allow\n", "playbooks/" + changesBook + ".yaml": bookOf(changesBook, changesSteps), "playbooks/child.yaml": bookOf("child", childSteps),
	}
	for _, k := range kinds() {
		all["playbooks/"+k.name+".yaml"] = bookOf(k.name, k.steps)
	}
	return all
}

func (w *world) write(name, text string) error {
	path := filepath.Join(w.directory, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// starter runs a command of starter until it ends, and returns what it prints.
func (w *world) starter(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(w.programs, "starter"), args...)
	cmd.Dir, cmd.Env = w.directory, append(os.Environ(), w.env...)
	cmd.Env = append(cmd.Env, "TEMPORAL_ADDRESS="+w.server.Address)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("starter %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// node is a process that has metrics.
type node struct {
	*childproc.Process

	metrics string // URL
}

// startNode starts a program, and returns once its metrics answer.
func (w *world) startNode(ctx context.Context, metrics int, program string, args ...string) (*node, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(w.programs, program), args...)
	cmd.Dir, cmd.Env = w.directory, append(os.Environ(), w.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	process, err := childproc.Start(cmd)
	if err != nil {
		return nil, err
	}
	n := &node{process, "http://127.0.0.1:" + strconv.Itoa(metrics) + "/metrics"}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		if _, err = goroutinesAt(ctx, n.metrics); err == nil {
			return n, nil
		}
		select {
		case <-n.Exited:
			return nil, fmt.Errorf("%s has ended: %s\n%s", program, cmd.ProcessState, n.Output)
		case <-ctx.Done():
			n.Kill()
			return nil, fmt.Errorf("%s does not answer: %w\n%s", program, err, n.Output)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stop stops everything and removes the files.
func (w *world) stop() {
	if w.serve != nil {
		w.serve.Stop(syscall.SIGTERM, stopPatience)
	}
	if w.client != nil {
		w.client.Close()
	}
	if w.server != nil {
		w.server.Stop()
	}
	if w.database != nil {
		w.database.Stop()
	}
	if w.api != nil {
		_ = w.api.server.Close()
	}
	_ = os.RemoveAll(w.directory)
}

// freePort returns a port of this machine that is free now.
func freePort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
