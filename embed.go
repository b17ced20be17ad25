// Package reprise holds the documents of the project, which the starter has in its binary.
package reprise

import "embed"

// Documents are the Markdown files, with their pictures and the files that they name, and what models read, by their
// paths in the repository.
//
//go:embed llms.txt README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs
var Documents embed.FS
