package samples

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// AwaitedSamples returns the details of a webhook and of an approval that await answers.
func AwaitedSamples(at time.Time) (webhook, approval *interpreter.AwaitedDetails) {
	webhook = &interpreter.AwaitedDetails{
		Attempt: 2, Since: at.Add(-90 * time.Second), Until: at.Add(28 * time.Minute), Done: 300, Total: 1200,
		Message: "reading rows\x1b[31m of the file that was sent", Reported: at.Add(-time.Second),
	}
	approval = &interpreter.AwaitedDetails{Attempt: 1, Since: at.Add(-time.Hour), Approval: &playbook.Approval{
		Message: "# Load 1200 rows?\n\nThey are of **March**.", Options: []string{"yes, load", "later", "reject"},
		Form: []playbook.ApprovalItem{
			{Name: "day", Type: "choice", Choices: []string{"today", "tomorrow"}, Default: "today"},
			{Name: "rows", Type: "integer", Required: true},
			{Name: "note", Type: "text"},
		},
	}}
	return webhook, approval
}
