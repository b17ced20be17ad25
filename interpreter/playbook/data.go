package playbook

import (
	"bytes"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
)

// Data reads a text that holds values and no playbook: a workload, the value
// of a flag, a list of connections. YAML includes JSON. The limits and the
// refused forms are those of a playbook, and numbers are as exact. An empty
// text is nil. The value may be used if no diagnostic is an error.
func Data(file *source.File) (any, source.Diagnostics) {
	if len(bytes.TrimSpace(file.Bytes())) == 0 {
		return nil, nil
	}
	d := &decoder{problems: problems{file: file}, broken: map[*yaml.Node]bool{}}
	var value any
	if root := d.parse(); root != nil && d.inspect(root) {
		value = d.constant(root)
	}
	d.found.Sort()
	return value, d.found
}
