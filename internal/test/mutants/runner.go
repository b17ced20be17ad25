package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// testLimit and chaosLimit bound one test and one run of chaos. A test that does not end counts as failed.
const (
	testLimit  = 10 * time.Minute
	chaosLimit = 2 * time.Hour
)

// runner runs the tests of mutants and prints the results.
type runner struct {
	options

	root, dir string // of the code, and a temporary one
	stdout    io.Writer
	wrong     []string // what is not as it should be
}

func (r *runner) printf(format string, args ...any) { fmt.Fprintf(r.stdout, format, args...) }

// runAll runs one mutant after the other. It runs the tests without a mutant first, because a test that fails anyway
// detects nothing.
func (r *runner) runAll(ctx context.Context, chosen []mutant) error {
	all := chosen
	if r.rounds == 0 {
		none := mutant{name: "no mutant", breaks: "The tests have to pass."}
		for _, m := range chosen {
			for _, t := range m.tests {
				if !slices.Contains(none.tests, t) {
					none.tests = append(none.tests, t)
				}
			}
		}
		all = append([]mutant{none}, chosen...)
	}
	for _, m := range all {
		if err := r.runMutant(ctx, m); err != nil {
			return err
		}
	}
	if len(r.wrong) > 0 {
		return fmt.Errorf("not as it should be:\n  %s", strings.Join(r.wrong, "\n  "))
	}
	r.printf("\nall %d mutants were noticed\n", len(chosen))
	return nil
}

// runMutant runs the tests or the chaos that have to detect m. It returns an error if they could not be built or run.
func (r *runner) runMutant(ctx context.Context, m mutant) error {
	r.printf("\n%s\n  %s\n", m.name, strings.Join(wrapText(m.breaks), "\n  "))
	dir, err := openTemp(r.dir)
	if err != nil {
		return err
	}
	overlay, err := m.applyPatch(ctx, r.root, dir)
	if err != nil {
		return err
	}
	if r.rounds > 0 {
		return r.chaos(ctx, m, overlay)
	}
	binaries := map[string]string{}
	for _, t := range m.tests {
		made, err := r.runTest(ctx, t, overlay, binaries, testLimit, nil)
		if err != nil {
			return err
		}
		r.reportOutcome(m, t, made, "")
	}
	return nil
}

// chaos runs rounds of chaos until one fails.
func (r *runner) chaos(ctx context.Context, m mutant, overlay string) error {
	t := test{"internal/test/chaos", m.chaos}
	made, err := r.runTest(ctx, t, overlay, map[string]string{}, chaosLimit, []string{
		"-chaos.rounds", strconv.Itoa(r.rounds), "-chaos.seed", strconv.FormatUint(r.seed, 10),
	})
	if err != nil {
		return err
	}
	r.reportOutcome(m, t, made, fmt.Sprintf(", seed %d, %d rounds before", r.seed, made.passed))
	return nil
}

// reportOutcome prints the outcome of a test, and counts it as wrong if it is not the expected one.
func (r *runner) reportOutcome(m mutant, t test, made outcome, more string) {
	said, want := "fails", len(m.patch) > 0
	if !made.failed {
		said = "passes"
	}
	r.printf("  %-6s %5.0f s  %s%s\n", said, made.took.Seconds(), t, more)
	if made.failed == want {
		return
	}
	r.wrong = append(r.wrong, fmt.Sprintf("%s: %s %s", m.name, t, said))
	if made.failed {
		r.printf("%s\n", made.output)
	}
}

// outcome is the result of a test.
type outcome struct {
	failed bool
	passed int // rounds of chaos
	took   time.Duration
	output string
}

// runTest runs a test. Chaos, which has additional flags, ends with the first round that fails.
func (r *runner) runTest(
	ctx context.Context, t test, overlay string, binaries map[string]string, limit time.Duration, chaos []string,
) (outcome, error) {
	binary, err := r.buildTests(ctx, t, overlay, binaries)
	if err != nil {
		return outcome{}, err
	}
	temporary, err := openTemp(filepath.Dir(overlay)) // of a test that is killed nothing is left
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	running, kill := context.WithCancel(ctx)
	defer kill()
	command := exec.CommandContext(running, binary, append([]string{
		verbose, "-test.run", t.runPattern(), "-test.timeout", limit.String(),
	}, chaos...)...)
	command.Dir, command.Env = filepath.Join(r.root, t.folder), append(os.Environ(), "TMPDIR="+temporary)
	output, err := command.StdoutPipe()
	if err != nil {
		return outcome{}, err
	}
	command.Stderr = command.Stdout
	began := time.Now()
	if err := command.Start(); err != nil {
		return outcome{}, err
	}
	made, ran := followTest(output, t, chaos != nil)
	if made.failed {
		kill()
	}
	failure := command.Wait()
	made.took = time.Since(began)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return made, ctx.Err()
	case made.failed:
	case failure != nil && !errors.As(failure, &exit):
		return made, failure
	case !ran:
		return made, fmt.Errorf("%s did not run:\n%s", t, made.output)
	default:
		made.failed = failure != nil
	}
	return made, nil
}

// buildTests compiles the tests of a package, once per mutant. A mutant that does not compile is an error.
func (r *runner) buildTests(ctx context.Context, t test, overlay string, binaries map[string]string) (string, error) {
	if binary := binaries[t.folder]; binary != "" {
		return binary, nil
	}
	binary := filepath.Join(filepath.Dir(overlay), strings.ReplaceAll(t.folder, "/", "_")+".test")
	build := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-c", "-o", binary, "./"+t.folder)
	build.Dir = r.root
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", t.folder, err, output)
	}
	binaries[t.folder] = binary
	return binary, nil
}

// openTemp creates a temporary folder that servers running as another user can enter.
func openTemp(dir string) (string, error) {
	made, err := os.MkdirTemp(dir, "")
	if err != nil {
		return "", err
	}
	return made, os.Chmod(made, 0o755) // see above
}

// verbose makes a test print the result of each subtest immediately, and not at the end; marker is the prefix of such
// lines.
const (
	verbose = "-test.v=test2json"
	marker  = "\x16"
)

// followTest reads the output of a test, up to its end or, for chaos, to the first failed round. ran reports whether the
// test started.
func followTest(output io.Reader, t test, chaos bool) (made outcome, ran bool) {
	var said strings.Builder
	defer func() { made.output = said.String() }()
	for lines := bufio.NewReader(output); ; {
		line, err := lines.ReadString('\n')
		line = strings.TrimLeft(line, marker)
		said.WriteString(line)
		ran = ran || strings.HasPrefix(line, "=== RUN   "+t.functionName())
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "--- PASS: "+t.functionName()+"/") {
			made.passed++
		}
		if chaos && strings.HasPrefix(line, "--- FAIL: "+t.functionName()+"/") {
			made.failed = true
			return made, ran
		}
		if err != nil {
			return made, ran
		}
	}
}

// wrapText breaks a text into lines of 78 characters at most.
func wrapText(text string) []string {
	const width = 78
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
