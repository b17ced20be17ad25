package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

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

// findDev connects to the server of a `starter dev` in this directory. Without
// one it gives nil; the state of one that no longer answers is removed.
func findDev(ctx context.Context) (client.Client, devState) {
	state, err := readState()
	if errors.Is(err, os.ErrNotExist) {
		return nil, devState{}
	}
	if err == nil && state.Address != "" {
		c, err := connect.Dial(ctx, client.Options{HostPort: state.Address, Namespace: state.Namespace}, nil)
		if err == nil {
			return c, state
		}
		if ctx.Err() != nil {
			return nil, devState{}
		}
	}
	_ = os.Remove(statePath())
	return nil, devState{}
}
