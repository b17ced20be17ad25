package chaos_test

import (
	"fmt"
	"os"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// skewVariable is how far the clock of a worker's activities is ahead of others, or behind with a minus.
const skewVariable = "CHAOS_SKEW"

// skewed is the environment of a worker with such a clock.
func skewed(by time.Duration) []string { return []string{skewVariable + "=" + by.String()} }

// skewOf reads what skewed has written.
func skewOf(text string) time.Duration {
	if text == "" {
		return 0
	}
	by, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("%s=%q: %v", skewVariable, text, err))
	}
	return by
}

// skewer changes the times of activities as they are delivered. Calls measure by these: an activity's clock is that of the
// server, so that another clock of the machine changes nothing. Workflow tasks keep theirs, which a replay has to find again.
func skewer() func(reply any) {
	by := skewOf(os.Getenv(skewVariable))
	return func(reply any) {
		if by == 0 {
			return
		}
		switch r := reply.(type) {
		case *workflowservice.PollActivityTaskQueueResponse:
			skew(r, by)
		case *workflowservice.RespondWorkflowTaskCompletedResponse:
			for _, task := range r.GetActivityTasks() {
				skew(task, by)
			}
		}
	}
}

func skew(task *workflowservice.PollActivityTaskQueueResponse, by time.Duration) {
	for _, at := range []*timestamppb.Timestamp{task.GetScheduledTime(), task.GetStartedTime(), task.GetCurrentAttemptScheduledTime()} {
		if at != nil {
			at.Seconds += int64(by / time.Second)
		}
	}
}
