package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/internal/base/bookshelf"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
)

// filesOf returns a function that reads the playbooks that a run names: those passed with it, and by name those
// in the worker's folder.
func filesOf(folder string, given map[string]string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if text, found := given[name]; found {
			return []byte(text), nil
		}
		if file, named := strings.CutPrefix(name, playbook.NamedScheme); named {
			return ReadNamed(folder, file)
		}
		return nil, fmt.Errorf("the run was started without the file %q, which starter would send with it", name)
	}
}

// recordedFiles returns the playbooks that were read from the worker's folder, sorted.
func recordedFiles(files *check.Files, given map[string]string) []interpreter.RecordedFile {
	var found []interpreter.RecordedFile
	texts := files.Texts()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if _, had := given[name]; had || !strings.HasPrefix(name, playbook.NamedScheme) {
			continue
		}
		sum := sha256.Sum256([]byte(texts[name]))
		found = append(found, interpreter.RecordedFile{Name: name, Hash: hex.EncodeToString(sum[:]), Source: texts[name]})
	}
	return found
}

// ReadNamed reads a file of a folder of playbooks, and nothing outside of it. Its errors do not
// reveal what else exists: the author of a run may read them.
func ReadNamed(folder, file string) ([]byte, error) {
	if folder == "" {
		return nil, errors.New("this worker has no folder of playbooks; start it with --playbooks DIRECTORY")
	}
	text, err := bookshelf.ReadFile(folder, file)
	if errors.Is(err, bookshelf.ErrUnknown) {
		return nil, fmt.Errorf("there is no playbook %q in the worker's folder", strings.TrimSuffix(file, ".yaml"))
	}
	return text, err
}
