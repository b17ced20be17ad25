// Package mcpserver has the command mcp, which offers other commands as tools for models.
package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"reprise/internal/base/build"
	"reprise/internal/base/egress"
	"reprise/internal/base/private"
	"reprise/internal/base/terminal"
	"reprise/internal/program/host"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// Options are the flags of starter mcp.
type Options struct {
	server      session.ServerFlags
	connections string
	folder      string
	AllowWrites bool
}

// NewMCPCommand returns the command mcp.
func NewMCPCommand(a *cli.App) *cobra.Command {
	o := &Options{}
	command := &cobra.Command{
		Use: "mcp", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return serveModels(a, o) },
	}
	flags := command.Flags()
	flags.StringVar(&o.folder, "folder", ".", "folder to work in; no file outside it is read")
	flags.BoolVar(&o.AllowWrites, "allow-writes", false, "also start and control runs, make requests that may change data, and run Python code")
	flags.StringVar(&o.connections, "connections", os.Getenv("REPRISE_CONNECTIONS"), "YAML file of connections for try, as for run [REPRISE_CONNECTIONS]")
	o.server.Add(command)
	return command
}

// serveModels serves the Model Context Protocol on the standard streams until the client ends it.
func serveModels(a *cli.App, o *Options) error {
	if terminal.IsTerminal(a.Out) {
		a.Notef("%s mcp is started by a client of the Model Context Protocol and speaks JSON with it. Ctrl-C ends it.", terminal.ProgramName())
	}
	if err := os.Chdir(o.folder); err != nil {
		return cli.UsageError("--folder: %w", err)
	}
	server, err := NewServer(*o)
	if err != nil {
		return err
	}
	streams := cli.StandardStreams{Reader: a.In, Out: a.Out}
	err = server.Run(a.Interrupts.Graceful, &mcp.IOTransport{Reader: streams, Writer: streams})
	if a.Interrupts.Graceful.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// mcpInstructions are the instructions that a client gives its model about the server.
const mcpInstructions = `Reprise runs durable YAML playbooks on Temporal. Write a playbook, call validate until it is valid, try a step to see
real answers, write NAME_test.yaml beside NAME.yaml and call test. explain has every key, tool, function and diagnostic; without a word it
lists them. list, status and events read runs. Paths are relative to the folder of the server. The resource reprise://llms-full.txt is the whole reference.`

// NewServer returns an MCP server whose tools work in the working directory.
func NewServer(o Options) (*mcp.Server, error) {
	files, err := cli.ConfineTo(".")
	if err != nil {
		return nil, cli.UsageError("--folder: %w", err)
	}
	files.Private = o.privatePlaces
	s := &mcpServer{Options: o, files: files, sdk: mcp.NewServer(
		&mcp.Implementation{Name: "reprise", Title: "Reprise", Version: build.Read().Reprise},
		&mcp.ServerOptions{Instructions: strings.ReplaceAll(mcpInstructions, "\n", " "), Capabilities: &mcp.ServerCapabilities{}},
	)}
	s.addWriting()
	s.addReading()
	if o.AllowWrites {
		s.addChanging()
	}
	s.addResources()
	return s.sdk, nil
}

// privatePlaces returns the files that no tool may read or write: those of connections and callers, and the state of
// a local server in this directory.
func (o *Options) privatePlaces() private.Places {
	paths := host.PrivateFiles(session.OperatorFiles(o.connections, os.Getenv(egress.Variable)))
	if state, err := session.ReadState(); err == nil && state.DBFile != "" {
		paths = append(paths, session.LocalFiles(state.DBFile)...)
	}
	return private.Places{Paths: paths}
}

// mcpServer is the state that the tools share.
type mcpServer struct {
	Options

	files *cli.Confinement
	sdk   *mcp.Server
}

// mostMCPAnswer bounds the result of a tool, in bytes, because the model has to read it.
const mostMCPAnswer = 1 << 20

// errMCPAnswer is the error for a result that is too large.
var errMCPAnswer = fmt.Errorf("the result is larger than %d KiB; request less: a step, an index, kinds of events, fewer rows or runs", mostMCPAnswer>>10)

// boundedBuffer keeps up to mostMCPAnswer bytes.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > mostMCPAnswer {
		return 0, errMCPAnswer
	}
	return b.Buffer.Write(p)
}

// runCommand runs a command with in as standard input, and returns its output as the result of a tool. JSON output is
// the result even if the command failed; standard error follows it.
func (s *mcpServer) runCommand(ctx context.Context, in string, run func(*cli.App) error) *mcp.CallToolResult {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, errs := &boundedBuffer{}, &boundedBuffer{}
	screen := &terminal.Screen{To: out}
	a := &cli.App{
		Streams: cli.Streams{In: strings.NewReader(in), Out: screen, Err: &terminal.Screen{To: errs}}, Screen: screen, Files: s.files,
		Interrupts: &cli.Interrupts{Graceful: ctx, Now: ctx, Stop: func() {}},
	}
	err := run(a)
	if err == nil || errors.Is(err, cli.ErrSaid) {
		err = errors.Join(err, screen.Err)
	}
	result := &mcp.CallToolResult{}
	document := out.Bytes()
	isJSON := json.Valid(document)
	if isJSON || len(document) > 0 && err == nil {
		result.Content = append(result.Content, &mcp.TextContent{Text: out.String()})
	}
	if isJSON && document[0] == '{' {
		result.StructuredContent = json.RawMessage(document)
	}
	if err != nil && (!errors.Is(err, cli.ErrSaid) || screen.Err != nil || len(result.Content) == 0) {
		result.IsError = true
		if text := strings.TrimSpace(err.Error()); text != "" {
			a.Notef("%s", text)
		}
	}
	if said := strings.TrimSpace(errs.String()); said != "" {
		result.Content = append(result.Content, &mcp.TextContent{Text: said})
	}
	return result
}
