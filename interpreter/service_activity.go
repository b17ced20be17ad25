package interpreter

import "slices"

// serviceActivities are the activities with which runs ask others, or tidy up. They
// make no attempt of a step.
var serviceActivities = []string{
	AdmitActivity, CheckActivity, DeliverActivity, EndedActivity, CancelTreeActivity, ForgetActivity,
	LineCancelActivity, LineCircleActivity, LineEnterActivity, LineLookActivity, RecallActivity, SettleActivity,
}

// IsServiceActivity reports whether the activity of a name makes no attempt of a step: no
// tool may have the name, and no event is about it.
func IsServiceActivity(name string) bool { return slices.Contains(serviceActivities, name) }
