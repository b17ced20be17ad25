package playbook

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// Schemes of the names of files that do not come from the machine of who starts a
// run: those of a worker's folder, and those that come with the starter.
const (
	NamedScheme   = "name:"
	ExampleScheme = "example:"
)

// Bounds of the files that a run takes along beside its playbook.
const (
	maxFiles     = 100
	maxFilesSize = 1 << 20 // bytes, of all together
)

// Files are the playbooks that another one names: by path, or by name in a worker's
// folder. What is read once is kept, so that a run has what was checked. Not safe
// for concurrent use.
type Files struct {
	read    func(name string) ([]byte, error)
	texts   map[string]string
	checked map[string]bool // with the names that they receive
	size    int
}

// NewFiles are files that read gives. Its errors say what is wrong, and are shown
// to the author of the playbook.
func NewFiles(read func(name string) ([]byte, error)) *Files {
	return &Files{read: read, texts: map[string]string{}, checked: map[string]bool{}}
}

// Texts are the files that were read, by name.
func (f *Files) Texts() map[string]string {
	if f == nil {
		return nil
	}
	return f.texts
}

// ErrElsewhere says that a file can be read by the workers alone, so that it is
// checked there.
var ErrElsewhere = errors.New("the file is with the workers")

var errManyFiles = errors.New("too many files")

// text gives a file.
func (f *Files) text(name string) (string, error) {
	if text, found := f.texts[name]; found {
		return text, nil
	}
	if len(f.texts) == maxFiles {
		return "", fmt.Errorf("%w: a run takes %d files along", errManyFiles, maxFiles)
	}
	data, err := f.read(name)
	if err != nil {
		return "", err
	}
	if f.size+len(data) > maxFilesSize {
		return "", fmt.Errorf("%w: those that a run takes along may have %d bytes (1 MiB) together", errManyFiles, maxFilesSize)
	}
	f.size += len(data)
	f.texts[name] = string(data)
	return string(data), nil
}

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
		return "", fmt.Errorf("%q is no name of a playbook: it is that of a file in the worker's folder, without .yaml and without a folder", shorten(name))
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
		if names := action.calledNames(); node.Template != nil && !slices.Contains(names, name) {
			return "", fmt.Errorf("name must give one of those that names lists (%s), not %q", strings.Join(names, ", "), shorten(name))
		}
		return FileNamed(name)
	}
	return "", nil
}

// calledNames are the playbooks that a template in the name of a call may give. A run
// may be started by somebody who may not start others.
func (a *Action) calledNames() []string {
	if node := a.Field(FieldNames); node != nil {
		return literalTexts(node.Value)
	}
	return nil
}

// Callers are the calls that run other playbooks.
func (pb *Playbook) Callers() []*Action {
	return lists.Pick(pb.actions(), func(call actionAt) (*Action, bool) { return call.action, call.action.Traits().Plays })
}
