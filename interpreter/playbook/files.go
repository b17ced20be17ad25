package playbook

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// Schemes of the names of files that do not come from the user's machine: those in a worker's
// folder, and those that are part of the starter.
const (
	NamedScheme   = "name:"
	ExampleScheme = "example:"
)

// FileAt is the name of the file that a path in another file leads to; a path that
// is not absolute begins where that file is.
func FileAt(from, to string) string {
	scheme := ""
	for _, known := range []string{NamedScheme, ExampleScheme} {
		if rest, found := strings.CutPrefix(from, known); found {
			scheme, from = known, rest
		}
	}
	if path.IsAbs(to) {
		return scheme + path.Clean(to)
	}
	return scheme + path.Join(path.Dir(from), to)
}

// fileNames are the names of playbooks in a folder.
var fileNames = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

// FileNamed is the name of the file of a playbook in a worker's folder. The error
// says what a name must be.
func FileNamed(name string) (string, error) {
	if !fileNames.MatchString(name) {
		return "", fmt.Errorf("%q is not the name of a playbook: write the name of a file in the worker's folder, without .yaml and without a folder", Shorten(name))
	}
	return NamedScheme + name + ".yaml", nil
}

// Called is the file that a call of PlaybookTool runs, "" where it has its steps
// written out. name is what the call's name gives. The error says what a name must
// be.
func (pb *Playbook) Called(action *Action, name string) (string, error) {
	if node := action.Field(FieldPath); node != nil {
		text, _ := node.Value.(string)
		return FileAt(pb.File.Name, text), nil
	}
	if node := action.Field(FieldName); node != nil {
		if names := action.CalledNames(); node.Template != nil && !slices.Contains(names, name) {
			return "", fmt.Errorf("name must be one of names (%s), not %q", strings.Join(names, ", "), Shorten(name))
		}
		return FileNamed(name)
	}
	return "", nil
}

// CalledNames are the playbooks that a template in the name of a call may give. A run
// may be started by somebody who may not start others.
func (a *Action) CalledNames() []string {
	if node := a.Field(FieldNames); node != nil {
		return LiteralTexts(node.Value)
	}
	return nil
}

// Callers are the calls of a playbook that run other playbooks.
func (pb *Playbook) Callers() []*Action {
	return lists.Pick(pb.Actions(), func(call CallAt) (*Action, bool) { return call.Action, call.Action.Traits().Plays })
}
