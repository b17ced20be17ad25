package serve

import (
	"net/url"

	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// FormField is an input of an approval's form.
type FormField = pageField

// FormOf returns the inputs of an approval's form and a comment, for a known person, with typed values and errors by
// name.
func FormOf(approval *playbook.Approval, typed url.Values, faults map[string]string) []FormField {
	var shown page
	shown.fillFields(approval, typed, faults)
	return lists.Filter(shown.Fields, func(field FormField) bool { return field.Name != fieldBy })
}

// TypedAnswer returns the answer that a known person typed into an approval's form, with errors by the names of
// inputs.
func TypedAnswer(approval *playbook.Approval, typed url.Values, by string) (interpreter.Answer, map[string]string) {
	accepted := url.Values{fieldBy: {by}}
	for name, values := range typed {
		if len(name) > len(formPrefix) && name[:len(formPrefix)] == formPrefix || name == fieldComment || name == fieldOption {
			accepted[name] = values[:1]
		}
	}
	return readApproval(approval, accepted)
}
