package playbook_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
)

// scalarStyle is the style of a scalar as the parser tells it.
func scalarStyle(n *yaml.Node) source.Style {
	for bit, style := range map[yaml.Style]source.Style{
		yaml.SingleQuotedStyle: source.SingleQuoted,
		yaml.DoubleQuotedStyle: source.DoubleQuoted,
		yaml.LiteralStyle:      source.Literal,
		yaml.FoldedStyle:       source.Folded,
	} {
		if n.Style&bit != 0 {
			return style
		}
	}
	return source.Plain
}

// scalars calls visit for every scalar below a node.
func scalars(n *yaml.Node, visit func(*yaml.Node)) {
	if n.Kind == yaml.ScalarNode {
		visit(n)
	}

	for _, child := range n.Content {
		scalars(child, visit)
	}
}

// exact reports whether the places of a scalar are those of its characters: a
// letter, a digit or a brace stands in the file where its place says.
func exact(t *testing.T, file *source.File, n *yaml.Node) (checked, ok bool) {
	t.Helper()

	start := source.Position{Line: n.Line, Column: n.Column}
	places := file.ScalarPositions(start, scalarStyle(n), n.Value)
	runes := []rune(n.Value)
	require.Len(t, places, len(runes)+1)

	for i, r := range runes {
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == '"' || r == '\'' || r == '\\' || !unicode.IsPrint(r) {
			continue // may be written otherwise
		}

		checked = true

		line := []rune(file.Line(places[i].Line))
		if places[i].Column > len(line) {
			return true, false
		}

		if at := line[places[i].Column-1]; at != r && at != '\\' {
			return true, false
		}
	}

	for i := 1; i < len(places); i++ {
		require.False(t, places[i].Before(places[i-1]), "places go back in %q", n.Value)
	}
	return checked, true
}

// TestPositionsOfRandomScalars writes random texts in every style, as maps,
// lists and nested values, and looks every character up in the file. Block
// scalars that begin with blanks are left out, because the encoder writes their
// indentation wrongly.
func TestPositionsOfRandomScalars(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(1, 2))
	words := []string{
		"x", "{{ a.b }}", "{{", "}}", " ", "  ", "\n", "\n\n", "# no", ": ", "- ", "'", `"`, `\`, "é", "日本",
		"word", "two words", "\t", "!", "&a", "*a", "%", "|", ">", "[1]", "{b: 1}", "0", "null", "😀",
	}
	styles := []yaml.Style{0, yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle, yaml.LiteralStyle, yaml.FoldedStyle, yaml.TaggedStyle}

	total, exactOnes := 0, 0

	for range 3000 {
		var text strings.Builder
		for range random.IntN(8) {
			text.WriteString(words[random.IntN(len(words))])
		}

		value := text.String()
		if strings.TrimLeft(value, " \t\n") != value {
			value = "v" + value
		}

		scalar := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Style: styles[random.IntN(len(styles))]}
		root := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Value: "key"},
			{Kind: yaml.SequenceNode, Content: []*yaml.Node{scalar, {Kind: yaml.ScalarNode, Value: "end"}}},
			{Kind: yaml.ScalarNode, Value: "other"},
			scalar,
		}}

		data, err := yaml.Marshal(root)
		require.NoError(t, err)

		var again yaml.Node
		if yaml.Unmarshal(data, &again) != nil {
			continue // the encoder writes some texts so that they cannot be read
		}

		file := source.NewFile("x.yaml", data)
		scalars(&again, func(n *yaml.Node) {
			if checked, ok := exact(t, file, n); checked {
				total++
				if ok {
					exactOnes++
				} else {
					t.Logf("not exact: %q in\n%s", n.Value, data)
				}
			}
		})
	}

	require.Greater(t, total, 5000)
	require.Equal(t, total, exactOnes)
}

// TestPositionsInDocuments does the same for texts as people write them.
func TestPositionsInDocuments(t *testing.T) {
	t.Parallel()

	documents := []string{
		"a: plain text\nb: 'single ''quoted'' text'\nc: \"double \\\"quoted\\\" \\u0041 text\"\n",
		"a: plain\n  over\n\n  lines\nb: 'single\n\n  over\n  lines'\nc: \"double \\\n   over\n  lines\"\n",
		"a: |\n  literal\n    text\n\n  more\nb: |-\n  stripped\nc: |+\n  kept\n\nd: >\n  folded\n  text\n\n  more\n   indented\n  end\n",
		"- !!str tagged\n- &anchor anchored\n- !!str &both \"of them\"\n- &block |\n  text\n- !!str >-\n  a\n  b\n",
		"{flow: [a b, 'c d', \"e f\"], other: {g: h i}}\n",
		"a: first\r\nb: |\r\n  one\r\n  two\r\nc: \"x\r\n  y\"\r\n",
		"\ufeffa: with a mark\nb: more\n",
		"? complex key\n: value of it\n? |\n  block key\n: x\n",
		"a: |2\n    indented\n   text\nb:\n  c: |1\n    deep\n",
		"a: last line without a break",
		"a: |\n  last line without a break",
	}

	for i, document := range documents {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()

			var root yaml.Node
			require.NoError(t, yaml.Unmarshal([]byte(document), &root))

			file := source.NewFile("x.yaml", []byte(document))
			found := 0

			scalars(&root, func(n *yaml.Node) {
				checked, ok := exact(t, file, n)
				require.True(t, ok, "%q", n.Value)

				if checked {
					found++
				}
			})
			require.Positive(t, found)
		})
	}
}
