// Package auth has the commands that log people in to the connections of workers.
package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/interpreter/login"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// NewAuthCommand returns the command auth.
func NewAuthCommand(a *cli.App) *cobra.Command {
	return cli.NewGroup("auth", "logins", newAuthLoginCommand(a), newAuthListCommand(a), newAuthStatusCommand(a), newAuthRefreshCommand(a), newAuthLogoutCommand(a))
}

// authOptions are the flags that the auth commands share.
type authOptions struct {
	server session.ServerFlags
	output string
}

func (o *authOptions) addFlags(command *cobra.Command) {
	o.server.Add(command)
	cli.OutputFlag(command, &o.output)
}

// newLoginCommand returns a command about one connection. run executes it.
func newLoginCommand(a *cli.App, name string, run func(ctx context.Context, s *session.Session, connection string, o *authOptions) error) *cobra.Command {
	o := &authOptions{}
	command := &cobra.Command{
		Use: name + " NAME", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkConnection(args[0]); err != nil {
				return err
			}
			return session.WithServer(a, &o.server, func(ctx context.Context, s *session.Session) error { return run(ctx, s, args[0], o) })
		},
	}
	o.addFlags(command)
	return command
}

// checkConnection rejects arguments that are not a connection's name, such as its URL, which may contain a secret and
// must not be printed.
func checkConnection(name string) error {
	if name == "" || strings.ContainsAny(name, ":/@= \t\r\n") {
		return cli.UsageError("NAME: expected the name of a connection that the worker knows, such as shop, not the connection itself")
	}
	return nil
}

func newAuthStatusCommand(a *cli.App) *cobra.Command {
	return newLoginCommand(a, "status", func(ctx context.Context, s *session.Session, connection string, o *authOptions) error {
		status, err := loginStatus(ctx, s, connection)
		if err != nil {
			return err
		}
		return a.ShowDocument(o.output, status, statusText(status))
	})
}

func newAuthRefreshCommand(a *cli.App) *cobra.Command {
	return newLoginCommand(a, "refresh", func(ctx context.Context, s *session.Session, connection string, o *authOptions) error {
		status, err := loginStatus(ctx, s, connection)
		if err != nil {
			return err
		}
		var answer login.TokenAnswer
		if err := updateLogin(ctx, s, connection, login.TokenUpdate, login.TokenRequest{Connection: connection, After: status.Generation}, &answer); err != nil {
			return err
		}
		if answer.Failure != nil {
			return errors.New(answer.Failure.Message)
		}
		if status, err = loginStatus(ctx, s, connection); err != nil {
			return err
		}
		return a.ShowDocument(o.output, status, statusText(status))
	})
}

func newAuthLogoutCommand(a *cli.App) *cobra.Command {
	return newLoginCommand(a, "logout", func(ctx context.Context, s *session.Session, connection string, o *authOptions) error {
		if _, err := loginStatus(ctx, s, connection); err != nil {
			return err
		}
		if err := updateLogin(ctx, s, connection, login.LogoutUpdate, login.LogoutRequest{By: cli.Whoami()}, nil); err != nil {
			return err
		}
		status, err := loginStatus(ctx, s, connection)
		if err != nil {
			return err
		}
		return a.ShowDocument(o.output, status, connection+": logged out; the tokens are forgotten here, and may still be good at the API\n")
	})
}

func newAuthListCommand(a *cli.App) *cobra.Command {
	o := &authOptions{}
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return session.WithServer(a, &o.server, func(ctx context.Context, s *session.Session) error { return listLogins(ctx, a, s, o) })
		},
	}
	o.addFlags(command)
	return command
}

// loginList is the JSON output of auth list.
type loginList struct {
	Logins []login.TokenStatus `json:"logins"`
}

