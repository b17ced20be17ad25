package interpreter

import (
	"fmt"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// NewRowPath returns the path that each row of a sink has below that of the sink.
func NewRowPath(path *playbook.Node) *RowField {
	return &RowField{Name: playbook.FieldPath, Template: path.Raw, Places: TextPlacesOf(path)}
}

// rowPaths are the paths of rows, which the parts of a list fill in.
type rowPaths struct {
	template *expression.Template
	of       []string // by the index of the row
}

// readPath parses the path of the rows; nil for none.
func (w *RowWork) readPath(rows int) (*rowPaths, error) {
	if w.Path == nil {
		return nil, nil
	}
	template, problems := expression.ParseTemplate(w.Path.Template)
	if len(problems) > 0 {
		return nil, fmt.Errorf("path: %w", errOtherBuild)
	}
	return &rowPaths{template: template, of: make([]string, rows)}, nil
}

// putPath sets the path of the row at an index, as it is written.
func (s *rowShaper) putPath(i int, row any) error {
	s.scope.row = row
	s.budget.Renew()
	noted := s.budget.NoteCount()
	text, err := s.renderPath(row)
	if s.budget.NoteCount() > noted {
		s.budget.PlaceNotes(noted, s.work.Path.Places.placeNote)
	}
	if err != nil {
		return s.rowError(i, s.work.Path, playbook.FieldPath, err)
	}
	s.paths.of[i] = text
	return nil
}

// renderPath returns the path of a row, without a separator at its end. A value never adds a folder, and no name in the path is empty, or
// leads out of it.
func (s *rowShaper) renderPath(row any) (string, error) {
	var path strings.Builder
	first := 0 // the place of the first value, for errors about names
	for _, segment := range s.paths.template.Segments() {
		if segment.Program == nil {
			path.WriteString(segment.Text)
			continue
		}
		value, err := segment.Eval(&s.scope, s.budget)
		if err != nil {
			return "", err
		}
		text, problem := nameOfValue(value)
		if problem == "it is nil" {
			problem += absentInSegment(segment, row)
		}
		if problem != "" {
			return "", &expression.Error{Offset: segment.Start, Message: fmt.Sprintf("{{ %s }} is a name in a path, and %s", strings.TrimSpace(segment.Program.Source()), problem)}
		}
		if first == 0 {
			first = segment.Start
		}
		path.WriteString(text)
	}
	text := strings.TrimSuffix(path.String(), "/")
	for name := range strings.SplitSeq(text, "/") {
		if problem := problemOfName(name); problem != "" {
			return "", &expression.Error{Offset: first, Message: fmt.Sprintf("the path is %q, in which %s", playbook.ShortenText(text), problem)}
		}
	}
	return text, nil
}

// absentInSegment says which member a value names that the row does not have, "" if it has them.
func absentInSegment(segment expression.Segment, row any) string {
	for _, ref := range segment.Program.Refs() {
		if member := AbsentMember(playbook.RowWord, ref, []any{row}); member != "" {
			return ": the row has no " + member
		}
	}
	return ""
}

// nameOfValue returns a value as a name in a path, or why it is none. Every character is escaped that a store, a folder or a
// reader could take for another one: all but letters of ASCII, digits and "-_.~" (RFC 3986, unreserved).
func nameOfValue(value any) (name, problem string) {
	switch value.(type) {
	case nil:
		return "", "it is nil"
	case []any, map[string]any:
		return "", "it is a " + expression.TypeName(value)
	}
	text := expression.Text(value)
	if text == "" {
		return "", "it is empty"
	}
	const plain = "-_.~"
	var escaped strings.Builder
	for _, char := range []byte(text) {
		switch {
		case char >= '0' && char <= '9', char >= 'A' && char <= 'Z', char >= 'a' && char <= 'z', strings.IndexByte(plain, char) >= 0:
			escaped.WriteByte(char)
		default:
			fmt.Fprintf(&escaped, "%%%02X", char)
		}
	}
	return escaped.String(), ""
}

// longestName is the longest name of a folder in bytes that every file system has; a longer one would fail on some workers and not on others.
const longestName = 255

// problemOfName says why a name cannot be in a path, "" if it can.
func problemOfName(name string) string {
	switch {
	case name == "":
		return "a name is empty"
	case name == ".", name == "..":
		return fmt.Sprintf("%q leads elsewhere", name)
	case len(name) > longestName:
		return fmt.Sprintf("a name has %d bytes; it may have %d", len(name), longestName)
	}
	return ""
}
