package author

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/regular"
	"reprise/internal/base/terminal"
	"reprise/internal/program/scaffold"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/playbooks"
	"reprise/starter/cli"
	"reprise/starter/load"
)

// newOptions are the flags of new.
type newOptions struct {
	file      string // "" follows from the name
	curl      string
	har       string
	openapi   string
	operation string
	example   string
	airbyte   string
	dlt       string
	streams   []string
	perStream bool
	strict    bool
	style     string
	sink      string
	each      string
	probe     bool
	yes       bool
	force     bool
	output    string
}

// NewNewCommand returns the command new.
func NewNewCommand(a *cli.App) *cobra.Command {
	o := &newOptions{}
	command := &cobra.Command{
		Use: "new [FILE]", Args: cobra.MaximumNArgs(1), RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.file = args[0]
			}
			return writePlaybooks(a, o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.curl, "curl", "", "a curl command line; - reads it from standard input")
	flags.StringVar(&o.har, "har", "", "HAR `FILE` saved by a browser")
	flags.StringVar(&o.openapi, "openapi", "", "OpenAPI document, a `FILE` or URL")
	flags.StringVar(&o.operation, "operation", "", "operation of the document, by its operationId or as 'GET /path'")
	flags.StringVar(&o.airbyte, "airbyte", "", "low-code manifest of an Airbyte connector, a `FILE`")
	flags.StringVar(&o.dlt, "dlt", "", "configuration of dlt's rest_api, a `FILE` of JSON or Python, or FILE:LINE where Python has several")
	flags.StringArrayVar(&o.streams, "stream", nil, "`NAME` of a stream of the manifest, or a resource of dlt, to convert; may be repeated; by default all")
	flags.BoolVar(&o.perStream, "per-stream", false, "write a playbook for each stream of --airbyte or resource of --dlt")
	flags.BoolVar(&o.strict, "strict", false, "exit with status 1 if a part for --airbyte or --dlt was not converted")
	flags.StringVar(&o.example, "example", "", "`NAME` of an example that comes with starter")
	flags.StringVar(&o.style, "style", "", "style of the API: "+strings.Join(scaffold.Styles, ", "))
	flags.StringVar(&o.sink, "sink", "", "where rows go: "+strings.Join(scaffold.Sinks, ", ")+"; by default sqlite")
	flags.StringVar(&o.each, "each", "", "`NAME` of an element: makes the request for each element of a list")
	flags.BoolVar(&o.probe, "probe", false, "send the GET of --curl once, and read from the response how the API paginates")
	flags.BoolVar(&o.yes, "yes", false, "use defaults without asking")
	flags.BoolVar(&o.force, "force", false, "overwrite existing files")
	cli.OutputFlag(command, &o.output)
	return command
}

// newDocument is the JSON output of new.
type newDocument struct {
	Name        string                `json:"name"`
	Playbook    string                `json:"playbook"`
	Test        string                `json:"test,omitempty"`
	Style       string                `json:"style,omitempty"`
	Connections []scaffold.Connection `json:"connections"`
	Notes       []string              `json:"notes"`
}

// writePlaybooks writes a playbook and its test file.
func writePlaybooks(a *cli.App, o *newOptions) error {
	if o.file != "" && filepath.Ext(o.file) != ".yaml" {
		return cli.UsageError("FILE %q must end with .yaml", o.file)
	}
	if err := promptNew(a.Streams, o); err != nil {
		return err
	}
	if from, ok := o.peerOf(); ok {
		return writeConnector(a, o, from)
	}
	made, err := makeNew(a, o)
	if err != nil {
		return err
	}
	if o.file == "" {
		o.file = scaffold.FileName(made.Name)
	}
	doc := newDocument{Name: made.Name, Playbook: o.file, Style: made.Style, Connections: cli.OrEmpty(made.Connections), Notes: cli.OrEmpty(made.Notes)}
	files := []newFile{{o.file, made.Playbook}}
	if made.Test != nil {
		doc.Test = strings.TrimSuffix(o.file, ".yaml") + playbook.TestSuffix
		files = append(files, newFile{doc.Test, made.Test})
	}
	if err := writeNew(files, o.force); err != nil {
		return err
	}
	return a.ShowDocument(o.output, doc, doc.documentText(terminal.PaperOf(a.Out).Width))
}

// documentText returns which files were written, and what to do next.
func (c newDocument) documentText(width int) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		terminal.WriteWrapped(&b, terminal.OneLine(fmt.Sprintf(format, args...)), width)
	}
	wrote := c.Playbook
	if c.Test != "" {
		wrote += " and " + c.Test
	}
	if c.Style != "" {
		wrote += " (style: " + c.Style + ")"
	}
	line("wrote %s", wrote)
	for _, note := range c.Notes {
		line("note: %s", note)
	}
	for _, one := range c.Connections {
		line("set the connection %s:", one.Name)
		_, _ = fmt.Fprintf(&b, "  export %s=%s\n", one.Variable, terminal.ShellWord(one.Form))
	}
	line("next:")
	name := terminal.ShellWord(c.Playbook)
	_, _ = fmt.Fprintf(&b, "  starter try %s\n", name)
	if c.Test != "" {
		_, _ = fmt.Fprintf(&b, "  starter test %s\n", terminal.ShellWord(c.Test))
	}
	_, _ = fmt.Fprintf(&b, "  starter run %s\n", name)
	return b.String()
}

