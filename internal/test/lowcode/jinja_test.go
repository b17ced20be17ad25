package lowcode_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// operand is a part of a template: its kind, what it names, and its own parts.
type operand struct {
	kind  string // lit, name, attr, item, slice, call, filter, is, un, bin, if, list, dict, set, for, block, out
	text  string
	value any
	parts []*operand
	named map[string]*operand // arguments by name
}

// lexeme is a word of an expression.
type lexeme struct {
	kind byte // n name, s text, d number, o operator, e end
	text string
}

// lexemes matches a word of an expression at its beginning.
var lexemes = regexp.MustCompile(`^(?:([A-Za-z_]\w*)|(\d+(?:\.\d+)?)|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(//|\*\*|==|!=|<=|>=|[-+*/%~|()\[\]{}.,:<>=]))`)

// parser reads one template.
type parser struct {
	text string
	at   int
	next lexeme
	deep int
}

// parseTemplate reads a template with its tags.
func parseTemplate(text string) *operand {
	p := &parser{text: strings.TrimSuffix(text, "\n")}
	block, _ := p.parseBlock()
	return block
}

// parseBlock reads texts and tags up to one of the tags that end it, whose words it returns.
func (p *parser) parseBlock(ends ...string) (*operand, string) {
	block := &operand{kind: "block"}
	for {
		open := strings.IndexByte(p.text[p.at:], '{')
		for open >= 0 && (p.at+open+1 >= len(p.text) || !strings.ContainsRune("{%#", rune(p.text[p.at+open+1]))) {
			next := strings.IndexByte(p.text[p.at+open+1:], '{')
			if next < 0 {
				open = -1
				break
			}
			open += 1 + next
		}
		if open < 0 {
			block.parts = append(block.parts, &operand{kind: "lit", value: p.text[p.at:]})
			p.at = len(p.text)
			return block, ""
		}
		raw, tag := p.text[p.at:p.at+open], p.text[p.at+open+1]
		p.at += open + 2
		if strings.HasPrefix(p.text[p.at:], "-") {
			raw, p.at = strings.TrimRight(raw, " \n\t"), p.at+1
		}
		block.parts = append(block.parts, &operand{kind: "lit", value: raw})
		switch tag {
		case '#':
			p.at += strings.Index(p.text[p.at:], "#}") + 2
		case '{':
			p.advance()
			block.parts = append(block.parts, &operand{kind: "out", parts: []*operand{p.parseChoice()}})
			p.endTag("}}")
		default:
			p.advance()
			word := p.next.text
			for _, end := range ends {
				if word == end {
					p.advance()
					return block, word
				}
			}
			p.advance()
			block.parts = append(block.parts, p.parseStatement(word))
		}
	}
}

// endTag passes the end of a tag.
func (p *parser) endTag(end string) {
	if p.next.text == "-" {
		p.advance()
	}
	if p.next.kind != 'e' {
		panic(fmt.Errorf("%q where %s is expected in %s", p.next.text, end, p.text))
	}
	p.at += 2
	if strings.HasPrefix(p.text[max(0, p.at-3):], "-") {
		p.at += len(p.text[p.at:]) - len(strings.TrimLeft(p.text[p.at:], " \n\t"))
	}
}

// parseStatement reads what is behind the word of a tag.
func (p *parser) parseStatement(word string) *operand {
	switch word {
	case "set":
		name := p.take()
		p.take() // =
		of := &operand{kind: "set", text: name, parts: []*operand{p.parseChoice()}}
		p.endTag("%}")
		return of
	case "for":
		of := &operand{kind: "for", text: p.take()}
		if p.next.text == "," {
			p.advance()
			of.text += "," + p.take()
		}
		p.take() // in
		of.parts = append(of.parts, p.parseChoice())
		p.endTag("%}")
		body, _ := p.parseBlock("endfor")
		p.endTag("%}")
		of.parts = append(of.parts, body)
		return of
	case "if", "elif":
		test := p.parseChoice()
		p.endTag("%}")
		then, end := p.parseBlock("elif", "else", "endif")
		other := &operand{kind: "block"}
		switch end {
		case "elif":
			return &operand{kind: "if", parts: []*operand{test, then, p.parseStatement("elif")}}
		case "else":
			p.endTag("%}")
			other, _ = p.parseBlock("endif")
		}
		p.endTag("%}")
		return &operand{kind: "if", parts: []*operand{test, then, other}}
	}
	panic(fmt.Errorf("the tag %s is not known: %s", word, p.text))
}

// advance reads the next word.
func (p *parser) advance() {
	for p.at < len(p.text) && strings.ContainsRune(" \n\t\r", rune(p.text[p.at])) {
		p.at++
	}
	rest := p.text[p.at:]
	if rest == "" || p.deep == 0 && (strings.HasPrefix(rest, "}}") || strings.HasPrefix(rest, "%}")) {
		p.next = lexeme{kind: 'e'}
		return
	}
	found := lexemes.FindStringSubmatch(rest)
	if found == nil {
		panic(fmt.Errorf("%q is not understood in %s", rest, p.text))
	}
	p.at += len(found[0])
	for i, kind := range []byte("ndso") {
		if found[i+1] != "" {
			p.next = lexeme{kind: kind, text: found[i+1]}
		}
	}
	if p.next.kind == 'o' {
		p.deep += strings.Count("([{", p.next.text) - strings.Count(")]}", p.next.text)
	}
}

// take is the text of the next word, which is passed.
func (p *parser) take() string {
	text := p.next.text
	p.advance()
	return text
}

