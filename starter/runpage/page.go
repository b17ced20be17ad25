// Package runpage has the command ui, and the page of runs that accompanies a local server.
package runpage

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"reprise/activities"
	"reprise/internal/base/audit"
	"reprise/internal/base/bookshelf"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/secrets"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/localserver"
	"reprise/internal/program/serve"
	"reprise/internal/program/start"
	"reprise/internal/program/ui"
	"reprise/interpreter"
	"reprise/interpreter/credential"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
	"reprise/starter/cli"
	"reprise/starter/deadletters"
	"reprise/starter/help"
	"reprise/starter/launch"
	"reprise/starter/load"
	"reprise/starter/look"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// uiOptions are the flags of ui.
type uiOptions struct {
	server     session.ServerFlags
	listen     string
	hosts      []string
	userHeader string
	proxies    []string
	readOnly   bool
	tokens     string
	playbooks  string
	audit      string
}

// uiPort is the default port of the page.
const uiPort = "8250"

// NewUICommand returns the command ui.
func NewUICommand(a *cli.App) *cobra.Command {
	options := &uiOptions{}
	command := &cobra.Command{
		Use: "ui", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return serveRuns(a, options) },
	}
	flags := command.Flags()
	flags.StringVar(&options.listen, "listen", "127.0.0.1:"+uiPort, "host:port to listen on; port 0 is a free one")
	flags.StringArrayVar(&options.hosts, "host", nil, "a name, or name:port, under which browsers reach the page; repeatable")
	flags.StringVar(&options.userHeader, "user-header", "", "header in which a proxy names the person, such as X-Forwarded-User")
	flags.StringArrayVar(&options.proxies, "trusted-proxy", nil, "address or CIDR of a proxy whose --user-header counts; repeatable")
	flags.StringVar(&options.tokens, "tokens", "", "YAML file of callers, as for starter serve; callers with a role sign in with their token")
	flags.StringVar(&options.audit, "audit-log", "", "file for the audit log, as JSON lines: who changed what; if it cannot be written, changes are refused; default none")
	flags.BoolVar(&options.readOnly, "read-only", false, "show runs without changing them")
	flags.StringVar(&options.playbooks, "playbooks", os.Getenv("REPRISE_PLAYBOOKS"),
		"folder of playbooks to show and start; default: none [REPRISE_PLAYBOOKS]")
	options.server.Add(command)
	return command
}

// pageAccess returns the access rules of the page, from the flags. Changes of the file of callers are in the trail.
func (o *uiOptions) pageAccess(notef func(string, ...any), trail *audit.Trail) (ui.Access, error) {
	access := ui.Access{UserHeader: o.userHeader, ReadOnly: o.readOnly, Owner: cli.Whoami()}
	if (o.userHeader == "") != (len(o.proxies) == 0) {
		return access, cli.UsageError("--user-header and --trusted-proxy must be used together: the header is accepted only from such a proxy")
	}
	for _, text := range o.proxies {
		prefix, err := netip.ParsePrefix(text)
		if address, plain := netip.ParseAddr(text); plain == nil {
			prefix, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return access, cli.UsageError("--trusted-proxy %q is neither an address nor a CIDR such as 10.0.0.0/24", text)
		}
		access.Proxies = append(access.Proxies, prefix)
	}
	if o.tokens != "" {
		callers, err := serve.OpenCallers(o.tokens)
		if err != nil {
			return access, cli.WithStatus(exitcode.Usage, err)
		}
		callers.OnChange(func(what string, err error) {
			if err := trail.WriteChange(what, err); err != nil {
				notef("starter: a change of %s is not in the audit log: %v", what, err)
			}
		})
		var said atomic.Value // the last error that was reported
		access.Holder = func(token string) (ui.Person, bool) {
			name, role, err := callers.HolderOf(token)
			if err != nil && said.Swap(err.Error()) != err.Error() {
				notef("starter: %v; nobody can sign in until it can be read", err)
			} else if err == nil {
				said.Store("")
			}
			return ui.Person{Name: name, Operator: role == serve.RoleOperator}, role != serve.RoleNone
		}
	}
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return access, cli.UsageError("--listen %q: expected host:port, such as 127.0.0.1:%s", o.listen, uiPort)
	}
	if local := host == "localhost" || net.ParseIP(host).IsLoopback(); !local && len(o.hosts) == 0 {
		return access, cli.UsageError("--listen %s is reachable from other machines; name the host of their URLs with --host", o.listen)
	}
	return access, nil
}

