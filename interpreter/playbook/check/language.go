package check

import (
	"reprise/interpreter/playbook"
)

// Name is a name with a meaning in expressions.
type Name struct {
	Name string
	Doc  string // what its value is
	// Where describes the expressions that may use the name, such as "in policies".
	Where string
	// Members are the members of the value, nil if they are not fixed.
	Members []string
}

// ExpressionNames returns the names that expressions may use, without those of older forms of retry.
func ExpressionNames() []Name {
	var all []Name
	for _, w := range words {
		if w.where == 0 {
			continue
		}
		all = append(all, Name{Name: w.name, Doc: w.doc, Where: w.known, Members: members[w.name]})
	}
	return append(all,
		Name{Name: playbook.CallbackWord, Doc: "where to send the answer to this attempt", Where: "in on_start and on_cancel of the tools that await an answer", Members: playbook.CallbackMembers},
		Name{Name: "event", Doc: "the event of the run that the notice reports", Where: "in notices of the run", Members: members["event"]},
		Name{Name: "status", Doc: "the status of the run", Where: "in notices of the run"})
}
