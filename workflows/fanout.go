package workflows

import "go.temporal.io/sdk/workflow"

// fanOut calls run for 0 … n-1 in order, at most width at a time, and returns
// when all calls have. Once run returns false no further call starts.
func fanOut(ctx workflow.Context, n, width int, run func(ctx workflow.Context, i int) bool) {
	next, stopped := 0, false
	group := workflow.NewWaitGroup(ctx)
	for range min(n, max(width, 1)) {
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			for next < n && !stopped {
				i := next
				next++
				if !run(ctx, i) {
					stopped = true
				}
			}
		})
	}
	group.Wait(ctx)
}
