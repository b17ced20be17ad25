package docs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"reprise/interpreter/playbook"
)

// Pages are the files that are generated, or have generated parts, as they
// should be now: name to text. dir is the folder of the documentation.
func Pages(dir string, catalogue playbook.Tools) (map[string]string, error) {
	pages := map[string]string{"tools.md": Tools(catalogue)}
	for _, page := range []string{"language.md", "operations.md", "how-to/test-a-playbook.md"} {
		name := filepath.Join(dir, page)
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the page to fill in: %w", err)
		}
		if pages[page], err = Fill(string(text)); err != nil {
			return nil, fmt.Errorf("fill in %s: %w", name, err)
		}
	}
	return pages, nil
}

// Write brings the files of Pages up to date.
func Write(dir string, catalogue playbook.Tools) error {
	pages, err := Pages(dir, catalogue)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		const mode = 0o644
		if err := os.WriteFile(filepath.Join(dir, name), []byte(pages[name]), mode); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
