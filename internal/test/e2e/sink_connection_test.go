package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// missingSink is a sink whose connection no worker has, by a name that may be a template.
const missingSink = `{tool: http, url: "{{ api }}/api/v1/writes", auth: %q}`

// read is a step whose request the API counts.
const read = `  - {step: read, tool: http, url: "{{ api }}/api/v1/users", next: %s}
`

// TestMissingConnectionIsFoundFirst: a connection that a run is certain to need and that its worker does not have
// fails it before its first request, wherever its name is known by then.
func TestMissingConnectionIsFoundFirst(t *testing.T) {
	t.Parallel()
	const at = `: sink %s: connection "nowhere" is not configured: set REPRISE_AUTH_NOWHERE`
	for name, row := range map[string]struct{ steps, place string }{
		"constant": {`  - {step: load, tool: http, url: "{{ api }}/api/v1/users", sink: SINK}
`, "load.sink"},
		"template": {`  - {step: load, tool: http, url: "{{ api }}/api/v1/users", sink: TEMPLATE}
`, "load.sink"},
		"loop": {`  - {step: load, tool: http, url: "{{ api }}/api/v1/users", loop: {collection: "{{ [1, 2] }}", element: one}, sink: TEMPLATE}
`, "load.sink"},
		"approval": {`  - {step: load, tool: approval, message: "Fine?", sink: SINK}
`, "load.sink"},
		"webhook": {`  - {step: load, tool: webhook, on_start: {url: "{{ api }}/api/v1/users"}, sink: TEMPLATE}
`, "load.sink"},
		"child": {`  - step: load
    tool: playbook
    workload: {api: "{{ api }}", name: "{{ db }}"}
    workflow:
      - {step: inner, tool: http, url: "{{ api }}/api/v1/users", sink: {tool: http, url: "{{ api }}/api/v1/writes", auth: "{{ workload.name }}"}}
`, "inner.sink"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			result := w.ends("failed", book(fmt.Sprintf(read, "load")+sinks(row.steps)), map[string]any{"db": "nowhere"})
			require.Contains(t, result.Error.Message, fmt.Sprintf(at, row.place))
			require.Equal(t, interpreter.KindTool, result.Error.Kind)
			require.True(t, result.Error.Final)
			require.Zero(t, w.api.CountRequests("", "/api/v1/users"), "it has begun")
		})
	}
}

// TestMissingConnectionOfALateStep: where a route decides whether a step is reached, or what it names follows from an
// earlier step, the step fails before it begins, and a run that does not reach it is completed.
func TestMissingConnectionOfALateStep(t *testing.T) {
	t.Parallel()
	const chosen = `  - {step: first, tool: http, url: "{{ api }}/api/v1/users", vars: {to: "nowhere"}, next: [{when: "{{ workload.go }}", then: [{step: load}]}]}
`
	for name, late := range map[string]string{
		"template": `  - {step: load, tool: http, url: "{{ api }}/api/v1/writes", sink: {tool: http, url: "{{ api }}/api/v1/writes", auth: "{{ vars.to }}"}}
`,
		"loop": `  - {step: load, tool: http, url: "{{ api }}/api/v1/writes", loop: {collection: "{{ [1, 2] }}", element: one}, sink: SINK}
`,
		"element": `  - step: load
    tool: http
    url: "{{ api }}/api/v1/writes"
    loop:
      collection: "{{ ['nowhere', 'nowhere'] }}"
      element: one
      sink: {tool: http, url: "{{ api }}/api/v1/writes", auth: "{{ one }}"}
`,
		"approval": `  - {step: load, tool: approval, message: "Fine?", sink: {tool: http, url: "{{ api }}/api/v1/writes", auth: "{{ vars.to }}"}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			source := book(chosen + sinks(late))
			result := w.ends("failed", source, map[string]any{"go": true, "db": "nowhere"})
			require.Equal(t, interpreter.Failed, step(t, result, "load").Status)
			message := result.Error.Message
			if failed := step(t, result, "load"); failed.Loop != nil && len(failed.Loop.Errors) > 0 {
				message = failed.Loop.Errors[0].Error.Message
			}
			require.Contains(t, message, `connection "nowhere" is not configured: set REPRISE_AUTH_NOWHERE`)
			require.Equal(t, 1, w.api.CountRequests("", "/api/v1/users"))
			require.Zero(t, w.api.CountRequests("", "/api/v1/writes"))
			w.ends("completed", source, map[string]any{"go": false, "db": "nowhere"})
		})
	}
}

// TestMissingConnectionThatMayNotMatter: a run that completes without a connection is not failed for want of it.
func TestMissingConnectionThatMayNotMatter(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{
		"a route handles the failure": `  - {step: load, tool: http, url: "{{ api }}/api/v1/users", sink: SINK, next: [{when: "{{ error != nil }}", then: [{step: after}]}]}
  - {step: after, tool: http, url: "{{ api }}/api/v1/users"}
`,
		"a loop over nothing": `  - step: load
    tool: http
    url: "{{ api }}/api/v1/users"
    loop: {collection: "{{ [] }}", element: one, sink: SINK}
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			w.ends("completed", book(sinks(steps)), map[string]any{"db": "nowhere"})
		})
	}
}

// sinks writes out SINK, which names its connection, and TEMPLATE, which has it from the workload.
func sinks(steps string) string {
	return strings.NewReplacer("SINK", fmt.Sprintf(missingSink, "nowhere"), "TEMPLATE", fmt.Sprintf(missingSink, "{{ workload.db }}")).Replace(steps)
}
