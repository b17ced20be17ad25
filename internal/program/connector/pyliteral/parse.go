package pyliteral

import (
	"errors"
	"strconv"
	"strings"
)

// spread is the key under which a dict has the dict that is merged into it with **.
const spread = "**"

// parser reads values from tokens.
type parser struct {
	source string
	tokens []token
	at     int
	depth  int
}

var errUnexpected = errors.New("a token was not expected")

func (p *parser) peekToken() token { return p.tokens[p.at] }

// acceptToken consumes the next token if it is an operator or word.
func (p *parser) acceptToken(of string) bool {
	t := p.peekToken()
	if t.kind != operator && t.kind != name || t.text != of {
		return false
	}
	p.at++
	return true
}

// parseValue reads a value. An expression of Python that is none is an Other. The error says that brackets do not match,
// or that values are nested too deep.
func (p *parser) parseValue() (any, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, ErrTooDeep
	}
	defer func() { p.depth-- }()
	start := p.at
	if p.peekToken().kind == name && p.peekToken().text == "lambda" {
		return p.parseLambda()
	}
	value, err := p.parsePrimary()
	if err == nil && p.endsValue() {
		return value, nil
	}
	if errors.Is(err, ErrTooDeep) {
		return nil, err
	}
	p.at = start
	return p.skipValue()
}

// endsValue reports whether a value ends before the next token.
func (p *parser) endsValue() bool {
	switch t := p.peekToken(); t.kind {
	case end, newline:
		return true
	case operator:
		return t.isOneOf(",", ")", "]", "}", ":", "=")
	}
	return false
}

// skipValue skips an expression up to the comma or bracket that ends it.
func (p *parser) skipValue() (any, error) {
	start := p.peekToken().start
	var open []string
	for ; ; p.at++ {
		t := p.peekToken()
		if t.kind == end && len(open) > 0 {
			return nil, errUnexpected
		}
		if t.isOneOf("(", "[", "{") {
			open = append(open, t.text)
			continue
		}
		closes := t.isOneOf(")", "]", "}")
		switch {
		case closes && len(open) > 0:
			open = open[:len(open)-1]
		case len(open) > 0:
		case closes, t.kind == end, t.kind == newline, t.isOneOf(",", ":"):
			if t.start == start {
				return nil, errUnexpected
			}
			return &Other{Text: strings.TrimSpace(p.source[start:t.start])}, nil
		}
	}
}

func (p *parser) parseLambda() (any, error) {
	p.at++
	l := &Lambda{}
	for !p.acceptToken(":") {
		t := p.peekToken()
		if t.kind == end || t.kind == newline {
			return nil, errUnexpected
		}
		if t.kind == name {
			l.Params = append(l.Params, t.text)
		}
		p.at++
	}
	body, err := p.skipValue()
	if err != nil {
		return nil, err
	}
	l.Body = body.(*Other).Text // which is all that skipValue returns
	return l, nil
}

func (p *parser) parsePrimary() (any, error) {
	t := p.peekToken()
	switch t.kind {
	case number:
		p.at++
		return numberValue(t.text)
	case text, formatted:
		return p.parseTexts()
	case name:
		return p.parseName()
	case operator:
		switch t.text {
		case "-", "+":
			p.at++
			return p.parseSigned(t.text)
		case "{":
			p.at++
			return p.parseDict()
		case "[":
			p.at++
			return p.parseItems("]")
		case "(":
			p.at++
			return p.parseTuple()
		}
	}
	return nil, errUnexpected
}

// numberValue returns a number; those that Go's types cannot hold are an error.
func numberValue(source string) (any, error) {
	if n, err := strconv.ParseInt(source, 0, 64); err == nil {
		return int(n), nil
	}
	if strings.ContainsAny(source, "jJxX") {
		return nil, errUnexpected
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(source, "_", ""), 64)
	return n, err
}

func (p *parser) parseSigned(sign string) (any, error) {
	value, err := p.parsePrimary()
	if err != nil || sign == "+" {
		return value, err
	}
	switch value := value.(type) {
	case int:
		return -value, nil
	case float64:
		return -value, nil
	}
	return nil, errUnexpected
}

// parseTexts reads adjacent texts, which are one.
func (p *parser) parseTexts() (any, error) {
	out := &FString{}
	for {
		switch t := p.peekToken(); t.kind {
		case text:
			out.Parts = append(out.Parts, t.text)
		case formatted:
			parts, err := formattedParts(t.text)
			if err != nil {
				return nil, err
			}
			out.Parts = append(out.Parts, parts...)
		case otherText:
			return nil, errUnexpected
		default:
			return joinFormatted(out), nil
		}
		p.at++
	}
}

