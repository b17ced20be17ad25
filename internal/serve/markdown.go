package serve

import (
	"bytes"
	"html/template"
	"net/url"
	"slices"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown renders what people are asked. It shows HTML as the text that it is, asks for
// nothing from outside, and knows no links but those of safeLink.
var markdown = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
		parser.WithInlineParsers(without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)),
	goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough, extension.Linkify,
	),
	goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(tame{}, 1000))), // after those of extensions
)

// without leaves a parser out.
func without(parsers []util.PrioritizedValue, left any) []util.PrioritizedValue {
	return slices.DeleteFunc(parsers, func(one util.PrioritizedValue) bool { return one.Value == left })
}

// renderMarkdown gives Markdown as HTML that can stand in a page.
func renderMarkdown(message string) (template.HTML, error) {
	var page bytes.Buffer
	if err := markdown.Convert([]byte(message), &page); err != nil {
		return "", err
	}
	return template.HTML(page.String()), nil //nolint:gosec // it knows no HTML, and tame has the rest
}

// tame takes from a document what a page must not have: pictures, links to what is no
// web page, and headings above that of the page.
type tame struct{}

// Transform is called by the parser.
func (tame) Transform(document *ast.Document, reader text.Reader, _ parser.Context) {
	var wild []ast.Node
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Heading:
			const most = 6
			node.Level = min(node.Level+1, most)
		case *ast.Link:
			if !safeLink(string(node.Destination)) {
				wild = append(wild, node)
			}
			node.SetAttributeString("rel", []byte("noopener noreferrer nofollow"))
		case *ast.AutoLink:
			if node.AutoLinkType == ast.AutoLinkURL && !safeLink(string(node.URL(reader.Source()))) {
				wild = append(wild, node)
			}
			node.SetAttributeString("rel", []byte("noopener noreferrer nofollow"))
		case *ast.Image:
			wild = append(wild, node)
		}
		return ast.WalkContinue, nil
	})
	for _, node := range slices.Backward(wild) { // those within others first
		unlink(node, reader.Source())
	}
}

// unlink puts the text of a link into its place.
func unlink(node ast.Node, source []byte) {
	parent := node.Parent()
	if link, isAuto := node.(*ast.AutoLink); isAuto {
		parent.ReplaceChild(parent, node, ast.NewString(util.EscapeHTML(link.Label(source))))
		return
	}
	for child := node.FirstChild(); child != nil; child = node.FirstChild() {
		node.RemoveChild(node, child)
		parent.InsertBefore(parent, node, child)
	}
	parent.RemoveChild(parent, node)
}

// safeLink reports whether people may be led to an address.
func safeLink(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && (slices.Contains([]string{"http", "https"}, parsed.Scheme) && parsed.Host != "" || parsed.Scheme == "mailto")
}
