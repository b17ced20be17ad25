package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// OutputFlag adds --output with a table, or JSON.
func OutputFlag(command *cobra.Command, into *string) {
	OutputFlagOf(command, into, "", "table", "json")
}

// OutputFlagOf adds --output with formats, the first being the default, and refuses others before the
// command begins. note follows the formats in the help.
func OutputFlagOf(command *cobra.Command, into *string, note string, formats ...string) {
	command.Flags().StringVarP(into, "output", "o", formats[0], OrList(formats)+note)
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	command.PreRunE = func(*cobra.Command, []string) error { return Choice("--output", *into, formats) }
}

// ParseSince reads a time, or how long ago it was.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, UsageError("--since %q: expected a duration or a time, such as 24h, 2026-01-31 or 2026-01-31T08:00:00Z", text)
}

// StepOf reads the step after a run, and returns the arguments without it.
func StepOf(args []string, step *string) ([]string, error) {
	if len(args) < 2 {
		return args, nil
	}
	if *step != "" {
		return nil, UsageError("the step is given twice: %q, and --step %q", args[1], *step)
	}
	*step = args[1]
	return args[:1], nil
}

// renamedTo is the annotation of a flag's earlier name.
const renamedTo = "renamed-to"

// NoteRenamed says of flags that were given by earlier names what they are called.
func (s Streams) NoteRenamed(command *cobra.Command) {
	command.Flags().Visit(func(flag *pflag.Flag) {
		if name := flag.Annotations[renamedTo]; name != nil {
			s.Notef("note: --%s is --%s now", flag.Name, name[0])
		}
	})
}

// RenamedFlag lets a flag also work under an earlier name, with a note.
func RenamedFlag(command *cobra.Command, earlier, name string) {
	renamed := *command.Flags().Lookup(name)
	renamed.Name, renamed.Hidden, renamed.Shorthand = earlier, true, ""
	renamed.Annotations = map[string][]string{renamedTo: {name}}
	command.Flags().AddFlag(&renamed)
}

// GeneralFlag marks flags that starter options lists for all commands.
const GeneralFlag = "general"

// MarkGeneral has flags listed by starter options, and not by the help of their command.
func MarkGeneral(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, GeneralFlag, []string{"true"})
	}
}
