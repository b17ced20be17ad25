package activities

import (
	"context"
	"fmt"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// maxProblems bounds the text that goes to the history.
const maxProblems = 64 << 10

// Check is the check at the door: the whole of a playbook against the tools of
// this worker. It resolves no connection and touches nothing. Problems of the
// playbook are its result; it never fails.
func (c *Catalogue) Check(_ context.Context, in interpreter.CheckInput) (interpreter.CheckResult, error) {
	file := source.NewFile(in.Name, []byte(in.Source))

	workload, ok := in.Workload.Data.(map[string]any)
	if !ok && in.Workload.Data != nil {
		return interpreter.CheckResult{
			Problems: fmt.Sprintf("%s: the workload is a %s; it must be a map", in.Name, expression.TypeName(in.Workload.Data)),
			Count:    1,
		}, nil
	}

	_, found := playbook.Validate(file, c, playbook.CheckOptions{Workload: workload, Limits: c.res.Limits})

	result := interpreter.CheckResult{Limits: interpreter.NewRunLimits(c.res.Limits)}

	if problems := found.Errors(); len(problems) > 0 {
		result.Problems = cutText(file.FormatAll(problems), maxProblems)
		result.Count = len(problems)
	}

	for _, warning := range found.Warnings() {
		result.Warnings = append(result.Warnings, cutText(warning.String(), maxMessage))
	}

	return result, nil
}
