// Package answer has the commands that answer attempts of runs: approve, reject, complete, fail, progress.
package answer

import (
	"context"
	"fmt"
	"strings"

	"reprise/workflows/protocol"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/session"
)

// answerOptions is a command that answers an attempt which awaits an external answer.
type answerOptions struct {
	server session.ServerFlags
	name   string // of starter's command
	answer interpreter.Answer
	index  int
	result string // JSON, @FILE or - for the standard input
	detail string // in the same way
	final  bool
	sets   []string // field=value
	output string
}

// NewCompleteCommand returns the command complete.
func NewCompleteCommand(a *cli.App) *cobra.Command {
	r := &answerOptions{answer: interpreter.Answer{Verb: interpreter.AnswerComplete}}
	command := answerCommand(a, r, "complete RUN STEP")
	command.Flags().StringVar(&r.result, "result", "", "the result as JSON, @FILE for a file with JSON, or - for standard input")
	return command
}

// NewFailCommand returns the command fail.
func NewFailCommand(a *cli.App) *cobra.Command {
	r := &answerOptions{answer: interpreter.Answer{Verb: interpreter.AnswerFail}}
	command := answerCommand(a, r, "fail RUN STEP")
	flags := command.Flags()
	flags.StringVar(&r.answer.Message, "error", "", "why it failed (required)")
	flags.StringVar(&r.detail, "details", "", "the body of the error as JSON, @FILE for a file with JSON, or - for standard input")
	flags.BoolVar(&r.final, "final", false, "do not retry: the error has class final")
	return command
}

// NewProgressCommand returns the command progress.
func NewProgressCommand(a *cli.App) *cobra.Command {
	r := &answerOptions{answer: interpreter.Answer{Verb: interpreter.AnswerProgress}}
	command := answerCommand(a, r, "progress RUN STEP")
	flags := command.Flags()
	flags.Int64Var(&r.answer.Done, "done", 0, "how much is done (required)")
	flags.Int64Var(&r.answer.Total, "total", 0, "the total, 0 if unknown")
	flags.StringVar(&r.answer.Message, "message", "", "what is happening, in a few words")
	return command
}

// NewApproveCommand returns the command approve.
func NewApproveCommand(a *cli.App) *cobra.Command {
	r := &answerOptions{answer: interpreter.Answer{Verb: interpreter.AnswerComplete, Option: playbook.OptionApprove}}
	command := answerCommand(a, r, "approve RUN [STEP]")
	command.Flags().StringVar(&r.answer.Option, "option", playbook.OptionApprove, "the option to choose")
	r.addForm(command)
	return command
}

// NewRejectCommand returns the command reject.
func NewRejectCommand(a *cli.App) *cobra.Command {
	r := &answerOptions{answer: interpreter.Answer{Verb: interpreter.AnswerComplete, Option: playbook.OptionReject}}
	command := answerCommand(a, r, "reject RUN [STEP]")
	r.addForm(command)
	return command
}

func (r *answerOptions) addForm(command *cobra.Command) {
	command.Flags().StringArrayVar(&r.sets, "set", nil, "a field of the form: field=value; repeatable")
	command.Flags().StringVar(&r.answer.Comment, "comment", "", "a comment, kept in the history")
}

// answersApproval reports whether the command answers approvals.
func (r *answerOptions) answersApproval() bool { return r.answer.Option != "" }

// answerCommand returns a command that answers an attempt, with the flags that all of them have.
func answerCommand(a *cli.App, r *answerOptions, use string) *cobra.Command {
	command := &cobra.Command{Use: use}
	r.name = command.Name()
	flags := command.Flags()
	flags.IntVar(&r.index, "index", 0, "the iteration with this index, from 0")
	flags.StringVar(&r.answer.By, "by", "", "who answers (default user@host)")
	r.server.Add(command)
	cli.OutputFlag(command, &r.output)
	command.RunE = func(command *cobra.Command, args []string) error {
		id, err := r.parseArgs(a, command, args)
		if err != nil {
			return err
		}
		return session.WithServer(a, &r.server, func(ctx context.Context, s *session.Session) error {
			return answerAttempt(ctx, a.Streams, s, r, id)
		})
	}
	return command
}

// parseArgs parses the command line and returns the run's ID.
func (r *answerOptions) parseArgs(a *cli.App, command *cobra.Command, args []string) (id string, err error) {
	changed := command.Flags().Changed
	if err := r.checkArgs(command, args); err != nil {
		return "", err
	}
	if len(args) == 2 {
		r.answer.Step = args[1]
	}
	if changed("index") {
		r.answer.Index = &r.index
	}
	if r.final {
		no := false
		r.answer.Retryable = &no
	}
	if !changed("by") {
		r.answer.By = source.CutText(cli.Whoami(), protocol.MaxSaid)
	}
	if err := r.parseValues(a, changed); err != nil {
		return "", err
	}
	if err := r.answer.Check(); err != nil {
		return "", cli.UsageError("%w", err)
	}
	return args[0], cli.CheckRun(args[0], "")
}

// checkArgs returns an error for missing and for superfluous arguments.
func (r *answerOptions) checkArgs(command *cobra.Command, args []string) error {
	changed := command.Flags().Changed
	switch {
	case changed("option") && r.answer.Option == "":
		return cli.UsageError("--option is empty")
	case len(args) == 0 || len(args) == 1 && !r.answersApproval():
		return cli.UsageError("name the run and the step: %s %s", terminal.ProgramName(), command.Use)
	case len(args) > 2:
		return cli.UsageError("%s takes one run and one step; %q is one too many", r.name, args[2])
	case changed("index") && r.index < 0:
		return cli.UsageError("--index %d is less than 0, the first iteration", r.index)
	case r.answer.Verb == interpreter.AnswerFail && strings.TrimSpace(r.answer.Message) == "":
		return cli.UsageError("--error is missing: say why the attempt failed, for the policies of the step and for people")
	case r.answer.Verb == interpreter.AnswerProgress && !changed("done"):
		return cli.UsageError("--done is missing: say how much is done")
	}
	return nil
}

// parseValues parses the values of --result, --details and --form.
func (r *answerOptions) parseValues(a *cli.App, changed func(string) bool) error {
	for _, value := range []struct {
		flag, text string
		into       *expression.Value
	}{{"result", r.result, &r.answer.Result}, {"details", r.detail, &r.answer.Details}} {
		if !changed(value.flag) {
			continue
		}
		read, err := readValue(a, value.text)
		if err != nil {
			return cli.UsageError("--%s: %w", value.flag, err)
		}
		*value.into = expression.Of(read)
	}
	for _, set := range r.sets {
		field, value, found := strings.Cut(set, "=")
		if _, twice := r.answer.Form[field]; !found || field == "" || twice {
			return cli.UsageError("--set %q: expected field=value, each field once", set)
		}
		if r.answer.Form == nil {
			r.answer.Form = map[string]any{}
		}
		r.answer.Form[field] = value
	}
	return nil
}

// readValue parses JSON from the argument, from a file for @FILE, or from standard input for -.
func readValue(a *cli.App, text string) (any, error) {
	data, err := []byte(text), error(nil)
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		data, err = a.Files.Read(path)
	} else if text == "-" {
		data, err = cli.ReadBounded(a.In)
	}
	if err != nil {
		return nil, err
	}
	value, err := load.ReadJSON(data)
	if err != nil {
		return nil, fmt.Errorf("%w; a text needs double quotes", err)
	}
	return value, nil
}
