package playbook

import "reprise/interpreter/source"

// checkSchedule refuses a schedule that no server would take, or that would not do
// what it says.
func checkSchedule(c *checker) {
	s := c.pb.Schedule
	if s == nil {
		return
	}
	problems := s.Problems(c.options.Zone)
	if !c.options.Now.IsZero() {
		problems = append(problems, s.ClockProblems(c.options.Now, c.options.Now.AddDate(1, 0, 0))...)
	}
	for _, problem := range problems {
		pos, name, severity := s.Words.at(problem.Word, s.Pos), "schedule", source.Error
		if problem.Word != "" {
			name += "." + problem.Word
		}
		if problem.Word == "cron" && problem.Index < len(s.Places) {
			pos = s.Places[problem.Index]
		}
		if problem.Warning {
			severity = source.Warning
		}
		c.add(severity, pos, problem.Code, name+" "+problem.Message)
	}
}
