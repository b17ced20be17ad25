package payload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// ErrMissing means that a value is not, or no longer, in the store.
var ErrMissing = errors.New("the value is missing")

// ErrCorrupt means that a stored value is not what was written.
var ErrCorrupt = errors.New("the value is corrupt")

// reference identifies a stored value. It is kept in workflow history.
type reference struct {
	key  string // sha256/, the first two digits of the hash, /, the hash
	size int64  // bytes
}

// fresh is the age up to which an existing value is not written again. Older values are rewritten, so that lifecycle
// rules that delete by age do not delete a value that a new run needs.
const fresh = 24 * time.Hour

// maxBlob bounds how much is read for a reference, in bytes. References come from histories, which others may have
// written, and memory of their size is reserved before reading.
const maxBlob = 1 << 30

var validKey = regexp.MustCompile(`^sha256/([0-9a-f]{2})/([0-9a-f]{64})$`)

func referenceTo(data []byte) reference {
	sum := sha256.Sum256(data)
	digits := hex.EncodeToString(sum[:])
	return reference{key: "sha256/" + digits[:2] + "/" + digits, size: int64(len(data))}
}

// toClaim converts the reference to the form in which Temporal stores it.
func (r reference) toClaim(store string) map[string]string {
	return map[string]string{"key": r.key, "size": strconv.FormatInt(r.size, 10), "store": store}
}

func parseClaim(claim map[string]string) (reference, error) {
	size, err := strconv.ParseInt(claim["size"], 10, 64)
	parts := validKey.FindStringSubmatch(claim["key"])
	if err != nil || size < 0 || size > maxBlob || parts == nil || parts[2][:2] != parts[1] {
		return reference{}, fmt.Errorf("the reference to a stored value (key %q, size %q) does not belong to this driver",
			claim["key"], claim["size"])
	}
	return reference{key: claim["key"], size: size}, nil
}

// putValue writes a value and returns its reference. The value appears in the store as a whole, before putValue
// returns.
func (s *Store) putValue(ctx context.Context, data []byte) (reference, error) {
	ref := referenceTo(data)
	if s.recent.hasKey(ref.key) {
		return ref, nil
	}
	ctx, cancel := context.WithTimeout(ctx, mostTime(ref.size))
	defer cancel()
	bucket, err := s.openBucket(ctx)
	if err != nil {
		s.health.recordWrite(err)
		return ref, err
	}
	found, err := bucket.Attributes(ctx, ref.key)
	if err == nil && found.Size == ref.size && time.Since(found.ModTime) < fresh {
		return ref, nil
	}
	return ref, s.writeValue(ctx, ref, data)
}

// ownerOnly makes a file readable by its owner only, whatever the umask, if its folder is.
func ownerOnly(as func(any) bool) error {
	var file *os.File
	if !as(&file) {
		return nil // an object of a bucket
	}
	folder, err := os.Stat(filepath.Dir(file.Name()))
	const others = 0o077
	if err != nil || folder.Mode().Perm()&others != 0 { // dir_file_mode of the address shares the store
		return err
	}
	return file.Chmod(0o600)
}

// writeValue writes a value unconditionally, and records whether the store accepted it.
func (s *Store) writeValue(ctx context.Context, ref reference, data []byte) error {
	began := time.Now()
	err := s.writeBlob(ctx, ref.key, data)
	s.observeWatch(writeOperation, ref.size, began, err)
	if err != nil {
		err = &StoreError{Text: fmt.Sprintf("write %s (%d bytes) to the payload store %s: %v", ref.key, ref.size, s.Name(), err), Err: err}
	}
	if !errors.Is(ctx.Err(), context.Canceled) { // which says nothing about the store
		s.health.recordWrite(err)
	}
	return err
}

// writeBlob writes a value to the store. A folder without the marker is not the store: it may be a mount point where
// nothing is mounted any more.
func (s *Store) writeBlob(ctx context.Context, key string, data []byte) error {
	bucket, err := s.openToWrite(ctx)
	if err != nil {
		return err
	}
	return bucket.WriteAll(ctx, key, data, writerOptions())
}

