package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"reprise/internal/test/docs"
	"reprise/starter/cli"
)

// TestCommandsInPages: the commands that pages show are commands of starter, with flags that they
// have.
func TestCommandsInPages(t *testing.T) {
	t.Parallel()
	pages, err := docs.WrittenExamples("..")
	require.NoError(t, err)
	seen := 0
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		for _, block := range pages[page] {
			if !block.Is("sh") && !block.Is("sh", "background") {
				continue
			}
			for _, line := range starterLines(block.Text) {
				seen++
				require.NoError(t, parses(line), "%s:%d: %s", page, block.Line, line)
			}
		}
	}
	const least = 80
	require.Greater(t, seen, least)
}

// starterLines are the commands of starter in a script, without what comes before and behind.
func starterLines(script string) [][]string {
	var all [][]string
	for line := range strings.Lines(strings.ReplaceAll(script, "\\\n", " ")) {
		words := shellWords(line)
		for i, word := range words {
			if strings.TrimPrefix(word, "bin/") != "starter" || i > 0 && !strings.ContainsAny(words[i-1], "=|") {
				continue
			}
			rest := words[i+1:]
			if end := slices.IndexFunc(rest, func(w string) bool { return w == "|" || w == ">" || w == "&&" }); end >= 0 {
				rest = rest[:end]
			}
			all = append(all, rest)
		}
	}
	return all
}

// shellWords are the words of a line of a shell, up to a comment.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	quote, inside := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inside = r, true
		case r == '#' && !inside:
			return words
		case strings.ContainsRune(" \t\n;", r):
			if inside {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	if inside {
		words = append(words, word.String())
	}
	return words
}

// parses finds a command, and reads its flags and counts its arguments.
func parses(words []string) error {
	command, rest, err := newRoot(&cli.App{}).Find(words)
	if err != nil {
		return err
	}
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	if args := command.Args; args != nil {
		return args(command, command.Flags().Args())
	}
	return cobra.NoArgs(command, nil)
}

// TestShellWords: quotes, comments and variables are those of a shell.
func TestShellWords(t *testing.T) {
	t.Parallel()
	require.Equal(t, [][]string{{"run", "a b.yaml", "--set", "x=1"}, {"list"}},
		starterLines("A=1 bin/starter run 'a b.yaml' \\\n  --set x=1 | jq . # starter no\ncat x | starter list\necho starter run\n"))
	require.Error(t, parses([]string{"run", "x.yaml", "--no-such-flag"}))
	require.Error(t, parses([]string{"no-such-command"}))
}
