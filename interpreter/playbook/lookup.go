package playbook

// Step finds a step by name, nil if there is none.
func (pb *Playbook) Step(name string) *Step {
	for _, step := range pb.Steps {
		if step.Name == name && name != "" {
			return step
		}
	}
	return nil
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
	for _, action := range pb.Workbook {
		if action.Name == name && name != "" {
			return action
		}
	}
	return nil
}
