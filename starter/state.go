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
)

// stateDir holds what local servers leave behind, in the working directory.
const stateDir = ".reprise"

// devState is what `starter dev` tells other commands about its server.
type devState struct {
	Address   string    `json:"address"`
	UI        string    `json:"ui"`
	Namespace string    `json:"namespace"`
	TaskQueue string    `json:"task_queue,omitempty"` // of its worker, "" without one
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

// findDev connects to the server of a `starter dev` in this directory, in the
// given namespace or, for "", in its own. Without a server it gives nil, and the
// state of one that no longer answers is removed; a server without the
// namespace is an error.
func findDev(ctx context.Context, namespace string) (client.Client, devState, error) {
	state, err := readState()
	if errors.Is(err, os.ErrNotExist) {
		return nil, devState{}, nil
	}
	if err == nil && state.Address != "" {
		state.Namespace = cmp.Or(namespace, state.Namespace)
		c, err := connect.Dial(ctx, client.Options{HostPort: state.Address, Namespace: state.Namespace}, nil)
		var missing *serviceerror.NamespaceNotFound
		if err == nil || errors.As(err, &missing) || ctx.Err() != nil {
			return c, state, err
		}
	}
	_ = os.Remove(statePath())
	return nil, devState{}, nil
}
