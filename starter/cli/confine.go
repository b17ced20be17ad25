package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"reprise/internal/base/private"
	"reprise/internal/base/regular"
)

// Confinement restricts reads and writes to a folder. A nil one allows any path.
type Confinement struct {
	root   *os.Root
	folder string // as messages name it
	// spellings are the absolute paths of the folder: as given, and with symbolic links resolved.
	spellings []string
	// Private returns the files that are never read or written, wherever they are. It may be nil.
	Private func() private.Places
}

// errPrivate returns the error for a private file.
func errPrivate(path string) error {
	return fmt.Errorf("%q is one of the programs' own files (keys, server state, connections, callers), which cannot be read or written here", path)
}

// isPrivate reports whether a file is private or is in a private folder.
func (c *Confinement) isPrivate(info os.FileInfo) bool {
	if c.Private == nil {
		return false
	}
	files := c.Private()
	return files.Has(info) || files.ContainsFile(info)
}

// ConfineTo returns a confinement to a folder.
func ConfineTo(folder string) (*Confinement, error) {
	named, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("find the folder: %w", err)
	}
	real, err := filepath.EvalSymlinks(named)
	if err != nil {
		return nil, fmt.Errorf("find the folder: %w", err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	return &Confinement{root: root, folder: folder, spellings: []string{named, real}}, nil
}

// Open opens a file for reading. The operating system resolves the whole path within the folder, so a symbolic link
// that leads out of it is refused, even if it is swapped in concurrently.
func (c *Confinement) Open(path string) (*os.File, error) {
	if c == nil {
		return regular.OpenFile(path)
	}
	local, err := c.localPath(path)
	if err != nil {
		return nil, err
	}
	file, err := regular.OpenIn(c.root, local)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err == nil && c.isPrivate(info) {
		_ = file.Close()
		return nil, errPrivate(path)
	}
	return file, nil
}

// localPath returns a path relative to the folder.
func (c *Confinement) localPath(path string) (string, error) {
	local := path
	if filepath.IsAbs(path) {
		for _, folder := range c.spellings {
			if below, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(below) {
				local = below
			}
		}
	}
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("%q is outside the folder %s; use --folder for another one", path, c.folder)
	}
	if c.Private != nil && (private.InPath(local) || c.Private().NamesPath(local)) {
		return "", errPrivate(path)
	}
	return local, nil
}

// WritePrivate writes a file that other users cannot read.
func (c *Confinement) WritePrivate(path string, data []byte) error {
	const access, mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC, 0o600
	var file *os.File
	var err error
	if c == nil {
		file, err = os.OpenFile(path, access, mode)
	} else if err = c.CheckPath(path); err == nil {
		if path, err = c.localPath(path); err == nil {
			file, err = c.root.OpenFile(path, access, mode)
		}
	}
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(file.Chmod(mode), err, file.Close())
}

// CheckPath returns an error for a path outside the folder or a private file, even if nothing exists there.
func (c *Confinement) CheckPath(path string) error {
	local, err := c.localPath(path)
	if err != nil {
		return err
	}
	info, err := c.root.Stat(local)
	switch {
	case err == nil && c.isPrivate(info):
		return errPrivate(path)
	case err != nil && !os.IsNotExist(err):
		return err
	}
	return nil
}

// Read reads a file of up to mostRead bytes.
func (c *Confinement) Read(path string) ([]byte, error) {
	file, err := c.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadBounded(file)
}

// mostRead bounds what a command reads into memory from a file, standard input or a response, in bytes.
const mostRead = 64 << 20

// ReadBounded reads all input, up to mostRead bytes; more is an error.
func ReadBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostRead+1))
	if err == nil && len(data) > mostRead {
		err = fmt.Errorf("it is larger than %d MiB", mostRead>>20)
	}
	return data, err
}
