package localserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/childproc"
	"reprise/internal/base/connect"
	"reprise/internal/base/private"
)

// Options configure a server. The zero value is a server in memory on free ports.
type Options struct {
	Binary    string // "" is what Find finds
	Port      int    // 0: a free one
	UIPort    int    // 0: a free one
	DBFile    string // SQLite file that keeps the state; "" is memory
	Namespace string // "" is connect.DefaultNamespace
	// Key is what clients must send; "" requires none. Only this project's server supports it, not the official
	// CLI's.
	Key string
	// Attributes are search attributes to register in the namespace.
	Attributes map[string]enums.IndexedValueType
	Env        []string // more variables, NAME=value
	Settings   []string // more dynamic configuration, KEY=JSON
	// MetricsPort is the port of the server's own metrics, at /metrics; 0: there are none.
	MetricsPort int
	// ReadyTimeout bounds how long the server may take to become ready; 0 is a minute.
	ReadyTimeout time.Duration
}

// Server is a running Temporal server.
type Server struct {
	Address   string // host:port
	UIURL     string // without a trailing slash, "" where the web UI has no port
	UISocket  string // of the web UI, below UIPath, where it has no port; "" else
	Namespace string

	process *childproc.Process
	durable bool
	key     string
	folder  string // of the socket, "" for none
}

// Variables of this project's own server: the key, and the address of its web UI. Temporal's own command ignores
// them.
const (
	keyVariable      = "DEVSERVER_API_KEY"
	uiSocketVariable = "DEVSERVER_UI_SOCKET"
	uiPathVariable   = "DEVSERVER_UI_PATH"
)

// UIPath is the path of the web UI at its socket.
const UIPath = "/temporal"

const (
	readyTimeout = 60 * time.Second
	stopGrace    = 8 * time.Second
	attempts     = 3 // a free port can be taken before the server listens on it
)

// Start starts a server and returns once it serves and its web UI responds. The caller stops it; it ends with this
// process in any case (on Linux).
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.Binary == "" {
		binary, err := Find()
		if err != nil {
			return nil, err
		}
		options.Binary = binary
	}
	options.Namespace = cmp.Or(options.Namespace, connect.DefaultNamespace)
	if options.DBFile != "" {
		if err := os.MkdirAll(filepath.Dir(options.DBFile), 0o700); err != nil {
			return nil, fmt.Errorf("make the folder of %s: %w", options.DBFile, err)
		}
		makePrivate(options.DBFile)
	}
	for attempt := 1; ; attempt++ {
		server, err := startServer(ctx, options)
		if err == nil {
			return server, nil
		}
		fixed := options.Port != 0 && options.UIPort != 0
		if attempt == attempts || fixed || ctx.Err() != nil {
			return nil, fmt.Errorf("start a local Temporal server with %s: %w", options.Binary, err)
		}
	}
}

func startServer(ctx context.Context, options Options) (*Server, error) {
	port, err := portOr(ctx, options.Port)
	if err != nil {
		return nil, err
	}
	uiPort, err := portOr(ctx, options.UIPort)
	if err != nil {
		return nil, err
	}
	server := &Server{
		Address:   "127.0.0.1:" + strconv.Itoa(port),
		Namespace: options.Namespace,
		durable:   options.DBFile != "",
		key:       options.Key,
	}
	cmd := serverCommand(options, port, uiPort)
	if options.Key != "" {
		// The web UI sends the key on behalf of anybody who can reach it, so it listens on a socket in a private
		// folder.
		if server.folder, err = os.MkdirTemp("", "reprise-"); err != nil {
			return nil, fmt.Errorf("make a folder for the socket of the web UI: %w", err)
		}
		cmd.Env = append(cmd.Env, keyVariable+"="+options.Key, uiSocketVariable+"="+server.socketPath(), uiPathVariable+"="+UIPath)
	}
	cmd.SysProcAttr = childAttr()
	server.process, err = childproc.Start(cmd)
	if err != nil {
		server.removeFiles()
		return nil, err
	}
	if err := server.awaitReady(ctx, uiPort, cmp.Or(options.ReadyTimeout, readyTimeout)); err != nil {
		server.Stop()
		if output := strings.TrimSpace(server.process.Output.String()); output != "" && ctx.Err() == nil {
			err = fmt.Errorf("%w; it said:\n%s", err, output)
		}
		return nil, err
	}
	return server, nil
}

func serverCommand(options Options, port, uiPort int) *exec.Cmd {
	args := []string{
		"server", "start-dev", "--ip", "127.0.0.1", "--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(uiPort),
		"--namespace", options.Namespace, "--log-level", "error",
		// This project's server has this setting built in, Temporal's own command does not: runs share workers
		// fairly.
		"--dynamic-config-value", "matching.enableFairness=true",
		"--dynamic-config-value", "matching.numTaskqueueWritePartitions=1",
		// Temporal's own command opens an HTTP API, on a free port and for every web page. It cannot be disabled, but
		// it can be limited to a host name that no client can guess.
		"--dynamic-config-value", `frontend.httpAllowedHosts=["` + rand.Text() + `"]`,
	}
	for _, setting := range options.Settings {
		args = append(args, "--dynamic-config-value", setting)
	}
	if options.DBFile != "" {
		args = append(args, "--db-filename", options.DBFile)
	}
	if options.MetricsPort != 0 {
		args = append(args, "--metrics-port", strconv.Itoa(options.MetricsPort))
	}
	for _, name := range slices.Sorted(maps.Keys(options.Attributes)) {
		args = append(args, "--search-attribute", name+"="+options.Attributes[name].String())
	}
	cmd := privateCommand(options.Binary, args)
	// The user's own settings are for the server of their choice, not this one.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "TEMPORAL_") || strings.HasPrefix(entry, "DEVSERVER_")
	})
	cmd.Env = append(cmd.Env, options.Env...)
	return cmd
}

