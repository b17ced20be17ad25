// Package recording reads and writes the responses that steps of a playbook got: what `starter try --record` writes
// and tests of playbooks use. docs/how-to/test-a-playbook.md describes the format.
package recording

import (
	"errors"
	"fmt"
	"strings"

	"reprise/internal/base/regular"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// MaxBytes is the largest recording that is written or read, in bytes: as large as a playbook, since tests may
// contain recordings.
const MaxBytes = playbook.MaxFileBytes

// The failures that an entry can have instead of a response.
const (
	ErrorConnection = "connection"
	ErrorTimeout    = "timeout"
)

// Recording has the responses of one or several steps, in the order in which they arrived.
type Recording struct {
	Playbook string // file of the playbook, "" for not said
	Steps    []Step
}

// Step has the responses that one step, or one sink, got.
type Step struct {
	// Name is the name of the step (fetch), of a sink (fetch.sink), or of a step of a playbook that a
	// step runs (load/fetch).
	Name    string
	Entries []Entry
}

// Entry is the outcome of one attempt: an HTTP response, a failure without one, or the result
// of another tool. Exactly one of Status, Error and Result is set.
type Entry struct {
	Pos     source.Position   // where it is; zero where it was not read
	Request *Request          // nil for not said
	Element *expression.Value // of the loop; nil outside of one
	Status  int               // 0 for none
	Headers map[string]string // of the answer, by names in lower case
	// Body is the JSON of a response, BodyText a body that is not JSON; both are nil for an empty one.
	Body     *expression.Value
	BodyText *string
	Error    string            // ErrorConnection or ErrorTimeout, "" for none
	Result   *expression.Value // of tools other than http; nil for none
}

// Request is the request that was sent, for information only.
type Request struct {
	Method, URL string
	Params      map[string]any    // canonical values
	Headers     map[string]string // by names in lower case
	Body        *expression.Value // nil for none
}

// StepEntries returns the entries of a step; nil if there are none.
func (r *Recording) StepEntries(step string) []Entry {
	for _, one := range r.Steps {
		if one.Name == step {
			return one.Entries
		}
	}
	return nil
}

// AddEntry appends the response to an attempt of a step.
func (r *Recording) AddEntry(step string, entry Entry) {
	for i := range r.Steps {
		if r.Steps[i].Name == step {
			r.Steps[i].Entries = append(r.Steps[i].Entries, entry)
			return
		}
	}
	r.Steps = append(r.Steps, Step{Name: step, Entries: []Entry{entry}})
}

// Load reads a file. The error lists all problems of the file with their lines.
func Load(path string) (*Recording, error) {
	data, err := regular.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	return Parse(path, data)
}

// Parse parses the text of a file. Errors are like those of Load.
func Parse(path string, data []byte) (*Recording, error) {
	file := source.NewFile(path, data)
	recording, found := Read(file)
	if problems := found.Errors(); len(problems) > 0 {
		return nil, errors.New("read the recording:\n" + strings.TrimSpace(file.FormatFirst(problems, playbook.MaxShown)))
	}
	return recording, nil
}
