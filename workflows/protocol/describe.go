package protocol

import (
	"fmt"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

const (
	// MaxText is the number of runes that a description shows of a text by the playbook's author: Temporal rejects
	// summaries over 400 bytes.
	MaxText = 120
)

// DescribeRun returns which playbook a run, or a part of one, executes. Texts of the playbook's author are escaped.
func DescribeRun(book *playbook.Playbook) string {
	return fmt.Sprintf("Playbook %s, hash %s", source.MarkdownCode(book.Name, MaxText), source.MarkdownCode(ShortHash(book), MaxText))
}

// ShortHash returns the first characters of a playbook's hash, which suffice for people to distinguish playbooks.
func ShortHash(book *playbook.Playbook) string {
	const digits = 12
	return book.Hash[:digits]
}

// DescribeChild returns which run and step a child workflow belongs to.
func DescribeChild(book *playbook.Playbook, task Task) string {
	return fmt.Sprintf("%s, step %s of the run %s", DescribeRun(book), source.MarkdownCode(task.Step, MaxText), source.MarkdownCode(RunID(task), MaxText))
}
