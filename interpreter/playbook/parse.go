package playbook

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// MaxFileBytes bounds the size of a file (docs/concepts/limits.md): a playbook is part of the input of each of its
// runs, and is parsed wherever one is shown.
const MaxFileBytes = 1 << 20

// parseYAML parses the file as one YAML document and returns its root; nil if it has reported a problem.
func (d *decoder) parseYAML() *yaml.Node {
	data := d.File.Bytes()
	if len(data) > MaxFileBytes {
		d.Errorf(source.Position{Line: 1, Column: 1}, CodeTooLarge,
			"the file has %d bytes; a playbook may have %d (1 MiB)", len(data), MaxFileBytes)
		return nil
	}
	if !d.checkReadable(data) {
		return nil
	}
	root, err := yamltree.Parse(data)
	switch {
	case errors.Is(err, io.EOF), err == nil && isEmpty(root):
		d.Errorf(source.Position{Line: 1, Column: 1}, codeEmpty,
			"the file is empty; a playbook starts with apiVersion: %s and kind: Playbook", Version)
	case errors.Is(err, yamltree.ErrSeveralDocuments):
		d.severalDocuments()
	case err != nil:
		d.syntaxError(err)
	default:
		return root.Content[0]
	}
	return nil
}

func isEmpty(root *yaml.Node) bool {
	return len(root.Content) == 0 || root.Content[0].Kind == yaml.ScalarNode && root.Content[0].Value == ""
}

// checkReadable reports bytes that YAML does not allow, with their position, which the YAML parser does not give.
func (d *decoder) checkReadable(data []byte) bool {
	pos := source.Position{Line: 1, Column: 1}
	valid := utf8.Valid(data)
	for n := 1; n <= d.File.Lines(); n++ {
		pos.Line, pos.Column = n, 1
		for _, r := range d.File.Line(n) {
			if r == utf8.RuneError && !valid {
				d.Errorf(pos, codeEncoding, "the file is not UTF-8 text here; save it as UTF-8")
				return false
			}
			if r < ' ' && r != '\t' || r == 0x7F || r == 0xFFFE || r == 0xFFFF {
				d.Errorf(pos, codeEncoding, "the character U+%04X is not allowed in YAML; write it in double quotes as \"\\x%02X\"", r, r)
				return false
			}
			pos.Column++
		}
	}
	return true
}

func (d *decoder) severalDocuments() {
	line, seen := 1, false
	for n := 1; n <= d.File.Lines(); n++ {
		text := d.File.Line(n)
		if strings.HasPrefix(text, "---") && seen {
			line = n
			break
		}
		seen = seen || strings.TrimSpace(text) != "" && !strings.HasPrefix(text, "#")
	}
	d.Errorf(source.Position{Line: line, Column: 1}, codeSeveralDocuments,
		"a file holds one playbook; move the document that starts here to a separate file")
}

var (
	yamlMessage   = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	// grammarMessage matches messages about the parser's grammar. Their line is that of the enclosing map or list,
	// often many lines above the mistake.
	grammarMessage = regexp.MustCompile(`^(did not find expected (<.*>|node content|'-' indicator|key|',' or '[\]}]')$|found )`)
	indentation    = regexp.MustCompile(`^ *\t[ \t]*`)
	unquoted       = regexp.MustCompile(`^(\s*(?:- +)*(?:[^\s:#"'][^:#"']*: +|- +))(\{\{.*)$`)
)

// syntaxError reports a syntax error of the YAML parser in helpful words, and at the line of the mistake.
func (d *decoder) syntaxError(err error) {
	match := yamlMessage.FindStringSubmatch(err.Error())
	if match == nil {
		match = []string{"", "", err.Error()}
	}
	line, message := 1, match[2]
	if match[1] != "" {
		line, _ = strconv.Atoi(match[1])
	}
	if anchor := unknownAnchor.FindStringSubmatch(message); anchor != nil {
		d.unknownAnchor(anchor[1])
		return
	}
	if grammarMessage.MatchString(message) {
		line = d.lineOfMistake(line)
	}
	if strings.HasPrefix(message, "did not find expected ','") {
		message += " in the list or map in brackets that starts here"
	}
	text := d.File.Line(line)
	column := len([]rune(text)) - len([]rune(strings.TrimLeft(text, " \t"))) + 1
	switch {
	case indentation.MatchString(text):
		before := strings.IndexByte(text, '\t')
		d.Errorf(source.Position{Line: line, Column: before + 1}, codeTabIndentation,
			"YAML is indented with spaces, not tabs; replace the tab with spaces")
	case unquoted.MatchString(text):
		d.unquotedLine(line, text)
	default:
		if tight, at, hint := writtenTight(d.File.Line, line); tight > 0 {
			d.Errorf(source.Position{Line: tight, Column: at}, codeYAMLSyntax, "this is not YAML: a list entry needs a space after its dash%s", hint)
			return
		}
		at, hint := syntaxHint(message, text)
		d.Errorf(source.Position{Line: line, Column: max(at, column)}, codeYAMLSyntax, "this is not YAML: %s%s", message, hint)
	}
}

// unquotedLine reports a line whose value begins with {{ without quotes.
func (d *decoder) unquotedLine(line int, text string) {
	match := unquoted.FindStringSubmatch(text)
	d.reportUnquoted(source.Position{Line: line, Column: len([]rune(match[1])) + 1},
		strings.TrimSpace(match[1]), withoutComment(match[2]))
}

