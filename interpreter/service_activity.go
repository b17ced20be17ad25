package interpreter

import "slices"

// serviceActivities are the activities with which runs ask others, or tidy up. They
// make no attempt of a step.
var serviceActivities = []string{
	AdmitActivity, CancelTreeActivity, CheckActivity, DeliverActivity, EndedActivity, ForgetActivity,
	LineCancelActivity, LineCircleActivity, LineEnterActivity, LineLookActivity, RecallActivity, SettleActivity, StoppedActivity,
}

// IsServiceActivity reports whether the activity of a name makes no attempt of a step: no
// tool may have the name, and no event is about it.
func IsServiceActivity(name string) bool { return slices.Contains(serviceActivities, name) }
