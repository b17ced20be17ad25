package author

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/program/connector"
	"reprise/internal/program/connector/pyliteral"
	"reprise/internal/program/scaffold"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
)

// connectorDocument is the JSON output of new for a manifest of Airbyte or a configuration of dlt.
type connectorDocument struct {
	Playbooks    []connectorPlaybook   `json:"playbooks"`
	Connections  []scaffold.Connection `json:"connections"`
	Secrets      []string              `json:"secrets"` // files that playbooks read
	NotConverted []connector.Gap       `json:"not_converted"`
	Notes        []string              `json:"notes"`

	unit string // what the peer calls a stream
}

// connectorPlaybook is a playbook that was converted.
type connectorPlaybook struct {
	Name     string   `json:"name"`
	Playbook string   `json:"playbook"`
	Test     string   `json:"test,omitempty"`
	Streams  []string `json:"streams"`
}

// peer is a tool whose connectors are converted.
type peer struct {
	flag    string
	file    string
	convert func(data []byte, options connector.Options) (*connector.Result, error)
	names   func(data []byte) ([]string, error)
}

// peerOf returns the tool that the flags name; ok is false if there is none.
func (o *newOptions) peerOf() (of peer, ok bool) {
	switch {
	case o.airbyte != "":
		return peer{"--airbyte", o.airbyte, connector.ConvertManifest, connector.StreamNames}, true
	case o.dlt != "":
		path, line := placeOfDict(o.dlt)
		convert := func(data []byte, options connector.Options) (*connector.Result, error) {
			options.Line = line
			result, err := connector.ConvertRestAPI(data, options)
			if several, ok := errors.AsType[*pyliteral.SeveralError](err); ok {
				err = fmt.Errorf("%w; choose one: --dlt %s:%d", err, path, several.Lines[0])
			}
			return result, err
		}
		return peer{"--dlt", path, convert, func(data []byte) ([]string, error) { return connector.ResourceNames(data, line) }}, true
	}
	return peer{}, false
}

// placeOfDict splits FILE:LINE, unless there is a file of that name. The line is 0 if none is given.
func placeOfDict(place string) (path string, line int) {
	if _, err := os.Stat(place); err == nil {
		return place, 0
	}
	at := strings.LastIndexByte(place, ':')
	if number, err := strconv.Atoi(place[at+1:]); at > 0 && err == nil && number > 0 {
		return place[:at], number
	}
	return place, 0
}

// writeConnector converts a connector and writes the playbooks. With --strict, the command fails after that if a part
// was not converted.
func writeConnector(a *cli.App, o *newOptions, from peer) error {
	if o.each != "" || o.style != "" || o.operation != "" || o.probe {
		return cli.UsageError("--each, --style, --operation and --probe are not for %s", from.flag)
	}
	if o.perStream && o.file != "" {
		return cli.UsageError("--per-stream names its files; leave FILE out")
	}
	data, err := readDocument(from.file)
	if err != nil {
		return cli.UsageError("%s: %w", from.flag, err)
	}
	results, err := convertConnector(o, from, data)
	if err != nil {
		return cli.UsageError("%s: %w", from.flag, err)
	}
	doc, files := describeConnector(o, results)
	if err := writeNew(files, o.force); err != nil {
		return err
	}
	if err := a.ShowDocument(o.output, doc, doc.documentText(terminal.PaperOf(a.Out).Width)); err != nil {
		return err
	}
	if o.strict && len(doc.NotConverted) > 0 {
		return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	}
	return nil
}

