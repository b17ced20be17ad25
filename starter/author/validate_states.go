package author

import (
	"cmp"

	"reprise/interpreter/playbook"
)

// keptState is a state in the output of `validate --output json`.
type keptState struct {
	File    string `json:"file"`
	Step    string `json:"step"`
	State   string `json:"state"`   // its name; a loop's element is <element>
	KeptBy  string `json:"kept_by"` // postgres, sqlite, or temporal
	Promise string `json:"promise"` // of the rows in the sink that the state is kept with
}

// The values of keptState.Promise.
const (
	exactlyOnce = "exactly_once"
	atLeastOnce = "at_least_once"
)

func keptStates(file string, states []playbook.KeptState) []keptState {
	var all []keptState
	for _, state := range states {
		one := keptState{File: file, Step: state.Step, State: state.Name, KeptBy: cmp.Or(state.Tool, "temporal"), Promise: atLeastOnce}
		if state.Home != nil && state.Unkeyed == nil {
			one.Promise = exactlyOnce
		}
		all = append(all, one)
	}
	return all
}
