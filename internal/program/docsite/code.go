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

// codeBlocks renders fenced code blocks with syntax highlighting: each kind of token has a class, whose colour is in
// site.css.
type codeBlocks struct{}

// RegisterFuncs registers the renderer for fenced code blocks.
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

// plainLanguages are languages without highlighting.
var plainLanguages = map[string]bool{"": true, "text": true}

// codeBlock returns a code block as HTML.
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

// classes formats tokens with their classes, without a surrounding element.
var classes = chromahtml.New(chromahtml.WithClasses(true), chromahtml.PreventSurroundingPre(true))

func highlightCode(b *bytes.Buffer, lexer chroma.Lexer, text string) error {
	words, err := chroma.Coalesce(lexer).Tokenise(nil, text)
	if err != nil {
		return err
	}
	return classes.Format(b, &chroma.Style{}, chroma.Literator(withTemplates(words.Tokens())...))
}

// templateIn matches a template in a text: {{ … }}.
var templateIn = regexp.MustCompile(`\{\{.*?\}\}`)

// inBraces matches tokens of YAML flow maps that the lexer does not split: a value with the closing braces after it,
// and a value with the next key.
var inBraces = map[chroma.TokenType]*regexp.Regexp{
	chroma.Literal: regexp.MustCompile(`^(.+?)([}\]]+)()$`),
	chroma.NameTag: regexp.MustCompile(`^(.*)(,\s+)(\S+)$`),
}

// splitWord splits a token that inBraces matches.
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

// withTemplates splits templates off as separate tokens.
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
