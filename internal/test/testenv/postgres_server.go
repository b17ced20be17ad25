package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"reprise/internal/base/childproc"
	"reprise/internal/base/sleep"
)

// pgServer is a PostgreSQL server on 127.0.0.1 with its files and its socket in a temporary directory. Its only user
// has a random password, so that other users of the machine cannot connect and tests can search for leaked passwords.
type pgServer struct {
	bin      string // directory of the programs
	dir      string
	password string
	as       *account // who runs it, nil for ourselves
	careful  bool     // what it has committed survives its death
	settings []string // more of them, NAME=VALUE

	mu      sync.Mutex
	port    int
	process *childproc.Process // nil while stopped
}

// account is a user of the operating system.
type account struct{ uid, gid int }

const pgHint = "install PostgreSQL (Debian: apt-get install postgresql), put initdb and postgres on PATH, " +
	"or set TEST_POSTGRES_URL to a server whose user may create databases"

// findPostgres returns the directory with initdb and postgres: that of initdb on PATH, or else of the newest Debian
// package.
func findPostgres() (string, error) {
	var candidates []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			candidates = append(candidates, filepath.Dir(real))
		}
	}
	packaged, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", fmt.Errorf("find PostgreSQL: %w", err)
	}
	slices.SortFunc(packaged, func(a, b string) int { return majorVersion(b) - majorVersion(a) })
	for _, dir := range append(candidates, packaged...) {
		if isProgram(filepath.Join(dir, "initdb")) && isProgram(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no PostgreSQL to test with: neither PATH nor /usr/lib/postgresql has initdb and postgres.\n%s", pgHint)
}

// majorVersion returns the version in a path, such as 15 for /usr/lib/postgresql/15/bin.
func majorVersion(bin string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return version
}

func isProgram(path string) bool {
	_, err := exec.LookPath(path)
	return err == nil
}

// runAs returns the user to run PostgreSQL as if we are root, which PostgreSQL refuses to run as; else nil.
func runAs() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(found.Uid)
		gid, gidErr := strconv.Atoi(found.Gid)
		if uidErr == nil && gidErr == nil {
			return &account{uid: uid, gid: gid}, nil
		}
	}
	return nil, errors.New("run PostgreSQL as root: it refuses, and there is no user postgres or nobody to run it as")
}

const pgDirPrefix = "reprise-postgres-"

// newPGServer creates a cluster and starts it. The directory's name contains our process ID, so that a later process
// can remove the files of a killed one. With careful, the server survives a kill without losing commits.
func newPGServer(ctx context.Context, careful bool, settings ...string) (*pgServer, error) {
	bin, err := findPostgres()
	if err != nil {
		return nil, err
	}
	as, err := runAs()
	if err != nil {
		return nil, err
	}
	removeStaleDirs(os.TempDir())
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", pgDirPrefix, os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	s := &pgServer{bin: bin, dir: dir, password: rand.Text(), as: as, careful: careful, settings: settings}
	if err := s.createCluster(ctx); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return s, nil
}

// removeStaleDirs removes the clusters of test processes that have ended.
func removeStaleDirs(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, pgDirPrefix+"*-*"))
	for _, dir := range dirs {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), pgDirPrefix), "-")
		if pid, err := strconv.Atoi(text); err == nil && !isAlive(pid) {
			_ = os.RemoveAll(dir)
		}
	}
}

