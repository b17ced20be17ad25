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

// markdown renders the questions for people. It shows HTML as text, loads nothing from other sites, and allows only
// the links that safeLink accepts.
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

// withoutParser removes a parser.
func withoutParser(parsers []util.PrioritizedValue, left any) []util.PrioritizedValue {
	return slices.DeleteFunc(parsers, func(one util.PrioritizedValue) bool { return one.Value == left })
}

// RenderQuestion renders what an approval asks as safe HTML: its first heading, "" if there is none, and the rest.
func RenderQuestion(approval *playbook.Approval) (title, message template.HTML, err error) {
	filled := newStandIns(approval.MessageParts())
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

// QuestionTitle returns what an approval asks, on one line without Markdown: its heading, else its first paragraph; "" if it
// has neither.
func QuestionTitle(approval *playbook.Approval) string {
	title, message, err := RenderQuestion(approval)
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

// firstParagraph matches a paragraph at the beginning of a rendered message.
var firstParagraph = regexp.MustCompile(`(?s)^<p>(.*?)</p>`)

// firstHeading matches a heading at the beginning of a rendered message.
var firstHeading = regexp.MustCompile(`^<h[1-6]>(.*)</h[1-6]>\n`)

var anyTag = regexp.MustCompile(`<[^>]*>`)

// textOf returns the text of HTML from RenderQuestion.
func textOf(text template.HTML) string {
	return html.UnescapeString(anyTag.ReplaceAllString(string(text), ""))
}

// standIns are the words that replace values while Markdown is parsed, so that values are never parsed as Markdown.
type standIns struct {
	markdown string
	values   []string
	word     string // with which they begin; the author has written it nowhere
	pattern  *regexp.Regexp
}

var standInsKey = parser.NewContextKey()

// standInLetters is the number of letters that number a stand-in. It is fixed, so that what follows a stand-in is
// never taken for part of it.
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

// standIn returns a word to replace a value. It ends like a domain, so that an address in a text is recognized and
// not cut within the word.
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

// valueOf returns the value that a stand-in replaces.
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

// fillPage replaces the stand-ins in a page by values. Stand-ins occur only in texts.
func (s *standIns) fillPage(page string) string {
	return s.pattern.ReplaceAllStringFunc(page, func(found string) string {
		value := ReadableText(s.valueOf(found))
		if isFigure.MatchString(value) {
			value = strings.ReplaceAll(value, " ", "\u00a0")
		}
		return `<bdi class="value">` + template.HTMLEscapeString(value) + "</bdi>"
	})
}

// isFigure matches a number in everyday notation, with its unit or currency, which is kept on one line.
var isFigure = regexp.MustCompile(`^[-+−]?(\p{Sc}|[A-Z]{3})?\s?\d[\d.,'’\s]{0,40}\s?(%|\p{Sc}|\pL{1,4})?$`)

// fillAddress fills in an address. A value may be the whole address, or a part that cannot change the rest of it:
// there it is escaped. ofData says that a value decides where the address leads.
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

// ReadableText returns a text from data for people: hidden characters are shown, and it takes no more of a page than a
// paragraph, so that the rest of the page is seen.
func ReadableText(value string) string {
	const shownLetters, shownLines = 1000, 30
	value = source.ShortenMiddle(source.ReadableText(value), shownLetters)
	if strings.Count(value, "\n") >= shownLines {
		value = strings.Join(strings.Fields(value), " ")
	}
	return value
}

// tame removes what a page must not contain from a document: pictures, links that do not lead to web pages, and
// headings above the page's own. It fills in addresses.
type tame struct{}

// Transform implements parser.ASTTransformer.
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
			if label := filled.labelOf(node, reader.Source()); label != "" {
				node.SetAttributeString("data-label", []byte(label))
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

// lettersInOneLine is the greatest length of a cell that is kept on one line, as numbers and dates are. Only the
// author's letters count.
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

// labelOf returns the header above a cell, which narrow screens show beside the cell; "" for a header and where there is none.
func (s *standIns) labelOf(cell *tables.TableCell, markdown []byte) string {
	header, isHeader := cell.Parent().Parent().FirstChild().(*tables.TableHeader)
	if _, inRow := cell.Parent().(*tables.TableRow); !inRow || !isHeader {
		return ""
	}
	above := header.FirstChild()
	for before := cell.PreviousSibling(); before != nil && above != nil; before = before.PreviousSibling() {
		above = above.NextSibling()
	}
	named, isCell := above.(*tables.TableCell)
	if !isCell {
		return ""
	}
	label := s.pattern.ReplaceAllStringFunc(cellText(named, markdown), func(found string) string { return ReadableText(s.valueOf(found)) })
	if s.pattern.MatchString(label) { // a value looks like a stand-in, which would put markup into an attribute
		return ""
	}
	return strings.Join(strings.Fields(label), " ")
}

// fillLink fills in the address of a link, and removes a link that is not allowed. If data decides where it leads,
// the address is shown.
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

// replaceByText replaces a link or picture by its text.
func replaceByText(node ast.Node) {
	parent := node.Parent()
	for child := node.FirstChild(); child != nil; child = node.FirstChild() {
		node.RemoveChild(node, child)
		parent.InsertBefore(parent, node, child)
	}
	parent.RemoveChild(parent, node)
}

// safeLink reports whether a page may link to an address.
func safeLink(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && (slices.Contains([]string{"http", "https"}, parsed.Scheme) && parsed.Host != "" || parsed.Scheme == "mailto") &&
		source.ReadableText(address) == address
}
