// Package lsp is a language server for playbooks: diagnostics while typing, completion, hover, and finding and
// renaming steps (Language Server Protocol 3.16).
package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// Server serves one editor. It is safe for concurrent use.
type Server struct {
	tools   playbook.Tools
	options check.Options

	mu        sync.Mutex
	documents map[uri.URI]*document
}

// document is an open file.
type document struct {
	at   uri.URI
	name string
	text text
	// content is the current text of the document.
	content string
	// file is the text that problems refer to, nil if the document is not a playbook; found are its problems, and
	// problems the same in LSP form.
	file     *source.File
	found    source.Diagnostics
	problems []protocol.Diagnostic
	// book is the last version that could be decoded; nil if there is none.
	book *playbook.Playbook
}

// mostBytes bounds a document that is checked, in bytes. An editor sends the whole file with each keystroke, also for
// files that are not playbooks.
const mostBytes = 4 << 20

// New returns a server that checks playbooks for the given tools.
func New(tools playbook.Tools, options check.Options) *Server {
	return &Server{tools: tools, options: options, documents: map[uri.URI]*document{}}
}

// Serve answers requests on a stream until the editor closes it or ctx ends.
func (s *Server) Serve(ctx context.Context, stream io.ReadWriteCloser) error {
	conn := jsonrpc2.NewConn(jsonrpc2.NewStream(stream))
	conn.Go(ctx, func(ctx context.Context, reply jsonrpc2.Replier, request jsonrpc2.Request) error {
		if request.Method() == protocol.MethodExit {
			return conn.Close()
		}
		result, err := s.answerRequest(ctx, conn, request)
		return reply(ctx, result, err)
	})
	select {
	case <-ctx.Done():
		_ = conn.Close()
		<-conn.Done()
	case <-conn.Done():
	}
	if err := conn.Err(); err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		return fmt.Errorf("serve the editor: %w", err)
	}
	return nil
}

// decodeParams decodes the parameters of a request and calls its handler.
func decodeParams[P any](request jsonrpc2.Request, handle func(P) (any, error)) (any, error) {
	var params P
	if err := json.Unmarshal(request.Params(), &params); err != nil {
		return nil, fmt.Errorf("%w: %w", jsonrpc2.ErrInvalidParams, err)
	}
	return handle(params)
}

// answerRequest handles one request.
func (s *Server) answerRequest(ctx context.Context, conn jsonrpc2.Conn, request jsonrpc2.Request) (any, error) {
	show := func(at uri.URI, content string) error { return s.showDocument(ctx, conn, at, content) }
	switch request.Method() {
	case protocol.MethodInitialize:
		return capabilities, nil
	case protocol.MethodShutdown:
		return nil, nil //nolint:nilnil // the protocol's null; exit follows
	case protocol.MethodTextDocumentDidOpen:
		return decodeParams(request, func(p protocol.DidOpenTextDocumentParams) (any, error) {
			return nil, show(p.TextDocument.URI, p.TextDocument.Text)
		})
	case protocol.MethodTextDocumentDidChange:
		return decodeParams(request, func(p protocol.DidChangeTextDocumentParams) (any, error) {
			if len(p.ContentChanges) == 0 {
				return nil, nil //nolint:nilnil // nothing has changed
			}
			return nil, show(p.TextDocument.URI, p.ContentChanges[len(p.ContentChanges)-1].Text)
		})
	case protocol.MethodTextDocumentDidClose:
		return decodeParams(request, func(p protocol.DidCloseTextDocumentParams) (any, error) {
			s.mu.Lock()
			delete(s.documents, p.TextDocument.URI)
			s.mu.Unlock()
			return nil, publishProblems(ctx, conn, p.TextDocument.URI, []protocol.Diagnostic{})
		})
	case protocol.MethodTextDocumentCompletion:
		return decodeParams(request, func(p protocol.CompletionParams) (any, error) { return s.completeAt(p.TextDocumentPositionParams), nil })
	case protocol.MethodTextDocumentHover:
		return decodeParams(request, func(p protocol.HoverParams) (any, error) { return s.hoverAt(p.TextDocumentPositionParams), nil })
	case protocol.MethodTextDocumentDefinition:
		return decodeParams(request, func(p protocol.DefinitionParams) (any, error) {
			return s.definitionOf(p.TextDocumentPositionParams), nil
		})
	case protocol.MethodTextDocumentReferences:
		return decodeParams(request, func(p protocol.ReferenceParams) (any, error) {
			return s.referencesOf(p.TextDocumentPositionParams), nil
		})
	case protocol.MethodTextDocumentRename:
		return decodeParams(request, s.renameStep)
	case protocol.MethodTextDocumentCodeAction:
		return decodeParams(request, func(p protocol.CodeActionParams) (any, error) { return s.codeActions(p), nil })
	case protocol.MethodTextDocumentDocumentSymbol:
		return decodeParams(request, func(p protocol.DocumentSymbolParams) (any, error) { return s.stepSymbols(p.TextDocument.URI), nil })
	}
	if strings.HasPrefix(request.Method(), "$/") || request.Method() == protocol.MethodInitialized {
		return nil, nil //nolint:nilnil // notifications that may be passed over
	}
	return nil, fmt.Errorf("%w: %s", jsonrpc2.ErrMethodNotFound, request.Method())
}

