package main

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

	"reprise/internal/base/private"
	"reprise/internal/base/terminal"
	"reprise/internal/program/host"
)

// mcpOptions is the command line of mcp.
type mcpOptions struct {
	server      serverFlags
	connections string
	folder      string
	allowWrites bool
}

func newMCPCommand(a *app) *cobra.Command {
	o := &mcpOptions{}
	command := &cobra.Command{
		Use: "mcp", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return a.mcp(o) },
	}
	flags := command.Flags()
	flags.StringVar(&o.folder, "folder", ".", "folder to work in; no file outside it is read")
	flags.BoolVar(&o.allowWrites, "allow-writes", false, "also start and control runs, make requests that may change data, and run Python code")
	flags.StringVar(&o.connections, "connections", os.Getenv("REPRISE_CONNECTIONS"), "YAML file of connections for try, as for run [REPRISE_CONNECTIONS]")
	o.server.add(command)
	return command
}

// mcp answers a client on the standard streams until that ends it.
func (a *app) mcp(o *mcpOptions) error {
	if terminal.IsTerminal(a.Out) {
		a.notef("%s mcp is started by a client of the Model Context Protocol and speaks JSON with it. Ctrl-C ends it.", terminal.Program())
	}
	if err := os.Chdir(o.folder); err != nil {
		return usageError("--folder: %w", err)
	}
	server, err := newMCPServer(*o)
	if err != nil {
		return err
	}
	streams := standardStreams{Reader: a.In, out: a.Out}
	err = server.Run(a.interrupts.graceful, &mcp.IOTransport{Reader: streams, Writer: streams})
	if a.interrupts.graceful.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// mcpInstructions are what a client says of the server to its model.
const mcpInstructions = `Reprise runs durable YAML playbooks on Temporal. Write a playbook, call validate until it is valid, try a step to see
real answers, write NAME_test.yaml beside NAME.yaml and call test. explain has every key, tool, function and diagnostic; without a word it
lists them. list, status and events read runs. Paths are relative to the folder of the server. The resource reprise://llms-full.txt is the whole reference.`

// newMCPServer makes a server whose tools work in the working directory.
func newMCPServer(o mcpOptions) (*mcp.Server, error) {
	files, err := confineTo(".")
	if err != nil {
		return nil, usageError("--folder: %w", err)
	}
	files.private = o.private
	s := &mcpServer{mcpOptions: o, files: files, sdk: mcp.NewServer(
		&mcp.Implementation{Name: "reprise", Title: "Reprise", Version: readVersion().Reprise},
		&mcp.ServerOptions{Instructions: strings.ReplaceAll(mcpInstructions, "\n", " "), Capabilities: &mcp.ServerCapabilities{}},
	)}
	s.addWriting()
	s.addReading()
	if o.allowWrites {
		s.addChanging()
	}
	s.addResources()
	return s.sdk, nil
}

// private are the files that no tool reads or writes: those of connections and callers, and the state of a local server here.
func (o *mcpOptions) private() private.Places {
	paths := host.PrivateFiles(o.connections, os.Getenv("REPRISE_RATE_LIMITS"))
	if state, err := readState(); err == nil && state.DBFile != "" {
		paths = append(paths, localFiles(state.DBFile)...)
	}
	return private.Places{Paths: paths}
}

// mcpServer is what the tools of a client share.
type mcpServer struct {
	mcpOptions

	files *confinement
	sdk   *mcp.Server
}

// mostMCPAnswer bounds the answer of a tool, in bytes.
const mostMCPAnswer = 1 << 20

// errMCPAnswer says that an answer was too long.
var errMCPAnswer = fmt.Errorf("the result is larger than %d KiB; request less: a step, an index, kinds of events, fewer rows or runs", mostMCPAnswer>>10)

// bounded keeps what is written, up to mostMCPAnswer bytes.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > mostMCPAnswer {
		return 0, errMCPAnswer
	}
	return b.Buffer.Write(p)
}

// call runs a command, whose standard input is a text, and gives what it prints. What the command
// prints as JSON is the answer, be it good or bad news; the rest is for whoever reads it.
func (s *mcpServer) call(ctx context.Context, in string, run func(*app) error) *mcp.CallToolResult {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, errs := &bounded{}, &bounded{}
	screen := &terminal.Screen{To: out}
	a := &app{
		Streams: Streams{In: strings.NewReader(in), Out: screen, Err: &terminal.Screen{To: errs}}, out: screen, files: s.files,
		interrupts: &interrupts{graceful: ctx, now: ctx, stop: func() {}},
	}
	err := run(a)
	if err == nil || errors.Is(err, errSaid) {
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
	if err != nil && (!errors.Is(err, errSaid) || screen.Err != nil || len(result.Content) == 0) {
		result.IsError = true
		if text := strings.TrimSpace(err.Error()); text != "" {
			a.notef("%s", text)
		}
	}
	if said := strings.TrimSpace(errs.String()); said != "" {
		result.Content = append(result.Content, &mcp.TextContent{Text: said})
	}
	return result
}
