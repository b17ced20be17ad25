// Package payload keeps large values outside of Temporal. Temporal refuses values over 2 MB, and a history full of
// values just below that ends its run, so the SDK passes large values to a store and puts references in their place
// (docs/concepts/loops.md#large-values). Every program that reads the values of a run needs the run's store: workers,
// starters and replayers.
package payload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/memblob" // mem://, for tests
	"gocloud.dev/gcerrors"

	"reprise/internal/base/bucket"
	"reprise/internal/base/codec"
)

// Variable is the environment variable that names the payload store.
const Variable = "REPRISE_PAYLOAD_STORE"

// openTimeout bounds how long a store may take for its first response.
const openTimeout = 15 * time.Second

// Store stores values under the hash of their content: equal values are stored once, and writing one again changes
// nothing. It is safe for concurrent use, also by many processes. A nil store means that none is configured.
type Store struct {
	place  bucket.Location
	mu     sync.Mutex
	opened *blob.Bucket // nil until it could be opened
	health health
	recent recentKeys
	watch  Watch
	// scripts caches scripts that were read recently.
	scripts *lru.Cache[reference, []byte]
	// encryption encrypts what is stored; nil has no key.
	encryption *codec.Codec
}

// SetEncryption makes the store encrypt the values of the SDK, so that it has no plain ones either. It must be called before the
// store is used; a nil store does nothing.
func (s *Store) SetEncryption(encryption *codec.Codec) {
	if s != nil {
		s.encryption = encryption
	}
}

// Watch is called for each read and write of a value (operation is "read" or "write") with its size, duration and
// error. Calls may be concurrent.
type Watch func(operation string, bytes int64, took time.Duration, err error)

// SetWatch makes the store call watch for reads and writes. It must be called before the store is used; a nil store
// does nothing.
func (s *Store) SetWatch(watch Watch) {
	if s != nil {
		s.watch = watch
	}
}

