package call

import (
	"encoding/hex"
	"strings"
	"time"

	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// RequestDigest returns a digest of what a call requests, to compare it with an earlier call: of its first request, without
// keys, and of the step's text. It is "" if the request cannot be rendered.
func (c *Config) RequestDigest(at time.Time) string {
	first := New(*c)
	first.state.StartedAt = at
	first.beginRequest(at)
	if first.Result() != nil {
		return ""
	}
	return request.KeyDigest(hex.EncodeToString(first.state.Seen), first.state.Request.Auth, stepText(c.Book, c.Step))
}

// LoopDigest returns the digest of what a loop as a whole requests.
func (t Task) LoopDigest(book *playbook.Playbook, step *playbook.Step, elements []expression.Value) string {
	all := lists.Map(elements, func(element expression.Value) any { return element.Data })
	return request.KeyDigest(t.Args.Data, t.Data.Workload.Data, t.Data.Vars.Data, t.Data.Steps.Data, all, stepText(book, step))
}

// stepText returns the lines of a step in its playbook, without comments and empty lines.
func stepText(book *playbook.Playbook, step *playbook.Step) string {
	lines := strings.Split(string(book.File.Bytes()), "\n")
	first, end := step.NamePos.Line-1, len(lines)
	if first < 0 || first >= len(lines) {
		return ""
	}
	for _, other := range book.Steps {
		if line := other.NamePos.Line - 1; line > first {
			end = min(end, line)
		}
	}
	indent := indentOf(lines[first])
	if !strings.HasPrefix(strings.TrimSpace(lines[first]), "-") {
		indent--
	}
	text := []string{strings.TrimSpace(lines[first])}
	for _, line := range lines[first+1 : end] {
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		if indentOf(line) <= indent {
			break
		}
		text = append(text, strings.TrimRight(line, " \t\r"))
	}
	return strings.Join(text, "\n")
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// IterationDigest returns the CallDigest of an iteration of the task's loop.
func (t Task) IterationDigest(book *playbook.Playbook, step *playbook.Step, snapshot Snapshot, at time.Time) string {
	return t.CallDigest(t.BuildCall(book, step, snapshot, func() float64 { return 0 }), at)
}

// CallDigest returns the digest of what a call of the task requests, including the playbooks that it may run.
func (t Task) CallDigest(call *Call, at time.Time) string {
	print := call.config.RequestDigest(at)
	if print != "" && t.Nesting != nil && len(t.Nesting.Files) > 0 {
		print += FilesDigest(t.Nesting.Files)
	}
	return print
}

// FilesDigest returns a digest of a set of playbooks.
func FilesDigest(files map[string]string) string {
	parts := make([]any, 0, 2*len(files))
	for _, name := range playbook.SortedKeys(files) {
		parts = append(parts, name, files[name])
	}
	return expression.ShortDigest(parts...)
}