// serveRuns serves the page until the command is interrupted.
func serveRuns(a *cli.App, options *uiOptions) error {
	trail, err := audit.Open(options.audit, "ui", nil)
	if err != nil {
		return cli.WithStatus(exitcode.Usage, err)
	}
	defer func() { _ = trail.Close() }()
	access, err := options.pageAccess(a.Notef, trail)
	if err != nil {
		return err
	}
	return session.WithServer(a, &options.server, func(ctx context.Context, s *session.Session) error {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", options.listen)
		if err != nil {
			return fmt.Errorf("listen on --listen %s: %w", options.listen, err)
		}
		if access.UserHeader == "" && access.Holder == nil {
			access.Key = cmp.Or(ui.KeyOf(s.Key, access.ReadOnly), rand.Text())
		}
		page := newPage(a, s, listener, access, options.playbooks, "ui", options.hosts, trail)
		_, _ = fmt.Fprintf(a.Out, "Runs: %s\nCtrl-C stops it.\n", page.Link)
		return page.Server.Serve(ctx, listener)
	})
}

// StartPage serves the page on this machine beside a local server until the session ends. If port is in use, it
// chooses another one.
func StartPage(a *cli.App, s *session.Session, port int, folder string) error {
	listener, err := session.ListenNear(strconv.Itoa(port))
	if err != nil {
		return fmt.Errorf("listen for the page of runs: %w", err)
	}
	started := newPage(a, s, listener, ui.Access{Key: ui.KeyOf(s.Key, false), Owner: cli.Whoami()}, folder, "dev", nil, nil)
	started.Stop = cli.RunInBackground(context.Background(), func(ctx context.Context) { _ = started.Server.Serve(ctx, listener) })
	s.Page = &started
	return nil
}

// newPage returns the page of a session. If the web UI is at a socket, the page proxies it. command is the starter
// command that serves the page.
func newPage(a *cli.App, s *session.Session, listener net.Listener, access ui.Access, folder, command string, hosts []string, trail *audit.Trail) session.Page {
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	access.Hosts = ui.Loopback(port)
	base := "http://" + listener.Addr().String()
	for _, host := range hosts {
		access.Hosts = append(access.Hosts, strings.ToLower(host))
		if _, _, err := net.SplitHostPort(host); err != nil {
			access.Hosts = append(access.Hosts, strings.ToLower(net.JoinHostPort(host, port)))
		}
	}
	if len(hosts) > 0 {
		base = "http://" + access.Hosts[len(access.Hosts)-1]
	}
	var temporal http.Handler
	if s.UISocket != "" {
		temporal, s.UI = ui.AtSocket(s.UISocket), base+localserver.UIPath
	}
	server := ui.New(ui.Options{
		Client: s.Client, Namespace: s.Namespace, Runs: s.Runs(), Access: access, Audit: trail, Logger: slog.New(slog.DiscardHandler),
		Again: func(ctx context.Context, found runs.Found, said ui.ChangedBy) (string, error) {
			return runAgain(ctx, a.Streams, *s, found, said)
		},
		Reprocess: func(ctx context.Context, found runs.Found, only ui.Only, said ui.ChangedBy) (string, error) {
			return reprocessAgain(ctx, a, *s, found, only, said)
		},
		StartedWith: terminal.ProgramName() + " " + command, TemporalAway: "It was at " + s.Address + ". Start it again; a local one is part of " + terminal.ProgramName() + " dev.",
		Library: openLibrary(a.Streams, s, folder), TemporalUI: s.RunLink, Temporal: temporal, Log: workerLog(a.Streams), Docs: help.LazySite(),
	})
	return session.Page{Server: server, Link: access.Link(base)}
}