// Open opens the store at an address such as file:///var/lib/reprise/payloads,
// s3://bucket/folder?region=eu-central-1, gs://bucket or azblob://container. Cloud schemes need package cloud. An
// empty address returns nil. Credentials come from each cloud's usual places, never from the address.
func Open(ctx context.Context, address string) (*Store, error) {
	if address == "" {
		return nil, nil
	}
	store, err := OpenLater(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	opened, err := store.openBucket(ctx)
	if err != nil {
		return nil, err
	}
	// A client without permission to list may still be allowed to read and write.
	create := strings.Contains(store.place.Target, createOption+"=true")
	if err := store.checkPlace(ctx, opened, create); err != nil && gcerrors.Code(err) != gcerrors.PermissionDenied {
		_ = store.Close()
		return nil, store.openError(err)
	}
	return store, nil
}

// OpenLater is Open for programs that can run without the store for a while: it is opened when it is first needed.
// The error is about the address; operations fail with a *StoreError while the store is unavailable.
func OpenLater(address string) (*Store, error) {
	if address == "" {
		return nil, nil
	}
	at, err := bucket.Parse(address, "the payload store", map[string]string{"dir_file_mode": "0700"}) // readable by its owner alone
	if err != nil {
		return nil, err
	}
	scripts, err := lru.New[reference, []byte](mostScripts)
	if err != nil {
		panic(err) // of a size that is not positive
	}
	store := &Store{place: at, scripts: scripts, health: health{changed: make(chan struct{}, 1)}}
	// An address that no driver accepts fails here; cloud buckets are opened without a request.
	if _, err := store.openBucket(context.Background()); err != nil && !isOfFolder(err) {
		return nil, err
	}
	return store, nil
}

// isOfFolder reports whether opening a store failed because of its folder, which may become available later.
func isOfFolder(err error) bool {
	return errors.Is(err, errNoStore) || errors.As(err, new(*fs.PathError)) || errors.As(err, new(syscall.Errno))
}

// openBucket returns the open bucket, and opens it the first time.
func (s *Store) openBucket(ctx context.Context) (*blob.Bucket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened != nil {
		return s.opened, nil
	}
	opened, err := s.place.Open(ctx)
	switch {
	case s.place.IsFolder() && errors.Is(err, fs.ErrNotExist):
		return nil, s.openError(err)
	case err != nil:
		return nil, &StoreError{Text: err.Error(), Err: err}
	}
	s.opened = opened
	return opened, nil
}

// openError converts an error of opening the store to a *StoreError that names the store.
func (s *Store) openError(err error) error {
	if s.place.IsFolder() && errors.Is(err, fs.ErrNotExist) {
		err = errNoStore
	}
	err = s.place.OpenError(err)
	return &StoreError{Text: err.Error(), Err: err}
}

// checkPlace checks that the location is a store. create turns a folder into one.
func (s *Store) checkPlace(ctx context.Context, opened *blob.Bucket, create bool) error {
	found, err := opened.IsAccessible(ctx)
	switch {
	case err != nil:
		return err
	case s.place.IsFolder():
		return checkMarker(ctx, opened, create)
	case !found:
		return errors.New("it does not exist")
	}
	return nil
}

// UnavailableReason returns why the store cannot be opened; nil if it can, or if finding out takes a request to a cloud.
func (s *Store) UnavailableReason(ctx context.Context) error {
	if s == nil || !s.place.IsFolder() {
		return nil
	}
	opened, err := s.openBucket(ctx)
	if err != nil {
		return err
	}
	if err := checkMarker(ctx, opened, false); err != nil {
		return s.openError(err)
	}
	return nil
}

const (
	// createOption is the option of an address that creates the folder of a store.
	createOption = "create_dir"
	// marker is a file that every folder store has, so that an empty folder in its place is noticed: where a share is
	// not mounted, each machine would keep its own values.
	marker = "reprise-payload-store"
)

// errNoStore means that a folder is not a store.
var errNoStore = errors.New("the folder is not a payload store: it does not exist, has not been prepared, or what belongs there is not mounted; " +
	"once for each store: starter setup --payload-store ADDRESS")

// errStoreGone means that a folder is no longer the store that was opened there.
var errStoreGone = errors.New("its folder is gone, or is no longer mounted")

// checkMarker checks that a folder has the marker. create writes it.
func checkMarker(ctx context.Context, opened *blob.Bucket, create bool) error {
	found, err := opened.Exists(ctx, marker)
	switch {
	case err != nil || found:
		return err
	case create:
		return opened.WriteAll(ctx, marker, []byte("Large values of runs of Reprise are here.\n"), &blob.WriterOptions{BeforeWrite: ownerOnly})
	}
	return errNoStore
}

// PrepareFolder creates and marks the folder of a store, if the address is that of a folder; cloud stores need nothing. The
// error is that of Open.
func PrepareFolder(ctx context.Context, address string) error {
	if !strings.HasPrefix(address, bucket.FileScheme) {
		return nil
	}
	made, err := url.Parse(address)
	if err == nil {
		bucket.SetDefaults(made, map[string]string{createOption: "true"})
		address = made.String()
	}
	store, err := Open(ctx, address)
	if err != nil {
		return err
	}
	return store.Close()
}

// DirectoryAddress returns the address of a store in a directory, which is created on opening if it does not exist.
func DirectoryAddress(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the directory of the payload store: %w", err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: createOption + "=true"}).String(), nil
}

// Name returns the store's address without anything that could be secret.
func (s *Store) Name() string {
	if s == nil {
		return "none"
	}
	return s.place.Name
}

// Close closes the store. Operations in progress fail.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened == nil {
		return nil
	}
	return s.opened.Close()
}

// FailureType is the type of a *StoreError in failures of workflow tasks, queries and activities, by which others
// recognise what blocks a run. It is kept in workflow history.
const FailureType = "StoreError"

// StoreError is the error if the store is unavailable, or lacks a value. The text names the store, and the value if there
// is one.
type StoreError struct {
	Text string
	Err  error // nil where it would show secrets
}

func (e *StoreError) Error() string { return e.Text }

// Unwrap returns the reason.
func (e *StoreError) Unwrap() error { return e.Err }
