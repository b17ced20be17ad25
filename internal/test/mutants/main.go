// Mutants checks that the tests detect mistakes: it applies changes that break durability, one at a time, and runs
// the tests that have to fail with them: make mutants. The source files are not changed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := runMutants(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	only   string
	rounds int
	seed   uint64
}

func runMutants(ctx context.Context, args []string, stdout io.Writer) error {
	var o options
	flags := flag.NewFlagSet("mutants", flag.ExitOnError)
	flags.StringVar(&o.only, "only", "", "take the mutants whose name holds this")
	flags.IntVar(&o.rounds, "chaos", 0, "run chaos in place of the tests, up to so many rounds, until one fails")
	flags.Uint64Var(&o.seed, "seed", 0, "of chaos; 0 draws a new one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32())
	}
	chosen, err := allMutants()
	if err != nil {
		return err
	}
	chosen = slices.DeleteFunc(chosen, func(m mutant) bool { return !strings.Contains(m.name, o.only) })
	if o.rounds > 0 { // chaos does not check the rules of the language
		chosen = slices.DeleteFunc(chosen, func(m mutant) bool { return m.chaos == "" })
	}
	if len(chosen) == 0 {
		return fmt.Errorf("there is no mutant whose name holds %q", o.only)
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	dir, err := openTemp("")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := &runner{options: o, root: root, dir: dir, stdout: stdout}
	return r.runAll(ctx, chosen)
}

// moduleRoot returns the folder of go.mod.
func moduleRoot(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	file := strings.TrimSpace(string(output))
	if filepath.Base(file) != "go.mod" {
		return "", errors.New("run this in a checkout")
	}
	return filepath.Dir(file), nil
}
