package regular

import (
	"io/fs"
	"log/slog"
	"os"
	"sync"
)

// Unchanged reports whether a file is still the one that it was, nil for no file.
func Unchanged(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Reread is a file of an operator that is read again when it has changed. One that cannot be read leaves what was read before.
// It is safe for concurrent use.
type Reread[T any] struct {
	path string
	read func(path string) (T, error)
	what string // of the log: the file of connections

	mu      sync.Mutex
	logger  *slog.Logger
	changed func(what string, err error) // nil for nobody
	seen    fs.FileInfo                  // of what was read, or tried to; nil before
	value   T
	found   bool // once something was read
}

// OpenReread reads a file for the first time. read makes a value of the file at the path; what names the file in logs.
func OpenReread[T any](path, what string, read func(path string) (T, error)) (*Reread[T], error) {
	f := &Reread[T]{path: path, what: what, read: read, logger: slog.New(slog.DiscardHandler)}
	return f, f.readChanged()
}

// LogTo sets who gets what is wrong with a changed file.
func (f *Reread[T]) LogTo(logger *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logger = logger
}

// OnChange sets who is notified that the file has changed, with the error of reading it.
func (f *Reread[T]) OnChange(changed func(what string, err error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = changed
}

// Current is the value of the file as it is now.
func (f *Reread[T]) Current() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.readChanged(); err != nil {
		f.logger.Error(f.what+" has changed and cannot be used; what was read before stays", "error", err)
	}
	return f.value
}

// readChanged reads the file if it has changed. It reports each state of a broken one once.
func (f *Reread[T]) readChanged() error {
	info, err := os.Stat(f.path)
	if err != nil && f.seen == nil && f.found {
		return nil
	}
	if err == nil && Unchanged(f.seen, info) {
		return nil
	}
	f.seen = info // nil of one that is away
	value, err := f.read(f.path)
	if err == nil {
		f.value, f.found = value, true
	}
	if f.changed != nil {
		f.changed(f.what, err)
	}
	return err
}
