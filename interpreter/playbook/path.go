package playbook

import (
	"strings"

	"reprise/interpreter/expression"
)

// RenderPath renders text that is the path of a file: docs/concepts/expressions.md#values-in-a-path.
// A value stays within one name, so that data does not choose the folder. No template may be nil, and none
// empty. Text that is one template is taken as it is. The error is always an *EvalError.
func (n *Node) RenderPath(scope expression.Scope, b *expression.Budget) (any, error) {
	if n.Template == nil {
		return n.Render(scope, b)
	}
	return n.renderPlaced(&pathWriter{node: n, budget: b}, "a path", scope, b)
}

// pathWriter puts a path together.
type pathWriter struct {
	node   *Node
	budget *expression.Budget
	text   strings.Builder
	values []placedValue
}

func (w *pathWriter) write(text string) { w.text.WriteString(text) }

// hide hides nothing: a path has no secrets.
func (w *pathWriter) hide(expression.Segment) (bool, error) { return false, nil }

func (w *pathWriter) end() (any, error) { return w.text.String(), w.checkDots() }

// inPath keeps different values different names.
var inPath = strings.NewReplacer("/", "%2F", "%", "%25")

func (w *pathWriter) value(segment expression.Segment, value any) error {
	text, err := expression.Charged(w.budget, value)
	switch {
	case err != nil:
		return &EvalError{Pos: w.node.Position(segment.Start), Message: err.Error()}
	case segment.Program.Raw() || segment.Program.Written():
		w.text.WriteString(text)
		return nil
	case text == "":
		return w.node.refused(segment, "is empty; every part of a path must be there")
	}
	w.values = append(w.values, placedValue{segment: segment, at: w.text.Len()})
	w.text.WriteString(inPath.Replace(text))
	return nil
}

// checkDots refuses a value that makes a name "." or "..".
func (w *pathWriter) checkDots() error {
	text := w.text.String()
	for _, value := range w.values {
		name, _, _ := strings.Cut(text[strings.LastIndexByte(text[:value.at], '/')+1:], "/")
		if name == "." || name == ".." {
			return w.node.refused(value.segment, "makes %q of a name in a path, which leads elsewhere", name)
		}
	}
	return nil
}
