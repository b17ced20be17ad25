package docs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"reprise/internal/program/reference"
	"reprise/interpreter/playbook"
)

// openAPIFile is the document of the HTTP API, seen from the folder of the documentation.
const openAPIFile = "../internal/program/serve/openapi.json"

// Pages are the files that are generated, or have generated parts, as they
// should be now: path in the folder of the documentation, which is dir, to text.
func Pages(dir string, catalogue playbook.Tools) (map[string]string, error) {
	pages := map[string]string{"../llms.txt": reference.LLMs(), "../llms-full.txt": reference.New(catalogue).LLMsFull()}
	document, err := os.ReadFile(filepath.Join(dir, openAPIFile))
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	made, err := Reference(catalogue, document)
	if err != nil {
		return nil, err
	}
	for name, text := range made {
		pages["reference/"+name] = text
	}
	written, err := markdownFiles(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range written {
		if err := fillFile(dir, name, pages); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// markdownFiles are those below a folder that people write, by their paths from it.
func markdownFiles(dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if err == nil && filepath.Ext(name) == ".md" && filepath.Dir(name) != "reference" {
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the pages to fill in: %w", err)
	}
	return names, nil
}

// fillFile adds a page with generated parts.
func fillFile(dir, name string, pages map[string]string) error {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("read the page to fill in: %w", err)
	}
	filled, err := Fill(string(text))
	if err != nil {
		return fmt.Errorf("fill in %s: %w", name, err)
	}
	if hasParts(string(text)) {
		pages[name] = filled
	}
	return nil
}

// Write brings the files of Pages up to date.
func Write(dir string, catalogue playbook.Tools) error {
	pages, err := Pages(dir, catalogue)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if err := WriteFile(filepath.Join(dir, name), pages[name]); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes a page.
func WriteFile(name, text string) error {
	const folderMode, mode = 0o755, 0o644
	err := os.MkdirAll(filepath.Dir(name), folderMode)
	if err == nil {
		err = os.WriteFile(name, []byte(text), mode)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