func (d *decoder) unknownAnchor(name string) {
	place := regexp.MustCompile(`(?:^|[\s,\[{:?-])(\*` + regexp.QuoteMeta(name) + `)(?:$|[\s,\]}:])`)
	pos := source.Position{Line: 1, Column: 1}
	for n := 1; n <= d.File.Lines(); n++ {
		text := d.File.Line(n)
		if at := place.FindStringSubmatchIndex(text); at != nil {
			pos = source.Position{Line: n, Column: utf8.RuneCountInString(text[:at[2]]) + 1}
			break
		}
	}
	d.Errorf(pos, codeYAMLSyntax,
		"the alias *%s has no anchor &%s above it; text that begins with * must be quoted", name, name)
}

// lineOfMistake returns the line at which a file stops being YAML: the one after the longest valid beginning. given
// is the parser's line, which is returned if the search would take too long.
func (d *decoder) lineOfMistake(given int) int {
	data := d.File.Bytes()
	last := linesRead(data)
	const mostBytes = 4 << 20 // of parsing, well below a second
	for spent, line := 0, last; line >= 1; line-- {
		beginning := d.File.TextUntil(line)
		spent += len(beginning)
		if spent > mostBytes {
			return given
		}
		if _, err := yamltree.Parse(beginning); err == nil || errors.Is(err, io.EOF) {
			return d.nextText(line + 1)
		}
	}
	return d.nextText(1)
}

// nextText returns the first line from n on that contains more than a comment.
func (d *decoder) nextText(n int) int {
	for line := n; line <= d.File.Lines(); line++ {
		if text := strings.TrimSpace(d.File.Line(line)); text != "" && !strings.HasPrefix(text, "#") {
			return line
		}
	}
	return min(n, d.File.Lines())
}

// linesRead returns the number of lines that the YAML parser reads before it fails.
func linesRead(data []byte) int {
	reader := &lineReader{data: data}
	var root yaml.Node
	decoder := yaml.NewDecoder(reader)
	for decoder.Decode(&root) == nil { // only the failure matters
	}
	return reader.lines
}

// lineReader returns one line per call, because the parser reads no more than it needs.
type lineReader struct {
	data  []byte
	lines int
}

func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := bytes.IndexByte(r.data, '\n') + 1
	if n == 0 {
		n = len(r.data)
	}
	if n <= len(p) {
		r.lines++
	}
	n = copy(p, r.data[:n])
	r.data = r.data[n:]
	return n, nil
}

var secondColon = regexp.MustCompile(`^\s*(?:- +)*[^\s:#"'{\[][^:#"'{\[]*: +[^"'{\[|>].*?(: )`)

var (
	tightDash   = regexp.MustCompile(`^\s*(-[A-Za-z_][\w-]*: )`)
	inBrackets  = regexp.MustCompile(`[{\[,].*?:\s+(\$[^\s,}'"]*\[[^\s,}'"]*)`)
	bracketHint = `; in {…} and […] of YAML, text with [, ], {, } or a comma in it must be quoted`
)

// writtenTight finds a list entry without a space after its dash, at the line that a message names or directly
// above it.
func writtenTight(text func(int) string, line int) (tight, column int, hint string) {
	for _, n := range []int{line, line - 1} {
		if n < 1 {
			continue
		}
		if at := tightDash.FindStringSubmatchIndex(text(n)); at != nil {
			entry := strings.TrimSpace(text(n)[at[2]:at[3]])
			return n, at[2] + 1, "; a dash needs a space after it: - " + strings.TrimPrefix(entry, "-")
		}
	}
	return 0, 0, ""
}

// pathInBrackets finds a JSONPath inside YAML brackets, which it ends too early.
func pathInBrackets(text string) (column int, hint string) {
	at := inBrackets.FindStringSubmatchIndex(text)
	if at == nil {
		return 0, ""
	}
	hint = bracketHint
	if plain, ok := plainPath(text[at[2]:at[3]]); ok {
		hint += "; a path is dotted: write path: " + plain
	}
	return utf8.RuneCountInString(text[:at[2]]) + 1, hint
}

// syntaxHint explains a message of the YAML parser by its usual cause, and returns the cause's column in the line;
// 0 if unknown.
func syntaxHint(message, text string) (column int, hint string) {
	if column, hint := pathInBrackets(text); column > 0 {
		return column, hint
	}
	switch {
	case strings.HasPrefix(message, "mapping values are not allowed"):
		if at := secondColon.FindStringSubmatchIndex(text); at != nil {
			return utf8.RuneCountInString(text[:at[2]]) + 1, `; text with ": " in it must be quoted`
		}
		return 0, "; a key belongs in the same column as the key before it, or the line above lacks its colon"
	case strings.HasPrefix(message, "found unexpected end of stream"):
		return 0, "; this quote is never closed"
	case strings.HasPrefix(message, "found character that cannot start any token"):
		return 0, "; text that begins with @, ` or % must be quoted"
	case strings.HasPrefix(message, "did not find expected '-' indicator"):
		return 0, "; the keys of an entry start in the same column, after its dash"
	}
	return 0, ""
}
