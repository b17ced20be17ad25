package help

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"reprise"

	"github.com/spf13/cobra"

	"reprise/activities"
	"reprise/internal/program/docsite"
	"reprise/internal/program/reference"
	"reprise/playbooks"
	"reprise/starter/cli"
)

// docsOptions are the flags of docs.
type docsOptions struct {
	listen string
	open   string
	write  string
}

// docsPort is the default port of the documents.
const docsPort = "8251"

// NewDocsCommand returns the command docs.
func NewDocsCommand(a *cli.App) *cobra.Command {
	options := &docsOptions{}
	command := &cobra.Command{
		Use: "docs", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return serveDocs(a, options) },
	}
	flags := command.Flags()
	flags.StringVar(&options.listen, "listen", "127.0.0.1:"+docsPort, "host:port to listen on; port 0 is a free one")
	flags.StringVar(&options.open, "open", "", "open the browser at this word, or at the best match for a question")
	flags.StringVar(&options.write, "write", "", "write the pages into this folder, for any web server, and exit")
	return command
}

// newSite renders the pages of the documents.
func newSite() (*docsite.Site, error) {
	return docsite.New(reprise.Documents, playbooks.FS, map[string]string{"llms-full.txt": WholeReference()})
}

// WholeReference returns the text of llms-full.txt for language models: a guide, and the reference of the language
// and the programs.
func WholeReference() string { return reference.New(activities.DefaultCatalogue()).LLMsFull() }

// LazySite returns a handler that renders the documents at the first request.
func LazySite() http.Handler {
	site := sync.OnceValues(newSite)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages, err := site()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// serveDocs serves the documents until the command is interrupted.
func serveDocs(a *cli.App, options *docsOptions) error {
	if options.write != "" && options.open != "" {
		return cli.UsageError("--write and --open exclude each other")
	}
	site, err := newSite()
	if err != nil {
		return err
	}
	if options.write != "" {
		if err := site.Write(options.write); err != nil {
			return err
		}
		files, bytes := site.Size()
		_, _ = fmt.Fprintf(a.Out, "wrote %d files, %d kB, into %s\n", files, bytes/1000, options.write)
		return nil
	}
	ctx := a.Interrupts.Graceful
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", options.listen)
	if err != nil {
		return fmt.Errorf("listen on --listen %s: %w", options.listen, err)
	}
	link := "http://" + listener.Addr().String() + "/"
	if options.open != "" {
		link += pageAbout(options.open)
	}
	_, _ = fmt.Fprintf(a.Out, "Documents: %s\nCtrl-C stops it.\n", link)
	if options.open != "" {
		openBrowser(ctx, a.Streams, link)
	}
	return serveUntil(ctx, listener, site)
}

// pageAbout returns the page that explains a word, or else the search page for it.
func pageAbout(word string) string {
	if found := reference.New(activities.DefaultCatalogue()).Find(word); len(found) == 1 {
		return docsite.PageOf(found[0].Link)
	}
	return "search.html?q=" + url.QueryEscape(word)
}

// openBrowser opens a link in a browser. Callers also print the link, so a failure is only a note.
func openBrowser(ctx context.Context, streams cli.Streams, link string) {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	if err := exec.CommandContext(ctx, program, link).Start(); err != nil { //nolint:gosec // the link is ours
		streams.Notef("could not open a browser (%s); open the link", strings.TrimPrefix(err.Error(), "exec: "))
	}
}

// serveUntil serves HTTP until ctx ends.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, MaxHeaderBytes: 32 << 10}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the documents: %w", err)
	}
	return nil
}
