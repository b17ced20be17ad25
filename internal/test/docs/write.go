package docs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/program/reference"
	"reprise/interpreter/playbook"
)

// openAPIFile is the path of the OpenAPI document, relative to the documentation folder.
const openAPIFile = "../internal/program/serve/openapi.json"

// GeneratedPages returns the current contents of all generated files, by path relative to the documentation folder dir.
func GeneratedPages(dir string, catalogue playbook.Tools) (map[string]string, error) {
	pages := map[string]string{"../llms.txt": reference.LLMs()}
	document, err := os.ReadFile(filepath.Join(dir, openAPIFile))
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	made, err := ReferencePages(catalogue, document)
	if err != nil {
		return nil, err
	}
	for name, text := range made {
		pages["reference/"+name] = text
	}
	return pages, nil
}

// WritePages writes the files of Pages.
func WritePages(dir string, catalogue playbook.Tools) error {
	pages, err := GeneratedPages(dir, catalogue)
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

// WriteFile writes a generated page.
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

func codeSpan(text string) string { return "`" + text + "`" }

// markdownTable returns a Markdown table whose first row is the header. Only the bars that would end a cell are escaped.
func markdownTable(rows [][]string) string {
	var out strings.Builder
	for i, row := range rows {
		for _, cell := range row {
			out.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		out.WriteString("|\n")
		if i == 0 {
			out.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return out.String()
}
