// Package regular opens files whose names come from outside. It refuses pipes, sockets and devices, which could block
// a command forever.
package regular

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// withoutWaiting makes opening a pipe without a writer return at once.
const withoutWaiting = os.O_RDONLY | syscall.O_NONBLOCK

// OpenFile opens a regular file or a folder for reading.
func OpenFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, withoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	return checkRegular(file, path)
}

// OpenIn is OpenFile for a path within a root.
func OpenIn(root *os.Root, path string) (*os.File, error) {
	file, err := root.OpenFile(path, withoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	return checkRegular(file, path)
}

func checkRegular(file *os.File, path string) (*os.File, error) {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = fmt.Errorf("%s is not a regular file but a pipe, a socket or a device; to read standard input, use - where a command accepts it", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Read reads a whole regular file.
func Read(path string) ([]byte, error) {
	file, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(file)
}
