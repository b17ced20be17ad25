package check

import (
	"errors"
	"fmt"
)

// Bounds of the files that a run takes along beside its playbook.
const (
	// maxFiles bounds the files that a run takes along beside its playbook, each read while
	// somebody waits for the start.
	maxFiles = 100
	// maxFilesSize bounds these files, in bytes of all together: they are in the input of the
	// run, which Temporal refuses over 2 MB.
	maxFilesSize = 1 << 20
)

// Files are the playbooks that a playbook names: by path, or by name in a worker's folder. Each
// file is read once, so that a run has exactly what was checked. Not safe for concurrent use.
type Files struct {
	read    func(name string) ([]byte, error)
	texts   map[string]string
	checked map[string]bool // with the names that they receive
	size    int
}

// NewFiles makes Files whose texts read returns. Authors see its errors, so they have to say
// what is wrong with the file.
func NewFiles(read func(name string) ([]byte, error)) *Files {
	return &Files{read: read, texts: map[string]string{}, checked: map[string]bool{}}
}

// Texts are the files that were read, by name.
func (f *Files) Texts() map[string]string {
	if f == nil {
		return nil
	}
	return f.texts
}

// ErrElsewhere says that a file can be read by the workers alone, so that it is
// checked there.
var ErrElsewhere = errors.New("the file is with the workers")

var errManyFiles = errors.New("too many files")

// readText gives a file.
func (f *Files) readText(name string) (string, error) {
	if text, found := f.texts[name]; found {
		return text, nil
	}
	if len(f.texts) == maxFiles {
		return "", fmt.Errorf("%w: a run can have %d files", errManyFiles, maxFiles)
	}
	data, err := f.read(name)
	if err != nil {
		return "", err
	}
	if f.size+len(data) > maxFilesSize {
		return "", fmt.Errorf("%w: the files of a run may have %d bytes (1 MiB) together", errManyFiles, maxFilesSize)
	}
	f.size += len(data)
	f.texts[name] = string(data)
	return string(data), nil
}
