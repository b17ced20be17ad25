package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/starter/cli"
	"reprise/starter/help"
)

// TestHelpFits: help has at most 80 columns, and says what each command does in the words
// of help.txt alone.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	topics, written := help.AllTopics(), map[string]bool{"starter": true}
	root := newRoot(&cli.App{})
	check := func(command *cobra.Command) {
		path, _ := strings.CutPrefix(command.CommandPath(), "starter ")
		written[path] = true
		require.Contains(t, topics, path, "help.txt has no section for the command")
		text := help.RenderHelp(command)
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), terminal.HelpColumns, "%s: %s", path, line)
		}
		require.NotRegexp(t, `[{]\w+[}]`, command.Long, "%s names a shared text that is not there", path)
		require.NotEmpty(t, command.Example, path)
	}
	check(root)
	help.EachBelow(root, check)
	for path := range topics {
		require.True(t, written[path], "help.txt has a section of %q, which is no command", path)
	}
}

// TestOptions: the flags of servers are listed once, and not by each command.
func TestOptions(t *testing.T) {
	t.Parallel()
	streams, out, errs := captured()
	require.Zero(t, Main(t.Context(), []string{"options"}, streams), "%s", errs)
	for _, flag := range []string{"--address", "--namespace", "--task-queue", "--payload-store", "--profile", "--connections"} {
		require.Contains(t, out.String(), flag)
	}
	run, _, err := newRoot(&cli.App{}).Find([]string{"run"})
	require.NoError(t, err)
	require.NotContains(t, help.RenderHelp(run), "host:port of the Temporal server")
	require.Contains(t, help.RenderHelp(run), "starter options")
}

// TestCompletion: a shell completes statuses, formats, tools and files, and asks no server
// that is not there for long.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"list", "--status", ""}, `(?m)^partial_success$`},
		{[]string{"list", "--output", ""}, `(?m)^json$`},
		{[]string{"tools", "po"}, `(?m)^postgres$`},
		{[]string{"run", ""}, `(?m)^yaml$`},
		{[]string{"schedule", "create", "nightly", "n.yaml", "--overlap", ""}, `(?m)^buffer-one$`},
		{[]string{"completion", ""}, `(?m)^zsh$`},
		{[]string{"status", "--address", "127.0.0.1:1", ""}, `^:4\n$`},
	} {
		streams, out, errs := captured()
		require.Zero(t, Main(t.Context(), append([]string{"__complete"}, row.args...), streams), "%s", errs)
		require.Regexp(t, regexp.MustCompile(row.want), out.String(), "%v", row.args)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		streams, out, errs := captured()
		require.Zero(t, Main(t.Context(), []string{"completion", shell}, streams), "%s", errs)
		require.Contains(t, out.String(), "__complete", shell)
	}
	streams, _, errs := captured()
	require.Equal(t, exitcode.Usage, Main(t.Context(), []string{"completion", "csh"}, streams))
	require.Contains(t, errs.String(), "expected bash, zsh or fish")
}

// TestASuggestion: a command that is not there names those that are meant.
func TestASuggestion(t *testing.T) {
	t.Parallel()
	streams, _, errs := captured()
	require.Equal(t, exitcode.Usage, Main(t.Context(), []string{"rn"}, streams))
	require.Contains(t, errs.String(), "Did you mean this?\n\trun\n")
}

// TestMistypedFlagsAndCommands: a message names what was meant, and what a value has to be.
func TestMistypedFlagsAndCommands(t *testing.T) {
	t.Parallel()
	for said, args := range map[string][]string{
		"unknown flag: --sett; did you mean --set?\n":                     {"run", "a.yaml", "--sett", "n=1"},
		"unknown flag: --adress; did you mean --address?\n":               {"list", "--adress", "127.0.0.1:1"},
		"unknown flag: --zzzzzz\n":                                        {"list", "--zzzzzz"},
		"unknown flag: --watc\n":                                          {"status", "--watc"}, // an earlier name
		"unknown shorthand flag: 'z' in -z\n":                             {"list", "-z"},
		"--limit \"abc\": expected a whole number\n":                      {"list", "--limit", "abc"},
		"--every \"1\": expected a duration such as 90s or 1h30m\n":       {"schedule", "create", "a", "b", "--every", "1"},
		"--fairness-weight \"x\": expected a number\n":                    {"run", "a", "--fairness-weight", "x"},
		"--detach \"x\": expected true or false\n":                        {"run", "a", "--detach=x"},
		"starter schedule has no command \"lst\"; did you mean list?\n":   {"schedule", "lst"},
		"starter state has no command \"reet\"; did you mean reset?\n":    {"state", "reet"},
		"starter dead-letters has no command \"zzzzzzzz\"\n":              {"dead-letters", "zzzzzzzz"},
		"starter serve token has no command \"nwe\"; did you mean new?\n": {"serve", "token", "nwe"},
	} {
		streams, _, errs := captured()
		require.Equal(t, exitcode.Usage, Main(t.Context(), args, streams))
		require.Contains(t, errs.String(), "starter: "+said)
	}
}

// TestUsageOfGroups: a command that only has others says so.
func TestUsageOfGroups(t *testing.T) {
	t.Parallel()
	for _, path := range [][]string{{"schedule"}, {"state"}, {"dead-letters"}, {"serve", "token"}} {
		command, _, err := newRoot(&cli.App{}).Find(path)
		require.NoError(t, err)
		require.Contains(t, help.RenderHelp(command), "Usage:\n  starter "+strings.Join(path, " ")+" COMMAND\n")
	}
}

// TestRenamedFlags: a flag works by its earlier name, which help does not list, with a note.
func TestRenamedFlags(t *testing.T) {
	t.Parallel()
	for earlier, args := range map[string][]string{
		"watch is --follow": {"status", "nightly-1", "--watch"},
		"note is --reason":  {"schedule", "pause", "nightly", "--note", "the API is down"},
	} {
		streams, _, errs := captured()
		require.Equal(t, exitcode.NoServer, Main(t.Context(), append(args, "--address", "127.0.0.1:1"), streams), "%s", errs)
		require.Contains(t, errs.String(), "note: --"+earlier+" now\n")
		command, _, err := newRoot(&cli.App{}).Find(args)
		require.NoError(t, err)
		name, _, _ := strings.Cut(earlier, " ")
		require.NotContains(t, help.RenderHelp(command), "--"+name)
	}
}

// captured are streams whose output a test reads.
func captured() (streams cli.Streams, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return cli.Streams{In: strings.NewReader(""), Out: out, Err: errs}, out, errs
}