// openToWrite opens the bucket, and refuses a folder that is not the store's any more.
func (s *Store) openToWrite(ctx context.Context) (*blob.Bucket, error) {
	bucket, err := s.openBucket(ctx)
	if err == nil && s.place.IsFolder() {
		err = goneError(checkMarker(ctx, bucket, false))
	}
	return bucket, err
}

func writerOptions() *blob.WriterOptions {
	return &blob.WriterOptions{ContentType: "application/x-protobuf", BeforeWrite: ownerOnly}
}

// The names of operations.
const (
	readOperation  = "read"
	writeOperation = "write"
)

// Operations returns the names of operations that a Watch receives.
func Operations() []string { return []string{readOperation, writeOperation} }

func (s *Store) observeWatch(operation string, bytes int64, began time.Time, err error) {
	if s.watch != nil {
		s.watch(operation, bytes, time.Since(began), err)
	}
}

// mostTime bounds the read or write of a value by its size in bytes: a store that does not respond must not block a
// worker forever.
func mostTime(size int64) time.Duration {
	const slowest = 256 << 10 // bytes a second
	return 20*time.Second + time.Duration(size/slowest)*time.Second
}

// getValue reads a value and checks that it is what was written.
func (s *Store) getValue(ctx context.Context, ref reference) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, mostTime(ref.size))
	defer cancel()
	began := time.Now()
	data, err := s.readValue(ctx, ref)
	s.observeWatch(readOperation, ref.size, began, err)
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		err = s.missingReason(ctx)
	case err == nil && referenceTo(data) != ref:
		err = fmt.Errorf("%w: its hash differs", ErrCorrupt)
	}
	s.health.recordRead(ctx, err)
	if err != nil {
		return nil, s.readError(ref, err)
	}
	return data, nil
}

// goneError replaces errNoStore by errStoreGone: the folder was a store when it was opened.
func goneError(err error) error {
	if errors.Is(err, errNoStore) {
		return errStoreGone
	}
	return err
}

// missingReason returns why a value was not found: ErrMissing, or an error if the store itself is gone.
func (s *Store) missingReason(ctx context.Context) error {
	bucket, err := s.openBucket(ctx)
	if err == nil {
		err = goneError(s.checkPlace(ctx, bucket, false))
	}
	if err != nil && gcerrors.Code(err) != gcerrors.PermissionDenied { // of one who may not list
		return err
	}
	return ErrMissing
}

// checkValue checks that a value exists, without reading it.
func (s *Store) checkValue(ctx context.Context, ref reference) error {
	bucket, err := s.openBucket(ctx)
	if err != nil {
		return err
	}
	found, err := bucket.Exists(ctx, ref.key)
	if err == nil && !found {
		err = s.missingReason(ctx)
	}
	if err != nil {
		return s.readError(ref, err)
	}
	return nil
}

// mostScripts bounds the scripts that a process caches: a worker meets any number of playbooks. Scripts are smaller
// than other stored values, and all children of a run need the same one.
const mostScripts = 64

// getScript is getValue with a cache for values below Threshold, which are scripts.
func (s *Store) getScript(ctx context.Context, ref reference) ([]byte, error) {
	if ref.size >= Threshold {
		return s.getValue(ctx, ref)
	}
	if data, known := s.scripts.Get(ref); known {
		return data, nil
	}
	data, err := s.getValue(ctx, ref)
	if err == nil {
		s.scripts.Add(ref, data)
	}
	return data, err
}

func (s *Store) readError(ref reference, err error) error {
	return &StoreError{Text: fmt.Sprintf("read %s (%d bytes) from the payload store %s: %v", ref.key, ref.size, s.Name(), err), Err: err}
}

func (s *Store) readValue(ctx context.Context, ref reference) ([]byte, error) {
	bucket, err := s.openBucket(ctx)
	if err != nil {
		return nil, err
	}
	reader, err := bucket.NewReader(ctx, ref.key, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	if size := reader.Size(); size != ref.size {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrCorrupt, size)
	}
	data := make([]byte, ref.size)
	if _, err := io.ReadFull(reader, data); err != nil {
		return nil, err
	}
	return data, nil
}
