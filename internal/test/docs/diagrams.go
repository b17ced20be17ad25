package docs

import (
	"fmt"
	"os"
	"path/filepath"
)

// Diagrams are the Mermaid blocks of all documents.
func Diagrams(root string) ([]*Example, error) {
	var all []*Example
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, example := range Examples(path, string(text)) {
			if example.Is("mermaid") {
				all = append(all, example)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the diagrams: %w", err)
	}
	return all, nil
}
