package playbook

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"reprise/interpreter/expression"
)

// RenderURL renders text that is a URL: docs/concepts/expressions.md#values-in-a-url. A value stays within its
// place, so that data changes neither the host nor the path nor the query that the author wrote. No template may be
// nil. The error is always an *EvalError.
func (n *Node) RenderURL(scope expression.Scope, b *expression.Budget) (any, error) {
	return n.RenderURLWithout(func(expression.Segment) bool { return false }, scope, b)
}

// RenderURLWithout is RenderURL with asterisks in place of hidden expressions. A hidden expression in the host is
// an error, because the host receives everything else.
func (n *Node) RenderURLWithout(
	hidden func(expression.Segment) bool, scope expression.Scope, b *expression.Budget,
) (any, error) {
	if n.Template == nil {
		return n.Render(scope, b)
	}
	return n.renderPlaced(&urlWriter{node: n, budget: b, hidden: hidden}, "a URL", scope, b)
}

// placedText composes text so that each value stays within its place.
type placedText interface {
	// writeText adds the author's text.
	writeText(text string)
	// hideValue adds a replacement for a value that must not be shown; it returns false for other values.
	hideValue(segment expression.Segment) (hidden bool, err error)
	// writeValue adds a value, escaped for its place.
	writeValue(segment expression.Segment, value any) error
	// endText returns the text, or why it is invalid.
	endText() (any, error)
}

// renderPlaced renders a template whose values are inserted by the rules of their places; what names it in
// messages. A template without text around it is not checked by place.
func (n *Node) renderPlaced(w placedText, what string, scope expression.Scope, b *expression.Budget) (any, error) {
	for _, segment := range n.Template.Segments() {
		if segment.Program == nil {
			w.writeText(segment.Text)
			continue
		}
		if hidden, err := w.hideValue(segment); err != nil {
			return nil, err
		} else if hidden {
			continue
		}
		value, err := segment.Eval(scope, b)
		switch {
		case err != nil:
			return nil, n.evalError(err)
		case value == nil:
			return nil, n.missingError(segment, scope, what)
		}
		if _, single := n.Template.SingleProgram(); single {
			return value, nil
		}
		if err := w.writeValue(segment, value); err != nil {
			return nil, err
		}
	}
	return w.endText()
}

// urlWriter composes a URL.
type urlWriter struct {
	node   *Node
	budget *expression.Budget
	hidden func(expression.Segment) bool
	out    []byte
	inPath []placedValue
}

// placedValue is a value in a path, with its offset in the text.
type placedValue struct {
	segment expression.Segment
	at      int
}

func (w *urlWriter) writeText(text string) { w.out = append(w.out, text...) }

// writeValue adds a value, escaped for its place.
func (w *urlWriter) writeValue(segment expression.Segment, value any) error {
	text, err := expression.ChargedText(w.budget, value)
	if err != nil {
		return &EvalError{Pos: w.node.Position(segment.Start), Message: err.Error()}
	}
	if segment.Program.IsRaw() || segment.Program.IsWritten() {
		w.writeText(text)
		return nil
	}
	switch PlaceInURL(string(w.out)) {
	case URLHead:
		w.writeText(text)
	case URLHost:
		if at := strings.IndexFunc(text, endsHost); at >= 0 {
			return w.node.refusedError(segment, "is %q, and a value in the host of a URL cannot contain %q; "+
				"if it also contains a path, write %s", ShortenText(text), text[at:at+1], rawForm(segment))
		}
		w.writeText(text)
	case URLPath:
		w.inPath = append(w.inPath, placedValue{segment: segment, at: len(w.out)})
		w.writeText(harmless.Replace(url.PathEscape(text)))
	case URLQuery:
		w.writeText(inQuery.Replace(url.QueryEscape(text)))
	case URLFragment:
		w.writeText(harmless.Replace(url.PathEscape(text)))
	}
	return nil
}

// hideValue adds asterisks for a hidden value.
func (w *urlWriter) hideValue(segment expression.Segment) (bool, error) {
	if !w.hidden(segment) {
		return false, nil
	}
	if place := PlaceInURL(string(w.out)); place == URLHead || place == URLHost {
		return true, w.node.refusedError(segment, "is secret, and a secret cannot be the host of a URL")
	}
	w.writeText(Hidden)
	return true, nil
}

func (w *urlWriter) endText() (any, error) { return string(w.out), w.checkDots() }

// refusedError returns the error about a value that is not allowed in its place.
func (n *Node) refusedError(segment expression.Segment, format string, args ...any) *EvalError {
	return &EvalError{
		Pos: n.Position(segment.Start),
		Message: fmt.Sprintf("{{ %s }} ", strings.TrimSpace(segment.Program.Source())) +
			fmt.Sprintf(format, args...),
	}
}

