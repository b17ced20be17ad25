package host

import (
	"errors"
	"fmt"
	"io"
	"os"

	"reprise/internal/base/egress"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// ReadEgress reads the operator's rules about addresses from a YAML file. usual has the defaults, and all rules if path
// is "".
func ReadEgress(path string, usual *egress.Policy) (*egress.Policy, error) {
	if path == "" {
		return usual, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the egress file: %w", err)
	}
	if _, unread := yamltree.Parse(data); errors.Is(unread, io.EOF) {
		return nil, fmt.Errorf("read the egress file: %s: the file is empty; it has private, public, allow and deny, such as private: deny", path)
	}
	file := source.NewFile(path, data)
	value, found := playbook.DecodeData(file)
	if problems := found.Errors(); len(problems) > 0 {
		return nil, fmt.Errorf("read the egress file: %s", file.FormatAll(problems[:1]))
	}
	policy, err := egress.Parse(value, usual)
	if problem, ok := errors.AsType[*egress.Problem](err); ok {
		return nil, fmt.Errorf("read the egress file: %s: %w", yamltree.PlaceOf(path, data, problem.Path), problem)
	}
	return policy, err
}
