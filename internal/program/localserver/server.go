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
)

// Options choose how a server runs. The zero value is a server in memory on
// free ports.
type Options struct {
	Binary    string // "" is what Find finds
	Port      int    // 0: a free one
	UIPort    int    // 0: a free one
	DBFile    string // SQLite file that keeps the state; "" is memory
	Namespace string // "" is connect.DefaultNamespace
	// Key is what clients have to send, where the server can require it: this project's
	// own does, that of the official CLI does not. "" is none.
	Key string
	// Attributes are search attributes that the namespace knows.
	Attributes map[string]enums.IndexedValueType
	Env        []string // more variables, NAME=value
	// ReadyTimeout is how long the server may take until it serves; 0 is a minute.
	ReadyTimeout time.Duration
}

// Server is a running Temporal server.
type Server struct {
	Address   string // host:port
	UIURL     string // without a trailing slash
	Namespace string

	process *childproc.Process
	durable bool
	key     string
}

// keyVariable has the key for this project's own server.
const keyVariable = "DEVSERVER_API_KEY"

const (
	readyTimeout = 60 * time.Second
	stopGrace    = 8 * time.Second
	attempts     = 3 // a free port can be taken before the server listens on it
)

// Start runs a server and returns once it serves and its web UI answers. The
// caller stops it; it dies with this process in any case (on Linux).
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
	}
	for attempt := 1; ; attempt++ {
		server, err := start(ctx, options)
		if err == nil {
			return server, nil
		}
		fixed := options.Port != 0 && options.UIPort != 0
		if attempt == attempts || fixed || ctx.Err() != nil {
			return nil, fmt.Errorf("start a local Temporal server with %s: %w", options.Binary, err)
		}
	}
}

func start(ctx context.Context, options Options) (*Server, error) {
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
		UIURL:     "http://127.0.0.1:" + strconv.Itoa(uiPort),
		Namespace: options.Namespace,
		durable:   options.DBFile != "",
		key:       options.Key,
	}
	cmd := command(options, port, uiPort)
	cmd.SysProcAttr = childAttr()
	server.process, err = childproc.Start(cmd)
	if err != nil {
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

func command(options Options, port, uiPort int) *exec.Cmd {
	args := []string{
		"server", "start-dev", "--ip", "127.0.0.1", "--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(uiPort),
		"--namespace", options.Namespace, "--log-level", "error",
		// Ours has these by itself, Temporal's own command has not: runs take turns.
		"--dynamic-config-value", "matching.enableFairness=true",
		"--dynamic-config-value", "matching.numTaskqueueWritePartitions=1",
		// Temporal's own command opens an HTTP API, on a free port and for every web
		// page. It cannot be turned off, but serve a host that no client can name.
		"--dynamic-config-value", `frontend.httpAllowedHosts=["` + rand.Text() + `"]`,
	}
	if options.DBFile != "" {
		args = append(args, "--db-filename", options.DBFile)
	}
	for _, name := range slices.Sorted(maps.Keys(options.Attributes)) {
		args = append(args, "--search-attribute", name+"="+options.Attributes[name].String())
	}
	//nolint:noctx // it ends with Stop, which is gentler than a context
	cmd := exec.Command(options.Binary, args...)
	// The user's own settings are about the server of their choice, not this one.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "TEMPORAL_") || strings.HasPrefix(entry, keyVariable+"=")
	})
	cmd.Env = append(cmd.Env, options.Env...)
	if options.Key != "" {
		cmd.Env = append(cmd.Env, keyVariable+"="+options.Key)
	}
	return cmd
}

// ClientOptions are how this server is connected to.
func (s *Server) ClientOptions() client.Options {
	return connect.WithKey(client.Options{HostPort: s.Address, Namespace: s.Namespace}, s.key)
}

// awaitReady waits until the namespace answers and the web UI, which starts
// last, accepts connections.
func (s *Server) awaitReady(ctx context.Context, uiPort int, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := s.poll(ctx, func() error {
		c, err := connect.Dial(ctx, s.ClientOptions(), nil)
		if err == nil {
			c.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.poll(ctx, func() error {
		var dialer net.Dialer
		connection, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(uiPort))
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
}

var errExited = errors.New("the server has ended")

func (s *Server) poll(ctx context.Context, check func() error) error {
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

// Exited is closed once the server's process has ended, however that came.
func (s *Server) Exited() <-chan struct{} { return s.process.Exited }

// Output is the end of what the server has printed.
func (s *Server) Output() string { return s.process.Output.String() }

// PID is the process ID of the server.
func (s *Server) PID() int { return s.process.Cmd.Process.Pid }

// Stop ends the server. One that keeps its state in a file may first put it
// in order; one in memory has nothing to lose.
func (s *Server) Stop() {
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

// Kill ends the server at once. Its file stays usable.
func (s *Server) Kill() { s.process.Kill() }

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

// ServerFile is what `starter dev` has written of the server that it runs in the working
// directory.
type ServerFile struct {
	Address      string `json:"address"`
	PayloadStore string `json:"payload_store"`
	Key          string `json:"key"` // that clients must send, "" for none
}

// KeptAt is the server of `starter dev` if that is the one at the given address,
// else the zero value. The key of a file that is another user's is not sent.
func KeptAt(address string) ServerFile {
	data, err := ReadOwn(filepath.Join(".reprise", "dev.json"))
	if err != nil {
		return ServerFile{}
	}
	var kept ServerFile
	if json.Unmarshal(data, &kept) != nil || spelled(kept.Address) != spelled(address) {
		return ServerFile{}
	}
	return kept
}

// spelled is an address with one name for this machine: people type localhost.
func spelled(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err == nil && isLoopback(host) {
		return net.JoinHostPort("localhost", port)
	}
	return address
}
