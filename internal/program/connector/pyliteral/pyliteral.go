// Package pyliteral reads literals from Python source without running it: the configuration of a source is a dict of
// texts, numbers, lists and dicts, beside calls and functions that only Python can evaluate.
package pyliteral

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reprise/interpreter/lists"
)

// CallExpr is a call whose arguments were read, such as HttpBasicAuth("user", dlt.secrets["password"]).
type CallExpr struct {
	Name  string // with the names of its modules
	Args  []any
	Named map[string]any
}

// NameExpr is a name, or a member of one by constant keys, such as dlt.secrets["token"].
type NameExpr struct {
	Name string
	Keys []string
}

// Lambda is a function of one expression.
type Lambda struct {
	Params []string
	Body   string // its source
}

// FString is an f-string: texts, and what is between its braces.
type FString struct{ Parts []any }

// Other is an expression that was not read.
type Other struct{ Text string }

// maxDepth bounds the nesting of values. Parsing is recursive, so without it a file full of brackets would exhaust the
// stack.
const maxDepth = 60

// maxResolved bounds how many names are replaced by their values. Without it, lists of names of lists would grow without
// end.
const maxResolved = 1000

// ErrTooDeep says that values are nested too deep.
var ErrTooDeep = errors.New("values are nested too deep")

// SeveralError says that several dicts have the keys.
type SeveralError struct {
	text  string
	Lines []int // in which they begin, in order
}

func (e *SeveralError) Error() string { return e.text }

// FindDict returns the dict in a source that has all keys and begins in a line, the only one if line is 0. Names of
// variables that have one literal as their value are replaced by it. The error says that there is none, or several, or
// what cannot be read.
func FindDict(source string, line int, keys ...string) (map[string]any, error) {
	dict, _, err := findDict(source, line, keys)
	return dict, err
}

// findDict is FindDict, and returns what it knows about the source.
func findDict(source string, line int, keys []string) (map[string]any, *resolver, error) {
	tokens, err := lexTokens(source)
	if err != nil {
		return nil, nil, err
	}
	p := &parser{source: source, tokens: tokens}
	var found []map[string]any
	var starts []int
	var lines []int
	for i := 0; i < len(tokens); i++ {
		if tokens[i].text != "{" || tokens[i].kind != operator {
			continue
		}
		p.at = i
		value, err := p.parseValue()
		if errors.Is(err, ErrTooDeep) {
			return nil, nil, err
		}
		dict, isDict := value.(map[string]any)
		if err != nil || !isDict {
			continue
		}
		if hasKeys(dict, keys) {
			found = append(found, dict)
			lines = append(lines, p.lineOf(tokens[i]))
			starts = append(starts, i)
		}
		i = p.at - 1
	}
	at := max(0, slices.Index(lines, line))
	named, places := strings.Join(keys, " and "), strings.Join(lists.Map(lines, strconv.Itoa), ", ")
	switch {
	case len(found) == 0:
		return nil, nil, fmt.Errorf("there is no dict with %s", named)
	case line != 0 && lines[at] != line:
		return nil, nil, fmt.Errorf("no dict with %s begins in line %d; lines that one begins in: %s", named, line, places)
	case line == 0 && len(found) > 1:
		return nil, nil, &SeveralError{fmt.Sprintf("there are %d dicts with %s, in lines %s", len(found), named, places), lines}
	}
	r := &resolver{parser: p, values: p.assignedValues(), left: maxResolved, used: map[string]bool{}}
	resolved := r.resolve(found[at], maxDepth).(map[string]any) // a map stays one
	if start := starts[at]; start > 0 && tokens[start-1].isOneOf("=") {
		r.used[p.assignedName(start-1)] = true
	}
	return resolved, r, nil
}

func hasKeys(dict map[string]any, keys []string) bool {
	for _, key := range keys {
		if _, has := dict[key]; !has {
			return false
		}
	}
	return true
}

// resolver replaces names by what was assigned to them.
type resolver struct {
	parser *parser
	used   map[string]bool // names that were replaced, and that of the dict
	values map[string]any
	left   int // replacements that are still allowed
}

func (r *resolver) resolve(of any, depth int) any {
	if depth == 0 {
		return of
	}
	switch of := of.(type) {
	case map[string]any:
		out := map[string]any{}
		if below, isMap := r.resolve(of[spread], depth-1).(map[string]any); isMap {
			for key, value := range below {
				out[key] = value
			}
		} else if of[spread] != nil {
			out[spread] = of[spread]
		}
		for key, value := range of {
			if key != spread {
				out[key] = r.resolve(value, depth-1)
			}
		}
		return out
	case []any:
		out := make([]any, len(of))
		for i, value := range of {
			out[i] = r.resolve(value, depth-1)
		}
		return out
	case *CallExpr:
		call := &CallExpr{Name: of.Name, Named: map[string]any{}}
		for _, value := range of.Args {
			call.Args = append(call.Args, r.resolve(value, depth-1))
		}
		for name, value := range of.Named {
			call.Named[name] = r.resolve(value, depth-1)
		}
		return call
	case *FString:
		out := &FString{}
		for _, part := range of.Parts {
			out.Parts = append(out.Parts, r.resolve(part, depth-1))
		}
		return joinFormatted(out)
	case *NameExpr:
		if value, has := r.values[of.Name]; has && len(of.Keys) == 0 && r.left > 0 {
			r.left--
			r.used[of.Name] = true
			return r.resolve(value, depth-1)
		}
	}
	return of
}

// joinFormatted returns an f-string as a text if all of it is known.
func joinFormatted(of *FString) any {
	var b strings.Builder
	for _, part := range of.Parts {
		switch part := part.(type) {
		case string:
			b.WriteString(part)
		case int:
			fmt.Fprint(&b, part)
		default:
			return of
		}
	}
	return b.String()
}

// assignedValues returns the values of variables that are assigned once. A parameter of a function whose default is the
// configuration of dlt stands for the key of its name there.
func (p *parser) assignedValues() map[string]any {
	values, again := map[string]any{}, map[string]bool{}
	for i, t := range p.tokens {
		if t.kind != name {
			continue
		}
		at := p.afterAnnotation(i + 1)
		if p.tokens[at].kind != operator || p.tokens[at].text != "=" {
			continue
		}
		p.at = at + 1
		value, err := p.parseValue()
		if err != nil {
			continue
		}
		starts := i == 0 || p.tokens[i-1].kind == newline
		if reference, is := value.(*NameExpr); is && (reference.Name == "dlt.secrets.value" || reference.Name == "dlt.config.value") {
			value, starts = &NameExpr{Name: strings.TrimSuffix(reference.Name, ".value"), Keys: []string{t.text}}, true
		}
		if _, has := values[t.text]; has && starts {
			again[t.text] = true
		}
		if starts {
			values[t.text] = value
		}
	}
	for one := range again {
		delete(values, one)
	}
	return values
}

// afterAnnotation returns the place behind the annotation of a name, if there is one.
func (p *parser) afterAnnotation(at int) int {
	if p.tokens[at].text != ":" || p.tokens[at].kind != operator {
		return at
	}
	depth := 0
	for at++; p.tokens[at].kind != end && p.tokens[at].kind != newline; at++ {
		switch t := p.tokens[at]; {
		case t.kind != operator:
		case t.text == "[" || t.text == "(":
			depth++
		case t.text == "]" || t.text == ")":
			if depth--; depth < 0 {
				return at
			}
		case depth == 0 && t.text != ".":
			return at
		}
	}
	return at
}