func rawForm(segment expression.Segment) string {
	return fmt.Sprintf("{{ %s | raw }}", strings.TrimSpace(segment.Program.Source()))
}

// checkDots returns an error for a value that makes a segment of the path "." or "..", which servers and clients
// resolve upwards, or an empty one that makes the path begin with "//".
func (w *urlWriter) checkDots() error {
	for _, value := range w.inPath {
		start := strings.LastIndexByte(string(w.out[:value.at]), '/') + 1
		segment := string(w.out[start:])
		if end := strings.IndexAny(segment, "/?#"); end >= 0 {
			segment = segment[:end]
		}
		if segment == "" && start == 1 {
			return w.node.refusedError(value.segment, "is empty, so what follows it would become the host")
		}
		if plain, err := url.PathUnescape(segment); err == nil && (plain == "." || plain == "..") {
			return w.node.refusedError(value.segment, "turns a part of the path into %q, which leads elsewhere; if this is intended, write %s",
				plain, rawForm(value.segment))
		}
	}
	return nil
}

// harmless and inQuery undo escapes of package url that no place requires, so that times and lists are rendered as
// before.
var (
	harmless = strings.NewReplacer("%2C", ",")
	inQuery  = strings.NewReplacer("%2C", ",", "%3A", ":", "%2F", "/", "%40", "@")
)

// URLPlace is a place in a URL.
type URLPlace int

// The places of a URL.
const (
	URLHead URLPlace = iota // the beginning, with scheme and host
	URLHost
	URLPath
	URLQuery
	URLFragment
)

// PlaceInURL returns the place after the beginning of a URL (RFC 3986, section 3).
func PlaceInURL(before string) URLPlace {
	before = strings.TrimLeftFunc(before, unicode.IsSpace)
	switch {
	case before == "":
		return URLHead
	case strings.Contains(before, "#"):
		return URLFragment
	case strings.Contains(before, "?"):
		return URLQuery
	}
	_, behind, hasHost := strings.Cut(before, "//")
	scheme, _, _ := strings.Cut(before, "/")
	if hasHost && (scheme == "" || strings.HasSuffix(scheme, ":")) && !strings.Contains(behind, "/") {
		return URLHost
	}
	return URLPath
}

// endsHost reports whether a character ends a host or cannot be in one.
func endsHost(char rune) bool {
	return strings.ContainsRune(`/?#@\`, char) || unicode.IsSpace(char) || unicode.IsControl(char)
}

// RenderPath renders text that is the path of a file: docs/concepts/expressions.md#values-in-a-path. A value cannot
// contain a separator, so that data does not choose the folder. No value may be nil or empty. A path that consists
// of one template is not restricted. The error is always an *EvalError.
func (n *Node) RenderPath(scope expression.Scope, b *expression.Budget) (any, error) {
	if n.Template == nil {
		return n.Render(scope, b)
	}
	return n.renderPlaced(&pathWriter{node: n, budget: b}, "a path", scope, b)
}

// pathWriter composes a path.
type pathWriter struct {
	node   *Node
	budget *expression.Budget
	text   strings.Builder
	values []placedValue
}

func (w *pathWriter) writeText(text string) { w.text.WriteString(text) }

// hideValue hides nothing: a path has no secrets.
func (w *pathWriter) hideValue(expression.Segment) (bool, error) { return false, nil }

func (w *pathWriter) endText() (any, error) { return w.text.String(), w.checkDots() }

// inPath escapes values for names of files: a value cannot add a folder, and different values give different names.
var inPath = strings.NewReplacer("/", "%2F", "%", "%25")

func (w *pathWriter) writeValue(segment expression.Segment, value any) error {
	text, err := expression.ChargedText(w.budget, value)
	switch {
	case err != nil:
		return &EvalError{Pos: w.node.Position(segment.Start), Message: err.Error()}
	case segment.Program.IsRaw() || segment.Program.IsWritten():
		w.text.WriteString(text)
		return nil
	case text == "":
		return w.node.refusedError(segment, "is empty; every part of a path needs a value")
	}
	w.values = append(w.values, placedValue{segment: segment, at: w.text.Len()})
	w.text.WriteString(inPath.Replace(text))
	return nil
}

// checkDots returns an error for a value that makes a name "." or "..".
func (w *pathWriter) checkDots() error {
	text := w.text.String()
	for _, value := range w.values {
		name, _, _ := strings.Cut(text[strings.LastIndexByte(text[:value.at], '/')+1:], "/")
		if name == "." || name == ".." {
			return w.node.refusedError(value.segment, "turns a name in a path into %q, which leads elsewhere", name)
		}
	}
	return nil
}
