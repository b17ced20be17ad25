package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"reprise/internal/base/regular"
)

// confinement keeps what is read within a folder. A nil one reads anywhere.
type confinement struct {
	root   *os.Root
	folder string // as messages name it
	// spellings are the absolute paths of the folder: as it was named, and without symbolic links.
	spellings []string
}

// confineTo opens a folder.
func confineTo(folder string) (*confinement, error) {
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
	return &confinement{root: root, folder: folder, spellings: []string{named, real}}, nil
}

// open opens a file for reading. A symbolic link that leads out of the folder is refused by the
// operating system's rules for the whole path, so that none can be exchanged meanwhile.
func (c *confinement) open(path string) (*os.File, error) {
	if c == nil {
		return regular.Open(path)
	}
	local, err := c.local(path)
	if err != nil {
		return nil, err
	}
	return regular.OpenIn(c.root, local)
}

// local is a path below the folder.
func (c *confinement) local(path string) (string, error) {
	local := path
	if filepath.IsAbs(path) {
		for _, folder := range c.spellings {
			if below, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(below) {
				local = below
			}
		}
	}
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("%q is outside of the folder %s; --folder names another one", path, c.folder)
	}
	return local, nil
}

// writePrivate writes a file that nobody else can read.
func (c *confinement) writePrivate(path string, data []byte) error {
	const mode = 0o600
	if c == nil {
		return os.WriteFile(path, data, mode)
	}
	local, err := c.local(path)
	if err != nil {
		return err
	}
	return c.root.WriteFile(local, data, mode)
}

// check refuses a path that leads out of the folder, whatever is there.
func (c *confinement) check(path string) error {
	local, err := c.local(path)
	if err != nil {
		return err
	}
	if _, err := c.root.Stat(local); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// read reads a file of at most mostRead bytes.
func (c *confinement) read(path string) ([]byte, error) {
	file, err := c.open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file)
}

// mostRead bounds what commands read of a file, of standard input or of an answer, in bytes.
const mostRead = 64 << 20

// readBounded reads all, and refuses more than mostRead.
func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostRead+1))
	if err == nil && len(data) > mostRead {
		err = fmt.Errorf("it has more than %d MiB", mostRead>>20)
	}
	return data, err
}
