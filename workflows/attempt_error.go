package workflows

import "reprise/interpreter"

// AttemptError is the error of an attempt whose activity ended with err, as its
// call takes it: what the tool said, or what the end of the activity means.
func AttemptError(err error) *interpreter.ErrorObject { return activityError(err) }
