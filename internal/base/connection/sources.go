package connection

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"reprise/internal/base/regular"
	"reprise/interpreter/expression"
)

// Sources reads the values of secret fields, and caches each for the refresh time of its source. It is safe for
// concurrent use.
type Sources struct {
	// Directory is the directory of secret files; "" for none.
	Directory string
	// Lookup returns an environment variable, usually os.LookupEnv.
	Lookup func(name string) (string, bool)
	// Now is time.Now unless a test sets it.
	Now func() time.Time
	// Stores are the servers that have secrets, by the kind of source.
	Stores map[string]SecretStore
	// Logger receives a warning if a source cannot be read and its previous value is used; nil
	// logs nothing.
	Logger *slog.Logger

	mu        sync.Mutex
	cached    map[SecretSource]*cachedValue
	documents map[SecretSource]*document   // of stores, by sources without field and refresh
	changed   func(what string, err error) // nil for nobody
	leases    leaseWatcher
}

// OnChange sets who is notified when a source has another value than before, or cannot be read any more.
func (s *Sources) OnChange(changed func(what string, err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
}

// notifyChange reports a change of a source that was read before. s.mu is held.
func (s *Sources) notifyChange(of SecretSource, err error) {
	if s.changed != nil {
		s.changed("secret from "+of.String(), err)
	}
}

// cachedValue is a cached value.
type cachedValue struct {
	value string
	read  time.Time   // when it was read well
	file  fs.FileInfo // of a file as it was then
	tried fs.FileInfo // the file that could not be read since and was logged
}

const (
	// stale is how long a cached value is used while it cannot be read again.
	stale = time.Hour
	// mostSecret bounds a secret file, in bytes: a path that names a device or a log must not fill the worker's
	// memory.
	mostSecret = 1 << 20
)

// ErrMissing means that a source has no value: there is no such file, variable or field.
var ErrMissing = errors.New("no such secret")

// ErrUnreadable means that a source cannot be read right now.
var ErrUnreadable = errors.New("the secret cannot be read")

// Read returns the value of a source. It is read again if the cached one is old, the file has changed, or anew is
// true. The error is ErrMissing or ErrUnreadable, with the source.
func (s *Sources) Read(source SecretSource, anew bool) (string, error) {
	if source.isStored() {
		return s.readStored(source, anew)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cached := s.cached[source]
	state, err := s.stateOf(source)
	if err == nil && cached != nil && !anew && regular.Unchanged(cached.file, state) && s.Now().Sub(cached.read) < source.Refresh {
		return cached.value, nil
	}
	value := ""
	if err == nil {
		value, err = s.valueOf(source)
	}
	switch {
	case err == nil:
		if s.cached == nil {
			s.cached = map[SecretSource]*cachedValue{}
		}
		s.cached[source] = &cachedValue{value: value, read: s.Now(), file: state}
		if cached != nil && cached.value != value {
			s.notifyChange(source, nil)
		}
		return value, nil
	case errors.Is(err, ErrMissing) || cached == nil || s.Now().Sub(cached.read) >= stale:
		return "", fmt.Errorf("%s: %w", source, err)
	}
	anotherFile := state == nil || !regular.Unchanged(cached.tried, state)
	if anotherFile && state != nil {
		s.notifyChange(source, err)
	}
	if s.Logger != nil && anotherFile {
		s.Logger.Warn("cannot re-read a secret; its last value stays in use", "source", source.String(), "error", err, "read_at", cached.read)
	}
	cached.tried = state
	return cached.value, nil
}

// stateOf identifies the version of a source's file; nil if the source is not a file.
func (s *Sources) stateOf(source SecretSource) (fs.FileInfo, error) {
	if source.From != FromFile {
		return nil, nil
	}
	root, err := s.openRoot()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(source.Path)
	return info, fileError(err)
}

func (s *Sources) openRoot() (*os.Root, error) {
	if s.Directory == "" {
		return nil, fmt.Errorf("%w: no secrets directory is configured; set --secrets-directory or %s", ErrMissing, DirectoryVariable)
	}
	root, err := os.OpenRoot(s.Directory)
	return root, fileError(err)
}

// DirectoryVariable is the environment variable of the directory of secrets.
const DirectoryVariable = "REPRISE_SECRETS_DIRECTORY"

// fileError converts an error of reading a secret file. An error that is not the system's means that the path leads
// out of the directory: there is no such secret.
func fileError(err error) error {
	var cause syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), !errors.As(err, &cause):
		return ErrMissing
	}
	return fmt.Errorf("%w: %w", ErrUnreadable, cause)
}

// valueOf reads the value of a source, uncached.
func (s *Sources) valueOf(source SecretSource) (string, error) {
	value, err := "", error(nil)
	if source.From == FromFile {
		value, err = s.readFile(source.Path)
	} else {
		value, _ = s.Lookup(source.Name)
		if value == "" {
			err = ErrMissing
		}
	}
	if err != nil {
		return "", err
	}
	return source.memberOf(value)
}

// memberOf returns the field of a value that the source names; the value itself if it names none.
func (s SecretSource) memberOf(value string) (string, error) {
	if s.Field == "" {
		return value, nil
	}
	decoded, err := expression.Decode([]byte(value))
	fields, isMap := decoded.(map[string]any)
	if err != nil || !isMap {
		return "", fmt.Errorf("%w: it is not a JSON object", ErrUnreadable)
	}
	if value, _ = fields[s.Field].(string); value == "" {
		return "", ErrMissing
	}
	return value, nil
}

// readFile reads a file without its final line break. An empty file counts as unreadable: it is being written.
func (s *Sources) readFile(path string) (string, error) {
	root, err := s.openRoot()
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for its writer
	if err != nil {
		return "", fileError(err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: it is not a regular file", ErrUnreadable)
	}
	data, err := io.ReadAll(io.LimitReader(file, mostSecret+1))
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case err != nil:
		return "", fileError(err)
	case len(data) > mostSecret:
		return "", fmt.Errorf("%w: it has more than %d bytes", ErrUnreadable, mostSecret)
	case value == "" || strings.ContainsRune(value, 0):
		return "", fmt.Errorf("%w: it is empty or not text", ErrUnreadable)
	}
	return value, nil
}
