package host

import (
	"reprise/activities"
	"reprise/internal/base/payload"
	"reprise/interpreter"
)

// Payloads are how large the values of runs may be on a worker with the given
// payload store, nil for none: REPRISE_MAX_RESULT_BYTES, and without a store
// never more than Temporal takes; and how much of them a worker holds at once,
// REPRISE_MAX_ANSWERS_BYTES. lookup is usually os.LookupEnv.
func Payloads(store *payload.Store, lookup func(string) (string, bool)) (activities.Payloads, error) {
	most, err := payload.MaxBytes(lookup)
	if err != nil {
		return activities.Payloads{}, err
	}
	answers, err := activities.AnswersBytesFromEnv(lookup)
	if err != nil {
		return activities.Payloads{}, err
	}
	if store == nil {
		return activities.Payloads{MaxBytes: min(most, interpreter.MaxInlinePayload), AnswersBytes: answers}, nil
	}
	return activities.Payloads{MaxBytes: most, AnswersBytes: answers, OffloadAbove: payload.Threshold, Store: store}, nil
}
