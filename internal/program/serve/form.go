package serve

import (
	"net/url"

	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// FormField is an input of the form of an approval, as the page shows it.
type FormField = pageField

// FormOf returns the inputs of an approval's form and a comment, for a known person, with typed
// values and errors by the names of inputs.
func FormOf(approval *playbook.Approval, typed url.Values, faults map[string]string) []FormField {
	var shown page
	shown.fillFields(approval, typed, faults)
	return lists.Filter(shown.Fields, func(field FormField) bool { return field.Name != fieldBy })
}

// TypedAnswer is what a known person has typed as the answer to an approval, with errors by the
// names of inputs.
func TypedAnswer(approval *playbook.Approval, typed url.Values, by string) (interpreter.Answer, map[string]string) {
	kept := url.Values{fieldBy: {by}}
	for name, values := range typed {
		if len(name) > len(formPrefix) && name[:len(formPrefix)] == formPrefix || name == fieldComment || name == fieldOption {
			kept[name] = values[:1]
		}
	}
	return readApproval(approval, kept)
}
