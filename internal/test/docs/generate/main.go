// Command generate writes docs/tools.md, llms.txt, llms-full.txt and the generated parts of
// other documents. Run it at the top of the repository.
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
