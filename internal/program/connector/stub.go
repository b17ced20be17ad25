package connector

import (
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/internal/program/node"
	"reprise/internal/program/recording"
	"reprise/internal/program/scaffold"
)

// atStub is where gaps are noted that the stub is for; they are at the rows where there is none.
const atStub = "code"

// addStub records that code of the connector does something with rows, which the task says.
func (s *step) addStub(component, reason, task string) {
	s.addGap(atStub, component, "%s", reason)
	s.tasks = append(s.tasks, task)
}

// ofCall matches what an expression of a sink knows only in the step that reads the rows.
var ofCall = regexp.MustCompile(`\b(incremental|_loop|page|pages|response|this|_retry)\b`)

// makeStubs gives each step whose rows need code of the connector a step in Python, which writes them. Somebody fills in its code;
// until then it writes the rows as they are.
func makeStubs(c *converter) {
	var made []string
	for _, s := range c.list {
		if len(s.tasks) == 0 || !s.written || c.Sink == scaffold.SinkNone || !s.canWriteLater() {
			if gaps := s.gaps[atStub]; len(gaps) > 0 {
				s.gaps[atRows] = append(s.gaps[atRows], gaps...)
				delete(s.gaps, atStub)
			}
			continue
		}
		s.stub = c.unusedName(s.name + "_python")
		s.written, s.read = false, true
		made = append(made, s.stub)
	}
	if len(made) > 0 {
		c.addNote("fill in the Python code of %s; a worker of a server runs it only with --allow-python", strings.Join(made, ", "))
	}
}

// canWriteLater reports whether another step can write the rows. One that adds rows would add those that come again, one that
// replaces a table does not know that rows are missing, and fields of the call or element are not known in it.
func (s *step) canWriteLater() bool {
	if s.writeMode() != "upsert" {
		return false
	}
	for _, field := range s.fields {
		text := textOf(field.value)
		if ofCall.MatchString(text) || s.loop != nil && regexp.MustCompile(`\b`+regexp.QuoteMeta(s.loop.element)+`\b`).MatchString(text) {
			return false
		}
	}
	return true
}

// stubNode returns the step that runs the code, and writes what it returns.
func stubNode(c *converter, s *step) *yaml.Node {
	rows := s.name + " or []"
	if s.loop != nil {
		rows = "filter(flatten(" + s.name + ".results), # != nil)" // an iteration that failed has none
	}
	n := node.EmptyMap()
	node.AddKey(n, "step", recording.TextNode(s.stub))
	node.AddKey(n, "tool", recording.TextNode("python"))
	node.AddKey(n, "args", node.FlowMap("rows", node.QuotedText("{{ "+rows+" }}")))
	code := recording.TextNode("def main(rows):\n    # To do: " + strings.Join(s.tasks, "\n    # To do: ") + "\n    return rows\n")
	code.Style = yaml.LiteralStyle
	node.AddKey(n, "code", code)
	node.AddKey(n, "sink", c.sinkNode(s))
	for _, at := range []string{atStub, atSink} {
		s.commentGaps(n, at)
	}
	return n
}
