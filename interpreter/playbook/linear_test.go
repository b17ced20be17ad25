package playbook_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// playbookOf is a playbook with n of something.
type playbookOf func(n int) string

func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "@", fmt.Sprint(i)))
	}
	return b.String()
}

const oneStep = "workflow:\n  - step: start\n"

// largest are playbooks that grow in one respect, each with the n from which the
// file is nearly as large as a file may be, or has as many of it as may be.
var largest = map[string]struct {
	n    int
	book playbookOf
}{
	"steps with routes to all": {40, func(n int) string {
		targets := lines(n, "{step: s@}, ")
		return "workflow:\n" + lines(n, "  - step: s@\n    next: [{when: '{{ true }}', then: ["+targets+"]}, {else: ["+targets+"]}]\n")
	}},
	"routes to nowhere": {4000, func(n int) string { return oneStep + "    next:\n" + lines(n, "      - step: nowhere@\n") }},
	"routes with conditions": {4000, func(n int) string {
		return oneStep + "    next:\n" + lines(n, "      - {when: '{{ a@ }}', step: start}\n")
	}},
	"workload keys and unknown names": {4000, func(n int) string {
		return "workload:\n" + lines(n, "  key@: 1\n") + oneStep + "output:\n" + lines(n, "  - '{{ kez@x }}'\n")
	}},
	"names in one template": {1500, func(n int) string { return oneStep + "output: \"" + lines(n, "{{ unknown@ }} ") + "\"\n" }},
	"problems in one template": {6000, func(n int) string {
		return oneStep + "output: \"" + strings.Repeat("{{ 1 + }} ", n) + "\"\n"
	}},
	"known names in one template": {4000, func(n int) string {
		return "workload: {a: 1}\n" + oneStep + "output: \"" + strings.Repeat("{{ a }} ", n) + "\"\n"
	}},
	"long lines with problems": {3000, func(n int) string { return oneStep + "output: [" + lines(n, "'{{ zz@ }}', ") + "]\n" }},
	"keys that stand twice":    {6000, func(n int) string { return oneStep + "output:\n" + strings.Repeat("  a: 1\n", n) }},
	"keys that no section has": {4000, func(n int) string { return lines(n, "unknown@: 1\n") + oneStep }},
	"fields of a tool": {4000, func(n int) string {
		return oneStep + "    tool: http\n    url: http://x\n" + lines(n, "    field@: 1\n")
	}},
	"entries of the workbook": {1500, func(n int) string {
		return "workbook:\n" + lines(n, "  - {name: e@, tool: http, url: http://x}\n") + oneStep
	}},
	"entries that steps call": {500, func(n int) string {
		return "workbook:\n" + lines(n, "  - {name: e@, tool: http, url: http://x}\n") + "workflow:\n" +
			lines(n, "  - {step: s@, tool: e@, next: [{step: s0}]}\n")
	}},
	"policies": {600, func(n int) string {
		return oneStep + "    tool: http\n    url: http://x\n    retry:\n" + lines(n, "      - {when: error.status == @, then: {max_attempts: 2}}\n")
	}},
	"policies with sinks": {300, func(n int) string {
		return oneStep + "    tool: http\n    url: http://x\n    retry:\n" +
			lines(n, "      - {when: response.a == @, then: {next_call: {url: '{{ response.u@ }}'}, collect: {into: c@}, sink: {tool: postgres, table: t, auth: x, args: {a: '{{ c@ }}'}}}}\n")
	}},
	"vars": {4000, func(n int) string { return oneStep + "    vars:\n" + lines(n, "      v@: '{{ vars.v@ }}'\n") }},
	"members of results": {4000, func(n int) string {
		return "workflow:\n  - {step: start, tool: http, url: http://x}\noutput:\n" + lines(n, "  - '{{ steps.start.meta.m@ }}'\n")
	}},
	"members of vars": {4000, func(n int) string {
		return "workflow:\n  - {step: start, vars: {a: 1}}\noutput:\n" + lines(n, "  - '{{ vars.m@ }}'\n")
	}},
	"deep lists": {30, func(n int) string {
		return oneStep + "output: " + strings.Repeat("[", n) + strings.Repeat("]", n) + "\n"
	}},
	"deep brackets": {30, func(n int) string {
		return oneStep + "output: '{{ " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) + " }}'\n"
	}},
	"a long expression": {300, func(n int) string {
		return "workload: {a: 1}\n" + oneStep + "output: '{{ a" + strings.Repeat(" + a", n) + " }}'\n"
	}},
	"a long text":    {200_000, func(n int) string { return oneStep + "output: '" + strings.Repeat("x", n) + "'\n" }},
	"braces in text": {100_000, func(n int) string { return oneStep + "output: '" + strings.Repeat("{ ", n) + "'\n" }},
	"open braces":    {50_000, func(n int) string { return oneStep + "output: '" + strings.Repeat("{{ ", n) + "'\n" }},
	"JSON text": {3000, func(n int) string {
		return "workload: {a: 1}\n" + oneStep + "    tool: http\n    url: http://x\n    method: POST\n    body: '{" + lines(n, `"k@": "{{ a }}", `) + `"z": 1}'` + "\n"
	}},
	"a url": {1000, func(n int) string {
		return "workload: {a: 1}\n" + oneStep + "    tool: http\n    url: 'http://x/" + strings.Repeat("{{ a }}/", n) + "'\n"
	}},
	"code": {4000, func(n int) string {
		return oneStep + "    tool: python\n    code: |\n      def main():\n" + lines(n, "          a@ = '{{ x }}'\n")
	}},
	"steps that name all before": {60, func(n int) string {
		return "workflow:\n" + lines(n, "  - {step: s@, tool: http, url: 'http://x/"+lines(n, "{{ s@.a }}")+"', next: [{step: s0}]}\n")
	}},
	"a YAML mistake at the end": {20_000, func(n int) string { return oneStep + "output:\n" + lines(n, "  - @\n") + "  b: 1\n" }},
	"retry of older forms": {300, func(n int) string {
		return "workflow:\n" + lines(n, "  - {step: s@, tool: http, url: http://x, retry: {max_attempts: 3, initial_delay: 1.0, backoff_multiplier: 2.0}, next: [{step: s0}]}\n")
	}},
}

// TestCheckingIsLinear checks playbooks and ones that are four times as large. The
// larger take about four times the processor time, of which a check that compares
// all with all would take sixteen times.
func TestCheckingIsLinear(t *testing.T) { // it measures its thread
	for name, grown := range largest {
		t.Run(name, func(t *testing.T) { // as above
			small, large := head+grown.book(grown.n/4), head+grown.book(grown.n)
			size := float64(len(large)) / float64(len(small))
			best := 1e9
			var last time.Duration
			for range 60 { // others on the machine take the caches away
				before, after := cost(small), cost(large)
				last = after
				if best = min(best, float64(after+time.Millisecond)/float64(before+time.Millisecond)/size); best < 2 {
					break
				}
			}
			t.Logf("%d bytes in %s, %.2f per byte", len(large), last, best)
			require.Less(t, best, 2.5, "what a byte costs grows with the file; 4 is its square")
		})
	}
}

// cost is the processor time that this thread takes to check a playbook and to
// print its problems.
func cost(text string) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	runtime.GC()
	began := threadTime()
	file := source.NewFile("x.yaml", []byte(text))
	_, found := check.Validate(file, testTools, check.Options{Limits: testLimits})
	_ = file.FormatFirst(found, playbook.MaxShown)
	return threadTime() - began
}

func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	if err := syscall.Getrusage(thread, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
