package call_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter/call"
)

// child is a playbook that others run, whose step writes to the connection of a name.
func child(auth string) string {
	return fmt.Sprintf("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: child}\nworkload: {db: theirs}\nworkflow:\n"+
		"  - {step: load, tool: http, url: http://x, sink: {tool: postgres, auth: %q, table: t}}\n", auth)
}

// TestStartConnections: which connections of sinks a run is certain to need when it begins, each with the
// sink's place and line. $NAME is a sink whose auth is NAME.
func TestStartConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		book     string
		workload string // JSON
		files    map[string]string
		want     string // AUTH LINE, or AUTH FILE:LINE in another file; one behind the other
	}{
		// Templates.
		"a literal name":        {book: `{step: a, tool: http, url: http://x, sink: $pg}`, want: "pg 7"},
		"no connection":         {book: `{step: a, tool: http, url: http://x, sink: {tool: file, path: x.csv}}`},
		"a step without a sink": {book: `{step: a, tool: postgres, auth: pg, statement: SELECT 1}`},
		"of the workload":       {book: `{step: a, tool: http, url: http://x, sink: $"{{ db }}"}`, want: "ours 7"},
		"of the workload that the run is given": {
			book: `{step: a, tool: http, url: http://x, sink: $"{{ workload.db }}_{{ region }}"}`, workload: `{"region": "eu"}`, want: "ours_eu 7",
		},
		"of the workload, which says nothing":  {book: `{step: a, tool: http, url: http://x, sink: $"{{ region }}"}`, workload: `{"region": null}`},
		"of the workload, which gives no text": {book: `{step: a, tool: http, url: http://x, sink: $"{{ region }}"}`, workload: `{"region": 7}`},
		"of an expression that fails":          {book: `{step: a, tool: http, url: http://x, sink: $"{{ 1 / 'x' }}"}`},
		"of what the call gives":               {book: `{step: a, tool: http, url: http://x, sink: $"{{ result.db }}"}`},
		"of an earlier step":                   {book: `{step: a, tool: http, url: http://x, next: b}, {step: b, tool: http, url: http://x, sink: $"{{ a.db }}"}`},
		"of vars":                              {book: `{step: a, tool: http, url: http://x, sink: $"{{ vars.db }}"}`},
		"of the run":                           {book: `{step: a, tool: http, url: http://x, sink: $"{{ run.id }}"}`},
		"of a workbook entry": {
			book: `{step: a, tool: workbook, name: load, sink: $pg}`, want: "pg 7",
		},
		// Sinks of a call.
		"of a policy, a page and a dead letter": {
			book: `{step: a, tool: http, url: http://x, retry: [{when: "{{ response.more }}", then: {next_call: {params: {n: 2}}, max_attempts: 2, per_iteration: {sink: $page}}},` +
				` {when: "{{ error is defined }}", then: {sink: $failed}}], sink: $all}`,
			want: "page 7 failed 7 all 7",
		},
		"of a step whose tool a template decides": {
			book:     `{step: a, tool: "{{ how }}", url: http://x, retry: [{when: "{{ error is defined }}", then: {sink: $failed}}], sink: $all}`,
			workload: `{"how": "http"}`, want: "all 7",
		},
		// Loops.
		"of a loop": {
			book: `{step: a, tool: http, url: http://x, loop: {in: [1], element: n, sink: $each}, retry: [{when: "{{ error is defined }}", then: {sink: $failed}}], sink: $all}`,
			want: "all 7",
		},
		"of a loop's elements": {book: `{step: a, tool: http, url: http://x, loop: {in: [pg], element: n, sink: $"{{ n }}"}}`},
		// Approvals.
		"of an approval": {book: `{step: a, tool: approval, message: "go?", sink: $pg}`, want: "pg 7"},
		"of an approval that may be refused": {
			book: `{step: a, tool: approval, message: "go?", sink: $pg, next: [{when: "{{ error is defined }}", step: b}]}, {step: b, tool: http, url: http://x, sink: $other}`,
		},
		"of a policy of an approval": {
			book: `{step: a, tool: approval, message: "go?", retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, sink: $failed}}]}`,
		},
		// Certain and possible steps.
		"of the steps behind": {
			book: `{step: a, vars: {n: 1}, next: [b, c]}, {step: b, tool: http, url: http://x, sink: $b, next: d}, ` +
				`{step: c, tool: http, url: http://x, sink: $c, next: d}, {step: d, tool: http, url: http://x, join: all, sink: $d}`,
			want: "b 7 c 7 d 7",
		},
		"of steps behind a condition": {
			book: `{step: a, tool: http, url: http://x, sink: $a, next: [{when: "{{ a.ok }}", step: b}, {else: [{step: c}]}]}, ` +
				`{step: b, tool: http, url: http://x, sink: $b}, {step: c, tool: http, url: http://x, sink: $c}`,
			want: "a 7",
		},
		"of steps behind a failure that is handled": {
			book: `{step: a, tool: http, url: http://x, sink: $a, next: [{when: "{{ error is defined }}", step: b}, {step: c}]}, ` +
				`{step: b, tool: http, url: http://x, sink: $b}, {step: c, tool: http, url: http://x, sink: $c}`,
		},
		"of a cycle": {
			book: `{step: a, tool: http, url: http://x, sink: $a, next: b}, {step: b, tool: http, url: http://x, sink: $b, next: [{when: "{{ not b.ok }}", step: a}]}`,
			want: "a 7 b 7",
		},
		"of the step that is named start": {
			book: `{step: a, tool: http, url: http://x, sink: $a}, {step: start, tool: http, url: http://x, sink: $first, next: a}`,
			want: "first 7 a 7",
		},
		// Child playbooks.
		"of an inline playbook": {
			book: `{step: a, tool: playbook, workflow: [{step: b, tool: http, url: http://x, sink: $b}], sink: $a}`, want: "a 7 b 7",
		},
		"of a file": {
			book: `{step: a, tool: playbook, path: child.yaml}`, files: map[string]string{"child.yaml": child("{{ db }}")}, want: "theirs child.yaml:6",
		},
		"of a file that the run does not take along": {book: `{step: a, tool: playbook, path: child.yaml}`},
		"of a file that is no playbook":              {book: `{step: a, tool: playbook, path: child.yaml}`, files: map[string]string{"child.yaml": "kind: Playbook"}},
		"of a file with a workload of the parent's": {
			book:  `{step: a, tool: playbook, path: child.yaml, workload: {db: "{{ db }}_child"}}`,
			files: map[string]string{"child.yaml": child("{{ db }}")}, want: "ours_child child.yaml:6",
		},
		"of a file with a workload of a step's": {
			book:  `{step: s, tool: http, url: http://x, next: a}, {step: a, tool: playbook, path: child.yaml, workload: {db: "{{ s.db }}"}}`,
			files: map[string]string{"child.yaml": child("{{ db }}")},
		},
		"of a file for each element": {
			book: `{step: a, tool: playbook, path: child.yaml, loop: {in: [], element: n}}`, files: map[string]string{"child.yaml": child("pg")},
		},
		"of a file whose failure a policy may ignore": {
			book:  `{step: a, tool: playbook, path: child.yaml, retry: [{when: "{{ error is defined }}", then: {ignore: true}}]}`,
			files: map[string]string{"child.yaml": child("pg")},
		},
		"of a file that is not waited for": {
			book: `{step: a, tool: playbook, path: child.yaml, wait: false}`, files: map[string]string{"child.yaml": child("pg")},
		},
		"of a file that may be skipped": {
			book:  `{step: a, tool: playbook, path: child.yaml}`,
			files: map[string]string{"child.yaml": strings.Replace(child("pg"), "workload:", "concurrency: {key: one, on_conflict: skip}\nworkload:", 1)},
		},
		"of a file that two steps run": {
			book:  `{step: a, tool: playbook, path: child.yaml, workload: {db: one}, next: b}, {step: b, tool: playbook, path: child.yaml, workload: {db: two}}`,
			files: map[string]string{"child.yaml": child("{{ db }}")}, want: "one child.yaml:6 two child.yaml:6",
		},
		"of a file that runs itself": {
			book: `{step: a, tool: playbook, path: child.yaml}`,
			files: map[string]string{"child.yaml": strings.Replace(child("pg"), "workflow:\n", "workflow:\n"+
				"  - {step: one, tool: playbook, path: child.yaml, next: two}\n  - {step: two, tool: playbook, path: child.yaml, next: load}\n", 1)},
			want: "pg child.yaml:8",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book := tables.DecodeBody(t, "workload: {db: ours}\nworkbook: [{name: load, tool: http, url: http://x}]\nworkflow: [\n  "+withSinks(c.book)+"\n]\n")
			workload := map[string]any{}
			if c.workload != "" {
				workload = tables.Value(t, c.workload).(map[string]any)
			}
			var found []string
			for _, one := range call.StartConnections(book, workload, c.files, tables.Started) {
				at := strings.Split(strings.TrimPrefix(one.At, "table.yaml:"), ":")
				found = append(found, one.Auth, strings.Join(at[:len(at)-1], ":"))
			}
			require.Equal(t, c.want, strings.Join(found, " "))
		})
	}
}

// withSinks writes sinks in the place of $NAME.
func withSinks(steps string) string {
	parts := strings.Split(steps, "$")
	for i, part := range parts[1:] {
		end := strings.IndexAny(part, ",}] ")
		if part[0] == '"' {
			end = strings.Index(part[1:], `"`) + 2
		}
		parts[i+1] = fmt.Sprintf("{tool: postgres, auth: %s, table: t}%s", part[:end], part[end:])
	}
	return strings.Join(parts, "")
}
