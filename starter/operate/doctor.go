package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// NewDoctorCommand returns the command doctor.
func NewDoctorCommand(a *cli.App) *cobra.Command {
	var server session.ServerFlags
	var connections, output string
	command := &cobra.Command{
		Use: "doctor", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return diagnose(a.Interrupts.Graceful, a.Streams, &server, connections, output)
		},
	}
	command.Flags().StringVar(&connections, "connections", os.Getenv("REPRISE_CONNECTIONS"),
		"YAML file of the workers' connections, to check it on this machine [REPRISE_CONNECTIONS]")
	server.Add(command)
	cli.OutputFlag(command, &output)
	return command
}

// CheckStatus is the result of a check.
type CheckStatus string

// The results of checks.
const (
	CheckOK      CheckStatus = "ok"
	CheckWarning CheckStatus = "warning"
	CheckFailed  CheckStatus = "failed"
	CheckSkipped CheckStatus = "skipped" // it could not be made, or there is nothing to check
)

// DoctorCheck is one check of a deployment.
type DoctorCheck struct {
	Name   string      `json:"check"`
	Status CheckStatus `json:"status"`
	Found  string      `json:"found"`
	// Advice says what to do, each entry a sentence or a command; empty if there is nothing to do.
	Advice []string `json:"advice,omitempty"`
}

// DoctorReport is the JSON output of doctor.
type DoctorReport struct {
	Address   string        `json:"address,omitempty"` // "" if none is known
	Namespace string        `json:"namespace,omitempty"`
	TaskQueue string        `json:"task_queue"`
	Checks    []DoctorCheck `json:"checks"`
}

// onServer are the names of checks that need a server, in their order.
var onServer = []string{"namespace", "search attributes", "workers", "builds", "task queue", "open runs", "payload store"}

// diagnose makes all checks and prints them. The error has the exit status.
func diagnose(ctx context.Context, streams cli.Streams, server *session.ServerFlags, connections, output string) error {
	report := DoctorReport{TaskQueue: server.TaskQueue}
	s, err := server.ConnectExisting(ctx)
	lost, unreached := errors.AsType[*connect.NoServerError](err)
	if err != nil && !unreached {
		return err // the command line is wrong, or the command was interrupted
	}
	if s == nil {
		report.addUnreached(lost, session.DevHint(ctx))
	} else {
		defer s.End(false)
		report.Address, report.Namespace = s.Address, s.Namespace
		report.Checks = serverChecks(ctx, s)
	}
	report.Checks = append(report.Checks, checkSecretKey(os.LookupEnv), checkCodecKey(os.LookupEnv), checkConnections(connections))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := streams.ShowDocument(output, report, report.reportText(terminal.PaperOf(streams.Out))); err != nil {
		return err
	}
	switch {
	case s == nil:
		return cli.WithStatus(exitcode.NoServer, cli.ErrSaid)
	case report.count(CheckFailed) > 0:
		return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	}
	return nil
}

// addUnreached adds the checks of a server that was not reached; nil if none is known.
func (r *DoctorReport) addUnreached(lost *connect.NoServerError, hint string) {
	check := DoctorCheck{Name: "server", Status: CheckFailed, Found: "no Temporal server is known", Advice: []string{"name one with --address or TEMPORAL_ADDRESS, or " + hint}}
	if lost != nil {
		r.Address, check.Found, check.Advice = lost.Address, lost.Error(), nil
	}
	r.Checks = append(r.Checks, check)
	for _, name := range onServer {
		r.Checks = append(r.Checks, DoctorCheck{Name: name, Status: CheckSkipped, Found: "needs the server"})
	}
}

func (r *DoctorReport) count(status CheckStatus) (n int) {
	for _, check := range r.Checks {
		if check.Status == status {
			n++
		}
	}
	return n
}

// leastFound is the width of what was found on a narrow terminal, in characters.
const leastFound = 30

// reportText returns the report for people.
func (r *DoctorReport) reportText(paper terminal.Paper) string {
	var b strings.Builder
	indent := strings.Repeat(" ", 28)
	for _, check := range r.Checks {
		margin := fmt.Sprintf("%-8s %-18s ", check.Status, check.Name)
		lines := terminal.WrapText(terminal.EscapeInvisible(terminal.OneLine(check.Found)), max(paper.Width-len(margin), leastFound))
		if check.Status == CheckFailed || check.Status == CheckWarning {
			margin = paper.PaintWarning(margin[:len(check.Status)]) + margin[len(check.Status):]
		}
		b.WriteString(margin + strings.Join(lines, "\n"+indent) + "\n")
		for _, advice := range check.Advice { // a command is not wrapped, so that it can be copied
			b.WriteString(indent + "-> " + terminal.EscapeInvisible(advice) + "\n")
		}
	}
	fmt.Fprintf(&b, "%s, %s\n", terminal.Count(r.count(CheckFailed), "failed check"), terminal.Count(r.count(CheckWarning), "warning"))
	return b.String()
}
