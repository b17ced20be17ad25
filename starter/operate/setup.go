package operate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/payload"
	"reprise/internal/base/terminal"
	"reprise/starter/cli"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// NewSetupCommand returns the command setup.
func NewSetupCommand(a *cli.App) *cobra.Command {
	var server session.ServerFlags
	var check bool
	var output string
	command := &cobra.Command{
		Use: "setup", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !check {
				if err := payload.PrepareFolder(a.Interrupts.Graceful, server.PayloadStore); err != nil {
					return cli.WithStatus(exitcode.Usage, err)
				}
			}
			if err := session.CheckStore(a.Interrupts.Graceful, server.PayloadStore); err != nil {
				return err
			}
			return session.WithServer(a, &server, func(ctx context.Context, s *session.Session) error {
				return SetupNamespace(ctx, a.Streams, s, check, output)
			})
		},
	}
	command.Flags().BoolVar(&check, "check", false, "only show what is missing")
	server.Add(command)
	cli.OutputFlag(command, &output)
	return command
}

// SetupReport is the JSON output of setup.
type SetupReport struct {
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	connect.Attributes
	// ByHand are commands that add the missing attributes.
	ByHand []string `json:"by_hand,omitempty"`
	Error  string   `json:"error,omitempty"`
}

// SetupNamespace adds the missing search attributes to a namespace, or only checks them, and prints the result.
func SetupNamespace(ctx context.Context, streams cli.Streams, s *session.Session, check bool, output string) error {
	attributes := connect.EnsureAttributes
	if check {
		attributes = connect.CheckAttributes
	}
	found, err := attributes(ctx, s.Client, s.Namespace, protocol.SearchAttributes())
	var rights *connect.RightsError
	var mistyped connect.MistypedAttribute
	if err != nil && !errors.As(err, &rights) && !errors.As(err, &mistyped) {
		return err
	}
	report := SetupReport{Address: s.Address, Namespace: s.Namespace, Attributes: found}
	if rights != nil {
		report.Error = rights.Error()
	}
	report.addCommands(rights)
	if err := streams.ShowDocument(output, report, report.reportText()); err != nil {
		return err
	}
	if rights != nil || len(found.Missing)+len(found.Mistyped) > 0 {
		return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	}
	return nil
}

// addCommands sets the commands with which somebody with sufficient rights adds the missing attributes.
func (r *SetupReport) addCommands(rights *connect.RightsError) {
	wanted, missing := protocol.SearchAttributes(), r.Missing
	if rights != nil && len(missing)+len(r.Present)+len(r.Mistyped) == 0 { // nothing could be read
		missing = slices.Sorted(maps.Keys(wanted))
	}
	if len(missing) == 0 {
		return
	}
	if cloud := rights != nil && rights.Absent || isCloud(r.Address); cloud {
		command := "tcld namespace search-attributes add --namespace " + r.Namespace
		for _, name := range missing {
			command += fmt.Sprintf(" --search-attribute %s=%s", name, wanted[name])
		}
		r.ByHand = []string{command}
		return
	}
	for _, name := range missing {
		r.ByHand = append(r.ByHand, fmt.Sprintf("temporal operator search-attribute create --address %s --namespace %s --name %s --type %s",
			r.Address, r.Namespace, name, wanted[name]))
	}
}

// isCloud reports whether an address belongs to Temporal Cloud.
func isCloud(address string) bool {
	host, _, _ := strings.Cut(address, ":")
	return strings.HasSuffix(host, ".tmprl.cloud") || strings.HasSuffix(host, ".api.temporal.io")
}

func (r *SetupReport) reportText() string {
	var b strings.Builder
	rows := terminal.NewTable("search attribute", "type", "state")
	wanted := protocol.SearchAttributes()
	for _, state := range []struct {
		names []string
		word  string
	}{{r.Present, "there"}, {r.Added, "added"}, {r.Missing, "missing"}} {
		for _, name := range state.names {
			rows.AppendRow([]any{name, wanted[name].String(), state.word})
		}
	}
	for _, other := range r.Mistyped {
		rows.AppendRow([]any{other.Name, other.Want, "there as " + other.Type + ", which cannot be changed; remove it by hand"})
	}
	_, _ = fmt.Fprintf(&b, "namespace %s at %s\n%s\n", terminal.EscapeInvisible(r.Namespace), terminal.EscapeInvisible(r.Address), rows.Render())
	if r.Error != "" {
		_, _ = fmt.Fprintln(&b, terminal.EscapeInvisible(r.Error))
	}
	if len(r.ByHand) > 0 {
		_, _ = fmt.Fprintln(&b, "Somebody with the permission can add what is missing:")
		for _, command := range r.ByHand {
			_, _ = fmt.Fprintln(&b, "  "+terminal.EscapeInvisible(command))
		}
	}
	return b.String()
}
