package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"reprise/internal/test/docs"
	"reprise/starter/session"
)

// freePort is a port of this machine without a listener, "0" where none is found.
func freePort() string {
	listener, err := session.ListenLocally("0")
	if err != nil {
		return "0"
	}
	defer func() { _ = listener.Close() }()
	address, _ := listener.Addr().(*net.TCPAddr)
	return strconv.Itoa(address.Port)
}

// TestTutorial: whoever follows the tutorial sees what it shows, from an empty folder on.
func TestTutorial(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "docs", "tutorial.md"))
	require.NoError(t, err)
	const mostWords = 4000
	require.Less(t, len(strings.Fields(string(page))), mostWords)
	dir := t.TempDir()
	script := tutorialScript(t, docs.FencedBlocks("docs/tutorial.md", string(page)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tutorial.txtar"), script, 0o600))
	t.Run("script", func(t *testing.T) { scriptsIn(t, dir, localServer(t)) })
}

// tutorialScript has the blocks of the page as a script: yaml NAME is a file, sh is run, sh
// background is started, and text behind it is what it prints. Ports that others may have give
// way to free ones.
func tutorialScript(t *testing.T, blocks []*docs.Example) []byte {
	t.Helper()
	ports := strings.NewReplacer("8088", freePort(), "starter dev", "starter dev --port 0 --ui-port 0")
	archive, script := &txtar.Archive{}, &strings.Builder{}
	texts := 0
	for i, block := range blocks {
		name := fmt.Sprintf("block-%d", i)
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(ports.Replace(block.Text))})
		switch {
		case len(block.Words) == 2 && block.Words[0] == "yaml":
			fmt.Fprintf(script, "cp %s %s\n", name, block.Words[1])
		case block.Is("sh", "background"):
			fmt.Fprintf(script, "start back-%d %s", i, ports.Replace(block.Text))
			if strings.HasPrefix(block.Text, "starter dev") {
				fmt.Fprintf(script, "await back-%d.out 'Ctrl-C stops it'\n", i)
			}
		case block.Is("sh"):
			fmt.Fprintf(script, "shell %s\n", name)
			if block.Next.Is("text") {
				texts++
				fmt.Fprintf(script, "prints block-%d\n", i+1)
			}
		case !block.Is("text"):
			t.Fatalf("docs/tutorial.md:%d: a block of %q is not known here", block.Line, block.Words)
		}
	}
	require.GreaterOrEqual(t, texts, 12)
	archive.Comment = []byte(script.String())
	return txtar.Format(archive)
}

// cmdShell runs the lines of a file in a shell.
func cmdShell(ts *testscript.TestScript, neg bool, args []string) {
	use(ts, neg, len(args) == 1, "shell FILE")
	var exit *exec.ExitError
	if err := ts.Exec("bash", "-c", "exec 2>&1\n"+ts.ReadFile(args[0])); err != nil && !errors.As(err, &exit) {
		ts.Check(err)
	}
}

// cmdPrints compares what a shell has printed with what a page shows of it.
func cmdPrints(ts *testscript.TestScript, neg bool, args []string) {
	use(ts, neg, len(args) == 1, "prints FILE")
	printed := steady(ts.ReadFile("stdout"))
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		wanted := steady(line)
		_, after, found := strings.Cut(printed, wanted)
		if !found {
			ts.Fatalf("not printed, or not in this order: %q, in what is left:\n%s", wanted, printed)
		}
		printed = after
	}
}

// differs is what every run has otherwise: durations, and the IDs that it was given.
var differs = regexp.MustCompile(`\b\d+(\.\d+)?m?s\b|\bclinic-[a-z2-7]{6}\b`)

// steady is a text without what differs from run to run, and without the widths of tables.
func steady(text string) string {
	return strings.Join(strings.Fields(differs.ReplaceAllString(text, "…")), " ")
}