// workerLog returns a function that reads log lines about a run from the log of this directory's worker; nil if there
// is no such log.
func workerLog(streams cli.Streams) func(context.Context, runs.Found, int) ([]string, error) {
	if _, err := os.Stat(session.WorkerLogPath()); err != nil {
		return nil
	}
	return func(ctx context.Context, found runs.Found, most int) ([]string, error) {
		tail, err := look.OpenLog(streams, "")
		if err != nil {
			return nil, err
		}
		defer tail.Close()
		var last []string
		view := &look.LogView{Run: found.WorkflowID, Options: &look.LogsOptions{Output: "table"}, Show: func(text string) error {
			if last = append(last, text); len(last) > 2*most {
				last = slices.Clone(last[len(last)-most:])
			}
			return nil
		}}
		err = tail.EachLine(ctx, false, nil, view.WriteLine)
		return last[max(0, len(last)-most):], err
	}
}

// openLibrary returns the playbooks of a folder for the page; nil without a folder.
func openLibrary(streams cli.Streams, s *session.Session, folder string) *ui.Library {
	if folder == "" {
		return nil
	}
	name, other := folder, ""
	if whole, err := filepath.Abs(folder); err == nil {
		name = filepath.Base(whole)
	}
	if sub := filepath.Join(folder, "playbooks"); len(bookshelf.PlaybookNames(sub)) > 0 {
		other = sub
	}
	return &ui.Library{
		Folder: name, Other: other,
		Names: func() []string { return bookshelf.PlaybookNames(folder) },
		Has:   func(name string) bool { return bookshelf.HasPlaybook(folder, name) },
		Read: func(name string) (ui.Book, error) {
			read, err := readBook(folder, name, nil)
			if err != nil {
				return ui.Book{}, err
			}
			found, _ := read.Found.FirstOf(playbook.MaxShown)
			book := ui.Book{Playbook: read.Book, Invalid: read.Found.HasErrors() || read.Book == nil}
			for _, one := range found {
				book.Problems = append(book.Problems, shownProblem(one, read.Book))
				if one.Severity == source.Error {
					book.Errors++
				}
			}
			return book, nil
		},
		Start: func(ctx context.Context, name string, with ui.StartForm, said ui.ChangedBy) (string, error) {
			return startBook(ctx, streams, *s, folder, name, with, said)
		},
		Backfill: func(ctx context.Context, name string, said ui.ChangedBy) (string, error) {
			return startBackfill(ctx, streams, *s, folder, name, said)
		},
	}
}

// shownProblem returns the text of a problem for all users of the page: without the line of the file, and with
// secrets of the workload masked. book is nil if it could not be read.
func shownProblem(of source.Diagnostic, book *playbook.Playbook) string {
	known := &secrets.Masker{}
	if book != nil {
		load.AddSecrets(known, "", book.Workload)
	}
	return credential.WithoutGiven(known.MaskText(strings.TrimSpace(of.String() + "\n" + of.Note)))
}

// readBook reads a playbook of a folder and checks it with a workload.
func readBook(folder, name string, workload map[string]any) (load.CheckedPlaybook, error) {
	text, err := bookshelf.Read(folder, name)
	if err != nil {
		return load.CheckedPlaybook{}, err
	}
	file := source.NewFile(name+".yaml", text)
	files := load.CalledFiles(folder)
	book, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{Workload: workload, Files: files})
	return load.CheckedPlaybook{File: file, Book: book, Found: found, Files: files.Texts()}, nil
}

// startBook starts a run of a playbook in a folder, and returns its workflow ID.
func startBook(ctx context.Context, streams cli.Streams, s session.Session, folder, name string, with ui.StartForm, said ui.ChangedBy) (string, error) {
	read, err := readBook(folder, name, with.Workload)
	if err != nil {
		return "", err
	}
	if wrong := read.Found.Errors(); len(wrong) > 0 {
		return "", errors.New(wrong[0].Message)
	}
	if _, err := read.Book.RunPartition(with.Partition, time.Now()); err != nil {
		return "", err
	}
	plan, err := launch.NewPlan(read, with.Workload, "", folder)
	if err != nil {
		return "", err
	}
	plan.Input.Partition = with.Partition
	plan.Details += "\n" + "Started" + attributionText(said)
	return startFor(ctx, streams, &s, plan, said)
}

