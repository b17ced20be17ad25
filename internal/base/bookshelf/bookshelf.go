// Package bookshelf finds playbooks by name in a folder.
package bookshelf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"reprise/internal/base/regular"
	"reprise/interpreter/playbook"
)

// ErrUnknown means that the folder has no such playbook.
var ErrUnknown = errors.New("no such playbook")

// names matches the names by which files of the folder can be requested: neither paths nor hidden files.
var names = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

// Read returns the text of NAME.yaml in a folder. The error wraps ErrUnknown if the name is not allowed or is not
// that of a regular file in the folder; links that lead out of the folder are not followed. Nothing is cached.
func Read(folder, name string) ([]byte, error) {
	if !names.MatchString(name) {
		return nil, ErrUnknown
	}
	return ReadFile(folder, name+".yaml")
}

// ReadFile returns the text of a file in a folder; file is its path relative to the folder. Errors are like those of
// Read.
func ReadFile(folder, file string) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder of playbooks: %w", err)
	}
	defer func() { _ = root.Close() }()
	opened, err := regular.OpenIn(root, file)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, file)
	}
	defer func() { _ = opened.Close() }()
	info, err := opened.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, file)
	}
	if info.Size() > playbook.MaxFileBytes {
		return nil, fmt.Errorf("%s is %d bytes long; a playbook has at most %d", file, info.Size(), playbook.MaxFileBytes)
	}
	text, err := io.ReadAll(io.LimitReader(opened, playbook.MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read a playbook: %w", err)
	}
	return text, nil
}

// testSuffix ends the names of test files, which are next to their playbooks.
const testSuffix = "_test.yaml"

// PlaybookNames returns the names of the playbooks in a folder, sorted; none if the folder cannot be read. It skips
// test files and other YAML.
func PlaybookNames(folder string) []string {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	files, err := fs.Glob(root.FS(), "*.yaml")
	if err != nil {
		return nil // of a bad pattern
	}
	found := make([]string, 0, len(files))
	for _, file := range files {
		if name := strings.TrimSuffix(file, ".yaml"); HasPlaybook(folder, name) {
			found = append(found, name)
		}
	}
	return found
}

// HasPlaybook reports whether PlaybookNames has the name. It reads only that file.
func HasPlaybook(folder, name string) bool {
	file := name + ".yaml"
	return names.MatchString(name) && !strings.HasSuffix(file, testSuffix) && isPlaybook(folder, file)
}

// isPlaybook reports whether a file is meant to be a playbook: a folder may have other YAML, such as a file of
// connections. Unreadable files count as playbooks, so that whoever reads them reports the reason.
func isPlaybook(folder, file string) bool {
	text, err := ReadFile(folder, file)
	if errors.Is(err, ErrUnknown) {
		return false
	}
	return err != nil || bytes.Contains(text, []byte("apiVersion")) || bytes.Contains(text, []byte("workflow"))
}
