package playtest

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
)

// shownDifference bounds the text of a difference, in bytes.
const shownDifference = 4000

// showDifference shows the difference line by line: - for expected, + for actual lines.
func showDifference(wanted, got any) string {
	want, have := yamlOf(wanted), yamlOf(got)
	if want == have { // they differ by their types
		return fmt.Sprintf("- %s (%s)\n+ %s (%s)", strings.TrimSpace(want), expression.TypeName(wanted), strings.TrimSpace(have), expression.TypeName(got))
	}
	if !strings.Contains(strings.TrimSpace(want), "\n") && !strings.Contains(strings.TrimSpace(have), "\n") {
		return "- " + strings.TrimSpace(want) + "\n+ " + strings.TrimSpace(have)
	}
	text := string(diff.Diff("expected", []byte(want), "got", []byte(have)))
	lines := strings.SplitAfter(text, "\n")
	text = strings.Join(lines[min(3, len(lines)):], "") // of the names of the two
	if len(text) > shownDifference {
		text = text[:shownDifference] + "…"
	}
	return strings.TrimRight(text, "\n")
}

// yamlOf returns a value as YAML.
func yamlOf(v any) string {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(v); err != nil {
		return fmt.Sprint(v) + "\n"
	}
	return b.String()
}

// flowOf returns a value as YAML on one line.
func flowOf(v any) string {
	node := &yaml.Node{}
	if err := node.Encode(v); err != nil || reflect.ValueOf(v).Kind() == reflect.Invalid {
		return strings.TrimSpace(yamlOf(v))
	}
	setFlowStyle(node)
	return strings.TrimSpace(yamlOf(node))
}

func setFlowStyle(n *yaml.Node) {
	n.Style |= yaml.FlowStyle
	if n.Kind == yaml.ScalarNode {
		n.Style &^= yaml.FlowStyle | yaml.LiteralStyle | yaml.FoldedStyle
	}
	for _, inner := range n.Content {
		setFlowStyle(inner)
	}
}
