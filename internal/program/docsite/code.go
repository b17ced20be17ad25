package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"

	"github.com/alecthomas/chroma/v2"
	chromahtml "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// codeBlocks renders the fenced blocks of a document in colours: each kind of word has a class, whose colours are in
// site.css.
type codeBlocks struct{}

// RegisterFuncs registers the function for fenced blocks.
func (c codeBlocks) RegisterFuncs(register renderer.NodeRendererFuncRegisterer) {
	register.Register(ast.KindFencedCodeBlock, c.renderCode)
}

func (codeBlocks) renderCode(w util.BufWriter, document []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	block, is := node.(*ast.FencedCodeBlock)
	if !entering || !is {
		return ast.WalkContinue, nil
	}
	made, err := codeBlock(string(block.Language(document)), string(block.Lines().Value(document)))
	if err != nil {
		return ast.WalkStop, err
	}
	_, err = w.WriteString(string(made))
	return ast.WalkSkipChildren, err
}

// plainLanguages are the languages of output, which has no colours.
var plainLanguages = map[string]bool{"": true, "text": true}

// codeBlock returns a block of code as HTML.
func codeBlock(language, text string) (template.HTML, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<pre tabindex="0"><code class="language-%s">`, template.HTMLEscapeString(language))
	lexer := lexers.Get(language)
	if plainLanguages[language] || lexer == nil {
		template.HTMLEscape(&b, []byte(text))
	} else if err := highlightCode(&b, lexer, text); err != nil {
		return "", fmt.Errorf("colour %s: %w", language, err)
	}
	b.WriteString("</code></pre>\n")
	return template.HTML(b.String()), nil //nolint:gosec // escaped
}

// classes writes the words with their classes and nothing around them.
var classes = chromahtml.New(chromahtml.WithClasses(true), chromahtml.PreventSurroundingPre(true))

func highlightCode(b *bytes.Buffer, lexer chroma.Lexer, text string) error {
	words, err := chroma.Coalesce(lexer).Tokenise(nil, text)
	if err != nil {
		return err
	}
	return classes.Format(b, &chroma.Style{}, chroma.Literator(withTemplates(words.Tokens())...))
}

// templateIn is a template in a text: {{ … }}.
var templateIn = regexp.MustCompile(`\{\{.*?\}\}`)

// inBraces are words of YAML's maps in one line that the lexer takes for one: a value with the braces that close
// after it, and a value with the key after it.
var inBraces = map[chroma.TokenType]*regexp.Regexp{
	chroma.Literal: regexp.MustCompile(`^(.+?)([}\]]+)()$`),
	chroma.NameTag: regexp.MustCompile(`^(.*)(,\s+)(\S+)$`),
}

// splitWord splits a token at the braces within it.
func splitWord(word chroma.Token) []chroma.Token {
	pattern := inBraces[word.Type]
	if pattern == nil {
		return []chroma.Token{word}
	}
	parts := pattern.FindStringSubmatch(word.Value)
	if parts == nil {
		return []chroma.Token{word}
	}
	return []chroma.Token{{Type: chroma.Literal, Value: parts[1]}, {Type: chroma.Punctuation, Value: parts[2]}, {Type: word.Type, Value: parts[3]}}
}

// withTemplates has templates as words of their own.
func withTemplates(given []chroma.Token) []chroma.Token {
	var all, words []chroma.Token
	for _, word := range given {
		words = append(words, splitWord(word)...)
	}
	for _, word := range words {
		at := 0
		if word.Type.InCategory(chroma.Comment) {
			all = append(all, word)
			continue
		}
		for _, found := range templateIn.FindAllStringIndex(word.Value, -1) {
			all = append(all, chroma.Token{Type: word.Type, Value: word.Value[at:found[0]]},
				chroma.Token{Type: chroma.LiteralStringInterpol, Value: word.Value[found[0]:found[1]]})
			at = found[1]
		}
		all = append(all, chroma.Token{Type: word.Type, Value: word.Value[at:]})
	}
	return all
}
