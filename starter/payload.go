package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"reprise/internal/payload"
	_ "reprise/internal/payload/cloud" // s3://; with -tags allclouds gs:// and azblob:// too
)

// openStore opens the payload store that the user or the server's owner chose;
// "" is none. What is wrong with it is wrong usage.
func openStore(ctx context.Context, address string) (*payload.Store, error) {
	store, err := payload.Open(ctx, address)
	if err != nil {
		return nil, withStatus(exitUsage, err)
	}
	return store, nil
}

// localStore opens the payload store of a server of our own: the one the user
// chose, else a directory beside the file that keeps the server's state. A
// server in memory gets a directory that remove takes away with it.
func localStore(ctx context.Context, address, dbFile string) (store *payload.Store, remove func(), err error) {
	if address != "" {
		store, err = openStore(ctx, address)
		return store, func() {}, err
	}
	path, remove := filepath.Join(filepath.Dir(dbFile), "payloads"), func() {}
	if dbFile == "" {
		if path, err = temporaryStore(); err != nil {
			return nil, remove, fmt.Errorf("make a directory for large values: %w", err)
		}
		remove = func() { _ = os.RemoveAll(path) }
	}
	if address, err = payload.Directory(path); err == nil {
		store, err = openStore(ctx, address)
	}
	return store, remove, err
}

// temporaryStore makes a directory in ours, or where that cannot be in the
// system's.
func temporaryStore() (string, error) {
	_ = os.MkdirAll(stateDir, 0o750)
	path, err := os.MkdirTemp(stateDir, "payloads-")
	if err != nil {
		path, err = os.MkdirTemp("", "reprise-payloads-")
	}
	return path, err
}
