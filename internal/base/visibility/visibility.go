// Package visibility writes queries of Temporal's lists of workflows.
package visibility

import "strings"

var escapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// Quote makes a text a value of a query.
func Quote(text string) string { return "'" + escapes.Replace(text) + "'" }