// privateCommand returns a command whose files, which include histories of runs, nobody else can read. This project's
// own server ensures that itself, Temporal's does not.
func privateCommand(binary string, args []string) *exec.Cmd {
	const shell = "/bin/sh"
	//nolint:noctx // it ends with Stop, which is gentler than a context
	if _, err := os.Stat(shell); err != nil || !filepath.IsAbs(binary) && !strings.Contains(binary, string(filepath.Separator)) {
		return exec.Command(binary, args...)
	}
	return exec.Command(shell, append([]string{"-c", `umask 077; exec "$0" "$@"`, binary}, args...)...) //nolint:noctx // as above
}

// socketPath returns the path of the web UI's socket.
func (s *Server) socketPath() string { return filepath.Join(s.folder, "ui") }

// removeFiles removes the server's temporary files; its state is kept.
func (s *Server) removeFiles() {
	if s.folder != "" {
		_ = os.RemoveAll(s.folder)
	}
}

// ClientOptions returns options to connect to this server.
func (s *Server) ClientOptions() client.Options {
	return connect.WithKey(client.Options{HostPort: s.Address, Namespace: s.Namespace}, s.key)
}

// awaitReady waits until the namespace responds and the web UI, which starts last, accepts connections.
func (s *Server) awaitReady(ctx context.Context, uiPort int, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := s.pollUntil(ctx, func() error {
		c, err := connect.Dial(ctx, s.ClientOptions(), nil, nil)
		if err == nil {
			c.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.pollUntil(ctx, func() error {
		if s.folder != "" { // with a key; who listens at the port then is another program
			err := checkAccepts(ctx, "unix", s.socketPath())
			if err == nil {
				s.UISocket = s.socketPath()
			}
			return err
		}
		at := "127.0.0.1:" + strconv.Itoa(uiPort)
		err := checkAccepts(ctx, "tcp", at)
		if err == nil {
			s.UIURL = "http://" + at
		}
		return err
	})
}

// checkAccepts returns nil if a listener at an address accepts connections.
func checkAccepts(ctx context.Context, network, at string) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, at)
	if err == nil {
		_ = connection.Close()
	}
	return err
}

var errExited = errors.New("the server has ended")

func (s *Server) pollUntil(ctx context.Context, check func() error) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		if s.process.HasExited() {
			return fmt.Errorf("%w: %s", errExited, s.process.Cmd.ProcessState)
		}
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for it to serve: %w", err)
		case <-s.process.Exited:
		case <-tick.C:
		}
	}
}

// Exited returns a channel that is closed once the server's process has ended, for whatever reason.
func (s *Server) Exited() <-chan struct{} { return s.process.Exited }

// Output returns the end of the server's output.
func (s *Server) Output() string { return s.process.Output.String() }

// PID returns the process ID of the server.
func (s *Server) PID() int { return s.process.Cmd.Process.Pid }

// Stop ends the server. A server that keeps its state in a file is shut down cleanly; one in memory has nothing to
// lose.
func (s *Server) Stop() {
	defer s.removeFiles()
	if s.durable {
		_ = s.process.Cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.process.Exited:
			return
		case <-time.After(stopGrace):
		}
	}
	s.process.Kill()
}

// Kill ends the server at once. Its database file remains usable.
func (s *Server) Kill() {
	s.process.Kill()
	s.removeFiles()
}

func portOr(ctx context.Context, port int) (int, error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		if port != 0 {
			return 0, fmt.Errorf("port %d cannot be used, give another one or 0 for a free one: %w", port, err)
		}
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// ServerFile describes the server that `starter dev` runs in the working directory.
type ServerFile struct {
	Address      string `json:"address"`
	PayloadStore string `json:"payload_store"`
	Key          string `json:"key"`       // that clients must send, "" for none
	UI           string `json:"ui"`        // base of the links into its web UI
	UISocket     string `json:"ui_socket"` // "" where the web UI has a port
}

// ServerFileOf returns the server of `starter dev` if it has the given address, else the zero value. The key in another
// user's file is not used.
func ServerFileOf(address string) ServerFile {
	data, err := ReadOwn(filepath.Join(private.Folder, "dev.json"))
	if err != nil {
		return ServerFile{}
	}
	var file ServerFile
	if json.Unmarshal(data, &file) != nil || spelledAddress(file.Address) != spelledAddress(address) {
		return ServerFile{}
	}
	return file
}

// spelledAddress returns an address with "localhost" for any name of this machine, as people type it.
func spelledAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err == nil && isLoopback(host) {
		return net.JoinHostPort("localhost", port)
	}
	return address
}
