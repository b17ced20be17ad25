// Package playbooks holds the examples that come with Reprise, simplest first.
// They are in the starter's binary, and tests check and run every one.
package playbooks

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.yaml
var embedded embed.FS

// FS holds the examples by file name. The tests of an example are there under their
// names, and are not listed.
var FS fs.FS = playbookFS{embedded}

// playbookFS lists no tests.
type playbookFS struct{ embed.FS }

// ReadDir lists the examples.
func (l playbookFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := l.FS.ReadDir(name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), "_test.yaml") }), err
}
