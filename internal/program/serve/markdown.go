package serve

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// markdown renders the questions to people. It shows HTML as the text that it is, loads
// nothing from outside, and knows no links but those of safeLink.
var markdown = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(withoutParser(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
		parser.WithInlineParsers(withoutParser(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)),
	goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough, extension.Linkify,
	),
	goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(tame{}, 1000))), // after those of extensions
)

// withoutParser leaves a parser out.
func withoutParser(parsers []util.PrioritizedValue, left any) []util.PrioritizedValue {
	return slices.DeleteFunc(parsers, func(one util.PrioritizedValue) bool { return one.Value == left })
}

// Question renders what an approval asks as safe HTML: its first heading, "" for none, and the
// rest.
func Question(approval *playbook.Approval) (title, message template.HTML, err error) {
	filled := newStandIns(approval.Pieces())
	context := parser.NewContext()
	context.Set(standInsKey, filled)
	var page bytes.Buffer
	if err := markdown.Convert([]byte(filled.markdown), &page, parser.WithContext(context)); err != nil {
		return "", "", err
	}
	rest := page.String()
	if heading := firstHeading.FindStringSubmatch(rest); heading != nil {
		title, rest = template.HTML(filled.fillPage(heading[1])), rest[len(heading[0]):] //nolint:gosec // as below
	}
	return title, template.HTML(filled.fillPage(rest)), nil //nolint:gosec // it knows no HTML, tame has the rest, and values are escaped
}

// Title is what an approval asks in one line without Markdown: its heading, else its first paragraph; "" if it has
// neither.
func Title(approval *playbook.Approval) string {
	title, message, err := Question(approval)
	if err != nil {
		return ""
	}
	if title == "" {
		if first := firstParagraph.FindStringSubmatch(string(message)); first != nil {
			title = template.HTML(first[1]) //nolint:gosec // it becomes text
		}
	}
	isSpace := func(letter rune) bool { return strings.ContainsRune(" \n\t\r", letter) } // others keep figures together
	return source.ShortenMiddle(strings.Join(strings.FieldsFunc(textOf(title), isSpace), " "), shownTitle)
}

// firstParagraph is a paragraph with which a rendered message begins.
var firstParagraph = regexp.MustCompile(`(?s)^<p>(.*?)</p>`)

// firstHeading is a heading with which a rendered message begins.
var firstHeading = regexp.MustCompile(`^<h[1-6]>(.*)</h[1-6]>\n`)

var anyTag = regexp.MustCompile(`<[^>]*>`)

// textOf returns the text of HTML that Question gave.
func textOf(text template.HTML) string {
	return html.UnescapeString(anyTag.ReplaceAllString(string(text), ""))
}

// standIns are the words that stand for values while Markdown is read.
type standIns struct {
	markdown string
	values   []string
	word     string // with which they begin; the author has written it nowhere
	pattern  *regexp.Regexp
}

var standInsKey = parser.NewContextKey()

// standInLetters are the letters that number a stand-in. All have as many, so that
// what follows one is never part of it.
const standInLetters = 4

func newStandIns(pieces []playbook.Piece) *standIns {
	s := &standIns{word: "zqv"}
	for slices.ContainsFunc(pieces, func(piece playbook.Piece) bool { return !piece.IsData && strings.Contains(piece.Text, s.word) }) {
		s.word += "v"
	}
	s.pattern = regexp.MustCompile(fmt.Sprintf("%s[a-z]{%d}", s.word, standInLetters))
	var whole strings.Builder
	for _, piece := range pieces {
		if piece.IsData {
			whole.WriteString(s.standIn(piece.Text))
		} else {
			whole.WriteString(piece.Text)
		}
	}
	s.markdown = whole.String()
	return s
}

// standIn returns a word for a value. It is one that ends domains, of which addresses in a
// text are known, so that none is cut within it.
func (s *standIns) standIn(value string) string {
	number := len(s.values)
	s.values = append(s.values, value)
	letters := make([]byte, standInLetters)
	for i := range letters {
		letters[standInLetters-1-i] = byte('a' + number%26)
		number /= 26
	}
	return s.word + string(letters)
}

// valueOf returns the value of a stand-in.
func (s *standIns) valueOf(standIn string) string {
	number := 0
	for _, letter := range standIn[len(s.word):] {
		number = number*26 + int(letter-'a')
	}
	if number >= len(s.values) {
		return ""
	}
	return s.values[number]
}

// fillPage puts values into a page, in which stand-ins are nowhere but in texts.
func (s *standIns) fillPage(page string) string {
	return s.pattern.ReplaceAllStringFunc(page, func(found string) string {
		value := Readable(s.valueOf(found))
		if isFigure.MatchString(value) {
			value = strings.ReplaceAll(value, " ", "\u00a0")
		}
		return `<bdi class="value">` + template.HTMLEscapeString(value) + "</bdi>"
	})
}

