package check

import (
	"errors"
	"fmt"

	"reprise/interpreter/playbook"
)

// Bounds of the files that a run receives with its playbook.
const (
	// maxFiles bounds these files, each of which is read while somebody waits for the start.
	maxFiles = 100
	// maxFilesSize bounds the total size of these files, in bytes: they are in the input of the run, and Temporal
	// rejects more than 2 MB.
	maxFilesSize = 1 << 20
)

// Files are the playbooks that a playbook names: by path, or by name in a worker's folder. Each file is read once,
// so that a run gets exactly what was checked. Not safe for concurrent use.
type Files struct {
	read  func(name string) ([]byte, error)
	texts map[string]string
	// checked are the valid ones, by name and by the names that they receive; nil for others that were checked.
	checked map[string]*playbook.Playbook
	size    int
}

// NewFiles returns Files that are read with read. Its errors are shown to authors, so they must say what is wrong
// with the file.
func NewFiles(read func(name string) ([]byte, error)) *Files {
	return &Files{read: read, texts: map[string]string{}, checked: map[string]*playbook.Playbook{}}
}

// Texts returns the files that were read, by name.
func (f *Files) Texts() map[string]string {
	if f == nil {
		return nil
	}
	return f.texts
}

// ErrElsewhere says that only the workers can read a file, so that it is checked there.
var ErrElsewhere = errors.New("the file is with the workers")

var errManyFiles = errors.New("too many files")

// readText returns the text of a file.
func (f *Files) readText(name string) (string, error) {
	if text, found := f.texts[name]; found {
		return text, nil
	}
	if len(f.texts) == maxFiles {
		return "", fmt.Errorf("%w: a run can have at most %d files", errManyFiles, maxFiles)
	}
	data, err := f.read(name)
	if err != nil {
		return "", err
	}
	if f.size+len(data) > maxFilesSize {
		return "", fmt.Errorf("%w: the files of a run may have at most %d bytes (1 MiB) together", errManyFiles, maxFilesSize)
	}
	f.size += len(data)
	f.texts[name] = string(data)
	return string(data), nil
}
