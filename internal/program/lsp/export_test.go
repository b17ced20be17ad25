package lsp

import (
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
)

// Looked opens a document and makes every request at a place: what its problems are, and what mends
// them anywhere.
func Looked(tools playbook.Tools, at uri.URI, text string, place protocol.Position) ([]protocol.Diagnostic, []protocol.CodeAction) {
	s := New(tools, check.Options{})
	doc, problems := s.checkDocument(at, text)
	s.documents[at] = doc
	where := protocol.TextDocumentPositionParams{TextDocument: protocol.TextDocumentIdentifier{URI: at}, Position: place}
	s.completeAt(where)
	s.hoverAt(where)
	s.definitionOf(where)
	s.referencesOf(where)
	s.stepSymbols(at)
	_, _ = s.renameStep(protocol.RenameParams{TextDocumentPositionParams: where, NewName: "other"})
	return problems, s.codeActions(protocol.CodeActionParams{
		TextDocument: where.TextDocument, Range: protocol.Range{End: protocol.Position{Line: 1 << 30}},
	})
}
