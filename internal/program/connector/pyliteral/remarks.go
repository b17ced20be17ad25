package pyliteral

import (
	"fmt"
	"slices"
	"strings"
)

// Remark is something that a source does beside its dict, which reading the dict alone misses.
type Remark struct {
	Line int
	Text string
}

// Remarks returns what a source does to the dict that FindDict finds, and to the resources made of it: changes of its
// parts, calls that change resources, and functions that are resources themselves. It returns nothing if there is no dict.
func Remarks(source string, line int, keys ...string) (remarks []Remark) {
	_, r, err := findDict(source, line, keys)
	if err != nil {
		return nil
	}
	p := r.parser
	for i, t := range p.tokens {
		text := ""
		switch {
		case t.kind == name && p.beginsStatement(i) && r.used[t.text] && p.changesAt(i):
			text = fmt.Sprintf("%s is changed after its definition, which was read", t.text)
		case t.isOneOf("@"):
			text = p.resourceAt(i + 1)
		case t.kind == name && slices.Contains(resourceCalls, t.text) && i > 0 && p.tokens[i-1].isOneOf(".") && p.tokens[i+1].isOneOf("("):
			text = fmt.Sprintf("the call %s(…), which changes or selects resources", t.text)
		case t.kind == name && t.text == "write_disposition" && p.tokens[i+1].isOneOf("=") && p.isRunArgument(i):
			text = "the write_disposition of the pipeline's run, which replaces that of resources"
		}
		if text != "" {
			remarks = append(remarks, Remark{p.lineOf(t), text})
		}
	}
	return remarks
}

// resourceCalls are the methods of dlt that change the resources of a source, or select some of them.
var resourceCalls = []string{"apply_hints", "add_map", "add_filter", "add_yield_map", "add_limit", "add_step", "with_resources"}

// changingCalls are the methods of Python that change a dict or a list.
var changingCalls = []string{"append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update"}

func (p *parser) lineOf(t token) int { return 1 + strings.Count(p.source[:t.start], "\n") }

// beginsStatement reports whether a statement may begin with a token.
func (p *parser) beginsStatement(at int) bool {
	return at == 0 || p.tokens[at-1].kind == newline || p.tokens[at-1].isOneOf(":")
}

// changesAt reports whether the statement that begins with a name changes a member of it.
func (p *parser) changesAt(at int) bool {
	at++
	for first := true; ; first = false {
		switch t := p.tokens[at]; {
		case t.isOneOf("["):
			if at = p.behindBracket(at); at < 0 {
				return false
			}
		case t.isOneOf(".") && p.tokens[at+1].kind == name && p.tokens[at+2].isOneOf("("):
			return slices.Contains(changingCalls, p.tokens[at+1].text)
		default:
			return !first && t.isOneOf("=") || t.isOneOf("+", "|") && p.tokens[at+1].isOneOf("=")
		}
	}
}

// behindBracket returns the place behind the bracket that closes the one at a place, -1 if there is none.
func (p *parser) behindBracket(at int) int {
	depth := 0
	for ; p.tokens[at].kind != end; at++ {
		switch t := p.tokens[at]; {
		case t.isOneOf("(", "[", "{"):
			depth++
		case t.isOneOf(")", "]", "}"):
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return -1
}

// resourceAt returns a text about the function whose decorator begins at a place, if that makes it a resource.
func (p *parser) resourceAt(at int) string {
	path := ""
	for ; p.tokens[at].kind == name || p.tokens[at].isOneOf("."); at++ {
		path += p.tokens[at].text
	}
	if path != "dlt.resource" && path != "dlt.transformer" {
		return ""
	}
	for ; p.tokens[at].kind != end; at++ {
		if p.tokens[at].kind == name && p.tokens[at].text == "def" {
			return fmt.Sprintf("the function %s, a resource in Python", p.tokens[at+1].text)
		}
	}
	return ""
}

// isRunArgument reports whether a token is within the arguments of a call of run.
func (p *parser) isRunArgument(at int) bool {
	depth := 0
	for at--; at > 1 && p.tokens[at].kind != newline; at-- {
		switch t := p.tokens[at]; {
		case t.isOneOf(")", "]", "}"):
			depth++
		case t.isOneOf("(", "[", "{"):
			if depth--; depth < 0 {
				return t.text == "(" && p.tokens[at-1].text == "run" && p.tokens[at-2].isOneOf(".")
			}
		}
	}
	return false
}

// assignedName returns the name to which the value behind an equals sign is assigned, "" if it is none.
func (p *parser) assignedName(equals int) string {
	first := equals
	for first > 0 && !p.beginsStatement(first) {
		first--
	}
	for ; first > 0 && p.tokens[first].kind != newline && p.tokens[first-1].kind != newline; first-- { // before an annotation
	}
	if p.tokens[first].kind == name && p.afterAnnotation(first+1) == equals {
		return p.tokens[first].text
	}
	return ""
}
