package protocol

import (
	"fmt"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

const (
	// MaxText is how many runes of a text by the playbook's author a description shows:
	// summaries over 400 bytes are refused.
	MaxText = 120
)

// DescribeRun says which playbook a run, or a part of one, is about. Texts of the playbook's
// author are escaped.
func DescribeRun(book *playbook.Playbook) string {
	return fmt.Sprintf("Playbook %s, hash %s", source.Code(book.Name, MaxText), source.Code(ShortHash(book), MaxText))
}

// ShortHash is as much of a playbook's hash as people need to distinguish it.
func ShortHash(book *playbook.Playbook) string {
	const digits = 12
	return book.Hash[:digits]
}

// DescribeChild says which playbook a child of a run belongs to.
func DescribeChild(book *playbook.Playbook, task Task) string {
	return fmt.Sprintf("%s, step %s of the run %s", DescribeRun(book), source.Code(task.Step, MaxText), source.Code(RunID(task), MaxText))
}
