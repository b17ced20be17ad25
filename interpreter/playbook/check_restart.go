package playbook

// checkRestart checks that restart follows failures only, and that no sink of
// the step keeps pages that a restart drops (docs/concepts/attempts.md#beginning-again).
func (c *checker) checkRestart(step *Step) {
	var restarting *Policy
	for _, policy := range step.Retry {
		if !policy.Then.Restart {
			continue
		}
		restarting = policy
		if program, ok := policy.When.program(); ok && !failuresOnly(program) {
			c.errorf(policy.Then.word("restart"), codeCannotRestart,
				"restart follows a failure, but this policy may match a success too; name the error, such as when: \"{{ error.status == 410 }}\"")
		}
	}
	if restarting == nil {
		return
	}
	for _, policy := range step.Retry {
		if pages := policy.Then.PerIteration; pages != nil && !pages.idempotentByRow() && !c.pb.Stages(pages) {
			c.errorf(pages.Pos, codeCannotRestart,
				"restart in policy %d drops the pages and reads them again, but this sink would keep what it has written of them; write pages to a table with mode: upsert or replace, or what was collected with then.sink",
				restarting.Number)
		}
	}
}

// idempotentByRow reports whether a sink replaces rows that it writes again,
// also where they are in another page by then.
func (s *Sink) idempotentByRow() bool {
	mode, _ := s.Action.mode()
	return s.Action.Field(statementField) == nil && s.Action.Field("table") != nil && mode == "upsert"
}
