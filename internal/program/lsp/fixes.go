package lsp

import (
	"fmt"
	"strings"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"reprise/internal/program/mend"
	"reprise/interpreter/source"
)

// sourceFixAll is the kind of an action that editors can run when a file is saved.
const sourceFixAll protocol.CodeActionKind = "source.fixAll"

// fixes are what mends the problems of a range, each by itself, and all that has one sure fix at
// once: what `starter validate --fix` does.
func (s *Server) fixes(p protocol.CodeActionParams) []protocol.CodeAction {
	actions := []protocol.CodeAction{}
	doc := s.find(p.TextDocument.URI)
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
			edit, ok := doc.file.Edit(d)
			if !ok || !meets(doc.problems[i].Range, p.Range) {
				continue
			}
			actions = append(actions, protocol.CodeAction{
				Title: fmt.Sprintf("Replace %s with %s", d.Fix.Old, edit.New), Kind: protocol.QuickFix, IsPreferred: true,
				Diagnostics: []protocol.Diagnostic{doc.problems[i]},
				Edit:        doc.edited(p.TextDocument.URI, edit.From, edit.To, edit.New),
			})
		}
	}
	if wanted(sourceFixAll) {
		if mended := mend.File(doc.file, func(file *source.File) source.Diagnostics { _, found := s.problems(file); return found }); len(mended.Changes) > 0 {
			actions = append(actions, protocol.CodeAction{
				Title: "Apply every unambiguous fix, including older spellings", Kind: sourceFixAll,
				Edit: doc.edited(p.TextDocument.URI, 0, len(doc.file.Bytes()), string(mended.Text)),
			})
		}
	}
	return actions
}

// edited replaces bytes of the document.
func (d *document) edited(at uri.URI, from, to int, text string) *protocol.WorkspaceEdit {
	within := protocol.Range{Start: positionOf(d.content, from), End: positionOf(d.content, to)}
	return &protocol.WorkspaceEdit{Changes: map[uri.URI][]protocol.TextEdit{at: {{Range: within, NewText: text}}}}
}

// meets reports whether two ranges have a place in common.
func meets(a, b protocol.Range) bool {
	return !after(a.Start, b.End) && !after(b.Start, a.End)
}

func after(a, b protocol.Position) bool {
	return a.Line > b.Line || a.Line == b.Line && a.Character > b.Character
}