// capabilities are the server's capabilities.
var capabilities = protocol.InitializeResult{
	Capabilities: protocol.ServerCapabilities{
		TextDocumentSync:   protocol.TextDocumentSyncKindFull,
		CompletionProvider: &protocol.CompletionOptions{TriggerCharacters: []string{" ", "{", ".", ":"}},
		HoverProvider:      true, DefinitionProvider: true, ReferencesProvider: true, RenameProvider: true, DocumentSymbolProvider: true,
		CodeActionProvider: &protocol.CodeActionOptions{CodeActionKinds: []protocol.CodeActionKind{protocol.QuickFix, sourceFixAll}},
	},
	ServerInfo: &protocol.ServerInfo{Name: "reprise"},
}

// showDocument stores the current text of a document, and publishes its problems.
func (s *Server) showDocument(ctx context.Context, conn jsonrpc2.Conn, at uri.URI, content string) error {
	doc, problems := s.checkDocument(at, content)
	s.mu.Lock()
	if before := s.documents[at]; before != nil && doc.book == nil {
		doc.book = before.book // what is typed is no YAML yet
	}
	s.documents[at] = doc
	s.mu.Unlock()
	return publishProblems(ctx, conn, at, problems)
}

func publishProblems(ctx context.Context, conn jsonrpc2.Conn, at uri.URI, problems []protocol.Diagnostic) error {
	if err := conn.Notify(ctx, protocol.MethodTextDocumentPublishDiagnostics, &protocol.PublishDiagnosticsParams{URI: at, Diagnostics: problems}); err != nil {
		return fmt.Errorf("publish problems: %w", err)
	}
	return nil
}

// findDocument returns an open document; nil if it is not open.
func (s *Server) findDocument(at uri.URI) *document {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.documents[at]
}

// checkDocument checks a document.
func (s *Server) checkDocument(at uri.URI, content string) (*document, []protocol.Diagnostic) {
	doc := &document{at: at, name: filepath.Base(string(at)), text: newText(content), content: content, problems: []protocol.Diagnostic{}}
	if len(content) > mostBytes || !strings.HasSuffix(doc.name, playbook.TestSuffix) && !isPlaybook(content) {
		return doc, doc.problems
	}
	doc.file = source.NewFile(doc.name, []byte(content))
	doc.book, doc.found = s.findProblems(doc.file)
	for _, one := range doc.found {
		severity := protocol.DiagnosticSeverityError
		if one.Severity == source.Warning {
			severity = protocol.DiagnosticSeverityWarning
		}
		message := one.Message
		if one.Note != "" {
			message += "\n" + one.Note
		}
		doc.problems = append(doc.problems, protocol.Diagnostic{
			Range: doc.wordAt(one.Pos), Severity: severity, Code: one.Code, Source: "reprise", Message: message,
		})
	}
	return doc, doc.problems
}

// findProblems returns the problems of a playbook, or of a file of tests.
func (s *Server) findProblems(file *source.File) (*playbook.Playbook, source.Diagnostics) {
	if strings.HasSuffix(file.Name, playbook.TestSuffix) {
		_, found := playbook.DecodeTests(file)
		return nil, found
	}
	return check.Validate(file, s.tools, s.options)
}

// isPlaybook reports whether a YAML file is meant to be a playbook: editors open other files too.
func isPlaybook(content string) bool {
	return strings.Contains(content, "apiVersion: reprise/") || strings.Contains(content, "apiVersion: noetl.io/")
}