func listLogins(ctx context.Context, a *cli.App, s *session.Session, o *authOptions) error {
	list := loginList{Logins: []login.TokenStatus{}}
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", login.WorkflowName)
	for page := []byte(nil); ; {
		found, err := s.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: page})
		if err != nil {
			return fmt.Errorf("list the logins: %w", err)
		}
		for _, execution := range found.GetExecutions() {
			id := execution.GetExecution().GetWorkflowId()
			status, err := queryStatus(ctx, s, id)
			if connect.QueryUnanswered(err) {
				a.Notef("note: no worker of task queue %s responds for %s, so its login is not listed", execution.GetTaskQueue(), id)
				continue
			}
			if err != nil {
				return err
			}
			list.Logins = append(list.Logins, status)
		}
		if page = found.GetNextPageToken(); len(page) == 0 {
			break
		}
	}
	if len(list.Logins) == 0 {
		a.Notef("there are no logins yet")
	}
	return a.ShowDocument(o.output, list, loginsText(list.Logins))
}

// loginsText returns the table of logins.
func loginsText(logins []login.TokenStatus) string {
	if len(logins) == 0 {
		return ""
	}
	table := terminal.NewTable("connection", "state", "by", "at", "next refresh", "generation")
	for _, status := range logins {
		table.AppendRow([]any{status.Connection, stateText(status), status.By, timeText(status.At), timeText(status.NextRefresh), status.Generation})
	}
	return table.Render() + "\n"
}

func stateText(status login.TokenStatus) string {
	if status.LoggedIn {
		return "logged in"
	}
	return login.TypeRequired
}

func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format(time.DateTime)
}

// statusText returns the status of a login, with one property per line.
func statusText(status login.TokenStatus) string {
	var text strings.Builder
	for _, row := range [][2]string{
		{"connection", status.Connection},
		{"state", stateText(status)},
		{"why", status.Required},
		{"by", status.By},
		{"at", timeText(status.At)},
		{"refreshed", timeText(status.Refreshed)},
		{"next refresh", timeText(status.NextRefresh)},
		{"scopes", strings.Join(status.Scopes, " ")},
		{"generation", fmt.Sprint(status.Generation)},
		{"last failure", status.Failure},
	} {
		if row[1] != "" {
			fmt.Fprintf(&text, "%-14s%s\n", row[0], terminal.OneLine(row[1]))
		}
	}
	return text.String()
}

// loginStatus returns the status of a connection's login. A connection without a login is a usage error.
func loginStatus(ctx context.Context, s *session.Session, connection string) (login.TokenStatus, error) {
	status, err := queryStatus(ctx, s, login.WorkflowID(connection))
	if connect.IsNotFound(err) {
		return status, cli.UsageError("connection %q has no login yet: %s auth login %s", connection, terminal.ProgramName(), terminal.ShellWord(connection))
	}
	return status, err
}

// queryTimeout bounds the query for the status of a login.
const queryTimeout = 10 * time.Second

func queryStatus(ctx context.Context, s *session.Session, id string) (status login.TokenStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	answer, err := s.Client.QueryWorkflow(ctx, id, "", login.StatusQuery)
	if err == nil {
		err = answer.Get(&status)
	}
	if err != nil {
		return status, fmt.Errorf("ask for the status of %s: %w", id, err)
	}
	return status, nil
}

// updateLogin sends an update to the workflow of a login, and starts that workflow if it is not running.
func updateLogin(ctx context.Context, s *session.Session, connection, update string, arg, result any) error {
	err := connect.UpdateWithStart(ctx, s.Client, client.UpdateWorkflowOptions{
		WorkflowID: login.WorkflowID(connection), UpdateName: update, Args: []any{arg},
	}, result, client.StartWorkflowOptions{TaskQueue: s.TaskQueue, StaticSummary: "keeps the tokens of the login " + connection}, login.WorkflowName, login.StoredLogin{Connection: connection})
	if err != nil {
		return fmt.Errorf("the login %s: %w", connection, err)
	}
	return nil
}