// isFigure is a number as people write it, with its unit or currency: it stays in one line.
var isFigure = regexp.MustCompile(`^[-+−]?(\p{Sc}|[A-Z]{3})?\s?\d[\d.,'’\s]{0,40}\s?(%|\p{Sc}|\pL{1,4})?$`)

// fillAddress fills an address. A value is all of it, or a part that changes nothing else
// of it: there it is escaped. ofData says that a value decides where the address leads.
func (s *standIns) fillAddress(written string) (address string, ofData bool) {
	if s.pattern.FindString(written) == written && written != "" {
		return s.valueOf(written), true
	}
	address = s.pattern.ReplaceAllStringFunc(written, func(found string) string {
		return strings.ReplaceAll(url.QueryEscape(s.valueOf(found)), "+", "%20")
	})
	host := func(address string) string {
		parsed, err := url.Parse(address)
		if err != nil {
			return ""
		}
		return parsed.Host + parsed.Opaque
	}
	return address, s.pattern.MatchString(host(written))
}

// Readable returns a text of data as people see it: what hides is shown, and it takes no
// more of a page than a paragraph does, so that the rest of the page is seen.
func Readable(value string) string {
	const shownLetters, shownLines = 1000, 30
	value = source.ShortenMiddle(source.ReadableText(value), shownLetters)
	if strings.Count(value, "\n") >= shownLines {
		value = strings.Join(strings.Fields(value), " ")
	}
	return value
}

// tame removes from a document what a page must not have: pictures, links that are no web
// pages, and headings above the page's own. It fills in addresses.
type tame struct{}

// Transform is called by the parser.
func (tame) Transform(document *ast.Document, reader text.Reader, context parser.Context) {
	filled, isFilled := context.Get(standInsKey).(*standIns)
	if !isFilled {
		filled = newStandIns(nil)
	}
	var links, wild []ast.Node
	above := 1 // the level of the heading before, first that of the page
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Heading:
			const deepest = 6
			node.Level = min(node.Level+1, above+1, deepest)
			if node != document.FirstChild() { // which is the title
				above = node.Level
			}
		case *ast.FencedCodeBlock:
			node.Info = nil // nothing here colours code, and a class may mean something to the page
		case *ast.Link, *ast.AutoLink:
			links = append(links, node)
		case *tables.TableCell:
			if text := cellText(node, reader.Source()); utf8.RuneCountInString(text) <= lettersInOneLine && !filled.pattern.MatchString(text) {
				node.SetAttributeString("class", []byte("short"))
			}
		case *ast.Image:
			wild = append(wild, node)
		}
		return ast.WalkContinue, nil
	})
	for _, node := range slices.Backward(wild) { // those within others first
		replaceByText(node)
	}
	for _, node := range slices.Backward(links) {
		filled.fillLink(node, reader.Source())
	}
}

// lettersInOneLine is how many letters of the author's a cell has at most that stays in one line: numbers and dates do.
const lettersInOneLine = 30

// cellText returns the text of a cell.
func cellText(cell *tables.TableCell, markdown []byte) string {
	var b strings.Builder
	_ = ast.Walk(cell, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if text, isText := node.(*ast.Text); isText && entering {
			b.Write(text.Segment.Value(markdown))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// fillLink fills the address of a link, and takes a link away that must not be there.
// Where data decides where it leads, people see where.
func (s *standIns) fillLink(node ast.Node, markdown []byte) {
	link, isLink := node.(*ast.Link)
	if auto, isAuto := node.(*ast.AutoLink); isAuto {
		link = ast.NewLink()
		link.Destination = auto.URL(markdown)
		if auto.AutoLinkType == ast.AutoLinkEmail && !bytes.HasPrefix(link.Destination, []byte("mailto:")) {
			link.Destination = append([]byte("mailto:"), link.Destination...)
		}
		link.AppendChild(link, ast.NewString(auto.Label(markdown)))
		node.Parent().ReplaceChild(node.Parent(), node, link)
	}
	address, ofData := s.fillAddress(string(link.Destination))
	if !safeLink(address) {
		replaceByText(link)
		return
	}
	link.Destination, link.Title = []byte(address), nil
	link.SetAttributeString("rel", []byte("noopener noreferrer nofollow"))
	if ofData && isLink {
		leads := ast.NewString([]byte(" (" + s.standIn(address) + ")"))
		link.Parent().InsertAfter(link.Parent(), link, leads)
	}
}

// replaceByText puts the text of a link or picture into its place.
func replaceByText(node ast.Node) {
	parent := node.Parent()
	for child := node.FirstChild(); child != nil; child = node.FirstChild() {
		node.RemoveChild(node, child)
		parent.InsertBefore(parent, node, child)
	}
	parent.RemoveChild(parent, node)
}

// safeLink reports whether people may be led to an address.
func safeLink(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && (slices.Contains([]string{"http", "https"}, parsed.Scheme) && parsed.Host != "" || parsed.Scheme == "mailto") &&
		source.ReadableText(address) == address
}
