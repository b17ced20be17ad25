// Package docsite renders the project's documents as web pages with navigation, anchors, search, and light and dark
// themes. The starter serves them, and writes them as files for any web server.
package docsite

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"

	"reprise/internal/program/reference"
)

// Site is a rendered site. It is immutable and safe for concurrent use.
type Site struct {
	files map[string][]byte // by path
	pages []*page
}

// page is a rendered document.
type page struct {
	Path    string // of the web page: how-to/backfill.html
	Source  string // of the document: docs/how-to/backfill.md
	Title   string
	Body    template.HTML
	Outline []heading // of the second level
	parts   []part
}

// heading is a heading of a page.
type heading struct{ ID, Title string }

// part is a search result: the text from one heading to the next.
type part struct {
	Page   string `json:"page"`
	Of     string `json:"of"` // the page's title
	Anchor string `json:"anchor"`
	Title  string `json:"title"`
	Text   string `json:"text"`
}

// group is a group of the navigation.
type group struct {
	Name  string
	pages []string // documents
	Pages []*page
}

// Has reports whether the group contains a page.
func (g group) Has(at string) bool {
	return slices.ContainsFunc(g.Pages, func(p *page) bool { return p.Path == at })
}

// groups are the documents in reading order, by name or folder; in a folder, index.md comes first. Documents in no
// group, such as decisions and examples, are reached by links and search.
var groups = []group{
	{Name: "Tutorial", pages: []string{"README.md", "docs/tutorial.md"}},
	{Name: "How-to", pages: []string{
		"docs/how-to/index.md", "docs/how-to/write-a-playbook.md", "docs/how-to/test-a-playbook.md", "docs/how-to/load-a-table.md", "docs/how-to/load-nested-lists.md",
		"docs/how-to/schedule.md", "docs/how-to/look-at-a-run.md", "docs/how-to/steer-a-run.md", "docs/how-to/why-a-run-hangs.md",
		"docs/how-to/failed-iterations.md", "docs/how-to/deploy.md", "docs/how-to/secrets.md", "docs/how-to/",
	}},
	{Name: "Reference", pages: referencePages()},
	{Name: "Concepts", pages: []string{
		"docs/concepts/runs.md", "docs/concepts/expressions.md", "docs/concepts/attempts.md", "docs/concepts/keys.md", "docs/concepts/rows.md", "docs/concepts/waits.md", "docs/concepts/loops.md",
		"docs/concepts/written-once.md", "docs/concepts/state.md", "docs/concepts/answers.md", "docs/concepts/concurrency.md",
		"docs/concepts/security.md", "docs/concepts/limits.md", "docs/concepts/",
	}},
	{Name: "Coming from", pages: []string{"docs/coming-from.md", "docs/coming-from/"}},
	{Name: "Appendix", pages: []string{"docs/appendix/", "docs/architecture.md", "docs/decisions/index.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}},
}

// referencePages returns the pages of the reference in order.
func referencePages() []string {
	names := []string{reference.Folder + "index.md"}
	for _, page := range reference.Pages() {
		names = append(names, reference.Folder+page.Name+".md")
	}
	return names
}

var (
	//go:embed page.html site.css site.js
	assets embed.FS
	frame  = template.Must(template.ParseFS(assets, "page.html"))
)

// New renders documents and example playbooks. made are generated files of the site, by name.
func New(documents, examples fs.FS, made map[string]string) (*Site, error) {
	s := &Site{files: map[string][]byte{}}
	for name, text := range made {
		s.files[name] = []byte(text)
	}
	known := map[string]string{} // web pages by document
	texts := map[string][]byte{}
	err := fs.WalkDir(documents, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(documents, name)
		if path.Ext(name) == ".md" {
			known[name], texts[name] = webPath(name), text
		} else {
			known[name] = strings.TrimPrefix(name, "docs/")
			s.files[known[name]] = text
		}
		return err
	})
	if err == nil {
		err = s.addExamples(examples, known)
	}
	if err != nil {
		return nil, fmt.Errorf("read the documents: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		made, err := renderPage(name, texts[name], known)
		if err != nil {
			return nil, fmt.Errorf("make a page of %s: %w", name, err)
		}
		s.pages = append(s.pages, made)
	}
	return s, s.writeFiles()
}

// addExamples adds a page for each playbook.
func (s *Site) addExamples(examples fs.FS, known map[string]string) error {
	names, err := fs.Glob(examples, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(examples, name)
		if err != nil {
			return err
		}
		code, err := codeBlock("yaml", string(text))
		if err != nil {
			return err
		}
		at := "playbooks/" + strings.TrimSuffix(name, ".yaml") + ".html"
		known["playbooks/"+name] = at
		s.pages = append(s.pages, &page{
			Path: at, Source: "playbooks/" + name, Title: name,
			Body:  template.HTML("<h1>"+template.HTMLEscapeString(name)+"</h1>") + code, //nolint:gosec // escaped
			parts: []part{{Page: at, Of: "Examples", Title: name, Text: string(text)}},
		})
	}
	return nil
}

// webPath returns the path of a document's web page.
func webPath(document string) string {
	if document == "README.md" {
		return "index.html"
	}
	name := strings.TrimSuffix(strings.TrimPrefix(document, "docs/"), ".md") + ".html"
	if !strings.Contains(document, "/") {
		name = strings.ToLower(name)
	}
	return name
}

// PageOf returns the web page and anchor for a link such as docs/tutorial.md#4-pages.
func PageOf(link string) string {
	document, heading, found := strings.Cut(link, "#")
	if !found {
		return webPath(document)
	}
	return webPath(document) + "#" + heading
}

// navigationGroups returns the groups with the pages that exist.
func (s *Site) navigationGroups() []group {
	var all []group
	for _, one := range groups {
		with := group{Name: one.Name}
		for _, document := range one.pages {
			for _, page := range s.pages {
				inside := strings.HasSuffix(document, "/") && strings.HasPrefix(page.Source, document)
				if (page.Source == document || inside) && !slices.Contains(with.Pages, page) {
					with.Pages = append(with.Pages, page)
				}
			}
		}
		slices.SortStableFunc(with.Pages, func(a, b *page) int { return cmp.Compare(pageOrder(a, one.pages), pageOrder(b, one.pages)) })
		if len(with.Pages) > 0 {
			all = append(all, with)
		}
	}
	return all
}

// pageOrder returns the position of a page in its group: the group's order, in a folder with index.md first.
func pageOrder(p *page, names []string) int {
	for i, name := range names {
		if p.Source == name || strings.HasPrefix(p.Source, name) {
			if path.Base(p.Source) == "index.md" {
				return 2 * i
			}
			return 2*i + 1
		}
	}
	return 2 * len(names)
}

// writeFiles renders all pages to files.
func (s *Site) writeFiles() error {
	navigation := s.navigationGroups()
	search := &page{Path: "search.html", Title: "Search", Body: `<h1>Search</h1><p id="found" role="status"></p><ol id="results" class="results"></ol><noscript><p>Search needs a script. The pages are in the list beside this.</p></noscript>`}
	var parts []part
	var inOrder []*page
	for _, one := range navigation {
		inOrder = append(inOrder, one.Pages...)
	}
	for _, one := range append(slices.Clone(s.pages), search) {
		var out bytes.Buffer
		shown := view{page: one, Up: strings.Repeat("../", strings.Count(one.Path, "/")), Groups: navigation}
		if at := slices.Index(inOrder, one); at >= 0 {
			shown.Previous, shown.Next = pageAt(inOrder, at-1), pageAt(inOrder, at+1)
		}
		if err := frame.Execute(&out, shown); err != nil {
			return fmt.Errorf("make %s: %w", one.Path, err)
		}
		s.files[one.Path] = out.Bytes()
		parts = append(parts, one.parts...)
	}
	index, err := json.Marshal(parts)
	if err != nil {
		return fmt.Errorf("make the index: %w", err)
	}
	s.files["search.json"] = index
	for _, name := range []string{"site.css", "site.js"} {
		if s.files[name], err = assets.ReadFile(name); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	return nil
}

// view is the data of a page's template.
type view struct {
	*page
	Up     string // leads to the top
	Groups []group
	// Previous and Next are the neighbours in the navigation; nil at the ends.
	Previous, Next *page
}

// pageAt returns the page at a position; nil beyond the ends.
func pageAt(pages []*page, at int) *page {
	if at < 0 || at >= len(pages) {
		return nil
	}
	return pages[at]
}

// types maps file extensions to content types.
var types = map[string]string{
	".svg": "image/svg+xml", ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".json": "application/json",
	".png": "image/png",
}

// ServeHTTP answers with a file of the site.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	name := cmp.Or(strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/"), "index.html")
	text, found := s.files[name]
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
	case !found:
		http.Error(w, "there is no such page", http.StatusNotFound)
	default:
		header.Set("Content-Type", cmp.Or(types[path.Ext(name)], "text/plain; charset=utf-8"))
		_, _ = w.Write(text)
	}
}

// Write writes the files into a folder, creating it if necessary.
func (s *Site) Write(folder string) error {
	for name, text := range s.files {
		at := filepath.Join(folder, filepath.FromSlash(name))
		const folderMode, fileMode = 0o755, 0o644
		err := os.MkdirAll(filepath.Dir(at), folderMode)
		if err == nil {
			err = os.WriteFile(at, text, fileMode)
		}
		if err != nil {
			return fmt.Errorf("write the site: %w", err)
		}
	}
	return nil
}

// Size returns the number of files and their total size in bytes.
func (s *Site) Size() (files, bytes int) {
	for _, text := range s.files {
		bytes += len(text)
	}
	return len(s.files), bytes
}

// PicturePath returns the path, within the repository, of the drawing of a Mermaid diagram. The name depends on the
// diagram, so a changed diagram has no drawing until it is drawn again.
func PicturePath(diagram string) string {
	const digits = 12
	sum := sha256.Sum256([]byte(strings.TrimSpace(diagram)))
	return "docs/pictures/" + hex.EncodeToString(sum[:])[:digits] + ".svg"
}

// placeDrawings replaces diagram sources by drawings, because browsers cannot draw them without an external script.
func (p *page) placeDrawings(tree ast.Node, document []byte, known map[string]string) {
	title := p.Title
	for node := tree.FirstChild(); node != nil; {
		next := node.NextSibling()
		switch node := node.(type) {
		case *ast.Heading:
			title = plainText(node, document)
		case *ast.FencedCodeBlock:
			if string(node.Language(document)) != "mermaid" {
				break
			}
			picture, found := known[PicturePath(string(node.Lines().Value(document)))]
			if !found { // a test notices; the source says the same
				break
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
}
