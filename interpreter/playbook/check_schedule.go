package playbook

import "reprise/interpreter/source"

// checkSchedule refuses a schedule that no server would take, or that would not do
// what it says.
func checkSchedule(c *checker) {
	s := c.pb.Schedule
	if s == nil {
		return
	}
	for _, problem := range s.Problems(c.options.Zone) {
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
