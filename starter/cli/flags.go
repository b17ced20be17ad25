package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// OutputFlag adds the flag --output with the formats table and json.
func OutputFlag(command *cobra.Command, into *string) {
	OutputFlagOf(command, into, "", "table", "json")
}

// OutputFlagOf adds the flag --output with the given formats, of which the first is the default. Other values are
// refused before the command runs. note follows the formats in the help.
func OutputFlagOf(command *cobra.Command, into *string, note string, formats ...string) {
	command.Flags().StringVarP(into, "output", "o", formats[0], OrList(formats)+note)
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	command.PreRunE = func(*cobra.Command, []string) error { return CheckChoice("--output", *into, formats) }
}

// ParseSince parses a time, or a duration before now.
func ParseSince(text string, now time.Time) (time.Time, error) {
	return ParseSinceOf("--since", text, now)
}

// ParseSinceOf is ParseSince for a flag with another name.
func ParseSinceOf(flag, text string, now time.Time) (time.Time, error) {
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
	return time.Time{}, UsageError("%s %q: expected a duration or a time, such as 24h, 2026-01-31 or 2026-01-31T08:00:00Z", flag, text)
}

// StepOf moves the step from the arguments, where it follows the run, to *step, and returns the other arguments.
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

// renamedTo is the annotation of a flag's former name.
const renamedTo = "renamed-to"

// NoteRenamed prints the present names of flags that were given by former names.
func (s Streams) NoteRenamed(command *cobra.Command) {
	command.Flags().Visit(func(flag *pflag.Flag) {
		if name := flag.Annotations[renamedTo]; name != nil {
			s.Notef("note: --%s is --%s now", flag.Name, name[0])
		}
	})
}

// RenamedFlag also accepts a flag under a former name, with a note.
func RenamedFlag(command *cobra.Command, earlier, name string) {
	renamed := *command.Flags().Lookup(name)
	renamed.Name, renamed.Hidden, renamed.Shorthand = earlier, true, ""
	renamed.Annotations = map[string][]string{renamedTo: {name}}
	command.Flags().AddFlag(&renamed)
}

// GeneralFlag marks flags that `starter options` lists for all commands.
const GeneralFlag = "general"

// MarkGeneral marks flags that `starter options` lists, and the help of their command does not.
func MarkGeneral(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, GeneralFlag, []string{"true"})
	}
}
