package author

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/activities"
	"reprise/internal/base/terminal"
	"reprise/internal/program/reference"
	"reprise/internal/program/schema"
	"reprise/starter/cli"
	"reprise/starter/help"
)

// NewExplainCommand returns the command explain.
func NewExplainCommand(a *cli.App) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "explain [WORD]", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return ExplainWord(a.Streams, strings.Join(args, ""), output)
		},
	}
	cli.OutputFlag(command, &output)
	return command
}

// ExplainWord prints the reference of a word, or lists all words.
func ExplainWord(streams cli.Streams, word, output string) error {
	r := reference.New(activities.DefaultCatalogue())
	if word == "" {
		return explainIndex(streams, r, output)
	}
	found := r.Find(word)
	if len(found) == 0 {
		if command := commandNamed(word); command != "" {
			return cli.UsageError("%q is a command; %s %s --help describes it", word, terminal.ProgramName(), command)
		}
		if near := r.Suggest(word); near != "" {
			return cli.UsageError("Reprise has no word %q; did you mean %q?", word, near)
		}
		return cli.UsageError("Reprise has no word %q; %s explain lists all words", word, terminal.ProgramName())
	}
	var b strings.Builder
	for i, entry := range found {
		if i > 0 {
			b.WriteString("\n")
		}
		writeEntry(&b, entry, terminal.OutputWidth(streams.Out))
	}
	return streams.ShowDocument(output, found, b.String())
}

// commandNamed returns the name of a command without a leading "starter"; "" if there is no such command.
func commandNamed(word string) string {
	name := strings.Join(strings.Fields(strings.TrimPrefix(word, "starter ")), " ")
	if _, is := help.AllTopics()[name]; !is || name == "starter" {
		return ""
	}
	return name
}

// writeEntry writes an entry of the reference for people.
func writeEntry(b *strings.Builder, entry reference.Entry, width int) {
	fmt.Fprintf(b, "%s (%s)\n\n", entry.Heading(), entry.Kind)
	b.WriteString(reflowText(entry.Doc, width) + "\n\n")
	for _, fact := range entry.Facts() {
		writeFact(b, fact, width)
	}
	examples := []struct{ name, text string }{{"wrong", entry.Wrong}, {"right", entry.Right}, {"example", entry.Example}}
	for _, one := range examples {
		if one.text == "" {
			continue
		}
		fmt.Fprintf(b, "%s:\n  %s\n", one.name, strings.ReplaceAll(strings.TrimRight(one.text, "\n"), "\n", "\n  "))
	}
}

// writeFact writes a property of an entry. A link is not wrapped, so that it can be copied.
func writeFact(b *strings.Builder, fact reference.Property, width int) {
	line := fact.Name + ": " + fact.Text
	if len(line) > width && !strings.Contains(fact.Text, " ") {
		fmt.Fprintf(b, "%s:\n  %s\n", fact.Name, fact.Text)
		return
	}
	terminal.WriteWrapped(b, line, width)
}

// explainIndex lists all words by kind.
func explainIndex(streams cli.Streams, r *reference.Reference, output string) error {
	var b strings.Builder
	for _, kind := range reference.Kinds() {
		fmt.Fprintf(&b, "%s:\n", kind.Plural())
		for _, line := range terminal.WrapText(strings.Join(r.NamesOf(kind), "  "), terminal.OutputWidth(streams.Out)-2) {
			b.WriteString("  " + line + "\n")
		}
	}
	return streams.ShowDocument(output, r.Entries(), b.String())
}

// NewSchemaCommand returns the command schema.
func NewSchemaCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := schema.Generate(activities.DefaultCatalogue())
			if err != nil {
				return err
			}
			_, err = a.Out.Write(text)
			return err
		},
	}
}
