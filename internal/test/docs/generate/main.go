// Command generate writes docs/reference and the generated parts of other pages. Run it at the
// top of the repository. The pages of the commands are written by make golden.
package main

import (
	"fmt"
	"os"

	"reprise/activities"
	"reprise/internal/test/docs"
)

func main() {
	if err := docs.Write("docs", activities.Default()); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
