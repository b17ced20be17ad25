package samples

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// VisibleText returns the visible text of a page, with a line for each piece.
func VisibleText(t testing.TB, page string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(node *html.Node) {
		if node.Type == html.ElementNode && node.Data == "style" {
			return
		}
		if text := strings.Join(strings.Fields(node.Data), " "); node.Type == html.TextNode && text != "" {
			b.WriteString(text + "\n")
		}
		for below := range node.ChildNodes() {
			walk(below)
		}
	}
	walk(root)
	return b.String()
}
