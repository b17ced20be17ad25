package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter/expression"
)

// runFlags say which run a command reads.
type runFlags struct {
	server serverFlags
	runID  string
}

func (f *runFlags) add(command *cobra.Command) {
	command.Flags().StringVarP(&f.runID, "run-id", "r", "", "run ID, if several runs had the workflow ID; default: the latest")
	f.server.add(command)
}

func (s *session) runs() *runs.Reader {
	return &runs.Reader{Client: s.client, Store: s.store, Namespace: s.namespace}
}

// withServer has a command work with a server that stays, until it is interrupted.
func (a *app) withServer(server *serverFlags, work func(context.Context, *session) error) error {
	ctx := a.interrupts.graceful
	s, err := server.stored(ctx)
	if err != nil {
		return err
	}
	defer s.end(false)
	return work(ctx, s)
}

// withRun has a command work on the run that its arguments name.
func (a *app) withRun(flags *runFlags, args []string, work func(context.Context, *session, runs.Found) error) error {
	id := strings.Join(args, "")
	if len(args) > 0 || flags.runID != "" {
		if id == "" && flags.runID != "" {
			return usageError("--run-id needs an ID")
		}
		if err := checkRun(id, flags.runID); err != nil {
			return err
		}
	}
	return a.withServer(&flags.server, func(ctx context.Context, s *session) error {
		found, err := a.find(ctx, s, id, flags.runID)
		if err != nil {
			return err
		}
		s.taskQueue = found.TaskQueue
		return work(ctx, s, found)
	})
}

// stepOf reads the step behind a run, and gives the arguments without it.
func stepOf(args []string, step *string) ([]string, error) {
	if len(args) < 2 {
		return args, nil
	}
	if *step != "" {
		return nil, usageError("the step is given twice: %q, and --step %q", args[1], *step)
	}
	*step = args[1]
	return args[:1], nil
}

// renamedTo is the annotation of a flag's earlier name.
const renamedTo = "renamed-to"

// noteRenamed says of flags that were given by earlier names what they are called.
func (a *app) noteRenamed(command *cobra.Command) {
	command.Flags().Visit(func(flag *pflag.Flag) {
		if name := flag.Annotations[renamedTo]; name != nil {
			a.notef("note: --%s is --%s now", flag.Name, name[0])
		}
	})
}

// renamedFlag has a flag also work by an earlier name, with a note.
func renamedFlag(command *cobra.Command, earlier, name string) {
	renamed := *command.Flags().Lookup(name)
	renamed.Name, renamed.Hidden, renamed.Shorthand = earlier, true, ""
	renamed.Annotations = map[string][]string{renamedTo: {name}}
	command.Flags().AddFlag(&renamed)
}

// find finds a run, and names it where the ID is "": it is the newest one then.
func (a *app) find(ctx context.Context, s *session, id, runID string) (runs.Found, error) {
	found, err := s.runs().Find(ctx, id, runID)
	if err == nil && id == "" {
		a.notef("the newest run: %s", found.WorkflowID)
	}
	return found, a.findError(s, err)
}

// findError says what would work where a run was not found.
func (a *app) findError(s *session, err error) error {
	var unknown *runs.UnknownError
	var ambiguous *runs.AmbiguousError
	switch {
	case errors.As(err, &unknown) && unknown.ID == "":
		return usageError("%w on %s, namespace %s; start one with %s run FILE", err, s.address, s.namespace, terminal.Program())
	case errors.As(err, &unknown) && unknown.Nearest == "":
		return usageError("%w on %s, namespace %s; %s list shows the existing ones", err, s.address, s.namespace, terminal.Program())
	case errors.Is(err, runs.ErrNotFound), errors.As(err, &ambiguous):
		return usageError("%w", err)
	}
	return err
}

// knownStep refuses a step that is not there.
func knownStep(name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	if near := expression.Suggest(name, known); near != "" {
		return usageError("the run has no step %q; did you mean %q?", name, near)
	}
	return usageError("the run has no step %q; it has %s", name, terminal.Shorten(strings.Join(known, ", "), 400))
}

// orList is words as a sentence lists those of which one is chosen.
func orList[W ~string](words []W) string { return sentenceList(words, "or") }

// sentenceList is words as a sentence lists them.
func sentenceList[W ~string](words []W, last string) string {
	var b strings.Builder
	for i, word := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" " + last + " ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(word))
	}
	return b.String()
}

// choice refuses a word that is none of those known.
func choice[W ~string](flag string, word W, known []W) error {
	if slices.Contains(known, word) {
		return nil
	}
	return usageError("%s %q is unknown%s", flag, word, expected(string(word), asTexts(known)))
}

// expected ends a message about a word that is none of those known: with the nearest of them, else with all.
func expected(word string, known []string) string {
	if near := expression.Suggest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ", expected one of " + strings.Join(known, ", ")
}
