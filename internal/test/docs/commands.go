package docs

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/internal/program/reference"
)

// Commands returns the reference page of a command and its subcommands.
func Commands(page string, root *cobra.Command) string {
	var b strings.Builder
	for _, one := range reference.Pages() {
		if one.Name == page {
			b.WriteString(pageHead(one))
		}
	}
	eachCommand(root, func(command *cobra.Command) {
		if !command.Hidden && (command.Runnable() || !command.HasAvailableSubCommands()) {
			b.WriteString(commandText(command))
		}
	})
	return b.String()
}

func eachCommand(command *cobra.Command, visit func(*cobra.Command)) {
	visit(command)
	for _, below := range command.Commands() {
		eachCommand(below, visit)
	}
}

// generalFlag marks flags that `starter options` lists for all commands.
const generalFlag = "general"

func commandText(command *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n%stext\n%s\n%s\n", command.CommandPath(), strings.TrimSuffix(command.Short, "."), fence, command.UseLine(), fence)
	for _, paragraph := range strings.Split(strings.TrimSpace(command.Long), "\n\n") {
		switch {
		case paragraph == "":
		case strings.HasPrefix(paragraph, " "):
			fmt.Fprintf(&b, "\n%stext\n%s\n%s\n", fence, strings.TrimRight(paragraph, "\n"), fence)
		default:
			fmt.Fprintf(&b, "\n%s\n", plainText(strings.Join(strings.Fields(paragraph), " ")))
		}
	}
	if command.Example != "" {
		fmt.Fprintf(&b, "\n%ssh\n%s\n%s\n", fence, withoutIndent(command.Example), fence)
	}
	rows, general := [][]string{{"flag", "what it says", "default"}}, false
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		switch {
		case flag.Annotations[generalFlag] != nil:
			general = true
		case !flag.Hidden:
			rows = append(rows, flagRow(flag))
		}
	})
	if len(rows) > 1 {
		b.WriteString("\n" + markdownTable(rows))
	}
	if general {
		b.WriteString("\nThe flags that choose the Temporal server are those of [starter options](#starter-options).\n")
	}
	return b.String()
}

func flagRow(flag *pflag.Flag) []string {
	name, usage := pflag.UnquoteUsage(flag)
	text := "--" + flag.Name
	if flag.Shorthand != "" {
		text = "-" + flag.Shorthand + ", " + text
	}
	if name != "" {
		text += " " + name
	}
	absent := flag.DefValue
	if absent == "false" || absent == "[]" || absent == "0s" || absent == "0" {
		absent = ""
	}
	if absent != "" {
		absent = codeSpan(absent)
	}
	return []string{codeSpan(text), plainText(usage), absent}
}

// plainText escapes a text so that Markdown does not interpret it.
func plainText(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`, "[", `\[`, "`", "\\`").Replace(text)
}

// withoutIndent removes the indentation of the first line from all lines.
func withoutIndent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	indent := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
	for i, line := range lines {
		lines[i] = line[min(indent, len(line)-len(strings.TrimLeft(line, " "))):]
	}
	return strings.Join(lines, "\n")
}
