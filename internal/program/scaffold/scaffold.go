// Package scaffold writes a playbook and its test from a curl command, a HAR file, an OpenAPI document, or a named
// style of pagination. It never writes secrets.
package scaffold

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reprise/activities/tool"
)

// Sinks are the destinations for the rows of a new playbook.
var Sinks = []string{SinkSQLite, SinkPostgres, SinkFile, SinkNone}

// The words of Sinks.
const (
	SinkSQLite   = "sqlite"
	SinkPostgres = "postgres"
	SinkFile     = "file"
	SinkNone     = "none"
)

// Options say how to write a playbook from a description.
type Options struct {
	Name  string // of the playbook; "" follows from the description
	File  string // name of its file, which the test names; "" is that of the playbook
	Sink  string // one of Sinks, "" is SinkSQLite
	Each  string // name of the element where a request is made for each of a list; "" for one request
	Style string // one of Styles, in place of what is found; ""
}

// FileName returns the file name of a playbook.
func FileName(name string) string { return name + ".yaml" }

// Draft is a generated playbook.
type Draft struct {
	Name     string
	Playbook []byte
	Test     []byte // nil where none can be made
	// Style is the style of its pagination; "" for none.
	Style string
	// Connections are the connections that it needs, with what to configure.
	Connections []Connection
	// Notes are remarks for people, such as what was left out.
	Notes []string
}

// Connection is a connection that a playbook uses.
type Connection struct {
	Name     string `json:"name"`
	Variable string `json:"variable"` // of the environment
	Form     string `json:"form"`     // what it looks like, with words in place of secrets
}

// MakeDraft generates the playbook of a description. The error says what is not possible.
func MakeDraft(of *Description, options Options) (*Draft, error) {
	options.Sink = cmp.Or(options.Sink, SinkSQLite)
	if !slices.Contains(Sinks, options.Sink) {
		return nil, fmt.Errorf("the sink %q is unknown; expected one of %s", options.Sink, strings.Join(Sinks, ", "))
	}
	if options.Style != "" && !slices.Contains(Styles, options.Style) {
		return nil, fmt.Errorf("the style %q is unknown; expected one of %s", options.Style, strings.Join(Styles, ", "))
	}
	w := &writer{of: of, Options: options, made: &Draft{Name: NameOf(cmp.Or(options.Name, of.Name), "new_playbook")}}
	if options.Each != "" && NameOf(options.Each, "") != options.Each {
		return nil, fmt.Errorf("the element %q is not a valid name, expected letters, digits and _, such as user_id", options.Each)
	}
	w.planCall()
	w.writeFiles()
	w.made.Notes = append(slices.Clone(of.Notes), w.made.Notes...)
	return w.made, nil
}

// nameLength is the maximum length of generated names.
const nameLength = 40

var notName = regexp.MustCompile(`[^a-z0-9]+`)

// NameOf derives a name from a text; fallback is used for a text without letters.
func NameOf(text, fallback string) string {
	name := strings.Trim(notName.ReplaceAllString(strings.ToLower(camel.ReplaceAllString(text, "${1}_$2")), "_"), "_")
	name = strings.Trim(name[:min(len(name), nameLength)], "_")
	if name == "" {
		return fallback
	}
	if name[0] >= '0' && name[0] <= '9' {
		name = "n" + name
	}
	return name
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// NewConnection returns a connection with the environment variable that configures it.
func NewConnection(name, form string) Connection {
	return Connection{Name: name, Variable: tool.ConnectionVariable(name), Form: form}
}
