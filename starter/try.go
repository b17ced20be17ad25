package main

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
	"reprise/internal/base/secrets"
	"reprise/internal/base/terminal"
	"reprise/internal/program/host"
	"reprise/internal/program/recording"
	"reprise/internal/program/start"
	"reprise/internal/program/try"
	"reprise/interpreter/credential"
)

// tryOptions is the command line of try.
type tryOptions struct {
	workload    workloadFlags
	connections string
	step        string
	element     *any // nil for the first one
	with        []string
	withValues  map[string]any // beside those of the files of with
	pages       int
	limit       int
	maxWait     time.Duration
	partition   string
	record      string
	allowPython bool
	allowWrites bool
	write       bool
	dryRun      bool
	output      string
}

func newTryCommand(a *app) *cobra.Command {
	o := &tryOptions{}
	var element string
	command := &cobra.Command{
		Use: "try FILE", Args: oneFile, RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("element") {
				value := try.ValueOf(element)
				o.element = &value
			}
			return a.try(args[0], o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.step, "step", "", "step to try; default: the first that calls a tool")
	flags.StringVar(&element, "element", "", "element of the step's loop, JSON or text; default: the first")
	flags.StringArrayVar(&o.with, "with", nil, "result of another step from a JSON or YAML file, `STEP=FILE`; also vars=FILE and args=FILE; repeatable")
	flags.IntVar(&o.pages, "pages", try.DefaultPages, "maximum number of pages to request")
	flags.IntVar(&o.limit, "limit", tryRows, "number of rows to show of the result and of each sink")
	flags.DurationVar(&o.maxWait, "max-wait", try.DefaultMaxWait, "longest wait; a longer one ends the try")
	flags.StringVar(&o.partition, "partition", "", "key of the partition; default: the newest that is complete")
	flags.StringVar(&o.record, "record", "", "`FILE` for the recorded responses, for tests; secrets are replaced by stars")
	flags.BoolVar(&o.allowWrites, "allow-writes", false, "make requests that may change data, such as POST")
	flags.BoolVar(&o.write, "write", false, "write to the sinks too")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the first request without sending it")
	flags.BoolVar(&o.allowPython, "allow-python", true, "run the Python code of the playbook")
	flags.StringVar(&o.connections, "connections", os.Getenv("REPRISE_CONNECTIONS"), "YAML file of connections, as for run [REPRISE_CONNECTIONS]")
	o.workload.add(command)
	outputFlag(command, &o.output)
	return command
}

// tryRows is how many rows a try shows by default.
const tryRows = 5

// try tries a step of a playbook.
func (a *app) try(name string, o *tryOptions) error {
	if o.pages < 1 || o.limit < 0 || o.maxWait <= 0 {
		return usageError("--pages must be at least 1, --limit at least 0, and --max-wait longer than 0s")
	}
	options, err := a.tryInput(name, o)
	if err != nil {
		return err
	}
	printer := try.Printer{W: a.Out, Width: terminal.PaperOf(a.Out).Width, Limit: o.limit}
	if o.output != "json" {
		var header func()
		options.Begin = func(report *try.Report) { header = func() { printer.Header(report); header = func() {} } }
		options.Each = func(attempt try.Attempt) { header(); printer.Attempt(attempt) }
	}
	report, err := try.Run(a.interrupts.graceful, options)
	switch {
	case try.IsRefused(err):
		return withStatus(exitUsage, err)
	case errors.Is(err, context.Canceled):
		return start.ErrInterrupted
	case err != nil:
		return err
	}
	if err := a.writeRecording(o.record, options.Recording, options.Resources.Secrets); err != nil {
		return err
	}
	if o.output == "json" {
		err = terminal.PrintJSON(a.Out, report)
	} else {
		printer.Report(report)
	}
	if err == nil && (report.Error != "" || report.Stopped != "" && !o.dryRun) {
		return withStatus(exitFailed, errSaid)
	}
	return err
}

// tryInput reads and checks all that a try is made of.
func (a *app) tryInput(name string, o *tryOptions) (try.Options, error) {
	workload, err := o.workload.read()
	if err != nil {
		return try.Options{}, err
	}
	checked, err := a.checkForRun(name, workload)
	if err != nil {
		return try.Options{}, err
	}
	if err := a.checkRead(checked.book, workload, checked.book.Strict); err != nil {
		return try.Options{}, err
	}
	options := try.Options{
		Book: checked.book, Step: o.step, Workload: merged(checked.book.Workload, workload), Pages: o.pages, MaxWait: o.maxWait,
		AllowWrites: o.allowWrites, Write: o.write, DryRun: o.dryRun, Element: o.element,
	}
	if options.With, err = readWith(o.with); err != nil {
		return options, err
	}
	maps.Copy(options.With, o.withValues)
	if options.Partition, err = checked.book.Partition(o.partition, time.Now()); err != nil {
		return options, usageError("the try has no partition: %w", err)
	}
	if o.record != "" {
		options.Recording = &recording.Recording{Playbook: name}
	}
	if options.Resources, err = tryResources(o); err == nil {
		addSecrets(options.Resources.Secrets, "", options.Workload)
	}
	return options, err
}

// addSecrets has values of the workload masked that are secrets by their names, such as api_key.
func addSecrets(set *secrets.Masker, name string, value any) {
	switch of := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(of) {
			addSecrets(set, key, of[key])
		}
	case []any:
		for _, item := range of {
			addSecrets(set, name, item)
		}
	case string:
		set.Add(credential.Inside(of)...)
		if credential.IsMember(name, of) {
			set.Add(of)
		}
	}
}

// tryResources are those of a local worker.
func tryResources(o *tryOptions) (activities.Resources, error) {
	resources, err := host.Resources(o.connections, os.Getenv("REPRISE_RATE_LIMITS"))
	if err != nil {
		return resources, withStatus(exitUsage, err)
	}
	resources.AllowPython, resources.Secrets = o.allowPython, &secrets.Masker{}
	return resources, nil
}

// readWith reads the values of --with.
func readWith(given []string) (map[string]any, error) {
	values := map[string]any{}
	for _, one := range given {
		name, path, found := strings.Cut(one, "=")
		if !found || name == "" || path == "" {
			return nil, usageError("--with %q: expected STEP=FILE, such as --with fetch=fetch.json", one)
		}
		value, err := readValue("--with", path)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}

// readValue reads a file of JSON or YAML that a flag names.
func readValue(flag, path string) (any, error) {
	data, err := (*confinement)(nil).read(path)
	var value any
	if err == nil {
		value, err = readWorkload(path, data)
	}
	if err != nil {
		return nil, usageError("%s: %w", flag, err)
	}
	return value, nil
}

// writeRecording writes what was recorded, where that was requested. Nobody else can read the file: answers may
// hold what is private.
func (a *app) writeRecording(path string, of *recording.Recording, known *secrets.Masker) error {
	if of == nil {
		return nil
	}
	var text bytes.Buffer
	err := recording.Write(&text, of, known)
	if err == nil {
		err = a.files.writePrivate(path, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	return nil
}