// isAlive reports whether a process exists, even if we may not signal it.
func isAlive(pid int) bool {
	found, err := os.FindProcess(pid)
	return err == nil && !errors.Is(found.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// createCluster creates the cluster and starts it on a free port.
func (s *pgServer) createCluster(ctx context.Context) error {
	passwordFile := filepath.Join(s.dir, "password")
	if err := os.WriteFile(passwordFile, []byte(s.password), 0o600); err != nil {
		return err
	}
	if s.as != nil {
		for _, path := range []string{s.dir, passwordFile} {
			if err := os.Chown(path, s.as.uid, s.as.gid); err != nil {
				return err
			}
		}
	}
	initdb := s.programCommand("initdb", "-D", filepath.Join(s.dir, "data"), "-U", "postgres", "--auth=scram-sha-256",
		"--pwfile="+passwordFile, "--encoding=UTF8", "--locale=C", "--no-sync")
	p, err := startProcess(initdb, s.as)
	if err != nil {
		return err
	}
	<-p.Exited
	if !initdb.ProcessState.Success() {
		return fmt.Errorf("initdb: %s\n%s", initdb.ProcessState, p.Output)
	}
	var failures []error
	for range 3 { // a port can be taken between looking and listening
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.startServer(ctx); err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// programCommand returns a PostgreSQL program to run in the server's directory, because its user may not be able to read
// ours. It does not inherit the developer's PG* variables.
func (s *pgServer) programCommand(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "PG")
	}), "LC_ALL=C")
	return cmd
}

// startServer starts the server on its port and waits until it accepts connections. Nothing has to survive a power failure,
// so it never syncs to disk.
func (s *pgServer) startServer(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return errors.New("start PostgreSQL: it is running")
	}
	ctx, cancel := context.WithTimeout(ctx, Within(startTimeout))
	defer cancel()
	args := []string{"-D", filepath.Join(s.dir, "data"), "-p", strconv.Itoa(s.port), "-k", s.socketDir()}
	settings := []string{
		"listen_addresses=127.0.0.1", "fsync=off", "max_connections=300", "autovacuum=off", "max_wal_senders=0", "wal_level=minimal",
	}
	if !s.careful {
		settings = append(settings, "synchronous_commit=off", "full_page_writes=off")
	}
	for _, setting := range append(settings, s.settings...) {
		args = append(args, "-c", setting)
	}
	server, err := startProcess(s.programCommand("postgres", args...), s.as)
	if err != nil {
		return err
	}
	for {
		connection, err := pgx.Connect(ctx, s.databaseURL("postgres"))
		if err == nil {
			s.process = server
			return connection.Close(ctx)
		}
		if server.HasExited() {
			return fmt.Errorf("the server has exited: %s\n%s", server.Cmd.ProcessState, server.Output)
		}
		if sleep.For(ctx, 20*time.Millisecond) != nil {
			server.Stop(syscall.SIGQUIT, 5*time.Second)
			return fmt.Errorf("the server does not answer: %w\n%s", err, server.Output)
		}
	}
}

// socketDir returns the server's directory, or "" if its path is too long for a Unix socket (107 bytes with the file
// name on Linux, less elsewhere).
func (s *pgServer) socketDir() string {
	if len(s.dir) > 70 {
		return ""
	}
	return s.dir
}

// stopServer ends all sessions and the server (a "fast shutdown").
func (s *pgServer) stopServer() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errors.New("stop PostgreSQL: it is not running")
	}
	s.process.Stop(syscall.SIGINT, 20*time.Second)
	s.process = nil
	return nil
}

// killServer ends the server with SIGKILL: unwritten data is lost. On Linux that ends all of its processes; elsewhere they
// end by themselves once they notice.
func (s *pgServer) killServer() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return errors.New("kill PostgreSQL: it is not running")
	}
	pid := s.process.Cmd.Process.Pid
	_ = s.process.Cmd.Process.Signal(syscall.SIGSTOP) // it starts no more of them
	children := childrenOf(pid)
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	s.process.Kill()
	s.process = nil
	for _, child := range children { // they hold memory that the next server wants
		for until := time.Now().Add(Within(startTimeout)); isRunning(child); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				return fmt.Errorf("kill PostgreSQL: process %d does not end", child)
			}
		}
	}
	return nil
}

// removeServer stops the server, if it runs, and deletes its files.
func (s *pgServer) removeServer() error {
	_ = s.stopServer()
	return os.RemoveAll(s.dir)
}

// databaseURL returns the connection URL of a database.
func (s *pgServer) databaseURL(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword("postgres", s.password),
		Host: "127.0.0.1:" + strconv.Itoa(s.port), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}
