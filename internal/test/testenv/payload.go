package testenv

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/codec"
	"reprise/internal/base/payload"
)

// PayloadStore returns the payload store of the process, a directory that is deleted at its end. Its name is its
// address, for other processes.
func PayloadStore(t testing.TB) *payload.Store {
	t.Helper()
	store, err := sharedStore()
	if err != nil {
		t.Fatal(err)
	}
	return store
}

var sharedStore = sync.OnceValues(func() (*payload.Store, error) {
	dir, err := os.MkdirTemp("", "reprise-payloads-")
	if err != nil {
		return nil, fmt.Errorf("make a payload store: %w", err)
	}
	atExit(func() { _ = os.RemoveAll(dir) })
	address, err := payload.DirectoryAddress(dir)
	if err != nil {
		return nil, err
	}
	store, err := payload.Open(context.Background(), address)
	if err == nil {
		atExit(func() { _ = store.Close() })
	}
	return store, err
})

// WithPayloadStore returns an Env for the same server whose client stores large values in PayloadStore.
func (e *Env) WithPayloadStore(t testing.TB) *Env {
	t.Helper()
	return e.WithStore(t, PayloadStore(t))
}

// WithStore is Storing with a given store.
func (e *Env) WithStore(t testing.TB, store *payload.Store) *Env {
	t.Helper()
	storing := *e
	storing.client = e.Dial(t, store.ClientOptions(client.Options{}))
	return &storing
}

// WithEncryption returns an Env for the same server whose client encrypts. What it stores is in store, nil for none.
func (e *Env) WithEncryption(t testing.TB, store *payload.Store, encryption *codec.Codec) *Env {
	t.Helper()
	options, err := encryption.ClientOptions(store.ClientOptions(client.Options{}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	encrypting := *e
	encrypting.client = e.Dial(t, options)
	return &encrypting
}
