// Command peers loads the same rows of one API into one PostgreSQL in several ways: with Reprise, with a Go program,
// with Temporal workflows written by hand, and with dlt if it is installed. A file is loaded with Reprise, and with curl,
// gunzip and psql. The ways take turns. It prints what each needed, and what it did after a SIGKILL in the middle: make
// peers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"reprise/internal/program/localserver"
	"reprise/internal/test/testenv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runPeers(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// runPeers executes the command, or one of the hand-written programs that it starts as separate processes.
func runPeers(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case byHandCommand:
			return loadByHand(ctx, args[1:])
		case temporalCommand:
			return workByHand(ctx, args[1:])
		}
	}
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	passes := flags.Int("passes", 3, "how often each way does each job; the table has the medians")
	pages := flags.Int("pages", 1000, "pages of the first job, of 100 rows each; 0 leaves it out")
	elements := flags.Int("elements", 500, "elements of the second job, of 4 pages each; 0 leaves it out")
	rows := flags.Int("rows", 1_000_000, "rows of the file of the third job; 0 leaves it out")
	if err := flags.Parse(args); err != nil {
		return errors.Join(errUsage, err)
	}
	if flags.NArg() > 0 || *passes < 1 || min(*pages, *elements, *rows) < 0 {
		return fmt.Errorf("%w: flags are -passes, a number from 1 on, -pages, -elements and -rows", errUsage)
	}
	world, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer world.stop()
	jobs := []job{{pages: *pages}, {elements: *elements, pages: pagesOfAnElement}, {rowsOfFile: *rows}}
	for i, wanted := range []int{*pages, *elements, *rows} {
		if wanted == 0 {
			continue
		}
		if err := comparePeers(ctx, world, jobs[i], *passes); err != nil {
			return err
		}
	}
	return nil
}

var errUsage = errors.New("wrong usage")

// world is the environment that all peers share.
type world struct {
	api       *api
	database  *testenv.LocalDatabase
	server    *localserver.Server
	directory string
	executed  string // this program
}

func newWorld(ctx context.Context) (w *world, err error) {
	w = &world{}
	defer func() {
		if err != nil {
			w.stop()
		}
	}()
	if w.executed, err = os.Executable(); err != nil {
		return w, fmt.Errorf("find this program: %w", err)
	}
	if w.directory, err = os.MkdirTemp("", "peers-"); err != nil {
		return w, fmt.Errorf("make a directory: %w", err)
	}
	if w.api, err = newAPI(ctx, filepath.Join(w.directory, "rows.csv.gz")); err != nil {
		return w, err
	}
	if w.database, err = testenv.LocalPostgres(ctx); err != nil {
		return w, fmt.Errorf("start PostgreSQL: %w", err)
	}
	binary, err := localserver.Find()
	if err != nil {
		return w, fmt.Errorf("find a Temporal server: %w", err)
	}
	if w.server, err = localserver.Start(ctx, localserver.Options{Binary: binary, ReadyTimeout: time.Minute}); err != nil {
		return w, fmt.Errorf("start Temporal: %w", err)
	}
	return w, nil
}

func (w *world) stop() {
	if w.server != nil {
		w.server.Stop()
	}
	if w.database != nil {
		w.database.Stop()
	}
	if w.api != nil {
		w.api.stopServing()
	}
	_ = os.RemoveAll(w.directory)
}

// comparePeers has every peer do a job in turns, and prints the table.
func comparePeers(ctx context.Context, w *world, j job, passes int) error {
	fmt.Printf("\n%s\n\n", j)
	if j.isFile() {
		if err := w.api.writeFile(j.rowsOfFile); err != nil {
			return err
		}
	}
	all := availablePeers(ctx, j)
	measured := map[string][]figures{}
	var wrong error
	for pass := range passes {
		for i := range all {
			peer := all[(i+pass)%len(all)]
			got, err := measurePass(ctx, w, peer, j, false)
			if err != nil {
				return fmt.Errorf("%s: %w", peer.name(), err)
			}
			measured[peer.name()] = append(measured[peer.name()], got)
		}
	}
	fmt.Printf("%-20s %8s %8s %9s %9s   %s\n", "", "seconds", "CPU s", "memory MB", "rows", "after a SIGKILL in the middle")
	for _, peer := range all {
		killed, err := measurePass(ctx, w, peer, j, true)
		if err != nil {
			return fmt.Errorf("%s, killed: %w", peer.name(), err)
		}
		f := medianPass(measured[peer.name()])
		fmt.Printf("%-20s %8.1f %8.1f %9d %9s   %s\n", peer.name(), f.took.Seconds(), f.cpu.Seconds(), f.memory>>20, f.rows(j), killed.afterKillText(j))
		for _, f := range append(measured[peer.name()], killed) {
			if f.written != j.rows() {
				wrong = errors.Join(wrong, fmt.Errorf("%s: %d of %d rows are as in the API", peer.name(), f.written, j.rows()))
			}
		}
	}
	return wrong
}

// availablePeers returns the peers for a job that are available on this machine.
func availablePeers(ctx context.Context, j job) []peer {
	if j.isFile() {
		return []peer{repriseWay{}, copyWay{}}
	}
	all := []peer{repriseWay{}, byHandWay{}, temporalWay{}}
	if python, err := findDLT(ctx); err != nil {
		fmt.Println("dlt is not measured:", err)
	} else {
		all = append(all, dltWay{python})
	}
	return all
}

// medianPass returns the figures of the pass with the median time.
func medianPass(of []figures) figures {
	slices.SortFunc(of, func(a, b figures) int { return int(a.took - b.took) })
	return of[len(of)/2]
}
