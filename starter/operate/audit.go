package operate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/base/audit"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/regular"
	"reprise/internal/base/terminal"
	"reprise/interpreter/lists"
	"reprise/starter/cli"
)

// NewAuditCommand returns the command audit.
func NewAuditCommand(a *cli.App) *cobra.Command {
	var last string
	verify := &cobra.Command{
		Use: "verify FILE", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return verifyAudit(a, args[0], last) },
	}
	verify.Flags().StringVar(&last, "contains", "", "hash that an earlier verification printed; a log without this line is refused")
	return cli.NewGroup("audit", "", verify)
}

// verifyAudit checks the chain of an audit log. contains is the hash of a line that it must have, "" for none.
func verifyAudit(a *cli.App, path, contains string) error {
	file, err := regular.OpenFile(path)
	if err != nil {
		return cli.WithStatus(exitcode.Usage, err)
	}
	defer func() { _ = file.Close() }()
	report, err := audit.Verify(file, contains)
	if gap, ok := errors.AsType[*audit.ChainGap](err); ok {
		return cli.WithStatus(exitcode.Failed, fmt.Errorf("%s: %w", path, gap))
	}
	if err != nil {
		return cli.WithStatus(exitcode.Usage, fmt.Errorf("%s: %w", path, err))
	}
	_, _ = fmt.Fprintf(a.Out, "%s: %s, no gap\n", path, terminal.Count(int(report.Lines), "line"))
	if len(report.Torn) > 0 {
		_, _ = fmt.Fprintf(a.Out, "cut short, as the next line says: line %s\n", strings.Join(lists.Map(report.Torn, func(n int64) string { return fmt.Sprint(n) }), ", "))
	}
	if report.Last != "" {
		_, _ = fmt.Fprintf(a.Out, "last line: %s\n", report.Last)
	}
	return nil
}
