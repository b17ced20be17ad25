// Command generate writes the files that follow from the tables of the language: docs/reference, llms.txt, the
// generated parts of other pages, and the JSON Schema of playbooks. make reference runs it in the root of the
// repository, and then the test that writes the page of the commands.
package main

import (
	"fmt"
	"os"

	"reprise/activities"
	"reprise/internal/program/schema"
	"reprise/internal/test/docs"
)

func main() {
	if err := writeFiles(activities.DefaultCatalogue()); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func writeFiles(catalogue *activities.Catalogue) error {
	text, err := schema.Generate(catalogue)
	if err != nil {
		return err
	}
	if err := docs.WriteFile(schema.File, string(text)); err != nil {
		return err
	}
	return docs.WritePages("docs", catalogue)
}