// newFile is a file to write.
type newFile struct {
	path string
	data []byte
}

// writeNew writes all files or none. An existing file is an error unless force is set.
func writeNew(files []newFile, force bool) error {
	for _, file := range files {
		info, err := os.Lstat(file.path)
		switch {
		case err != nil:
		case !force:
			return cli.UsageError("%s exists; choose another FILE, or overwrite it with --force", file.path)
		case !info.Mode().IsRegular():
			return cli.UsageError("%s is not a regular file, so --force does not replace it; remove it, or choose another FILE", file.path)
		}
	}
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(file.path), 0o750); err != nil {
			return fmt.Errorf("write the playbook: %w", err)
		}
		if err := putInPlace(file.path, file.data); err != nil {
			return fmt.Errorf("write the playbook: %w", err)
		}
	}
	return nil
}

// putInPlace writes a new file at a path. A symbolic link there is replaced, not followed.
func putInPlace(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// makeNew generates the playbook that the flags describe.
func makeNew(a *cli.App, o *newOptions) (*scaffold.Draft, error) {
	if o.example != "" {
		return exampleFiles(o.example, o.file)
	}
	described, err := readDescription(a, o)
	if err != nil {
		return nil, err
	}
	if o.probe {
		if err := probeRequest(a, o.curl, described); err != nil {
			return nil, err
		}
	}
	options := scaffold.Options{Sink: o.sink, Each: o.each, Style: o.style}
	if o.file != "" {
		options.File = filepath.Base(o.file)
		options.Name = strings.TrimSuffix(options.File, ".yaml")
	}
	made, err := scaffold.MakeDraft(described, options)
	if err != nil {
		return nil, cli.UsageError("%w", err)
	}
	return made, nil
}

// readDescription reads the description of the API from the source that the flags name.
func readDescription(a *cli.App, o *newOptions) (*scaffold.Description, error) {
	var described *scaffold.Description
	var err error
	switch {
	case o.curl != "":
		if o.curl == "-" {
			var data []byte
			if data, err = cli.ReadBounded(a.In); err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			o.curl = string(data)
		}
		if described, err = scaffold.FromCurl(o.curl); err != nil {
			return nil, cli.UsageError("--curl: %w", err)
		}
	case o.har != "":
		var data []byte
		if data, err = readDocument(o.har); err == nil {
			described, err = scaffold.FromHAR(data)
		}
		if err != nil {
			return nil, cli.UsageError("--har: %w", err)
		}
	case o.openapi != "":
		var document *scaffold.OpenAPIDocument
		if document, err = readOpenAPI(a, o.openapi); err == nil {
			described, err = describeOperation(document, o.operation)
		}
		if err != nil {
			return nil, cli.UsageError("--openapi: %w", err)
		}
	default:
		described = scaffold.FromStyle(o.style)
	}
	return described, nil
}

// describeOperation describes the operation with an ID. id may be "" if the document has only one.
func describeOperation(document *scaffold.OpenAPIDocument, id string) (*scaffold.Description, error) {
	all := document.Operations()
	if id == "" && len(all) != 1 {
		ids := lists.Map(all[:min(len(all), shownOperations)], func(one scaffold.Operation) string { return one.ID })
		return nil, fmt.Errorf("the document has %s; name one with --operation, such as %s", terminal.Count(len(all), "operation"), strings.Join(ids, ", "))
	}
	if id == "" {
		id = all[0].ID
	}
	return document.DescribeOperation(id)
}

// shownOperations bounds how many operations an error lists.
const shownOperations = 10

// readDocument reads a file of a bounded size, such as an OpenAPI document.
func readDocument(path string) ([]byte, error) {
	file, err := regular.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return cli.ReadBounded(file)
}

// documentTimeout bounds the download of a document.
const documentTimeout = 30 * time.Second

// readOpenAPI reads a document from a file or a URL.
func readOpenAPI(a *cli.App, from string) (*scaffold.OpenAPIDocument, error) {
	if !strings.HasPrefix(from, "https://") && !strings.HasPrefix(from, "http://") {
		data, err := readDocument(from)
		if err != nil {
			return nil, err
		}
		return scaffold.ReadOpenAPI(data, "")
	}
	ctx, cancel := context.WithTimeout(a.Interrupts.Graceful, documentTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, errors.New("the URL of the document cannot be read")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetch the document: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch the document: HTTP %d", response.StatusCode)
	}
	data, err := cli.ReadBounded(response.Body)
	if err != nil {
		return nil, fmt.Errorf("fetch the document: %w", err)
	}
	return scaffold.ReadOpenAPI(data, from)
}

// exampleFiles returns the files of an example: the playbook, and its test if it has one.
func exampleFiles(name, file string) (*scaffold.Draft, error) {
	name = strings.TrimSuffix(strings.TrimPrefix(name, load.ExampleScheme), ".yaml")
	data, err := fs.ReadFile(playbooks.FS, name+".yaml")
	if err != nil {
		return nil, cli.UsageError("there is no example %q, expected one of %s", name, strings.Join(load.ExampleNames(), ", "))
	}
	made := &scaffold.Draft{Name: name, Playbook: data}
	if test, err := fs.ReadFile(playbooks.FS, name+playbook.TestSuffix); err == nil {
		if file != "" {
			test = []byte(strings.Replace(string(test), "playbook: "+name+".yaml", "playbook: "+filepath.Base(file), 1))
		}
		made.Test = test
	}
	return made, nil
}
