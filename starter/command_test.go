package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"reprise/starter/cli"
	"reprise/starter/execute"
)

// constructor is the declaration of a function that makes a command.
var constructor = regexp.MustCompile(`(?m)^func ([nN]ew\w+Command)\(a \*cli\.App\)`)

// readAll is the text of all files of a pattern.
func readAll(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, names, pattern)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			all.Write(text)
		}
	}
	return all.String()
}

// each visits the commands that people run, with their path below the root.
func each(command *cobra.Command, visit func(path string, command *cobra.Command)) {
	for _, child := range command.Commands() {
		if !child.IsAvailableCommand() || child.Name() == "help" || child.Name() == "completion" {
			continue
		}
		if child.Runnable() {
			visit(strings.TrimPrefix(child.CommandPath(), "starter "), child)
		}
		each(child, visit)
	}
}

// firstArg is what stands before the name of a command where a test runs it by itself: the first of its
// arguments. A word that is anything else in a test runs nothing.
const firstArg = `(?:\[\]string\{|\.does\(|\.says\(exitcode\.\w+, |\.refuses\(exitcode\.\w+, |starter", )`

// TestCommandsAreComplete: CONTRIBUTING has the list of the files that a command needs;
// what one of them misses is found here.
func TestCommandsAreComplete(t *testing.T) {
	t.Parallel()
	tests := readAll(t, "testdata/script/*/*.txtar", "*_test.go", "*/*_test.go")
	each(newRoot(&cli.App{}), func(path string, command *cobra.Command) {
		words, last := regexp.QuoteMeta(path), regexp.QuoteMeta(command.Name())
		for _, one := range []struct {
			there   bool
			missing string
		}{
			{command.Short != "", "a section of help/help.txt"},
			{command.Long != "", "a text in its section of help/help.txt"},
			{strings.Contains(command.Example, "  starter "+path), "an example in help/help.txt, a line that begins with starter " + path},
			{matches(`starter `+words+`\b|`+firstArg+`"`+last+`"`, tests), "a script of testdata/script, or another test, that runs it"},
		} {
			if !one.there {
				t.Errorf("starter %s has not: %s", path, one.missing)
			}
		}
	})
}

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// TestCommandsAreAdded: a command that is written is one of the program.
func TestCommandsAreAdded(t *testing.T) {
	t.Parallel()
	code := readAll(t, "*.go", "*/*.go")
	found := constructor.FindAllStringSubmatch(code, -1)
	require.Greater(t, len(found), 30)
	for _, match := range found {
		if !strings.Contains(code, match[1]+"(a)") {
			t.Errorf("no command adds %s: newRoot in command.go adds those at the root", match[1])
		}
	}
}

// TestBackfillIsBehindOtherWork: a backfill has the last priority unless somebody says otherwise.
func TestBackfillIsBehindOtherWork(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args []string
		want int
	}{{nil, 5}, {[]string{"--priority", "2"}, 2}} {
		command := execute.NewBackfillCommand(&cli.App{})
		require.NoError(t, command.ParseFlags(row.args))
		priority, err := command.Flags().GetInt("priority")
		require.NoError(t, err)
		require.Equal(t, row.want, priority)
	}
}

// TestOutputIsCompleted: a shell offers the formats that --output of a command takes, and no others.
func TestOutputIsCompleted(t *testing.T) {
	t.Parallel()
	seen := 0
	each(newRoot(&cli.App{}), func(path string, command *cobra.Command) {
		flag := command.Flags().Lookup("output")
		if flag == nil || path == "report" { // whose output is a file
			return
		}
		seen++
		require.NotNil(t, command.PreRunE, path)
		complete, found := command.GetFlagCompletionFunc("output")
		require.True(t, found, path)
		offered, _ := complete(command, nil, "")
		listed, _, _ := strings.Cut(flag.Usage, ":")
		require.Equal(t, strings.FieldsFunc(strings.ReplaceAll(listed, " or ", ", "), func(r rune) bool { return r == ',' || r == ' ' }), offered, path)
		for _, format := range offered {
			require.NoError(t, flag.Value.Set(format), path)
			require.NoError(t, command.PreRunE(command, nil), "%s --output %s", path, format)
		}
		require.NoError(t, flag.Value.Set("xml"), path)
		require.ErrorContains(t, command.PreRunE(command, nil), "expected one of "+strings.Join(offered, ", "), path)
	})
	require.Greater(t, seen, 30)
}
