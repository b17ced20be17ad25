package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// fileOf gives the playbooks that a run names: those that it has, and by name those
// of the worker's folder.
func (c *Catalogue) fileOf(given map[string]string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if text, found := given[name]; found {
			return []byte(text), nil
		}
		if file, named := strings.CutPrefix(name, playbook.NamedScheme); named {
			return ReadNamed(c.res.Playbooks, file)
		}
		return nil, fmt.Errorf("the run was started without the file %q, which starter takes along", name)
	}
}

// recorded are the playbooks that were read from the worker's folder, sorted.
func recorded(files *playbook.Files, given map[string]string) []interpreter.RecordedFile {
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

// ReadNamed reads a playbook of a folder, and nothing outside of it. Errors say what
// is there.
func ReadNamed(folder, file string) ([]byte, error) {
	if folder == "" {
		return nil, errors.New("this worker has no folder of playbooks; start it with --playbooks DIRECTORY")
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder of playbooks: %w", err)
	}
	defer root.Close()
	opened, err := root.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no playbook %q in the worker's folder%s", strings.TrimSuffix(file, ".yaml"), nearest(root, file))
	}
	if err != nil {
		return nil, fmt.Errorf("read the playbook %q of the worker's folder: %w", file, err)
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, playbook.MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the playbook %q of the worker's folder: %w", file, err)
	}
	return data, nil
}

// nearest says which playbook of a folder may have been meant, or which there are.
func nearest(root *os.Root, file string) string {
	const most = 10
	paths, err := fs.Glob(root.FS(), "*.yaml")
	if err != nil || len(paths) == 0 {
		return ", which has none"
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = strings.TrimSuffix(path, ".yaml")
	}
	if near := expression.Suggest(strings.TrimSuffix(file, ".yaml"), names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	more := ""
	if len(names) > most {
		names, more = names[:most], " and others"
	}
	return "; it has " + strings.Join(names, ", ") + more
}
