package retry_test

import (
	"testing"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

func BenchmarkDecide(b *testing.B) {
	policies := []*playbook.Policy{
		{Number: 1, Then: playbook.Then{Repeats: true, MaxAttempts: ptr(1 << 60)}},
	}
	counters := retry.NewCounters(1)
	outcome := interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindTimeout}}
	for b.Loop() {
		if _, err := retry.Decide(policies, outcome, &counters, always{}, tables.Started, func() float64 { return 0.5 }); err != nil {
			b.Fatal(err)
		}
	}
}
