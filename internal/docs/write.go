package docs

import (
	"fmt"
	"os"
	"path/filepath"

	"reprise/interpreter/playbook"
)

// Pages are the files that are generated, or have generated parts, as they
// should be now: name to text. dir is the folder of the documentation.
func Pages(dir string, catalogue playbook.Tools) (map[string]string, error) {
	name := filepath.Join(dir, "language.md")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the page to fill in: %w", err)
	}
	language, err := Language(string(text))
	if err != nil {
		return nil, fmt.Errorf("fill in %s: %w", name, err)
	}
	return map[string]string{"language.md": language, "tools.md": Tools(catalogue)}, nil
}

// Write brings the files of Pages up to date.
func Write(dir string, catalogue playbook.Tools) error {
	pages, err := Pages(dir, catalogue)
	if err != nil {
		return err
	}
	for _, name := range []string{"language.md", "tools.md"} {
		const mode = 0o644
		if err := os.WriteFile(filepath.Join(dir, name), []byte(pages[name]), mode); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
