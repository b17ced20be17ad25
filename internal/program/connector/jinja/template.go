package jinja

import "strings"

// Parse parses a text with templates. A text without templates is one Literal.
func Parse(text string) (Operand, error) {
	r := &reader{rest: strings.TrimSuffix(text, "\n")}
	parts, end, err := r.readParts()
	if err == nil && end != "" {
		err = errorf("{%% %s %%} has no beginning", end)
	}
	if err != nil {
		return nil, err
	}
	return joinParts(parts), nil
}

// HasTemplate reports whether a text has templates.
func HasTemplate(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "{%") || strings.Contains(text, "{#")
}

func joinParts(parts []Operand) Operand {
	switch len(parts) {
	case 0:
		return &Literal{Value: ""}
	case 1:
		return parts[0]
	}
	return &Concat{Parts: parts}
}

// reader reads the texts, braces and blocks of a template.
type reader struct {
	rest  string
	depth int
}

// readParts reads up to the end, or up to a block such as `else` or `endif`, whose words it returns.
func (r *reader) readParts() (parts []Operand, end string, err error) {
	if r.depth++; r.depth > maxDepth {
		return nil, "", errorf("blocks are nested too deep")
	}
	defer func() { r.depth-- }()
	for {
		at := strings.Index(r.rest, "{")
		for at >= 0 && at+1 < len(r.rest) && strings.IndexByte("{%#", r.rest[at+1]) < 0 {
			next := strings.Index(r.rest[at+1:], "{")
			if next < 0 {
				at = -1
				break
			}
			at += 1 + next
		}
		if at < 0 || at+1 >= len(r.rest) {
			if r.rest != "" {
				parts = append(parts, &Literal{Value: r.rest})
			}
			r.rest = ""
			return parts, "", nil
		}
		if at > 0 {
			parts = append(parts, &Literal{Value: r.rest[:at]})
		}
		kind := r.rest[at+1]
		inner, err := r.readInner(at)
		if err != nil {
			return nil, "", err
		}
		var one Operand
		switch kind {
		case '{':
			one, err = ParseExpression(inner)
		case '%':
			word, _, _ := strings.Cut(inner, " ")
			switch word {
			case "if":
				one, err = r.readBlock(strings.TrimSpace(strings.TrimPrefix(inner, word)))
			case "else", "elif", "endif":
				return parts, inner, nil
			case "set":
				var let *Let
				if let, end, err = r.readLet(strings.TrimPrefix(inner, word)); err == nil {
					return append(parts, let), end, nil
				}
			default:
				err = errorf("the block {%% %s %%}", word)
			}
		default: // a comment
			continue
		}
		if err != nil {
			return nil, "", err
		}
		parts = append(parts, one)
	}
}

// readInner returns the text inside the braces at a position, and continues after them.
func (r *reader) readInner(at int) (string, error) {
	closing := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[r.rest[at+1]]
	quote := byte(0)
	depth := 0
	for i := at + 2; i < len(r.rest); i++ {
		c := r.rest[i]
		switch {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote:
				quote = 0
			}
		case closing != "#}" && (c == '"' || c == '\''):
			quote = c
		case depth == 0 && strings.HasPrefix(r.rest[i:], closing):
			inner := r.rest[at+2 : i]
			r.rest = r.rest[i+len(closing):]
			if strings.HasSuffix(inner, "-") {
				r.rest = strings.TrimLeft(r.rest, " \t\r\n")
			}
			return strings.TrimSpace(strings.Trim(inner, "-")), nil
		case c == '{':
			depth++
		case c == '}':
			depth = max(0, depth-1)
		}
	}
	return "", errorf("braces are not closed")
}

// readBlock reads an `if` block with its branches.
func (r *reader) readBlock(test string) (Operand, error) {
	c := &Ternary{}
	var err error
	if c.If, err = ParseExpression(test); err != nil {
		return nil, err
	}
	then, end, err := r.readParts()
	if err != nil {
		return nil, err
	}
	c.Then, c.Else = joinParts(then), &Literal{Value: ""}
	word, rest, _ := strings.Cut(end, " ")
	switch word {
	case "elif":
		c.Else, err = r.readBlock(strings.TrimSpace(rest))
		return c, err
	case "else":
		var otherwise []Operand
		if otherwise, end, err = r.readParts(); err != nil {
			return nil, err
		}
		c.Else = joinParts(otherwise)
	}
	if end != "endif" {
		return nil, errorf("{%% endif %%} is missing")
	}
	return c, nil
}

// readLet reads an assignment, and the template up to the end of the enclosing block.
func (r *reader) readLet(text string) (*Let, string, error) {
	name, value, found := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); !found || strings.ContainsAny(name, " ,.") {
		return nil, "", errorf("the block {%% set %s %%}", name)
	}
	let := &Let{Name: name}
	var err error
	if let.Value, err = ParseExpression(value); err != nil {
		return nil, "", err
	}
	r.rest = strings.TrimLeft(r.rest, " \t\r\n")
	parts, end, err := r.readParts()
	let.In = joinParts(parts)
	return let, end, err
}
