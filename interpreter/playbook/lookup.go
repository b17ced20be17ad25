package playbook

import "reprise/interpreter/lists"

// Step finds a step by name, nil if there is none.
func (pb *Playbook) Step(name string) *Step {
	return lists.First(pb.Steps, func(step *Step) bool { return step.Name == name && name != "" })
}

// First is the step a run begins with: the one named start, else the first of
// the list; nil for a playbook without steps.
func (pb *Playbook) First() *Step {
	if start := pb.Step("start"); start != nil {
		return start
	}
	if len(pb.Steps) == 0 {
		return nil
	}
	return pb.Steps[0]
}

// Action finds an entry of the workbook by name, nil if there is none.
func (pb *Playbook) Action(name string) *Action {
	return lists.First(pb.Workbook, func(action *Action) bool { return action.Name == name && name != "" })
}
