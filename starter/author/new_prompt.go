package author

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"reprise/internal/program/scaffold"
	"reprise/interpreter/lists"
	"reprise/starter/cli"
)

// newSource is a source from which a new playbook can be generated.
type newSource struct {
	name, question string
	into           *string
}

// allSources returns the sources in the order in which the prompt lists them.
func (o *newOptions) allSources() []newSource {
	return []newSource{
		{"curl", "the curl command line", &o.curl},
		{"openapi", "file or URL of the OpenAPI document", &o.openapi},
		{"har", "HAR file", &o.har},
		{"airbyte", "low-code manifest of an Airbyte connector", &o.airbyte},
		{"dlt", "configuration of dlt's rest_api, JSON or Python", &o.dlt},
		{"example", "name of the example (starter run example: lists them)", &o.example},
		{"style", "style of the API: " + strings.Join(scaffold.Styles, ", "), &o.style},
	}
}

// promptNew completes the flags: with questions at a terminal, else with defaults.
func promptNew(streams cli.Streams, o *newOptions) error {
	var given []string
	for _, source := range o.allSources() {
		if *source.into != "" && source.name != "style" {
			given = append(given, "--"+source.name)
		}
	}
	if len(given) > 1 {
		return cli.UsageError("%s exclude each other", strings.Join(given, " and "))
	}
	if _, ok := o.peerOf(); !ok && (len(o.streams) > 0 || o.perStream || o.strict) {
		return cli.UsageError("--stream, --per-stream and --strict are for --airbyte and --dlt")
	}
	described := len(given) > 0 || o.style != ""
	q := newPrompter(streams)
	asks := q != nil && !o.yes && o.output != "json"
	switch {
	case !described && asks:
		if err := q.promptSource(o); err != nil {
			return err
		}
	case !described && o.yes:
		o.style = scaffold.StylePage
	case !described:
		return cli.UsageError("choose a source for the playbook: --curl, --openapi, --har, --airbyte, --dlt, --example or --style; --yes uses defaults")
	}
	if asks && !o.probe && o.curl != "" && o.curl != "-" {
		if err := q.offerProbe(o); err != nil {
			return err
		}
	}
	if o.probe && o.curl == "" {
		return cli.UsageError("--probe sends the request of --curl")
	}
	if !asks || described || o.example != "" {
		return nil
	}
	return q.promptRest(o)
}

// offerProbe asks whether to send the request of the curl command line once. It asks only if the request can be sent.
func (q *prompter) offerProbe(o *newOptions) error {
	probe, err := scaffold.ProbeOf(o.curl, os.LookupEnv)
	if err != nil {
		return nil // what is wrong with the line is said where it is read
	}
	answer, err := q.promptLine("send "+probe.String()+" once, to read from the response how the API paginates? y, n", "n")
	o.probe = err == nil && strings.HasPrefix(strings.ToLower(answer), "y")
	return err
}

// newPrompter returns a prompter, nil without a terminal.
func newPrompter(streams cli.Streams) *prompter {
	if !streams.CanAsk() || !streams.ErrTerminal() {
		return nil
	}
	return &prompter{in: bufio.NewReader(streams.In), out: streams.Err}
}

type prompter struct {
	in  *bufio.Reader
	out io.Writer
}

// promptLine asks for a line; an empty one stands for usual.
func (q *prompter) promptLine(question, usual string) (string, error) {
	if usual != "" {
		question += " [" + usual + "]"
	}
	_, _ = fmt.Fprint(q.out, question+": ")
	line, err := q.in.ReadString('\n')
	for err == nil && strings.HasSuffix(strings.TrimRight(line, "\r\n"), `\`) { // a line of curl continues
		var more string
		more, err = q.in.ReadString('\n')
		line += more
	}
	if errors.Is(err, cli.ErrInterrupted) {
		_, _ = fmt.Fprintln(q.out) // ends the line of the question
		return "", err
	}
	if err != nil && line == "" {
		return "", cli.UsageError("no answer: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		line = usual
	}
	return line, nil
}

// promptSource asks for the source of the description until the answer is valid.
func (q *prompter) promptSource(o *newOptions) error {
	names := lists.Map(o.allSources(), func(source newSource) string { return source.name })
	for {
		name, err := q.promptLine("What should the playbook be made from? "+strings.Join(names, ", "), "style")
		if err != nil {
			return err
		}
		for _, source := range o.allSources() {
			if source.name != name {
				continue
			}
			usual := ""
			if name == "style" {
				usual = scaffold.StylePage
			}
			for *source.into == "" {
				if *source.into, err = q.promptLine(source.question, usual); err != nil {
					return err
				}
			}
			return nil
		}
		_, _ = fmt.Fprintf(q.out, "expected one of %s\n", strings.Join(names, ", "))
	}
}

// promptRest asks for the operation, for the sink, and for what the request is repeated for.
func (q *prompter) promptRest(o *newOptions) (err error) {
	if o.openapi != "" && o.operation == "" {
		if o.operation, err = q.promptLine("operation (operationId, or METHOD /path)", ""); err != nil {
			return err
		}
	}
	if o.sink == "" {
		if o.sink, err = q.promptLine("where rows go: "+strings.Join(scaffold.Sinks, ", "), scaffold.SinkSQLite); err != nil {
			return err
		}
	}
	if o.each == "" {
		o.each, err = q.promptLine("name of the element, if the request is made for each element of a list", "")
	}
	return err
}
