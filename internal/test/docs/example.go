package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Example is a fenced block of a Markdown file.
type Example struct {
	File  string
	Line  int      // of its first line of text, from 1
	Words []string // of the opening fence: the language first
	Text  string
	// Next is the following block, nil at the end of the file. An expected result or message follows the block that
	// it belongs to.
	Next *Example
}

// Is reports whether the block's info string has the given words.
func (e *Example) Is(words ...string) bool {
	return e != nil && slices.Equal(e.Words, words)
}

const fence = "```"

// FencedBlocks returns the fenced blocks of a Markdown file, in order.
func FencedBlocks(file, markdown string) []*Example {
	var all []*Example
	var open *Example
	for i, line := range strings.Split(markdown, "\n") {
		info, isFence := strings.CutPrefix(line, fence)
		switch {
		case isFence && open != nil:
			all = append(all, open)
			open = nil
		case isFence:
			open = &Example{File: file, Line: i + 2, Words: strings.Fields(info)}
		case open != nil:
			open.Text += line + "\n"
		}
	}
	for i := 1; i < len(all); i++ {
		all[i-1].Next = all[i]
	}
	return all
}

// Whole reports whether the block is a complete playbook.
func (e *Example) Whole() bool {
	return strings.HasPrefix(e.Text, "apiVersion:") || strings.Contains(e.Text, "\napiVersion:")
}

// ExampleWorkload returns the workload that examples of only steps may refer to.
func ExampleWorkload() map[string]any {
	return map[string]any{
		"api": "http://127.0.0.1:8088", "ids": []any{"p01", "p02"}, "day": "2026-01-31", "region": "north",
	}
}

// Playbook returns the block as a playbook: a list of steps is completed to one.
func (e *Example) Playbook() string {
	if e.Whole() {
		return e.Text
	}
	return "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: example}\nworkflow:\n" + e.Text
}

// MermaidBlocks returns the Mermaid blocks of all documents.
func MermaidBlocks(root string) ([]*Example, error) {
	var all []*Example
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, example := range FencedBlocks(path, string(text)) {
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
