// Package reprise holds the documents of the project, which the starter has in its binary.
package reprise

import "embed"

// Documents are the Markdown files and their pictures, by their paths in the repository.
//
//go:embed README.md CONTRIBUTING.md CHANGELOG.md docs/*.md docs/*.svg docs/appendix/*.md docs/concepts/*.md docs/decisions/*.md docs/how-to/*.md
var Documents embed.FS