// startBackfill starts a run for the missing partitions of a playbook in a folder, and returns its workflow ID.
func startBackfill(ctx context.Context, streams cli.Streams, s session.Session, folder, name string, said ui.ChangedBy) (string, error) {
	read, err := readBook(folder, name, nil)
	if err != nil {
		return "", err
	}
	if wrong := read.Found.Errors(); len(wrong) > 0 {
		return "", errors.New(wrong[0].Message)
	}
	plan, err := launch.MissingPlan(ctx, &s, read, folder)
	if err != nil {
		return "", err
	}
	plan.Details += "\n" + "Started" + attributionText(said)
	return startFor(ctx, streams, &s, plan, said)
}

// startFor starts a run for a user of the page, and returns its workflow ID.
func startFor(ctx context.Context, streams cli.Streams, s *session.Session, plan start.Plan, said ui.ChangedBy) (string, error) {
	plan.Memo = map[string]any{protocol.StartedByMemo: said.By}
	if said.Reason != "" {
		plan.Memo[protocol.StartReasonMemo] = said.Reason
	}
	run, err := launch.StartRun(ctx, s, plan, streams)
	if err != nil {
		return "", err
	}
	return run.GetID(), nil
}

// runAgain starts a run with the playbook and the workload of another one, and returns its workflow ID.
func runAgain(ctx context.Context, streams cli.Streams, s session.Session, found runs.Found, said ui.ChangedBy) (string, error) {
	input, err := s.Runs().Input(ctx, found.WorkflowID, found.LastRunID())
	if err != nil {
		return "", err
	}
	if input.Reprocess != nil {
		return "", errors.New("this run repeated iterations of another run; reprocess that run")
	}
	input = input.WithoutParent()
	input.State = nil
	of := &runs.Run{WorkflowID: found.WorkflowID, RunID: found.RunID, Input: input}
	book, err := of.Book()
	if err != nil {
		return "", err
	}
	codes, err := deadletters.OwnCodes(ctx, &s, of, book.CodeTexts())
	if err != nil {
		return "", err
	}
	s.TaskQueue = found.TaskQueue
	return startFor(ctx, streams, &s, start.Plan{
		WorkflowID: start.NewID(book), Playbook: book.Name, Labels: book.Labels, Schedule: book.Schedule, Codes: codes, Input: input, Expect: book.Expect,
		Summary: book.Name, Details: start.DetailsMarkdown(book, input.Workload.Data, "Runs "+found.WorkflowID+" again"+attributionText(said)),
	}, said)
}

// reprocessAgain reprocesses the failed iterations of a run, and returns the workflow ID of the reprocess, which may
// be running already.
func reprocessAgain(ctx context.Context, a *cli.App, s session.Session, found runs.Found, only ui.Only, said ui.ChangedBy) (string, error) {
	chain, err := s.DeadLetters().Chain(ctx, found.WorkflowID, found.RunID)
	if err != nil {
		return "", err
	}
	s.TaskQueue = chain.Origin.TaskQueue
	letters := deadletters.ChooseLetters(chain, deadletter.Filter{Step: only.Step}, 0).Open
	if only.Index != nil {
		letters = lists.Filter(letters, func(letter deadletter.Letter) bool { return letter.Index == *only.Index })
	}
	switch running := chain.RunningReprocess(); {
	case running != nil && len(letters) == 0:
		return running.WorkflowID, nil
	case running != nil:
		return "", fmt.Errorf("%s is running and does not include %s; wait until it ends", running.WorkflowID, terminal.Count(len(letters), "iteration"))
	case len(letters) == 0:
		return "", errors.New("no failed iteration is left")
	}
	plan, err := deadletters.ReprocessPlan(ctx, a, &s, chain, letters, nil, &deadletters.ReprocessOptions{})
	if err != nil {
		return "", err
	}
	plan.Details += "\n" + "Started" + attributionText(said)
	id, err := startFor(ctx, a.Streams, &s, plan, said)
	if _, ok := errors.AsType[*start.StartedError](err); ok {
		return plan.WorkflowID, nil
	}
	return id, err
}

// attributionText returns the author of a command on the page, and the reason.
func attributionText(said ui.ChangedBy) string {
	return render.Attribution(interpreter.Said{By: said.By, Reason: said.Reason})
}
