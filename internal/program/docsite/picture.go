package docsite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Picture is the file of the drawing of a Mermaid diagram, from the top of the repository. Its name
// follows from the diagram, so a diagram that changes has none until it is drawn again.
func Picture(diagram string) string {
	const digits = 12
	sum := sha256.Sum256([]byte(strings.TrimSpace(diagram)))
	return "docs/pictures/" + hex.EncodeToString(sum[:])[:digits] + ".svg"
}

// drawings puts the drawings of diagrams in the place of their source, which browsers cannot draw
// without a script from elsewhere.
func (p *page) drawings(tree ast.Node, document []byte, known map[string]string) error {
	title := p.Title
	for node := tree.FirstChild(); node != nil; {
		next := node.NextSibling()
		switch node := node.(type) {
		case *ast.Heading:
			title = plain(node, document)
		case *ast.FencedCodeBlock:
			if string(node.Language(document)) != "mermaid" {
				break
			}
			picture, found := known[Picture(string(node.Lines().Value(document)))]
			if !found {
				return fmt.Errorf("the diagram of %q is not drawn: go run ./internal/test/docs/diagrams", title)
			}
			image := ast.NewImage(ast.NewLink())
			image.Destination = []byte(strings.Repeat("../", strings.Count(p.Path, "/")) + picture)
			image.AppendChild(image, ast.NewString([]byte("Diagram: "+title)))
			paragraph := ast.NewParagraph()
			paragraph.AppendChild(paragraph, image)
			tree.ReplaceChild(tree, node, paragraph)
		}
		node = next
	}
	return nil
}
