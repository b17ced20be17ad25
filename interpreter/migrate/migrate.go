// Package migrate rewrites the older forms in the file of a playbook. interpreter/playbook defines the meaning of
// these forms; this package finds them in the text, and changes nothing else.
package migrate

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// Migration is a file with its older forms rewritten.
type Migration struct {
	Text    []byte          // the new content; the original if nothing changes
	Changes []source.Change // in the order of the original
	// Problems lists what was not rewritten because its meaning would change, and what prevents the file from being
	// decoded. Positions refer to the original.
	Problems source.Diagnostics
}

// HasChanged reports whether the text differs from the original.
func (m *Migration) HasChanged() bool { return len(m.Changes) > 0 }

// MigrateFile rewrites the older forms of retry and of requests, the words of noetl.io/v1, additional keys of its
// metadata, sinks of loops that must be in loop.sink, and the word data where it has another name now, including
// those in inline playbooks. It changes nothing else: comments, order and quoting are kept. Each edit is checked by
// parsing the result: if that does not have the intended values and every comment, the edit is not made and is
// reported instead. A file without older forms is returned unchanged.
func MigrateFile(file *source.File) *Migration {
	m := &migrator{file: file, Migration: Migration{Text: file.Bytes()}}
	book, found := playbook.Decode(file)
	root, err := yamltree.Parse(m.Text)
	m.Problems = found.Errors()
	if book == nil || err != nil {
		return &m.Migration
	}
	m.root, m.found = root, found
	m.migrateRetries()
	m.migratePaginations()
	m.migrateRequests()
	m.migrateSinks(book, "")
	m.migrateNames(book)
	m.migrateLabels()
	m.migrateWords()
	m.Problems.Sort()
	slices.SortStableFunc(m.Changes, func(a, b source.Change) int { return a.Pos.Compare(b.Pos) })
	return &m.Migration
}

// migrator rewrites one file step by step; Text is the result so far.
type migrator struct {
	Migration

	file  *source.File // the original
	root  *yaml.Node   // of it
	found source.Diagnostics
}

// rewriteText lets change modify the tree of the text and return the equivalent edits of the text. If the edited
// text has another tree, or lacks a comment, the rewrite is refused.
func (m *migrator) rewriteText(change func(e extent, root *yaml.Node) ([]edit, bool)) bool {
	wanted, err := yamltree.Parse(m.Text)
	if err != nil {
		return false
	}
	comments := commentLines(wanted)
	e := newExtent(source.NewFile(m.file.Name, m.Text))
	edits, ok := change(e, wanted)
	if !ok {
		return false
	}
	text := []byte(applyAll(e.text, edits))
	root, err := yamltree.Parse(text)
	if err != nil || !sameTree(yamltree.WithoutAliases(wanted, false), yamltree.WithoutAliases(root, false)) || !slices.Equal(comments, commentLines(root)) {
		return false
	}
	m.Text = text
	return true
}

func (m *migrator) addChange(pos source.Position, what string) {
	m.Changes = append(m.Changes, source.Change{Pos: pos, What: what})
}

func (m *migrator) addProblem(pos source.Position, code, message string) {
	m.Problems = append(m.Problems, source.Diagnostic{File: m.file.Name, Pos: pos, Code: code, Message: message})
}

// isBroken reports whether the original has an error between two positions.
func (m *migrator) isBroken(from, to source.Position) bool {
	return slices.ContainsFunc(m.found.Errors(), func(d source.Diagnostic) bool {
		return !d.Pos.Before(from) && !to.Before(d.Pos)
	})
}

// sameTree reports whether two trees without aliases have the same values.
func sameTree(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Value == b.Value && a.ShortTag() == b.ShortTag() &&
		slices.EqualFunc(a.Content, b.Content, sameTree)
}

// commentLines returns all lines of comments in a node, sorted.
func commentLines(n *yaml.Node) []string {
	var lines []string
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		for _, comment := range []string{n.HeadComment, n.LineComment, n.FootComment} {
			for line := range strings.Lines(comment) {
				if line = strings.TrimSpace(line); line != "" {
					lines = append(lines, line)
				}
			}
		}
		for _, inner := range n.Content {
			walk(inner)
		}
	}
	walk(n)
	slices.Sort(lines)
	return lines
}

// lineBreak returns the line break of the file.
func lineBreak(text []byte) string {
	if strings.Contains(string(text), "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// indentBlock indents every line of a text by n spaces, with the file's line breaks and none at the end.
func indentBlock(text string, n int, lineBreak string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = strings.Repeat(" ", n) + line
		}
	}
	return strings.Join(lines, lineBreak)
}
