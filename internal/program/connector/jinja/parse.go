package jinja

import "slices"

// parser parses one expression.
type parser struct {
	tokens []token
	at     int
	depth  int
}

// maxDepth bounds the nesting of expressions and blocks. Parsing is recursive, so without it a manifest full of
// brackets would exhaust the stack.
const maxDepth = 60

// ParseExpression parses the text between braces.
func ParseExpression(source string) (Operand, error) {
	tokens, err := lexTokens(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	n, err := p.parseCondition()
	if err == nil && p.peekToken().kind != 0 {
		err = errorf("%q was not expected", p.peekToken().text)
	}
	return n, err
}

func (p *parser) peekToken() token { return p.tokens[p.at] }

// acceptToken consumes the next token if it is one of the given operators or words.
func (p *parser) acceptToken(texts ...string) (string, bool) {
	t := p.peekToken()
	if t.kind == 's' || t.kind == 'i' || t.kind == 0 || !slices.Contains(texts, t.text) {
		return "", false
	}
	p.at++
	return t.text, true
}

func (p *parser) expectToken(text string) error {
	if _, ok := p.acceptToken(text); !ok {
		return errorf("%q is missing", text)
	}
	return nil
}

func (p *parser) parseCondition() (Operand, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errorf("it is nested too deep")
	}
	defer func() { p.depth-- }()
	then, err := p.parseLogic(0)
	if err != nil {
		return nil, err
	}
	if _, ok := p.acceptToken("if"); !ok {
		return then, nil
	}
	test, err := p.parseLogic(0)
	if err != nil {
		return nil, err
	}
	c := &Ternary{If: test, Then: then}
	if _, ok := p.acceptToken("else"); ok {
		c.Else, err = p.parseCondition()
	}
	return c, err
}

// parseLogic parses `or` (level 0), `and` (1) and `not` (2).
func (p *parser) parseLogic(level int) (Operand, error) {
	words := []string{"or", "and"}
	if level == len(words) {
		if _, ok := p.acceptToken("not"); ok {
			of, err := p.parseLogic(level)
			return &Unary{Operator: "not", Of: of}, err
		}
		return p.parseComparison()
	}
	left, err := p.parseLogic(level + 1)
	for err == nil {
		if _, ok := p.acceptToken(words[level]); !ok {
			break
		}
		var right Operand
		right, err = p.parseLogic(level + 1)
		left = &Binary{Operator: words[level], Left: left, Right: right}
	}
	return left, err
}

func (p *parser) parseComparison() (Operand, error) {
	left, err := p.parseArithmetic(0)
	var compared Operand
	for err == nil {
		operator, ok := p.acceptToken("==", "!=", "<", ">", "<=", ">=", "in")
		if !ok && p.peekToken().text == "not" && p.peekToken().kind == 'n' && p.tokens[p.at+1].text == "in" {
			p.at += 2
			operator, ok = "not in", true
		}
		if !ok {
			break
		}
		var right Operand
		if right, err = p.parseArithmetic(0); err != nil {
			break
		}
		one := Operand(&Binary{Operator: operator, Left: left, Right: right})
		if compared != nil { // a < b < c
			one = &Binary{Operator: "and", Left: compared, Right: one}
		}
		compared, left = one, right
	}
	if compared != nil {
		return compared, err
	}
	return left, err
}

var arithmetics = [][]string{{"+", "-"}, {"~"}, {"*", "/", "//", "%"}}

func (p *parser) parseArithmetic(level int) (Operand, error) {
	if level == len(arithmetics) {
		return p.parseUnary()
	}
	left, err := p.parseArithmetic(level + 1)
	for err == nil {
		operator, ok := p.acceptToken(arithmetics[level]...)
		if !ok {
			break
		}
		var right Operand
		right, err = p.parseArithmetic(level + 1)
		left = &Binary{Operator: operator, Left: left, Right: right}
	}
	return left, err
}

func (p *parser) parseUnary() (Operand, error) {
	if operator, ok := p.acceptToken("-", "+"); ok {
		of, err := p.parseUnary()
		if l, isLiteral := of.(*Literal); isLiteral && operator == "-" {
			switch v := l.Value.(type) {
			case int:
				return &Literal{Value: -v}, err
			case float64:
				return &Literal{Value: -v}, err
			}
		}
		return &Unary{Operator: operator, Of: of}, err
	}
	n, err := p.parsePrimary()
	if err == nil {
		n, err = p.parsePostfix(n)
	}
	if err == nil {
		if _, ok := p.acceptToken("**"); ok {
			var right Operand
			right, err = p.parseUnary()
			return &Binary{Operator: "**", Left: n, Right: right}, err
		}
	}
	return n, err
}

