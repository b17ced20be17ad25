// Package airbyte converts low-code manifests of Airbyte's connectors into playbooks with tests. What has no
// counterpart is a gap: it is a comment at its place and in the result, and the rest of its stream is converted.
package airbyte

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reprise/internal/program/scaffold"
	"reprise/interpreter/playbook/check"
)

// Options say what of a manifest becomes a playbook.
type Options struct {
	Name string // of the playbook
	// Connector names the connections and the database; "" is the name of the playbook.
	Connector string
	File      string   // name of the file of the playbook, which the test names; "" is that of the playbook
	Streams   []string // those to convert, with their parents; none for all
	Sink      string   // where rows go, one of scaffold.Sinks; "" is SQLite
	// Read reads files that the manifest names, such as schemas, relative to it; nil if they are not
	// available.
	Read func(path string) ([]byte, error)
}

// Gap is something in a stream that has no counterpart.
type Gap struct {
	Stream    string `json:"stream"`
	Component string `json:"component"` // its type, such as CustomRecordExtractor
	Reason    string `json:"reason"`
}

// String returns the gap as a line.
func (g Gap) String() string {
	if g.Reason == "" {
		return g.Component
	}
	return g.Component + ": " + g.Reason
}

// Result is a playbook that was made of a manifest.
type Result struct {
	scaffold.Draft

	Streams []string
	// Gaps are what was not converted.
	Gaps []Gap
	// Secrets is the file of secrets that a step of the playbook reads, "" for none.
	Secrets string
}

// Names returns the names of the streams of a manifest.
func Names(data []byte) ([]string, error) {
	manifest, err := readManifest(data)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, stream := range manifest.componentList("streams") {
		names = append(names, streamName(stream))
	}
	return names, nil
}

// Convert makes a playbook of a manifest. The error says what cannot be read of it, or which stream it does not have.
func Convert(data []byte, options Options) (*Result, error) {
	manifest, err := readManifest(data)
	if err != nil {
		return nil, err
	}
	options.Sink = cmp.Or(options.Sink, scaffold.SinkSQLite)
	if !slices.Contains(scaffold.Sinks, options.Sink) {
		return nil, fmt.Errorf("the sink %q is unknown; expected one of %s", options.Sink, strings.Join(scaffold.Sinks, ", "))
	}
	options.Name = scaffold.NameOf(options.Name, "connector")
	options.Connector = scaffold.NameOf(cmp.Or(options.Connector, options.Name), "connector")
	c := &converter{Options: options, manifest: manifest, names: map[string]bool{}, steps: map[string]*step{}, forms: map[string]string{}}
	c.spec = c.readSpec()
	for _, found := range mentionedKeys.FindAllStringSubmatch(string(data), -1) {
		c.names[cmp.Or(found[1], found[2])] = true
	}
	streams := manifest.componentList("streams")
	for _, name := range options.Streams {
		if !slices.ContainsFunc(streams, func(stream component) bool { return streamName(stream) == name }) {
			return nil, fmt.Errorf("the manifest has no stream %q; it has %s", name, strings.Join(streamNames(streams), ", "))
		}
	}
	result := &Result{}
	for _, stream := range streams {
		if name := streamName(stream); len(options.Streams) == 0 || slices.Contains(options.Streams, name) {
			c.newStep(stream, false).written = true
			result.Streams = append(result.Streams, name)
		}
	}
	c.writeResult(result)
	return result, nil
}

// mentionedKeys finds the keys of the configuration that a manifest reads: no step and no element takes their names.
var mentionedKeys = regexp.MustCompile(`config(?:\.get\(|\[)\s*['"]([A-Za-z0-9_-]+)['"]|config\.([A-Za-z0-9_]+)`)

func streamName(stream component) string {
	return cmp.Or(stream.text("name"), "stream")
}

func streamNames(streams []component) (names []string) {
	for _, stream := range streams {
		names = append(names, streamName(stream))
	}
	return names
}

// converter makes one playbook.
type converter struct {
	Options

	manifest component
	spec     component
	names    map[string]bool // that are taken
	list     []*step         // in the order in which they run
	steps    map[string]*step
	read     trace // of the configuration, by everything so far
	logins   []*login
	sizes    []pageSize
	forms    map[string]string // layouts of the times of keys of the configuration
	notes    []string
}

// unusedName returns a name for a step or an element that nothing else has.
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

// pageSize is a key of workload with the number of rows of a page, which tests make smaller.
type pageSize struct {
	name string
	rows int
}

// sizeOf returns the key of workload for a number of rows.
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

// addNote adds what people have to know, once.
func (c *converter) addNote(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}
