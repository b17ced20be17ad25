package author

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/program/try"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
	"reprise/starter/cli"
	"reprise/starter/load"
)

// NewEvalCommand returns the command eval.
func NewEvalCommand(a *cli.App) *cobra.Command {
	var with, sets []string
	var output string
	command := &cobra.Command{
		Use: "eval EXPRESSION", Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
			names, err := evalNames(a.Streams, with, sets)
			if err != nil {
				return err
			}
			return EvalExpression(a.Streams, args[0], names, output)
		},
	}
	command.Flags().StringArrayVar(&with, "with", nil, "names from a JSON or YAML `FILE` with a map, or NAME=FILE; - is standard input; repeatable")
	command.Flags().StringArrayVar(&sets, "set", nil, "a name key=value, typed as in YAML; repeatable")
	cli.OutputFlag(command, &output)
	return command
}

// evalNames returns the variables that an expression may use, from --with and --set.
func evalNames(streams cli.Streams, with, sets []string) (map[string]any, error) {
	names := map[string]any{}
	for _, one := range with {
		name, path, named := strings.Cut(one, "=")
		if !named {
			path = one
		}
		value, err := evalValue(streams, path)
		if err != nil {
			return nil, err
		}
		if named {
			names[name] = value
			continue
		}
		members, isMap := value.(map[string]any)
		if !isMap {
			return nil, cli.UsageError("--with %s has a %s, not a map of names; give it a name: --with response=%s", path, expression.TypeName(value), path)
		}
		names = load.MergeWorkload(names, members)
	}
	for _, set := range sets {
		values, err := load.ParseSet(set)
		if err != nil {
			return nil, err
		}
		names = load.MergeWorkload(names, values)
	}
	return names, nil
}

func evalValue(streams cli.Streams, path string) (any, error) {
	if path != "-" {
		return readValue("--with", path)
	}
	data, err := cli.ReadBounded(streams.In)
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	value, err := load.ReadWorkload("stdin", data)
	if err != nil {
		return nil, cli.UsageError("--with -: %w", err)
	}
	return value, nil
}

// evaluation is the JSON output of eval.
type evaluation struct {
	Expression string           `json:"expression"`
	Value      expression.Value `json:"value"`
	Type       string           `json:"type,omitempty"`
	Truthy     bool             `json:"truthy"`
	Parts      []try.Part       `json:"parts"`
	Error      string           `json:"error,omitempty"`
	Warnings   []string         `json:"warnings,omitempty"` // those that a run would have
}

// EvalExpression evaluates an expression, with or without braces, or a text with several.
func EvalExpression(streams cli.Streams, text string, names map[string]any, output string) error {
	template, problems := expression.ParseCondition(text)
	if len(problems) > 0 {
		if mixed, more := expression.ParseTemplate(text); len(more) == 0 && strings.Contains(text, "{{") {
			template, problems = mixed, nil
		}
	}
	if len(problems) > 0 {
		return cli.WithStatus(exitcode.Usage, errors.New(strings.TrimSpace(expressionProblems(text, problems))))
	}
	noteUngiven(streams, template, names)
	canonical, err := expression.Canonical(names)
	if err != nil {
		return cli.UsageError("--with: %w", err)
	}
	scope := expression.MapScope(expression.MapOf(canonical))
	doc := evaluation{Expression: text, Parts: []try.Part{}}
	now := time.Now().UTC()
	budget := expression.NewBudget(expression.DecisionLimits, now)
	value, err := template.Render(scope, budget)
	budget.PlaceNotes(0, func(offset int) string { return fmt.Sprintf(" (column %d)", offset+1) })
	doc.Warnings = budget.Notes()
	if err != nil {
		doc.Error = err.Error()
	} else {
		doc.Value, doc.Type, doc.Truthy = expression.Of(value), expression.TypeName(value), expression.Truthy(value)
	}
	doc.Parts = try.PartsOf(template.Parts(scope, expression.NewBudget(expression.DecisionLimits, now)))
	if output == "json" {
		err = terminal.PrintJSON(streams.Out, doc)
	} else {
		err = printEvaluation(streams, doc)
	}
	if err == nil && doc.Error != "" {
		return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	}
	return err
}

// noteUngiven prints which variables an expression uses that have no value; they are nil.
func noteUngiven(streams cli.Streams, template *expression.Template, names map[string]any) {
	var noted []string
	for _, ref := range template.Refs() {
		if _, given := names[ref.Root]; given || slices.Contains(noted, ref.Root) {
			continue
		}
		noted = append(noted, ref.Root)
		hint := "; set one with --with or --set"
		if near := expression.Suggest(ref.Root, cli.SortedKeys(names)); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		streams.Notef("note: %q has no value%s", ref.Root, hint)
	}
}

func printEvaluation(streams cli.Streams, doc evaluation) error {
	paper := terminal.PaperOf(streams.Out)
	printer := try.Printer{W: streams.Out, Width: paper.Width, Limit: shownLines}
	printer.PrintParts("  ", doc.Parts)
	for _, warning := range doc.Warnings {
		streams.Notef("warning: %s", warning)
	}
	if doc.Error != "" {
		streams.Notef("starter: %s", doc.Error)
		return nil
	}
	printer.Value("", doc.Value.Data)
	_, err := fmt.Fprintf(streams.Out, "(%s)\n", describeValue(doc))
	return err
}

// shownLines is the line limit of a printed value; one that is read as a whole may have three times as many.
const shownLines = 100

func describeValue(doc evaluation) string {
	if doc.Type == "boolean" {
		return doc.Type
	}
	if doc.Truthy {
		return doc.Type + ", true as a condition"
	}
	return doc.Type + ", false as a condition"
}

// expressionProblems renders the problems of an expression, each with a marker beneath its place.
func expressionProblems(text string, problems []expression.Problem) string {
	file := source.NewFile("expression", []byte(text))
	return file.FormatAll(lists.Map(problems, func(problem expression.Problem) source.Diagnostic {
		at := source.Position{Line: 1, Column: problem.Offset + 1}
		return source.Diagnostic{File: file.Name, Pos: at, Code: problem.Code, Message: problem.Message}
	}))
}
