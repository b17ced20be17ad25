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
reject, on a page of starter serve, or by any Temporal client (the update answer).
It holds no worker meanwhile. Without timeout it waits for as long as it takes.

The result has the fields of the form and option, by, comment and at, so that routes
can ask for {{ step.option }}. Who rejects need not fill in the form. Once timeout
is over, on_timeout chooses: an option, or fail, which is an error of kind timeout.

A field of the form is a type, or a map of type, title, required, default and, for
choice, choices. The types are text, integer, number, boolean and choice.

on_start sends a request that informs people, as in webhook; callback.page is the
address of the page.`,
	Fields: append([]playbook.Field{
		{Name: "message", Kind: playbook.KindText, Required: true, Doc: "What people are asked, in Markdown; values in it are text."},
		{Name: "options", Kind: playbook.KindList, Default: "[approve, reject]", Doc: "What they can choose."},
		{Name: "form", Kind: playbook.KindMap, Doc: "Fields that they fill in, by name."},
		{Name: "on_timeout", Kind: playbook.KindText, Default: "fail", Doc: "What counts when nobody has answered in time: an option, or fail."},
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
