package webhook

import (
	"reprise/activities/tool"
	"reprise/interpreter/playbook"
)

// NewApproval makes the tool approval.
func NewApproval(res tool.Resources, options Options) *Tool {
	return &Tool{spec: approvalSpec, res: res, options: options}
}

var approvalSpec = playbook.ToolSpec{
	Name:    "approval",
	Secrets: []string{"on_start", "on_cancel"},
	Summary: "Waits until a person has answered.",
	Doc: `The step waits until somebody chooses one of the options: with starter approve and
reject, on a page of starter serve, or with any Temporal client (the update answer).
It occupies no worker meanwhile. Without timeout, it waits indefinitely.

The result has the fields of the form, and option, by, comment and at, so a route can
use {{ step.option }}. A person who rejects does not have to fill in the form. When
timeout is over, on_timeout decides: an option, or fail, which is an error of kind
timeout.

A field of the form is a type, or a map of type, title, required and default, with
choices for the type choice. The types are text, integer, number, boolean and choice.

on_start sends a request that notifies people, as in webhook; callback.page is the
address of the page.`,
	Fields: append([]playbook.Field{
		{Name: "message", Kind: playbook.KindText, Required: true, Doc: "The question, in Markdown. Values in it are shown as text."},
		{Name: "options", Kind: playbook.KindList, Default: "[approve, reject]", Doc: "The options to choose from."},
		{Name: "form", Kind: playbook.KindMap, Doc: "The fields of the form, by name."},
		{Name: "on_timeout", Kind: playbook.KindText, Default: "fail", Doc: "What happens if nobody answers in time: an option, or fail."},
	}, onStartFields...),
	Example: `step: release
tool: approval
message: "Load the rows of **{{ workload.day }}** into production?"
form:
  ticket: {type: text, required: true}
timeout: 24h
on_timeout: reject
vars: {approved: "{{ result.option == 'approve' }}"}
`,
}