func (p *parser) parsePrimary() (Operand, error) {
	t := p.peekToken()
	p.at++
	switch {
	case t.kind == 's':
		text := t.value
		for p.peekToken().kind == 's' { // texts beside each other are one
			text = text.(string) + p.peekToken().value.(string)
			p.at++
		}
		return &Literal{Value: text}, nil
	case t.kind == 'i':
		return &Literal{Value: t.value}, nil
	case t.kind == 'n':
		switch t.text {
		case "true", "True":
			return &Literal{Value: true}, nil
		case "false", "False":
			return &Literal{Value: false}, nil
		case "none", "None":
			return &Literal{}, nil
		}
		return &Name{ID: t.text}, nil
	case t.text == "(":
		items, tuple, err := p.parseItems(")")
		if err == nil && len(items) == 1 && !tuple {
			return items[0], nil
		}
		return &Tuple{Items: items}, err
	case t.text == "[":
		items, _, err := p.parseItems("]")
		return &Tuple{Items: items}, err
	case t.text == "{":
		return p.parseDict()
	case t.kind == 0:
		p.at--
		return nil, errorf("an expression ends too early")
	}
	return nil, errorf("%q was not expected", t.text)
}

// parseItems parses a list up to its closing bracket; comma says that it contained a comma.
func (p *parser) parseItems(end string) (items []Operand, comma bool, err error) {
	for {
		if _, ok := p.acceptToken(end); ok {
			return items, comma, nil
		}
		one, err := p.parseCondition()
		if err != nil {
			return nil, false, err
		}
		items = append(items, one)
		if _, ok := p.acceptToken(","); ok {
			comma = true
			continue
		}
		return items, comma, p.expectToken(end)
	}
}

func (p *parser) parseDict() (Operand, error) {
	d := &Dict{}
	for {
		if _, ok := p.acceptToken("}"); ok {
			return d, nil
		}
		key, err := p.parseCondition()
		if err == nil {
			err = p.expectToken(":")
		}
		var value Operand
		if err == nil {
			value, err = p.parseCondition()
		}
		if err != nil {
			return nil, err
		}
		d.Keys, d.Values = append(d.Keys, key), append(d.Values, value)
		if _, ok := p.acceptToken(","); !ok {
			return d, p.expectToken("}")
		}
	}
}

func (p *parser) parsePostfix(n Operand) (Operand, error) {
	for {
		var err error
		operator, _ := p.acceptToken(".", "[", "(", "|", "is")
		switch operator {
		case ".":
			key := p.peekToken()
			if p.at++; key.kind != 'n' && key.kind != 'i' {
				return nil, errorf("a name is missing behind a dot")
			}
			n = &Index{Of: n, Key: &Literal{Value: keyOf(key)}, Dotted: true}
		case "[":
			n, err = p.parseSubscript(n)
		case "(":
			call := &Invocation{Function: n}
			call.Args, call.Named, err = p.parseArguments()
			n = call
		case "|":
			filter := &Filter{Name: p.peekToken().text, Of: n}
			if p.at++; p.tokens[p.at-1].kind != 'n' {
				return nil, errorf("the name of a filter is missing")
			}
			if _, ok := p.acceptToken("("); ok {
				filter.Args, filter.Named, err = p.parseArguments()
			}
			n = filter
		case "is":
			n, err = p.parseTest(n)
		default:
			return n, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func keyOf(t token) any {
	if t.kind == 'i' {
		return t.value
	}
	return t.text
}

func (p *parser) parseTest(n Operand) (Operand, error) {
	test := &Predicate{Of: n}
	_, test.Not = p.acceptToken("not")
	t := p.peekToken()
	if p.at++; t.kind != 'n' {
		return nil, errorf("the name of a test is missing")
	}
	test.Name = t.text
	var err error
	if _, ok := p.acceptToken("("); ok {
		var args []Operand
		if args, _, err = p.parseArguments(); len(args) > 0 {
			test.Arg = args[0]
		}
	}
	return test, err
}

func (p *parser) parseSubscript(of Operand) (Operand, error) {
	var from, to Operand
	var err error
	if p.peekToken().text != ":" {
		if from, err = p.parseCondition(); err != nil {
			return nil, err
		}
	}
	if _, ok := p.acceptToken(":"); !ok {
		return &Index{Of: of, Key: from}, p.expectToken("]")
	}
	if p.peekToken().text != "]" {
		if to, err = p.parseCondition(); err != nil {
			return nil, err
		}
	}
	return &Portion{Of: of, From: from, To: to}, p.expectToken("]")
}

func (p *parser) parseArguments() (args []Operand, named map[string]Operand, err error) {
	named = map[string]Operand{}
	for {
		if _, ok := p.acceptToken(")"); ok {
			return args, named, nil
		}
		name := ""
		if t := p.peekToken(); t.kind == 'n' && p.tokens[p.at+1].text == "=" {
			name = t.text
			p.at += 2
		}
		one, err := p.parseCondition()
		if err != nil {
			return nil, nil, err
		}
		if name == "" {
			args = append(args, one)
		} else {
			named[name] = one
		}
		if _, ok := p.acceptToken(","); !ok {
			return args, named, p.expectToken(")")
		}
	}
}
