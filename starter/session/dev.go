package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/private"
	"reprise/internal/program/localserver"
	"reprise/starter/cli"
)

// stateDir is the folder of local servers' state in the working directory.
const stateDir = private.Folder

// DevState is the file in which `starter dev` describes its server for other commands.
type DevState struct {
	Address   string `json:"address"`
	UI        string `json:"ui"`
	UISocket  string `json:"ui_socket,omitempty"`   // of the web UI, which only pages lead to
	Page      string `json:"page,omitempty"`        // link to the page of runs, with its key
	DBFile    string `json:"db_filename,omitempty"` // absolute; "" for a server in memory
	Namespace string `json:"namespace"`
	TaskQueue string `json:"task_queue,omitempty"` // of its worker, "" without one
	// PayloadStore is the address of the payload store of its runs.
	PayloadStore string `json:"payload_store,omitempty"`
	// Key is the key that clients of the server send, and with which starters vouch for code.
	Key       string    `json:"key,omitempty"`
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
}

// StatePath returns the path of this directory's DevState.
func StatePath() string { return filepath.Join(stateDir, "dev.json") }

// Write stores the state for FindDev, atomically.
func (s DevState) Write() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = localserver.OwnFolder(stateDir)
	}
	if err == nil {
		err = cli.ReplaceFile(StatePath(), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the state of the local server: %w", err)
	}
	return nil
}

// RemoveFile deletes the file if it still belongs to this process.
func (s DevState) RemoveFile() {
	if current, err := ReadState(); err == nil && current.PID == s.PID {
		_ = os.Remove(StatePath())
	}
}

// ReadState reads this directory's DevState.
func ReadState() (DevState, error) { return readStateFile(StatePath()) }

func readStateFile(path string) (DevState, error) {
	var state DevState
	data, err := localserver.ReadOwn(path)
	if err != nil {
		return DevState{}, err
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return DevState{}, fmt.Errorf("read %s: %w", path, err)
	}
	if state.Address == "" {
		return state, nil
	}
	return state, localserver.CheckLoopback(path, state.Address)
}

// DevInParent returns a parent directory in which `starter dev` runs. Commands here do not use that server, since its
// worker uses the connections and files of its own directory.
func DevInParent(ctx context.Context) (folder string, found bool) {
	folder, err := filepath.Abs(".")
	for err == nil && folder != filepath.Dir(folder) {
		folder = filepath.Dir(folder)
		state, failure := readStateFile(filepath.Join(folder, StatePath()))
		if failure == nil && state.isAlive(ctx) {
			return folder, true
		}
	}
	return "", false
}

// DevServer is a connection to the server of a running `starter dev`.
type DevServer struct {
	connection

	State DevState
}

// Close closes the connection. The server keeps running.
func (d *DevServer) Close() {
	d.client.Close()
	_ = d.store.Close()
	d.telemetry.Close()
}

// FindDev connects to the server of a `starter dev` in this directory. namespace and payloadStore default to the
// server's own; metrics is the address of a metrics endpoint, "" for none. It returns nil if there is no server, and
// removes the state of one that has stopped. A server without the namespace, or one that responds too slowly, is an
// error.
func FindDev(ctx context.Context, namespace, payloadStore, metrics string) (*DevServer, error) {
	state, err := ReadState()
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, localserver.ErrForeign) {
		return nil, cli.WithStatus(exitcode.Usage, err)
	}
	if err == nil && state.Address != "" {
		state.Namespace = cmp.Or(namespace, state.Namespace)
		found, err := dialDev(ctx, state, cmp.Or(payloadStore, state.PayloadStore), metrics)
		var silent *connect.NoServerError
		if err == nil || connect.IsNamespaceMissing(err) || !errors.As(err, &silent) || ctx.Err() != nil {
			return found, err
		}
		if state.isAlive(ctx) {
			return nil, cli.WithStatus(exitcode.NoServer, fmt.Errorf("starter dev, process %d, is running but does not respond: %w; "+
				"try again, or stop it", state.PID, err))
		}
	}
	_ = os.Remove(StatePath())
	return nil, nil
}

// livesTimeout bounds the check whether something listens at an address.
const livesTimeout = 2 * time.Second

// isAlive reports whether the process exists and something listens at its address, even if it is too busy, or
// suspended, to respond.
func (s DevState) isAlive(ctx context.Context) bool {
	if s.PID <= 0 || errors.Is(syscall.Kill(s.PID, 0), syscall.ESRCH) {
		return false
	}
	connection, err := (&net.Dialer{Timeout: livesTimeout}).DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = connection.Close()
	return true
}

func dialDev(ctx context.Context, state DevState, payloadStore, metrics string) (*DevServer, error) {
	options := connect.WithKey(client.Options{HostPort: state.Address, Namespace: state.Namespace}, state.Key)
	probe, err := connect.Dial(ctx, options, nil, nil) // a server that is gone has no store either
	if err != nil {
		return nil, cli.WithStatus(exitcode.NoServer, err)
	}
	probe.Close()
	server, err := dialServer(ctx, options, payloadStore, metrics)
	if err != nil {
		return nil, err
	}
	return &DevServer{connection: server, State: state}, nil
}
