package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"reprise/internal/test/testenv"
)

// processStreams are those of a process that an editor has started.
type processStreams struct {
	*os.File

	in *os.File
}

func (s processStreams) Write(p []byte) (int, error) { return s.in.Write(p) }

// TestLSP: an editor starts the program, and sees a problem with a character that a terminal
// would not be shown.
func TestLSP(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.Symlink(program, folder+"/starter")) // by this name the tests are the program
	command := exec.CommandContext(t.Context(), folder+"/starter", "lsp")
	in, toIn, err := os.Pipe()
	require.NoError(t, err)
	fromOut, out, err := os.Pipe()
	require.NoError(t, err)
	command.Stdin, command.Stdout, command.Stderr = in, out, os.Stderr
	require.NoError(t, command.Start())
	_, _ = in.Close(), out.Close()
	conn := jsonrpc2.NewConn(jsonrpc2.NewStream(processStreams{File: fromOut, in: toIn}))
	problems := make(chan protocol.PublishDiagnosticsParams, 1)
	conn.Go(t.Context(), func(ctx context.Context, reply jsonrpc2.Replier, request jsonrpc2.Request) error {
		var params protocol.PublishDiagnosticsParams
		if json.Unmarshal(request.Params(), &params) == nil && request.Method() == protocol.MethodTextDocumentPublishDiagnostics {
			problems <- params
		}
		return reply(ctx, nil, nil)
	})
	_, err = conn.Call(t.Context(), protocol.MethodInitialize, protocol.InitializeParams{}, nil)
	require.NoError(t, err)
	require.NoError(t, conn.Notify(t.Context(), protocol.MethodTextDocumentDidOpen, protocol.DidOpenTextDocumentParams{TextDocument: protocol.TextDocumentItem{
		URI: "file:///a.yaml", Text: "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: a}\nworkflow: [{step: a, vars: {b: \"{{ c }}\"}}]\n",
	}}))
	found := testenv.Receive(t, problems, "the problems of the file")
	require.Len(t, found.Diagnostics, 1)
	require.True(t, strings.HasPrefix(found.Diagnostics[0].Message, `unknown name "c"`), found.Diagnostics[0].Message)
	require.NoError(t, conn.Notify(t.Context(), protocol.MethodExit, nil))
	require.NoError(t, toIn.Close())
	require.NoError(t, testenv.WaitResult(t, command.Wait, "the end of starter lsp"))
}