// formattedParts splits the text of an f-string at its braces, in which only names are read.
func formattedParts(of string) (parts []any, err error) {
	for of != "" {
		at := strings.IndexAny(of, "{}")
		switch {
		case at < 0:
			return append(parts, of), nil
		case strings.HasPrefix(of[at:], "{{"), strings.HasPrefix(of[at:], "}}"):
			parts, of = append(parts, of[:at+1]), of[at+2:]
			continue
		}
		length := strings.IndexByte(of[at:], '}')
		if of[at] == '}' || length < 0 {
			return nil, errUnexpected
		}
		tokens, err := lexTokens(of[at+1 : at+length])
		if err != nil {
			return nil, err
		}
		inner := &parser{source: of[at+1 : at+length], tokens: tokens}
		value, err := inner.parseValue()
		if _, isOther := value.(*Other); err != nil || isOther || inner.peekToken().kind != end {
			return nil, errUnexpected
		}
		parts, of = append(parts, of[:at], value), of[at+length+1:]
	}
	return parts, nil
}

// parseName reads a constant, a name with its members, or a call.
func (p *parser) parseName() (any, error) {
	path := p.peekToken().text
	p.at++
	switch path {
	case "True", "true": // as JSON writes them
		return true, nil
	case "False", "false":
		return false, nil
	case "None", "null":
		return nil, nil
	}
	for p.acceptToken(".") {
		if p.peekToken().kind != name {
			return nil, errUnexpected
		}
		path += "." + p.peekToken().text
		p.at++
	}
	reference := &NameExpr{Name: path}
	for p.acceptToken("[") {
		if p.peekToken().kind != text {
			return nil, errUnexpected
		}
		reference.Keys = append(reference.Keys, p.peekToken().text)
		if p.at++; !p.acceptToken("]") {
			return nil, errUnexpected
		}
	}
	if len(reference.Keys) > 0 || !p.acceptToken("(") {
		return reference, nil
	}
	return p.parseCall(path)
}

// lookups are the functions that return a member by its key, and the maps of which it is.
var lookups = map[string]string{"dlt.secrets.get": "dlt.secrets", "dlt.config.get": "dlt.config", "os.environ.get": "os.environ", "os.getenv": "os.environ"}

func (p *parser) parseCall(path string) (any, error) {
	call := &CallExpr{Name: path, Named: map[string]any{}}
	for !p.acceptToken(")") {
		named := ""
		if next := p.tokens[min(p.at+1, len(p.tokens)-1)]; p.peekToken().kind == name && next.kind == operator && next.text == "=" {
			named = p.peekToken().text
			p.at += 2
		}
		value, err := p.parseValue()
		if err != nil {
			return nil, err
		}
		if named == "" {
			call.Args = append(call.Args, value)
		} else {
			call.Named[named] = value
		}
		if !p.acceptToken(",") && p.peekToken().text != ")" {
			return nil, errUnexpected
		}
	}
	if of := lookups[path]; of != "" && len(call.Args) > 0 {
		if key, isText := call.Args[0].(string); isText {
			return &NameExpr{Name: of, Keys: []string{key}}, nil
		}
	}
	return call, nil
}

// parseDict reads a dict whose keys are texts.
func (p *parser) parseDict() (any, error) {
	out := map[string]any{}
	for !p.acceptToken("}") {
		if p.acceptToken(spread) {
			value, err := p.parseValue()
			if err != nil || out[spread] != nil {
				return nil, errUnexpected
			}
			out[spread] = value
		} else {
			key, err := p.parseValue()
			if err != nil {
				return nil, err
			}
			written, isText := key.(string)
			if !isText || !p.acceptToken(":") {
				return nil, errUnexpected
			}
			if out[written], err = p.parseValue(); err != nil {
				return nil, err
			}
		}
		if !p.acceptToken(",") && p.peekToken().text != "}" {
			return nil, errUnexpected
		}
	}
	return out, nil
}

// parseItems reads the items of a list up to the bracket that closes it.
func (p *parser) parseItems(closing string) (any, error) {
	out := []any{}
	for !p.acceptToken(closing) {
		value, err := p.parseValue()
		if err != nil {
			return nil, err
		}
		out = append(out, value)
		if !p.acceptToken(",") && p.peekToken().text != closing {
			return nil, errUnexpected
		}
	}
	return out, nil
}

// parseTuple reads a tuple, which is a list, or a value in parentheses.
func (p *parser) parseTuple() (any, error) {
	start := p.at
	items, err := p.parseItems(")")
	list, isList := items.([]any)
	if err != nil || !isList || len(list) != 1 {
		return items, err
	}
	if last := p.tokens[p.at-2]; last.kind == operator && last.text == "," && p.at-2 > start {
		return list, nil
	}
	return list[0], nil
}
