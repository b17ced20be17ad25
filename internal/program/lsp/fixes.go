package lsp

import (
	"fmt"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"reprise/internal/program/mend"
	"reprise/interpreter/source"
)

// sourceFixAll is the kind of a code action that editors can run when a file is saved.
const sourceFixAll protocol.CodeActionKind = "source.fixAll"

// codeActions returns a fix for each problem in a range, and an action for all certain fixes at once, like `starter
// validate --fix`.
func (s *Server) codeActions(p protocol.CodeActionParams) []protocol.CodeAction {
	actions := []protocol.CodeAction{}
	doc := s.findDocument(p.TextDocument.URI)
	if doc == nil || doc.file == nil {
		return actions
	}
	wanted := func(kind protocol.CodeActionKind) bool {
		for _, only := range p.Context.Only {
			if only == kind || strings.HasPrefix(string(kind), string(only)+".") {
				return true
			}
		}
		return len(p.Context.Only) == 0
	}
	if wanted(protocol.QuickFix) {
		for i, d := range doc.found {
			edit, ok := doc.file.EditFor(d)
			if !ok || !rangesMeet(doc.problems[i].Range, p.Range) {
				continue
			}
			actions = append(actions, protocol.CodeAction{
				Title: fmt.Sprintf("Replace %s with %s", d.Fix.Old, edit.New), Kind: protocol.QuickFix, IsPreferred: true,
				Diagnostics: []protocol.Diagnostic{doc.problems[i]},
				Edit:        doc.replaceBytes(p.TextDocument.URI, edit.From, edit.To, edit.New),
			})
		}
	}
	if wanted(sourceFixAll) {
		if mended := mend.MendFile(doc.file, func(file *source.File) source.Diagnostics { _, found := s.findProblems(file); return found }); len(mended.Changes) > 0 {
			actions = append(actions, protocol.CodeAction{
				Title: "Apply every unambiguous fix, including older spellings", Kind: sourceFixAll,
				Edit: doc.replaceBytes(p.TextDocument.URI, 0, len(doc.file.Bytes()), string(mended.Text)),
			})
		}
	}
	return actions
}

// replaceBytes returns an edit that replaces bytes of the document.
func (d *document) replaceBytes(at uri.URI, from, to int, text string) *protocol.WorkspaceEdit {
	within := protocol.Range{Start: positionOf(d.content, from), End: positionOf(d.content, to)}
	return &protocol.WorkspaceEdit{Changes: map[uri.URI][]protocol.TextEdit{at: {{Range: within, NewText: text}}}}
}

// rangesMeet reports whether two ranges overlap or touch.
func rangesMeet(a, b protocol.Range) bool {
	return !isAfter(a.Start, b.End) && !isAfter(b.Start, a.End)
}

func isAfter(a, b protocol.Position) bool {
	return a.Line > b.Line || a.Line == b.Line && a.Character > b.Character
}
