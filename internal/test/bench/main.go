// Bench measures playbooks against workflows written by hand for the same job, side by side on one Temporal server:
// make bench. It prints tables. The ratios can be compared between machines, the rates cannot.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/program/demoapi"
	"reprise/internal/program/localserver"
	"reprise/interpreter/lists"
)

// options are the flags: sizes of the cases, and which ones to run.
type options struct {
	sizes      string // of parallel loops
	sequential int
	small      int
	pages      int
	polite     int
	rate       int
	scale      string
	loaded     int
	rounds     int
	long       int
	only       string
	cases      string
	passes     int
	other      string

	address, worker, store, plain string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := runBench(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func runBench(ctx context.Context, args []string, stdout io.Writer) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.StringVar(&o.sizes, "sizes", "1000", "iterations of parallel loops, such as 1000,10000")
	flags.IntVar(&o.sequential, "sequential", 300, "iterations of sequential loops")
	flags.IntVar(&o.small, "small", 100, "runs of one step, one after the other")
	flags.IntVar(&o.pages, "pages", 300, "pages of 100 rows")
	flags.IntVar(&o.polite, "polite", 1000, "requests under a shared rate limit")
	flags.IntVar(&o.rate, "rate", 50, "that limit, in requests a second")
	flags.StringVar(&o.scale, "scale", "10000,100000", "iterations of the loops whose growth is measured")
	flags.IntVar(&o.loaded, "loaded", 1000, "pages of 100 rows that are loaded with state, and by a program")
	flags.IntVar(&o.rounds, "rounds", 9, "how often these take turns")
	flags.IntVar(&o.long, "long", 10_000, "pages of long loads with state")
	flags.StringVar(&o.only, "only", "", "run the groups whose name holds this")
	flags.StringVar(&o.cases, "cases", "", "run these cases of the groups, such as \"by hand,batch 1\"; all if empty")
	flags.IntVar(&o.passes, "passes", 2, "how often the cases of a group are run, in their order and then in the opposite one")
	flags.StringVar(&o.other, "against", "", "this program of another build: measure both in turns, without politeness, incremental and scale")
	flags.StringVar(&o.address, "address", "", "host:port of a running Temporal server; a local one is started if empty")
	flags.StringVar(&o.worker, "worker", "", "be the worker of this task queue (used by the program itself)")
	flags.StringVar(&o.store, "store", "", "directory of large values (used by the program itself)")
	flags.StringVar(&o.plain, "plain", "", "be the program without durability that loads these pages, \"URL TABLE MODE\" (used by the program itself)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.plain != "" {
		return plainMain(ctx, o.plain, os.Stdin, stdout)
	}
	if o.worker != "" {
		return runWorker(ctx, o.address, o.worker, o.store)
	}
	return measureAll(ctx, o, stdout)
}

func measureAll(ctx context.Context, o options, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "reprise-bench-")
	if err != nil {
		return fmt.Errorf("make a directory for large values: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var process serverProcess
	if o.address == "" {
		server, err := localserver.Start(ctx, localserver.Options{})
		if err != nil {
			return err
		}
		defer server.Stop()
		o.address, process = server.Address, serverProcess(server.PID())
	}
	api := demoapi.New(demoapi.Options{Items: o.pages * 100, LogSize: 10 * (o.pages + o.polite)})
	url, err := api.Start(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = api.Close() }()
	short := demoapi.New(demoapi.Options{Items: 400, LogSize: 1})
	small, err := short.Start(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = short.Close() }()
	c, _, err := dialServer(ctx, o.address, dir, nil)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", o.address, err)
	}
	defer c.Close()
	b := &bench{client: c, server: process, address: o.address, store: dir}
	groups, err := o.caseGroups(url, small)
	if err != nil {
		return err
	}
	growing, err := o.growingLoops()
	if err != nil {
		return err
	}
	if o.other != "" {
		return b.compareBuilds(ctx, o.other, groups, stdout)
	}
	for _, group := range groups {
		if err := b.runGroup(ctx, group, o.passes, stdout); err != nil {
			return err
		}
	}
	if o.wantsGroup(politeness) {
		if err := b.printPoliteness(ctx, o, api, url, stdout); err != nil {
			return err
		}
	}
	return b.printLongRuns(ctx, o, growing, stdout)
}

// printLongRuns prints the groups of long runs.
func (b *bench) printLongRuns(ctx context.Context, o options, growing []one, stdout io.Writer) error {
	if o.wantsGroup(incremental) {
		if err := b.printIncremental(ctx, o, stdout); err != nil {
			return err
		}
	}
	if o.wantsGroup(scale) {
		return b.measureGrowth(ctx, growing, stdout)
	}
	return nil
}

// Names of the groups that are not compared with workflows by hand.
const (
	politeness = "shared rate limit"
	scale      = "scale"
)

// elementPages is the group of loops whose iterations fetch pages and write them.
const elementPages = "200 elements of 4 pages, each page written to SQLite, window 10"

// oneStep is the group of small runs, which measure the overhead of a run.
const oneStep = "runs of one step, one after the other, a tool that answers at once"

func (o options) wantsGroup(group string) bool { return strings.Contains(group, o.only) }

// chosenCases returns the cases of a group that the options select.
func (o options) chosenCases(group []one) []one {
	switch {
	case !o.wantsGroup(group[0].group):
		return nil
	case o.cases == "":
		return group
	}
	names := strings.Split(o.cases, ",")
	return slices.DeleteFunc(group, func(c one) bool { return !slices.Contains(names, c.name) })
}

// caseGroups returns the selected cases, in groups to compare. The first case of a group is the baseline of the others.
// small is the URL of an API with four pages of rows.
func (o options) caseGroups(url, small string) ([][]one, error) {
	var groups [][]one
	add := func(group []one) {
		if group = o.chosenCases(group); len(group) > 0 {
			groups = append(groups, group)
		}
	}
	add([]one{
		{group: oneStep, name: "by hand", n: o.small, small: true, by: &handInput{}},
		{group: oneStep, name: "playbook", n: o.small, small: true, source: stepBook},
	})
	add(loopCases(o.sequential, 1, 0, 1, 10, 50))
	sizes, err := parseNumbers("-sizes", o.sizes)
	if err != nil {
		return nil, err
	}
	for _, n := range sizes {
		add(loopCases(n, 10, 0, 1, 10, 50))
		add(loopCases(n, 100, 0, 1, 10, 50))
		add(loopCases(n, 500, 0, 1, 10, 50))
		add(loopCases(n, 100, 20, 1, 10, 50))
	}
	add([]one{
		{group: elementPages, name: "by hand", n: 200, by: &handInput{Width: 10, URL: small}},
		{group: elementPages, name: "batch 1", n: 200, source: elementsBook(small, 200, "1")},
		{group: elementPages, name: "batch 10", n: 200, source: elementsBook(small, 200, "10")},
		{group: elementPages, name: "batch auto", n: 200, source: elementsBook(small, 200, "auto")},
	})
	name := fmt.Sprintf("%d pages of 100 rows", o.pages)
	add([]one{
		{group: name, name: "by hand", n: o.pages, pages: url},
		{group: name, name: "plain Go", n: o.pages, program: func(ctx context.Context) (int, error) { return plainPages(ctx, url) }},
		{group: name, name: "one by one", n: o.pages, source: pagesBook(url, 1)},
		{group: name, name: "together", n: o.pages, source: pagesBook(url, 0)},
		{group: name, name: "200 an activity", n: o.pages, source: pagesBook(url, 200)},
	})
	name += ", each written to SQLite"
	add([]one{
		{group: name, name: "without notes", n: o.pages, source: writtenBook(url, forgetfulName)},
		{group: name, name: "with notes", n: o.pages, source: writtenBook(url, "sqlite")},
		{group: name, name: "history first", n: o.pages, source: writtenBook(url, historicName)},
	})
	return groups, nil
}

// parseNumbers parses the sizes of loops.
func parseNumbers(option, text string) ([]int, error) {
	var all []int
	for _, field := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %q: %q is no number of iterations", option, text, field)
		}
		all = append(all, n)
	}
	return all, nil
}

