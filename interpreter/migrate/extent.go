package migrate

import (
	"sort"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// unknown is an offset that could not be found.
const unknown = -1

// extent finds where each node of a file's tree begins and ends. The YAML parser reports only the beginnings.
type extent struct {
	file *source.File
	text string
}

func newExtent(file *source.File) extent { return extent{file: file, text: string(file.Bytes())} }

func (e extent) startOffset(n *yaml.Node) int { return e.file.ByteOffset(yamltree.PositionOf(n)) }

// endOffset returns the offset after a node, before its line comment.
func (e extent) endOffset(n *yaml.Node) int {
	start := e.startOffset(n)
	switch {
	case start < 0 || n.Line == 0:
		return unknown
	case n.Kind == yaml.AliasNode:
		return start + len("*") + len(n.Value)
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return e.blockEnd(n.Line)
	case n.Kind == yaml.ScalarNode:
		return e.scalarEnd(n, start)
	case n.Style&yaml.FlowStyle != 0:
		return e.flowEnd(start)
	case len(n.Content) == 0:
		return unknown
	}
	last := n.Content[len(n.Content)-1]
	if last.Kind == yaml.ScalarNode && last.Value == "" && last.Style == 0 {
		if n.Kind != yaml.MappingNode {
			return unknown
		}
		return e.valueOffset(n.Content[len(n.Content)-2])
	}
	return e.endOffset(last)
}

func (e extent) scalarEnd(n *yaml.Node, start int) int {
	style := yamltree.StyleOf(n)
	places := e.file.ScalarPositions(yamltree.PositionOf(n), style, n.Value)
	last := places[len(places)-1]
	if n.Value != "" && last == yamltree.PositionOf(n) {
		return unknown // the end could not be determined
	}
	end := e.file.ByteOffset(last)
	if style != source.SingleQuoted && style != source.DoubleQuoted {
		return end
	}
	if n.Value == "" {
		end = start + 1
	}
	if end >= len(e.text) || e.text[end] != e.text[start] {
		return unknown
	}
	return end + 1
}

// valueOffset returns the offset after the colon of a key.
func (e extent) valueOffset(key *yaml.Node) int {
	end := e.endOffset(key)
	if end < 0 {
		return unknown
	}
	rest := strings.TrimLeft(e.text[end:], " \t")
	if !strings.HasPrefix(rest, ":") {
		return unknown
	}
	return len(e.text) - len(rest) + 1
}

// blockEnd returns the end of a | or > scalar whose first line is given.
func (e extent) blockEnd(line int) int {
	last, indent := line, unknown
	for n := line + 1; n <= e.file.Lines(); n++ {
		text := e.file.Line(n)
		if strings.TrimSpace(text) == "" {
			continue
		}
		margin := len(text) - len(strings.TrimLeft(text, " "))
		if indent < 0 {
			indent = margin
		}
		if margin < indent {
			break
		}
		last = n
	}
	return e.lineEnd(last)
}

// lineStart and lineEnd return the offsets of a line, without its line break.
func (e extent) lineStart(line int) int {
	return e.file.ByteOffset(source.Position{Line: line, Column: 1})
}

func (e extent) lineEnd(line int) int { return e.lineStart(line) + len(e.file.Line(line)) }

// lineAt returns the line that contains an offset.
func (e extent) lineAt(offset int) int {
	return max(1, sort.Search(e.file.Lines(), func(i int) bool { return e.lineStart(i+1) > offset }))
}

// flowEnd returns the end of a list or map in brackets.
func (e extent) flowEnd(start int) int {
	depth, fresh := 0, true // fresh: a scalar may begin here
	for i := start; i < len(e.text); i++ {
		if i = e.skipToken(i, fresh); i == unknown {
			return unknown
		}
		switch e.text[i] {
		case '{', '[':
			depth++
			fresh = true
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':':
			fresh = true
		case ' ', '\t', '\n', '\r':
		default:
			fresh = false
		}
	}
	return unknown
}

// skipToken returns the last byte of the quoted scalar, or of the line of the comment, that begins at i, because
// brackets in them do not count. It returns i if neither begins there, and unknown if there is no end.
func (e extent) skipToken(i int, fresh bool) int {
	switch c := e.text[i]; {
	case fresh && (c == '"' || c == '\''):
		return e.quoteEnd(i)
	case c == '#' && i > 0 && strings.IndexByte(" \t\r\n", e.text[i-1]) >= 0:
		length := strings.IndexByte(e.text[i:], '\n')
		if length < 0 {
			return unknown
		}
		return i + length
	}
	return i
}

// quoteEnd returns the offset of the quote that closes the one at start.
func (e extent) quoteEnd(start int) int {
	quote := e.text[start]
	for i := start + 1; i < len(e.text); i++ {
		switch {
		case quote == '"' && e.text[i] == '\\':
			i++
		case e.text[i] == quote && quote == '\'' && i+1 < len(e.text) && e.text[i+1] == quote:
			i++
		case e.text[i] == quote:
			return i
		}
	}
	return unknown
}