// convertConnector converts a connector to one playbook, or to one per stream.
func convertConnector(o *newOptions, from peer, data []byte) ([]*connector.Result, error) {
	options := connector.Options{Name: connectorOf(from.file), Streams: o.streams, Sink: o.sink, Read: readBeside(from.file)}
	if o.file != "" {
		options.File = filepath.Base(o.file)
		options.Name = strings.TrimSuffix(options.File, ".yaml")
	}
	if !o.perStream {
		result, err := from.convert(data, options)
		return []*connector.Result{result}, err
	}
	streams := o.streams
	if len(streams) == 0 {
		var err error
		if streams, err = from.names(data); err != nil {
			return nil, err
		}
		if len(streams) == 0 {
			return nil, errors.New("there is no stream to convert")
		}
	}
	var results []*connector.Result
	for _, stream := range streams {
		one := options
		one.Connector, one.Name, one.Streams = options.Name, options.Name+"_"+stream, []string{stream}
		result, err := from.convert(data, one)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// connectorOf returns the connector's name for the path of a manifest: the file's name, or the folder's if the file
// is called manifest.
func connectorOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if full, err := filepath.Abs(path); err == nil && name == "manifest" {
		name = filepath.Base(filepath.Dir(full))
		if strings.HasPrefix(name, "source_") { // the folder of its module, in that of the connector
			name = strings.ReplaceAll(name, "_", "-")
		}
	}
	return strings.TrimPrefix(name, "source-")
}

// readBeside returns a function that reads files in the folder of a manifest.
func readBeside(manifest string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		root, err := os.OpenRoot(filepath.Dir(manifest))
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // it was only read
		file, err := root.Open(filepath.Clean(path))
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return cli.ReadBounded(file)
	}
}

// describeConnector returns the output for converted playbooks, and the files to write.
func describeConnector(o *newOptions, results []*connector.Result) (connectorDocument, []newFile) {
	doc := connectorDocument{Connections: []scaffold.Connection{}, Secrets: []string{}, NotConverted: []connector.Gap{}, Notes: []string{}}
	var files []newFile
	for _, result := range results {
		one := connectorPlaybook{Name: result.Name, Playbook: scaffold.FileName(result.Name), Streams: result.Streams}
		if o.file != "" {
			one.Playbook = o.file
		}
		files = append(files, newFile{one.Playbook, result.Playbook})
		if result.Test != nil {
			one.Test = strings.TrimSuffix(one.Playbook, ".yaml") + playbook.TestSuffix
			files = append(files, newFile{one.Test, result.Test})
		}
		doc.Playbooks, doc.unit = append(doc.Playbooks, one), result.Unit
		doc.Connections = lists.AddUnique(doc.Connections, result.Connections...)
		if result.Secrets != "" {
			doc.Secrets = lists.AddUnique(doc.Secrets, result.Secrets)
		}
		doc.NotConverted = lists.AddUnique(doc.NotConverted, result.Gaps...)
		doc.Notes = lists.AddUnique(doc.Notes, result.Notes...)
	}
	return doc, files
}

// documentText returns which files were written, what was not converted, and what to do next.
func (d connectorDocument) documentText(width int) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		terminal.WriteWrapped(&b, terminal.OneLine(fmt.Sprintf(format, args...)), width)
	}
	for _, one := range d.Playbooks {
		wrote := one.Playbook
		if one.Test != "" {
			wrote += " and " + one.Test
		}
		line("wrote %s (%s)", wrote, terminal.Count(len(one.Streams), d.unit))
	}
	gaps := lists.Map(d.NotConverted, func(gap connector.Gap) connector.StreamNote {
		return connector.StreamNote{Stream: gap.Stream, Text: gap.String()}
	})
	for _, gap := range connector.NoteTexts(d.unit, gaps) {
		line("not converted: %s", gap)
	}
	for _, note := range d.Notes {
		line("note: %s", note)
	}
	for _, one := range d.Connections {
		line("set the connection %s:", one.Name)
		_, _ = fmt.Fprintf(&b, "  export %s=%s\n", one.Variable, terminal.ShellWord(one.Form))
	}
	for _, file := range d.Secrets {
		line("write the secrets to %s in the worker's directory; the playbook says which", file)
	}
	line("next:")
	first := d.Playbooks[0]
	_, _ = fmt.Fprintf(&b, "  starter validate %s\n", terminal.ShellWord(first.Playbook))
	if first.Test != "" {
		_, _ = fmt.Fprintf(&b, "  starter test %s\n", terminal.ShellWord(first.Test))
	}
	_, _ = fmt.Fprintf(&b, "  starter run %s\n", terminal.ShellWord(first.Playbook))
	return b.String()
}
