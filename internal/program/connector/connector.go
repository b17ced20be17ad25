// Package connector converts what other tools read of APIs to playbooks with tests: low-code manifests of Airbyte, and
// configurations of dlt's rest_api source. A part without a counterpart is a gap: it becomes a comment at its place and an
// entry in the result, and the rest of its stream is converted.
package connector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/program/scaffold"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
)

// Options choose what to convert, and how.
type Options struct {
	Name string // of the playbook
	// Connector names the connections and the database; "" means the name of the playbook.
	Connector string
	File      string   // name of the file of the playbook, which the test names; "" is that of the playbook
	Line      int      // in which the dict of a configuration begins in Python source; 0 for the only one
	Streams   []string // those to convert, with their parents; none for all
	Sink      string   // where rows go, one of scaffold.Sinks; "" is SQLite
	// Read reads files that the manifest refers to, such as schemas, by their path relative to the manifest; nil if
	// they are not available.
	Read func(path string) ([]byte, error)
}

// Gap is a part of a stream that has no counterpart.
type Gap struct {
	Stream    string `json:"stream"`
	Component string `json:"component"` // its type, such as CustomRecordExtractor
	Reason    string `json:"reason"`
}

// String returns the gap on one line.
func (g Gap) String() string {
	if g.Reason == "" {
		return g.Component
	}
	return g.Component + ": " + g.Reason
}

// Result is the playbook made from a manifest.
type Result struct {
	scaffold.Draft

	Unit    string // what the peer calls a stream
	Streams []string
	// Gaps are the parts that were not converted.
	Gaps []Gap
	// Secrets is the name of the secrets file that a step of the playbook reads; "" if there is none.
	Secrets string
}

// converter converts one manifest or configuration.
type converter struct {
	Options

	unit     string // what the peer calls a stream
	origin   string // says of what the streams are, in the comment of the playbook
	gaps     []Gap  // of no step
	manifest component
	spec     component
	names    map[string]bool // that are taken
	list     []*step         // in the order in which they run
	steps    map[string]*step
	read     trace // of the configuration, by everything so far
	logins   []*login
	sizes    []pageSize
	forms    map[string]string // layouts of the times of keys of the configuration
	notes    []StreamNote
}

// StreamNote is something that people should know about streams.
type StreamNote struct{ Stream, Text string } // of stream "": of all

// newConverter returns a converter. The error says which option is wrong.
func newConverter(options Options, unit, origin string) (*converter, error) {
	options.Sink = cmp.Or(options.Sink, scaffold.SinkSQLite)
	if !slices.Contains(scaffold.Sinks, options.Sink) {
		return nil, fmt.Errorf("the sink %q is unknown; expected one of %s", options.Sink, strings.Join(scaffold.Sinks, ", "))
	}
	options.Name = scaffold.NameOf(options.Name, "connector")
	options.Connector = scaffold.NameOf(cmp.Or(options.Connector, options.Name), "connector")
	return &converter{Options: options, unit: unit, origin: origin, names: map[string]bool{playbook.StartStep: true}, steps: map[string]*step{}, forms: map[string]string{}}, nil
}

// tooManySteps returns an error if there are more steps than a playbook may have.
func (c *converter) tooManySteps() error {
	steps := len(c.list)
	for _, s := range c.list {
		if len(s.tasks) > 0 && s.written {
			steps++
		}
	}
	if steps <= playbook.MaxSteps {
		return nil
	}
	return fmt.Errorf("%d steps are more than a playbook may have (%d): choose streams with --stream, or write a playbook for each with --per-stream",
		steps, playbook.MaxSteps)
}

// unusedName returns the first name, with a number if necessary, that no step, element or key has.
func (c *converter) unusedName(names ...string) string {
	for i := 1; ; i++ {
		for _, name := range names {
			if i > 1 {
				name = fmt.Sprintf("%s_%d", name, i)
			}
			if name != "" && !c.names[name] && check.FreeName(name) == name {
				c.names[name] = true
				return name
			}
		}
	}
}

// pageSize is a workload key for the number of rows on a page; tests set it to a smaller number.
type pageSize struct {
	name string
	rows int
}

// sizeOf returns the workload key for a page size.
func (c *converter) sizeOf(rows int) code {
	for _, one := range c.sizes {
		if one.rows == rows {
			return code{text: one.name, prec: precAtom, calm: true}
		}
	}
	one := pageSize{name: c.unusedName("page_size", fmt.Sprintf("page_size_%d", rows)), rows: rows}
	c.sizes = append(c.sizes, one)
	return code{text: one.name, prec: precAtom, calm: true}
}

// addNote adds a note about all streams, unless it was added before.
func (c *converter) addNote(format string, args ...any) {
	c.notes = lists.AddUnique(c.notes, StreamNote{Text: fmt.Sprintf(format, args...)})
}

// addNoteOf adds a note about one stream, unless it was added before.
func addNoteOf(c *converter, s *step, format string, args ...any) {
	c.notes = lists.AddUnique(c.notes, StreamNote{s.stream, fmt.Sprintf(format, args...)})
}

// NoteTexts returns notes as texts: one that several streams have names all of them. unit is what the peer calls a stream.
func NoteTexts(unit string, notes []StreamNote) (texts []string) {
	streams := map[string][]string{}
	for _, one := range notes {
		streams[one.Text] = append(streams[one.Text], one.Stream)
	}
	for _, one := range notes {
		text := one.Text
		if one.Stream != "" {
			text = streamsText(unit, streams[text]) + ": " + text
		}
		texts = lists.AddUnique(texts, text)
	}
	return texts
}

// streamsText names streams, which their peer calls units.
func streamsText(unit string, names []string) string {
	if len(names) == 1 {
		return unit + " " + names[0]
	}
	return unit + "s " + strings.Join(names, ", ")
}
