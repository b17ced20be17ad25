package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/payload"
	_ "reprise/internal/base/payload/cloud" // s3://; with -tags allclouds gs:// and azblob:// too
	"reprise/internal/program/host"
	"reprise/internal/program/localserver"
	"reprise/starter/cli"
)

// openStore opens the payload store at an address that the user or the server's owner chose; "" is none. Errors are
// usage errors.
func openStore(ctx context.Context, address string) (*payload.Store, error) {
	store, err := payload.Open(ctx, address)
	if err != nil {
		return nil, cli.WithStatus(exitcode.Usage, err)
	}
	return store, nil
}

// CheckStore checks that a payload store exists at an address. Errors are usage errors.
func CheckStore(ctx context.Context, address string) error {
	store, err := openStore(ctx, address)
	if err != nil {
		return err
	}
	return store.Close()
}

// localStore opens the payload store of a local server: the one that the user chose, else a directory beside the
// database file. A server in memory gets a temporary directory, which remove deletes.
func localStore(ctx context.Context, address, dbFile string) (store *payload.Store, remove func(), err error) {
	removeLeftStores()
	if address != "" {
		if err = payload.PrepareFolder(ctx, address); err != nil {
			return nil, func() {}, cli.WithStatus(exitcode.Usage, err)
		}
		store, err = openStore(ctx, address)
		return store, func() {}, err
	}
	path, remove := filepath.Join(filepath.Dir(dbFile), payloadsFolder), func() {}
	if dbFile == "" {
		if path, remove, err = temporaryStore(); err != nil {
			return nil, func() {}, fmt.Errorf("make a directory for large values: %w", err)
		}
	}
	if address, err = payload.DirectoryAddress(path); err == nil {
		store, err = openStore(ctx, address)
	}
	return store, remove, err
}

const storePrefix = "payloads-"

// temporaryStore creates a directory in stateDir, or else in the system's temporary directory. It stays locked as
// long as this process lives, so that other processes see that it is in use.
func temporaryStore() (path string, remove func(), err error) {
	if err = localserver.OwnFolder(stateDir); err == nil {
		if all, err := lockDirectory(stateDir, 0); err == nil {
			defer all.Close() // until the new one is locked
		}
		path, err = os.MkdirTemp(stateDir, storePrefix)
	}
	if err != nil {
		path, err = os.MkdirTemp("", "reprise-"+storePrefix)
	}
	if err != nil {
		return "", nil, err
	}
	lock, err := lockDirectory(path, syscall.LOCK_NB)
	if err != nil {
		_ = os.RemoveAll(path)
		return "", nil, err
	}
	return path, func() {
		_ = os.RemoveAll(path)
		_ = lock.Close()
	}, nil
}

// removeLeftStores deletes the directories of in-memory servers that were killed: those are not locked.
func removeLeftStores() {
	if _, err := os.Lstat(stateDir); err != nil || localserver.OwnFolder(stateDir) != nil {
		return // nothing of ours is there
	}
	all, err := lockDirectory(stateDir, 0)
	if err != nil {
		return
	}
	defer all.Close()
	left, _ := filepath.Glob(filepath.Join(stateDir, storePrefix+"*")) // only a bad pattern is an error
	for _, path := range left {
		if lock, err := lockDirectory(path, syscall.LOCK_NB); err == nil {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}

// lockDirectory locks a directory until the returned file is closed or the process ends. how is 0 to wait for the
// lock, or LOCK_NB.
func lockDirectory(path string, how int) (*os.File, error) {
	directory, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(directory.Fd()), syscall.LOCK_EX|how); err != nil {
		_ = directory.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return directory, nil
}

// MostBytes returns how many bytes of JSON one value may have in Temporal or the payload store.
func (s *Session) MostBytes() (int, error) {
	payloads, err := host.PayloadLimits(s.Store, os.LookupEnv)
	if err != nil {
		return 0, cli.WithStatus(exitcode.Usage, err)
	}
	return payloads.MaxBytes, nil
}
