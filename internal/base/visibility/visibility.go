// Package visibility writes queries for Temporal's lists of workflows.
package visibility

import "strings"

var escapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// Quote returns a text as a quoted value for a query.
func Quote(text string) string { return "'" + escapes.Replace(text) + "'" }
