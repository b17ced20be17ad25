package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// patterns match the pages that are written by hand for users: everything except the generated reference, the
// decisions, the changelog, and the pages for contributors (CONTRIBUTING.md, docs/architecture.md).
var patterns = []string{
	"README.md", "docs/tutorial.md", "docs/how-to/*.md", "docs/concepts/*.md", "docs/coming-from.md", "docs/appendix/*.md",
}

var errNoPage = errors.New("there is no page")

// WrittenPages returns the paths of the hand-written pages, relative to the root of the repository and sorted.
func WrittenPages(root string) ([]string, error) {
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("find %s: %w", pattern, errors.Join(err, errNoPage))
		}
		for _, path := range found {
			name, err := filepath.Rel(root, path)
			if err != nil {
				return nil, fmt.Errorf("find %s: %w", pattern, err)
			}
			all = append(all, filepath.ToSlash(name))
		}
	}
	slices.Sort(all)
	return all, nil
}

// WrittenExamples returns the fenced blocks of all hand-written pages, by page.
func WrittenExamples(root string) (map[string][]*Example, error) {
	pages, err := WrittenPages(root)
	if err != nil {
		return nil, err
	}
	all := map[string][]*Example{}
	for _, name := range pages {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		all[name] = FencedBlocks(name, string(text))
	}
	return all, nil
}