func loopCases(n, width, ms int, batches ...int) []one {
	name := fmt.Sprintf("%d iterations, window %d", n, width)
	if width == 1 {
		name = fmt.Sprintf("%d iterations, sequential", n)
	}
	if ms == 0 {
		name += ", a tool that answers at once"
	} else {
		name += fmt.Sprintf(", a tool that takes %d ms", ms)
	}
	cases := []one{{group: name, name: "by hand", n: n, by: &handInput{Width: width, MS: ms}}}
	for _, batch := range batches {
		cases = append(cases, one{group: name, name: fmt.Sprint("batch ", batch), n: n, source: loopBook(n, width, batch, ms)})
	}
	return cases
}

// runPasses runs cases in order and then in reverse, for the given number of passes: a server gets slower as it
// fills, which would otherwise penalize the later cases. The figures of each pass are in the order of the cases.
func (b *bench) runPasses(ctx context.Context, cases []one, passes int) ([][]figures, error) {
	all := make([][]figures, passes)
	for pass := range all {
		all[pass] = make([]figures, len(cases))
		for i := range cases {
			at := i
			if pass%2 == 1 {
				at = len(cases) - 1 - i
			}
			f, err := b.runCase(ctx, cases[at])
			if err != nil {
				return nil, err
			}
			all[pass][at] = f
		}
	}
	return all, nil
}