// passes reports whether the next word is one of these, and passes it.
func (p *parser) passes(words ...string) string {
	for _, word := range words {
		if p.next.kind != 's' && p.next.text == word {
			p.advance()
			return word
		}
	}
	return ""
}

func (p *parser) parseChoice() *operand {
	of := p.parseEither()
	for p.passes("if") != "" {
		test, other := p.parseEither(), &operand{kind: "lit", value: undefined{}}
		if p.passes("else") != "" {
			other = p.parseChoice()
		}
		of = &operand{kind: "if", parts: []*operand{test, of, other}}
	}
	return of
}

func (p *parser) parseEither() *operand {
	return p.parseBinary(func() *operand { return p.parseBinary(p.parseNot, "and") }, "or")
}

func (p *parser) parseBinary(below func() *operand, words ...string) *operand {
	of := below()
	for {
		word := p.passes(words...)
		if word == "" {
			return of
		}
		of = &operand{kind: "bin", text: word, parts: []*operand{of, below()}}
	}
}

func (p *parser) parseNot() *operand {
	if p.passes("not") != "" {
		return &operand{kind: "un", text: "not", parts: []*operand{p.parseNot()}}
	}
	of := p.parseSum()
	for {
		word := p.passes("==", "!=", "<=", ">=", "<", ">", "in", "not")
		switch word {
		case "":
			return of
		case "not":
			p.take() // in
			of = &operand{kind: "un", text: "not", parts: []*operand{{kind: "bin", text: "in", parts: []*operand{of, p.parseSum()}}}}
		default:
			of = &operand{kind: "bin", text: word, parts: []*operand{of, p.parseSum()}}
		}
	}
}

func (p *parser) parseSum() *operand {
	return p.parseBinary(func() *operand {
		return p.parseBinary(func() *operand { return p.parseBinary(p.parseUnary, "*", "//", "/", "%") }, "~")
	}, "+", "-")
}

func (p *parser) parseUnary() *operand {
	if p.passes("-") != "" {
		return &operand{kind: "un", text: "-", parts: []*operand{p.parsePrimary()}}
	}
	of := p.parsePrimary()
	for {
		switch {
		case p.passes("|") != "":
			of = &operand{kind: "filter", text: p.take(), parts: []*operand{of}}
			if p.passes("(") != "" {
				p.parseArguments(of)
			}
		case p.passes("is") != "":
			negated := p.passes("not") != ""
			of = &operand{kind: "is", text: p.take(), parts: []*operand{of}}
			if negated {
				of = &operand{kind: "un", text: "not", parts: []*operand{of}}
			}
		default:
			return of
		}
	}
}

// parseArguments reads arguments up to the bracket that closes them.
func (p *parser) parseArguments(of *operand) {
	of.named = map[string]*operand{}
	for p.passes(")") == "" {
		one := p.parseChoice()
		if one.kind == "name" && p.passes("=") != "" {
			of.named[one.text] = p.parseChoice()
		} else {
			of.parts = append(of.parts, one)
		}
		p.passes(",")
	}
}

// constants are the names of values.
var constants = map[string]any{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func (p *parser) parseAtom() *operand {
	word := p.next
	p.advance()
	switch {
	case word.kind == 'n':
		if value, is := constants[word.text]; is {
			return &operand{kind: "lit", value: value}
		}
		return &operand{kind: "name", text: word.text}
	case word.kind == 's':
		text := unquote(word.text)
		for p.next.kind == 's' {
			text += unquote(p.take())
		}
		return &operand{kind: "lit", value: text}
	case word.kind == 'd':
		if n, err := strconv.Atoi(word.text); err == nil {
			return &operand{kind: "lit", value: n}
		}
		f, _ := strconv.ParseFloat(word.text, 64)
		return &operand{kind: "lit", value: f}
	case word.text == "(" || word.text == "[":
		end := map[string]string{"(": ")", "[": "]"}[word.text]
		list := &operand{kind: "list"}
		comma := word.text == "["
		for p.passes(end) == "" {
			list.parts = append(list.parts, p.parseChoice())
			comma = p.passes(",") != "" || comma
		}
		if !comma && len(list.parts) == 1 {
			return list.parts[0]
		}
		return list
	case word.text == "{":
		dict := &operand{kind: "dict"}
		for p.passes("}") == "" {
			key := p.parseChoice()
			p.take() // :
			dict.parts = append(dict.parts, key, p.parseChoice())
			p.passes(",")
		}
		return dict
	}
	panic(fmt.Errorf("%q is not understood in %s", word.text, p.text))
}

func unquote(text string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\'`, `'`, `\"`, `"`).Replace(text[1 : len(text)-1])
}

func (p *parser) parsePrimary() *operand {
	of := p.parseAtom()
	for {
		switch {
		case p.passes(".") != "":
			of = &operand{kind: "attr", text: p.take(), parts: []*operand{of}}
		case p.passes("[") != "":
			var from *operand
			if p.next.text != ":" {
				from = p.parseChoice()
			}
			if p.passes(":") != "" {
				of = &operand{kind: "slice", parts: []*operand{of, from, nil}}
				if p.next.text != "]" {
					of.parts[2] = p.parseChoice()
				}
			} else {
				of = &operand{kind: "item", parts: []*operand{of, from}}
			}
			p.take() // ]
		case p.passes("(") != "":
			of = &operand{kind: "call", parts: []*operand{of}}
			p.parseArguments(of)
		default:
			return of
		}
	}
}
