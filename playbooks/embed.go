// Package playbooks holds the examples that come with Reprise, simplest first.
// They are in the starter's binary, and tests check and run every one.
package playbooks

import "embed"

// FS holds the examples by file name.
//
//go:embed *.yaml
var FS embed.FS