// sumOfPasses returns the sum of a case's figures over all passes.
func sumOfPasses(passes [][]figures, at int) figures {
	sum := passes[0][at]
	for _, pass := range passes[1:] {
		sum.addFigures(pass[at])
	}
	return sum
}

// medianRatio returns the ratio of a case's figure to another case's in the same pass, as the median over all passes.
func medianRatio(passes [][]figures, at, to int, figure func(figures) float64) string {
	all := lists.Map(passes, func(pass []figures) float64 { return figure(pass[at]) / figure(pass[to]) })
	slices.Sort(all)
	return fmt.Sprintf("%.2f", medianOf(all))
}

// newTable returns a table in which the columns from index from on are numbers.
func newTable(title string, from int, header ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.SetTitle(title)
	t.AppendHeader(header)
	var columns []table.ColumnConfig
	for number := from; number <= len(header); number++ {
		columns = append(columns, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t
}

// runGroup runs the cases of a group and prints them as a table.
func (b *bench) runGroup(ctx context.Context, cases []one, passes int, stdout io.Writer) error {
	all, err := b.runPasses(ctx, cases, passes)
	if err != nil {
		return err
	}
	second := min(1, len(cases)-1) // others are measured against the first and the second
	t := newTable(cases[0].group, 2, "", "time", "per second", "to "+cases[0].name, "to "+cases[second].name, "CPU to "+cases[0].name,
		"events each", "bytes each", "longest history", "worker CPU ms each", "server CPU ms each", "peak MB")
	for at := range cases {
		f := sumOfPasses(all, at)
		n := float64(f.n)
		t.AppendRow(table.Row{
			f.name, f.took.Round(10 * time.Millisecond), fmt.Sprintf("%.0f", f.rate()),
			medianRatio(all, at, 0, figures.rate), medianRatio(all, at, second, figures.rate), medianRatio(all, at, 0, figures.allCPU),
			fmt.Sprintf("%.2f", float64(f.events)/n), fmt.Sprintf("%.0f", f.bytesEach()), f.most,
			fmt.Sprintf("%.2f", f.cpuEach()), fmt.Sprintf("%.2f", f.serverEach()), fmt.Sprintf("%.0f", float64(f.memory)/1e6),
		})
	}
	if _, err := fmt.Fprintf(stdout, "%s\n\n", t.Render()); err != nil {
		return err
	}
	return b.explainOutliers(ctx, all, stdout)
}

// printPoliteness prints how well a loop keeps to the rate limit of an API.
func (b *bench) printPoliteness(ctx context.Context, o options, api *demoapi.Server, url string, stdout io.Writer) error {
	f, err := b.runCase(ctx, one{group: politeness, name: "batch 50", n: o.polite, source: politeBook(url, o.polite, o.rate)})
	if err != nil {
		return err
	}
	requests, refused := 0, 0
	for _, request := range api.Requests("") {
		if request.Path == "/api/v1/limited" {
			requests++
			if request.Status == 429 {
				refused++
			}
		}
	}
	ideal := float64(o.polite) / float64(o.rate)
	_, err = fmt.Fprintf(stdout, "%d items at %d requests/s: %d requests, %d answers 429, %.1f s, %.2f of the ideal %.1f s\n",
		o.polite, o.rate, requests, refused, f.took.Seconds(), f.took.Seconds()/ideal, ideal)
	return err
}
