package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/activities"
	"reprise/internal/base/egress"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/secrets"
	"reprise/internal/base/terminal"
	"reprise/internal/program/host"
	"reprise/internal/program/recording"
	"reprise/internal/program/start"
	"reprise/internal/program/try"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/session"
)

// TryOptions are the flags of try.
type TryOptions struct {
	Workload    load.WorkloadFlags
	Connections string
	Egress      string
	Step        string
	Element     *any // nil for the first one
	with        []string
	WithValues  map[string]any // beside those of the files of with
	Pages       int
	Limit       int
	MaxWait     time.Duration
	Partition   string
	Record      string
	AllowPython bool
	AllowWrites bool
	Write       bool
	DryRun      bool
	Output      string
}

// NewTryCommand returns the command try.
func NewTryCommand(a *cli.App) *cobra.Command {
	o := &TryOptions{}
	var element string
	command := &cobra.Command{
		Use: "try FILE", Args: load.RequireOneFile, RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("element") {
				value := try.ValueOf(element)
				o.Element = &value
			}
			return TryStep(a, args[0], o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Step, "step", "", "step to try; default: the first that calls a tool")
	flags.StringVar(&element, "element", "", "element of the step's loop, JSON or text; default: the first")
	flags.StringArrayVar(&o.with, "with", nil, "result of another step from a JSON or YAML file, `STEP=FILE`; also vars=FILE and args=FILE; repeatable")
	flags.IntVar(&o.Pages, "pages", try.DefaultPages, "maximum number of pages to request")
	flags.IntVar(&o.Limit, "limit", TryRows, "number of rows to show of the result and of each sink")
	flags.DurationVar(&o.MaxWait, "max-wait", try.DefaultMaxWait, "longest wait; a longer one ends the try")
	flags.StringVar(&o.Partition, "partition", "", "key of the partition; default: the newest that is complete")
	flags.StringVar(&o.Record, "record", "", "`FILE` for the recorded responses, for tests; secrets are replaced by stars")
	flags.BoolVar(&o.AllowWrites, "allow-writes", false, "make requests that may change data, such as POST")
	flags.BoolVar(&o.Write, "write", false, "write to the sinks too")
	flags.BoolVar(&o.DryRun, "dry-run", false, "show the first request without sending it")
	flags.BoolVar(&o.AllowPython, "allow-python", true, "run the Python code of the playbook")
	flags.StringVar(&o.Egress, "egress", os.Getenv(egress.Variable), "YAML file of the addresses that tools may connect to, as for run ["+egress.Variable+"]")
	flags.StringVar(&o.Connections, "connections", os.Getenv("REPRISE_CONNECTIONS"), "YAML file of connections, as for run [REPRISE_CONNECTIONS]")
	o.Workload.AddFlags(command)
	cli.OutputFlag(command, &o.Output)
	return command
}

// TryRows is how many rows starter try prints by default.
const TryRows = 5

// TryStep executes one step of a playbook.
func TryStep(a *cli.App, name string, o *TryOptions) error {
	if o.Pages < 1 || o.Limit < 0 || o.MaxWait <= 0 {
		return cli.UsageError("--pages must be at least 1, --limit at least 0, and --max-wait longer than 0s")
	}
	options, err := tryInput(a, name, o)
	if err != nil {
		return err
	}
	printer := try.Printer{W: a.Out, Width: terminal.PaperOf(a.Out).Width, Limit: o.Limit}
	if o.Output != "json" {
		var header func()
		options.Begin = func(report *try.Report) { header = func() { printer.PrintHeader(report); header = func() {} } }
		options.Each = func(attempt try.Attempt) { header(); printer.PrintAttempt(attempt) }
	}
	report, err := try.TryStep(a.Interrupts.Graceful, options)
	switch {
	case try.IsRefused(err):
		return cli.WithStatus(exitcode.Usage, err)
	case errors.Is(err, context.Canceled):
		return start.ErrInterrupted
	case err != nil:
		return err
	}
	if err := writeRecording(a, o.Record, options.Recording, options.Resources.Secrets); err != nil {
		return err
	}
	if o.Output == "json" {
		err = terminal.PrintJSON(a.Out, report)
	} else {
		printer.PrintReport(report)
	}
	if err == nil && (report.Error != "" || report.Stopped != "" && !o.DryRun) {
		return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	}
	return err
}

// tryInput reads and validates the options of a try.
func tryInput(a *cli.App, name string, o *TryOptions) (try.Options, error) {
	workload, err := o.Workload.Read()
	if err != nil {
		return try.Options{}, err
	}
	checked, err := load.CheckForRun(a, name, workload)
	if err != nil {
		return try.Options{}, err
	}
	if err := load.CheckKeysAreRead(a, checked.Book, workload, checked.Book.Strict); err != nil {
		return try.Options{}, err
	}
	options := try.Options{
		Book: checked.Book, Step: o.Step, Workload: load.MergeWorkload(checked.Book.Workload, workload), Pages: o.Pages, MaxWait: o.MaxWait,
		AllowWrites: o.AllowWrites, Write: o.Write, DryRun: o.DryRun, Element: o.Element,
	}
	if options.With, err = readWith(o.with); err != nil {
		return options, err
	}
	maps.Copy(options.With, o.WithValues)
	if options.Partition, err = checked.Book.RunPartition(o.Partition, time.Now()); err != nil {
		return options, cli.UsageError("the try has no partition: %w", err)
	}
	if o.Record != "" {
		options.Recording = &recording.Recording{Playbook: name}
	}
	if options.Resources, err = tryResources(o); err == nil {
		load.AddSecrets(options.Resources.Secrets, "", options.Workload)
	}
	return options, err
}

// tryResources returns the resources of a local worker.
func tryResources(o *TryOptions) (activities.Resources, error) {
	resources, err := host.ReadResources(session.OperatorFiles(o.Connections, o.Egress), egress.LocalPolicy())
	if err != nil {
		return resources, cli.WithStatus(exitcode.Usage, err)
	}
	resources.AllowPython, resources.Secrets = o.AllowPython, &secrets.Masker{}
	return resources, nil
}

// readWith parses the values of --with: the results of steps, from files.
func readWith(given []string) (map[string]any, error) {
	values := map[string]any{}
	for _, one := range given {
		name, path, found := strings.Cut(one, "=")
		if !found || name == "" || path == "" {
			return nil, cli.UsageError("--with %q: expected STEP=FILE, such as --with fetch=fetch.json", one)
		}
		value, err := readValue("--with", path)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}

// readValue reads the JSON or YAML file that a flag names.
func readValue(flag, path string) (any, error) {
	data, err := (*cli.Confinement)(nil).Read(path)
	var value any
	if err == nil {
		value, err = load.ReadWorkload(path, data)
	}
	if err != nil {
		return nil, cli.UsageError("%s: %w", flag, err)
	}
	return value, nil
}

// writeRecording writes the recorded requests, if --record was given. Only the user can read the file, because
// responses may contain private data.
func writeRecording(a *cli.App, path string, of *recording.Recording, known *secrets.Masker) error {
	if of == nil {
		return nil
	}
	var text bytes.Buffer
	err := recording.Write(&text, of, known)
	if err == nil {
		err = a.Files.WritePrivate(path, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	return nil
}
