package check

import (
	"reprise/interpreter/playbook"
)

// checkRestart checks that restart only follows failures, and that no sink of the step keeps pages that a restart
// drops (docs/concepts/attempts.md#starting-over).
func checkRestart(c *checker, step *playbook.Step) {
	var restarting *playbook.Policy
	for _, policy := range step.Retry {
		if !policy.Then.Restart {
			continue
		}
		restarting = policy
		if program, ok := policy.When.ConditionProgram(); ok && !playbook.FailuresOnly(program) {
			c.Errorf(placeOfWord(&policy.Then, "restart"), codeCannotRestart,
				"restart follows a failure, but this policy may also match a success; test the error, for example when: \"{{ error.status == 410 }}\"")
		}
	}
	if restarting == nil {
		return
	}
	for _, policy := range step.Retry {
		for _, pages := range policy.Then.PageSinks {
			if idempotentByRow(pages) || c.pb.StagesRows(step, pages) {
				continue
			}
			c.Errorf(pages.Pos, codeCannotRestart,
				"restart in policy %d drops the pages and reads them again, but this sink would keep the rows it has already written; write pages to a table with mode: upsert or replace, or write the collected result with then.sink",
				restarting.Number)
		}
	}
}

// idempotentByRow reports whether a sink replaces rows that it writes again, even if they are then in another page.
func idempotentByRow(s *playbook.Sink) bool {
	mode, _ := s.Action.WriteMode()
	return s.Action.Field(playbook.FieldStatement) == nil && s.Action.Field("table") != nil && mode == "upsert"
}
