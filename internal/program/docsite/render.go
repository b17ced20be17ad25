package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"reprise/internal/program/reference"
)

// firstOfAll is the priority of a renderer that precedes those of goldmark.
const firstOfAll = 100

// markdown passes HTML in documents through: they are ours, and a few anchors are written in HTML.
var markdown = goldmark.New(
	goldmark.WithRendererOptions(html.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(codeBlocks{}, firstOfAll))),
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

// renderPage renders a document. known maps documents to their web pages, for links.
func renderPage(name string, document []byte, known map[string]string) (*page, error) {
	made := &page{Path: webPath(name), Source: name}
	tree := markdown.Parser().Parse(text.NewReader(document), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	var nowhere []*ast.Link
	err := ast.Walk(tree, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Heading:
			made.beginHeading(node, document)
		case *ast.Image:
			to, err := made.linkTarget(string(node.Destination), known)
			if err != nil || to == "" {
				return ast.WalkStop, fmt.Errorf("there is no picture %s: %w", node.Destination, err)
			}
			node.Destination = []byte(to)
		case *ast.Link:
			to, err := made.linkTarget(string(node.Destination), known)
			if err != nil {
				return ast.WalkStop, err
			}
			if node.Destination = []byte(to); to == "" {
				nowhere = append(nowhere, node)
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	for _, link := range nowhere {
		unlinkText(link)
	}
	made.collectTexts(tree, document)
	made.placeDrawings(tree, document, known)
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, document, tree); err != nil {
		return nil, err
	}
	made.Body = template.HTML(body.String()) //nolint:gosec // of our documents
	return made, nil
}

// beginHeading adds a heading.
func (p *page) beginHeading(node *ast.Heading, document []byte) {
	title := plainText(node, document)
	id, _ := node.AttributeString("id")
	anchor := string(id.([]byte))
	if node.Level == 1 && p.Title == "" {
		p.Title, anchor = title, ""
	}
	const outlined = 2
	if node.Level == outlined {
		p.Outline = append(p.Outline, heading{ID: anchor, Title: title})
	}
	p.parts = append(p.parts, part{Page: p.Path, Of: p.Title, Anchor: anchor, Title: title})
}

// collectTexts sets the text of each part.
func (p *page) collectTexts(tree ast.Node, document []byte) {
	at := -1
	for node := tree.FirstChild(); node != nil; node = node.NextSibling() {
		if _, begins := node.(*ast.Heading); begins {
			at++
			continue
		}
		if at >= 0 {
			p.parts[at].Text += plainText(node, document) + " "
		}
	}
}

// linkTarget returns the target of a link on the site; "" if the site does not have it.
func (p *page) linkTarget(to string, known map[string]string) (string, error) {
	target, anchor, _ := strings.Cut(to, "#")
	if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return to, nil
	}
	document := path.Join(path.Dir(p.Source), target)
	if strings.HasPrefix(document, "..") {
		return "", fmt.Errorf("the link %s leads out of the repository", to)
	}
	page, found := known[document]
	if !found {
		return "", nil
	}
	up := strings.Repeat("../", strings.Count(p.Path, "/"))
	if anchor != "" {
		anchor = "#" + anchor
	}
	return up + page + anchor, nil
}

// unlinkText replaces a link to a file that is not a page by its text.
func unlinkText(link *ast.Link) {
	parent := link.Parent()
	for child := link.FirstChild(); child != nil; {
		next := child.NextSibling()
		parent.InsertBefore(parent, link, child)
		child = next
	}
	parent.RemoveChild(parent, link)
}

// plainText returns the text of a node without markup.
func plainText(node ast.Node, document []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		switch node := node.(type) {
		case *ast.Text:
			if entering {
				b.Write(node.Segment.Value(document))
				if node.SoftLineBreak() || node.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				b.Write(node.Lines().Value(document))
			}
		default:
			if !entering && node.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// anchors generates the same anchors for headings as code forges, so that links work in both: lower case, digits, -
// and _, a hyphen for each space, and a number if the anchor exists already.
type anchors map[string]bool

// Generate returns the anchor of a heading.
func (a anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	first := reference.AnchorOf(string(value))
	id := first
	for n := 1; a[id]; n++ {
		id = fmt.Sprintf("%s-%d", first, n)
	}
	a[id] = true
	return []byte(id)
}

// Put records an explicit anchor.
func (a anchors) Put(value []byte) { a[string(value)] = true }
