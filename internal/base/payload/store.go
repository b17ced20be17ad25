// Package payload keeps large values outside of Temporal. Temporal refuses
// values over 2 MB, and a history full of values just below that ends its run,
// so the SDK passes what is large to a store and puts a reference in its place
// (docs/concepts/loops.md#large-values). Every program that reads the
// values of a run needs the run's store: workers, starters and replayers.
package payload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/memblob" // mem://, for tests
	"gocloud.dev/gcerrors"

	"reprise/internal/base/bucket"
)

// Variable is the environment variable that names the payload store.
const Variable = "REPRISE_PAYLOAD_STORE"

// openTimeout bounds how long a store may take to answer for the first time.
const openTimeout = 15 * time.Second

// Store stores values under the hash of their content: equal values are stored once, and
// writing one again changes nothing. It is safe for concurrent use, also by many processes. nil
// means that there is no store.
type Store struct {
	bucket *blob.Bucket
	name   string
	health health
	kept   recentKeys
	watch  Watch
	// scripts caches scripts that were read recently.
	scripts *lru.Cache[reference, []byte]
}

// Watch is called for each reading and writing of a value (operation is read or write):
// its size, how long it took, and its error. It is called concurrently.
type Watch func(operation string, bytes int64, took time.Duration, err error)

// Watched has watch called for reads and writes from now on. It is set before the store
// is used; a nil store does nothing.
func (s *Store) Watched(watch Watch) {
	if s != nil {
		s.watch = watch
	}
}

// Open opens the store at an address such as file:///var/lib/reprise/payloads,
// s3://bucket/folder?region=eu-central-1, gs://bucket or azblob://container. The schemes of
// clouds need package cloud. An empty address gives nil. Credentials come from the usual places
// of each cloud, never from the address.
func Open(ctx context.Context, address string) (*Store, error) {
	if address == "" {
		return nil, nil
	}
	at, err := bucket.Parse(address, "the payload store", map[string]string{"dir_file_mode": "0700"}) // readable by its owner alone
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	opened, err := at.Open(ctx)
	if err != nil {
		return nil, markerError(at, err)
	}
	// A client that may not list may still be allowed to read and write.
	found, err := opened.IsAccessible(ctx)
	if err == nil && !found {
		err = errors.New("it does not exist")
	}
	if err == nil && at.IsFolder() {
		err = checkMarker(ctx, opened, strings.Contains(at.Target, createOption+"=true"))
	}
	if err != nil && gcerrors.Code(err) != gcerrors.PermissionDenied {
		_ = opened.Close()
		return nil, markerError(at, at.OpenError(err))
	}
	scripts, err := lru.New[reference, []byte](mostScripts)
	if err != nil {
		panic(err) // of a size that is not positive
	}
	return &Store{bucket: opened, name: at.Name, scripts: scripts}, nil
}

// markerError is the error of a location that cannot be opened. A folder that does not exist was not prepared.
func markerError(at bucket.Location, err error) error {
	if at.IsFolder() && errors.Is(err, fs.ErrNotExist) {
		return at.OpenError(errNoStore)
	}
	return err
}

const (
	// createOption is the option of an address that has the folder of a store made.
	createOption = "create_dir"
	// marker is what a store in a folder has, so that an empty folder in its place is noticed: where a share is not
	// mounted, each machine would keep its own values.
	marker = "reprise-payload-store"
)

// errNoStore says that a folder is no store.
var errNoStore = errors.New("the folder is not a payload store: it does not exist, has not been prepared, or what belongs there is not mounted; " +
	"once for each store: starter setup --payload-store ADDRESS")

// checkMarker makes sure that a folder is a store; with create it becomes one.
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

// Prepare makes the folder of a store, if its address is a folder's, and marks it as one. Others are as they
// are. The error is that of Open.
func Prepare(ctx context.Context, address string) error {
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

// Directory is the address of a store in a directory, which is made if need be.
func Directory(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the directory of the payload store: %w", err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: createOption + "=true"}).String(), nil
}

// Name is the store's address without anything that could be secret.
func (s *Store) Name() string {
	if s == nil {
		return "none"
	}
	return s.name
}

// Close closes the store. Running operations end with an error.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	return s.bucket.Close()
}
