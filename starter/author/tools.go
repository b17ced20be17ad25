package author

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"reprise/activities"
	"reprise/internal/base/terminal"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
)

// toolDoc is a tool in the output of `tools --output json`.
type toolDoc struct {
	Name           string     `json:"name"`
	Summary        string     `json:"summary"`
	Doc            string     `json:"doc"`
	Sink           bool       `json:"sink"` // usable as a sink
	DefaultTimeout float64    `json:"default_timeout_seconds"`
	Fields         []fieldDoc `json:"fields"`
	RequireOneOf   [][]string `json:"require_one_of,omitempty"`
	Example        string     `json:"example"`
}

type fieldDoc struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Required bool     `json:"required,omitempty"`
	Enum     []string `json:"enum,omitempty"`
	Default  string   `json:"default,omitempty"`
	Doc      string   `json:"doc"`
}

// NewToolsCommand returns the command tools.
func NewToolsCommand(a *cli.App) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "tools [NAME]", Args: cobra.MaximumNArgs(1),
		ValidArgs: activities.DefaultCatalogue().Names(),
		RunE: func(_ *cobra.Command, args []string) error {
			catalogue := activities.DefaultCatalogue()
			if len(args) == 0 {
				return listTools(a.Streams, catalogue, output)
			}
			spec, ok := catalogue.Spec(args[0])
			if !ok {
				return cli.UsageError("there is no tool %q%s", args[0], cli.ExpectedWords(args[0], catalogue.Names()))
			}
			if output == "json" {
				return terminal.PrintJSON(a.Out, toolDocument(spec))
			}
			explainTool(a.Out, spec)
			return nil
		},
	}
	cli.OutputFlag(command, &output)
	return command
}

func listTools(streams cli.Streams, catalogue *activities.Catalogue, output string) error {
	docs := make([]toolDoc, 0, len(catalogue.Names()))
	rows := terminal.NewTable("tool", "sink", "what it does")
	for _, name := range catalogue.Names() {
		spec, _ := catalogue.Spec(name)
		docs = append(docs, toolDocument(spec))
		rows.AppendRow(table.Row{spec.Name, cli.YesCell(spec.Writes), spec.Summary})
	}
	return streams.ShowDocument(output, docs, terminal.FitTable(rows, terminal.OutputWidth(streams.Out), terminal.Elastic{Name: "what it does", Least: 20, Cut: text.WrapSoft})+"\n")
}

func toolDocument(spec playbook.ToolSpec) toolDoc {
	doc := toolDoc{
		Name: spec.Name, Summary: spec.Summary, Doc: spec.Doc, Sink: spec.Writes,
		DefaultTimeout: playbook.TraitsOf(spec.Name).Timeout.Seconds(), Fields: []fieldDoc{},
		RequireOneOf: spec.RequireOneOf, Example: spec.Example,
	}
	for _, field := range spec.DescribedFields() {
		doc.Fields = append(doc.Fields, fieldDoc{
			Name: field.Name, Kind: string(field.Kind), Required: field.Required,
			Enum: field.Enum, Default: field.Default, Doc: field.Doc,
		})
	}
	return doc
}

func explainTool(w io.Writer, spec playbook.ToolSpec) {
	_, _ = fmt.Fprintf(w, "%s: %s\n", spec.Name, spec.Summary)
	if spec.Doc != "" {
		_, _ = fmt.Fprintf(w, "\n%s\n", reflowText(spec.Doc, terminal.OutputWidth(w)))
	}
	if len(spec.Fields) > 0 {
		rows := terminal.NewTable("field", "kind", "default", "meaning")
		for _, field := range spec.DescribedFields() {
			rows.AppendRow(table.Row{field.Name, field.Kind, fallbackText(field), meaningText(field)})
		}
		_, _ = fmt.Fprintf(w, "\n%s\n", terminal.FitTable(rows, terminal.OutputWidth(w), terminal.Elastic{Name: "meaning", Least: 20, Cut: text.WrapSoft}, terminal.Elastic{Name: "default", Least: 8, Cut: text.WrapSoft}))
	}
	for _, group := range spec.RequireOneOf {
		if len(group) == 1 {
			_, _ = fmt.Fprintf(w, "\n%s is required.\n", group[0])
			continue
		}
		_, _ = fmt.Fprintf(w, "\nOne of these is required: %s.\n", strings.Join(group, ", "))
	}
	if traits := playbook.TraitsOf(spec.Name); traits.Endless {
		_, _ = fmt.Fprint(w, "\nAn attempt has no time limit unless the step sets timeout.")
	} else {
		_, _ = fmt.Fprintf(w, "\nOne attempt may take %s unless the step sets timeout.", traits.Timeout)
	}
	if spec.Writes {
		_, _ = fmt.Fprint(w, " Usable as a sink.")
	}
	if spec.Example != "" {
		_, _ = fmt.Fprintf(w, "\n\nExample:\n\n  %s", strings.ReplaceAll(strings.TrimSpace(spec.Example), "\n", "\n  "))
	}
	_, _ = fmt.Fprintln(w)
}

// widestProse bounds the width of paragraphs on a wide terminal, in columns.
const widestProse = 88

// reflowText wraps the paragraphs of a text at a width.
func reflowText(prose string, width int) string {
	paragraphs := strings.Split(strings.TrimSpace(prose), "\n\n")
	for i, paragraph := range paragraphs {
		var b strings.Builder
		terminal.WriteWrapped(&b, strings.Join(strings.Fields(paragraph), " "), min(width, widestProse))
		paragraphs[i] = strings.TrimSpace(b.String())
	}
	return strings.Join(paragraphs, "\n\n")
}

func fallbackText(field playbook.Field) string {
	if field.Required {
		return "(required)"
	}
	return field.Default
}

func meaningText(field playbook.Field) string {
	if len(field.Enum) == 0 {
		return field.Doc
	}
	return strings.TrimSpace(field.Doc + " One of " + strings.Join(field.Enum, ", ") + ".")
}
