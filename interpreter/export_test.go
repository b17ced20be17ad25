package interpreter

import "reprise/interpreter/playbook"

// NewBooks is Load with a decoding and a memory of its own.
func NewBooks(decode func(name, text string) (*playbook.Playbook, error)) func(name, text string) (*playbook.Playbook, error) {
	return newBooks(decode).loadPlaybook
}
