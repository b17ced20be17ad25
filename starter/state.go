package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"reprise/internal/connect"
	"reprise/internal/payload"
)

// stateDir holds what local servers leave behind, in the working directory.
const stateDir = ".reprise"

// devState is what `starter dev` tells other commands about its server.
type devState struct {
	Address   string `json:"address"`
	UI        string `json:"ui"`
	Namespace string `json:"namespace"`
	TaskQueue string `json:"task_queue,omitempty"` // of its worker, "" without one
	// PayloadStore is where large values of its runs are.
	PayloadStore string `json:"payload_store,omitempty"`
	// Key is what clients of the server have to send, and starters of its worker
	// vouch with.
	Key       string    `json:"key,omitempty"`
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
}

func statePath() string { return filepath.Join(stateDir, "dev.json") }

// write puts the state where findDev looks. A reader sees all of it or none.
func (s devState) write() error {
	if err := os.MkdirAll(stateDir, 0o750); err != nil {
		return fmt.Errorf("write the state of the local server: %w", err)
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write the state of the local server: %w", err)
	}
	temporary := fmt.Sprintf("%s.%d", statePath(), os.Getpid())
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the state of the local server: %w", err)
	}
	if err := os.Rename(temporary, statePath()); err != nil {
		return fmt.Errorf("write the state of the local server: %w", err)
	}
	return nil
}

// remove takes the state away if it is still ours.
func (s devState) remove() {
	if current, err := readState(); err == nil && current.PID == s.PID {
		_ = os.Remove(statePath())
	}
}

func readState() (devState, error) {
	var state devState
	data, err := os.ReadFile(statePath())
	if err != nil {
		return devState{}, err
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return devState{}, fmt.Errorf("read %s: %w", statePath(), err)
	}
	return state, nil
}

// devServer is the server of a `starter dev` that answers.
type devServer struct {
	state  devState
	client client.Client
	store  *payload.Store
}

func (d *devServer) close() {
	d.client.Close()
	_ = d.store.Close()
}

// findDev connects to the server of a `starter dev` in this directory, in the
// given namespace and with the given payload store or, for "", in and with its
// own. Without a server it gives nil, and the state of one that no longer
// answers is removed; a server without the namespace is an error.
func findDev(ctx context.Context, namespace, payloadStore string) (*devServer, error) {
	state, err := readState()
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil && state.Address != "" {
		state.Namespace = cmp.Or(namespace, state.Namespace)
		found, err := dialDev(ctx, state, cmp.Or(payloadStore, state.PayloadStore))
		var missing *serviceerror.NamespaceNotFound
		var silent *connect.NoServerError
		if err == nil || errors.As(err, &missing) || !errors.As(err, &silent) || ctx.Err() != nil {
			return found, err
		}
	}
	_ = os.Remove(statePath())
	return nil, nil
}

func dialDev(ctx context.Context, state devState, payloadStore string) (*devServer, error) {
	options := connect.WithKey(client.Options{HostPort: state.Address, Namespace: state.Namespace}, state.Key)
	probe, err := connect.Dial(ctx, options, nil) // a server that is gone has no store either
	if err != nil {
		return nil, withStatus(exitNoServer, err)
	}
	probe.Close()
	store, err := openStore(ctx, payloadStore)
	if err != nil {
		return nil, err
	}
	c, err := connect.Dial(ctx, store.Use(options), nil)
	if err != nil {
		_ = store.Close()
		return nil, withStatus(exitNoServer, err)
	}
	return &devServer{state: state, client: c, store: store}, nil
}
