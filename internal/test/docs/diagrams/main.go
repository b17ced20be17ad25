// Command diagrams draws the Mermaid diagrams of the documents into docs/pictures, which the
// documentation site shows. It needs chromium, and mermaid.min.js of the npm package mermaid:
//
//	npm pack mermaid@11.4.1 && tar xzf mermaid-11.4.1.tgz
//	go run ./internal/test/docs/diagrams package/dist/mermaid.min.js
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"reprise/internal/program/docsite"
	"reprise/internal/test/docs"
	"reprise/interpreter/lists"
)

// page is an HTML page that draws the diagrams one after the other and puts the SVG into its text.
const page = `<!doctype html><meta charset="utf-8"><script src="file://%s"></script><pre id="out"></pre><script>
const diagrams = %s;
mermaid.initialize({startOnLoad: false, theme: 'neutral', htmlLabels: false, flowchart: {htmlLabels: false}, fontFamily: 'system-ui, sans-serif'});
(async () => {
  const out = [];
  for (const [i, text] of diagrams.entries()) out.push((await mermaid.render('d' + i, text)).svg);
  document.getElementById('out').textContent = out.join('\n----\n');
})();
</script>`

// mark ends each picture.
const mark = "\n<!-- Generated: go run ./internal/test/docs/diagrams -->\n"

var (
	sizes       = regexp.MustCompile(` (?:style|width|height)="[^"]*"`)
	viewBox     = regexp.MustCompile(`viewBox="\S+ \S+ (\S+) (\S+)"`)
	drawn       = regexp.MustCompile(`(?s)<pre id="out">(.*?)</pre>`)
	errArgument = errors.New("name the file mermaid.min.js")
	errDrawing  = errors.New("chromium has not drawn all diagrams")
)

func main() {
	if err := drawDiagrams(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "diagrams:", err)
		os.Exit(1)
	}
}

func drawDiagrams(args []string) error {
	if len(args) != 1 {
		return errArgument
	}
	library, err := filepath.Abs(args[0])
	if err != nil {
		return fmt.Errorf("find %s: %w", args[0], err)
	}
	diagrams, err := docs.MermaidBlocks(".")
	if err != nil {
		return err
	}
	texts := lists.Map(diagrams, func(one *docs.Example) string { return one.Text })
	list, err := json.Marshal(texts)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	folder, err := os.MkdirTemp("", "diagrams")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	at := filepath.Join(folder, "page.html")
	if err := docs.WriteFile(at, fmt.Sprintf(page, library, list)); err != nil {
		return err
	}
	out, err := exec.CommandContext(context.Background(), "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
		"--virtual-time-budget=60000", "--dump-dom", "file://"+at).Output()
	if err != nil {
		return fmt.Errorf("run chromium: %w", err)
	}
	found := drawn.FindSubmatch(out)
	if found == nil {
		return errDrawing
	}
	pictures := strings.Split(html.UnescapeString(string(found[1])), "\n----\n")
	if len(pictures) != len(diagrams) {
		return errDrawing
	}
	if err := os.RemoveAll("docs/pictures"); err != nil {
		return fmt.Errorf("remove what was drawn before: %w", err)
	}
	for i, one := range diagrams {
		if err := docs.WriteFile(docsite.PicturePath(one.Text), withSize(pictures[i])+mark); err != nil {
			return err
		}
	}
	return nil
}

// withSize returns an SVG picture with a light background and the size of its drawing, in place of the width of the
// page.
func withSize(picture string) string {
	head, rest, _ := strings.Cut(picture, ">")
	size := viewBox.FindStringSubmatch(head)
	if size == nil {
		return picture
	}
	attributes := fmt.Sprintf(`<svg style="background:#fff" width="%s" height="%s" `, size[1], size[2])
	return strings.Replace(sizes.ReplaceAllString(head, ""), "<svg ", attributes, 1) + ">" + rest
}
