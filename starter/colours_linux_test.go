package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/terminal"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/starter/cli"
	"reprise/starter/look"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// openTerminal opens a pseudo-terminal: what is written to screen is read from keyboard.
func openTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = keyboard.Close() })
	control := func(request uintptr, value *int32) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, keyboard.Fd(), request, uintptr(unsafe.Pointer(value))) //nolint:gosec // as ioctl_tty(2) has it
		require.Zero(t, errno)
	}
	var locked, number int32
	control(syscall.TIOCSPTLCK, &locked)
	control(syscall.TIOCGPTN, &number)
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return keyboard, screen
}

// onTerminal is what work writes to a terminal.
func onTerminal(t *testing.T, work func(screen io.Writer)) string {
	t.Helper()
	keyboard, screen := openTerminal(t)
	shown := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, keyboard) // ends with EIO when the screen is closed
		shown <- strings.ReplaceAll(b.String(), "\r\n", "\n")
	}()
	work(screen)
	require.NoError(t, screen.Close())
	return testenv.Receive(t, shown, "the end of what the terminal shows")
}

// TestAdviceIsDim: what a person may do next is dim at a terminal, and yellow is for what is wrong.
func TestAdviceIsDim(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	t.Setenv("TEMPORAL_ADDRESS", "")
	const dim, yellow, plain = "\x1b[2m", "\x1b[1;33m", "\x1b[0m"
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: x}\n"+text), 0o600))
		return path
	}
	bad, good := write("bad.yaml", "workflow:\n  - step: a\n    tool: htp\n"), write("good.yaml", "workflow:\n  - step: a\n")
	run := func(args ...string) string {
		return onTerminal(t, func(screen io.Writer) {
			require.NotZero(t, Main(t.Context(), args, cli.Streams{In: bytes.NewReader(nil), Out: io.Discard, Err: screen}))
		})
	}

	shown := run("validate", bad)
	require.Contains(t, shown, "\n"+dim+"For more, run "+terminal.ProgramName()+" explain unknown-tool, or "+terminal.ProgramName()+" docs --open unknown-tool."+plain+"\n")
	require.NotContains(t, shown, yellow)

	shown = run("run", good, "--set", "nothing=1", "--detach")
	require.Contains(t, shown, yellow+`warning: the playbook's workload has no key "nothing", and no expression uses it`+plain+"\n")
	require.Contains(t, shown, "\n"+dim+"See "+terminal.ProgramName()+" run --help."+plain+"\n")
	require.Equal(t, 1, strings.Count(shown, yellow))

	server, err := client.NewLazyClient(client.Options{})
	require.NoError(t, err)
	defer server.Close()
	hint := func(result protocol.Result) string {
		return onTerminal(t, func(screen io.Writer) {
			a := &cli.App{Streams: cli.Streams{Err: &terminal.Screen{To: screen}}}
			look.HintNext(a.Streams, &session.Session{}, server.GetWorkflow(t.Context(), "patients-7x2k", ""), result)
		})
	}
	require.Equal(t, dim+"To see what happened: "+terminal.ProgramName()+" events patients-7x2k --failed"+plain+"\n", hint(protocol.Result{Status: interpreter.Failed}))
	require.Equal(t, dim+"To run the failed iterations again: "+terminal.ProgramName()+" dead-letters reprocess patients-7x2k"+plain+"\n", hint(protocol.Result{
		Status: interpreter.Partial, Steps: []protocol.StepRecord{{Loop: &protocol.LoopRecord{Stats: interpreter.LoopStats{Failed: 1}}}},
	}))

	t.Setenv("NO_COLOR", "1")
	require.NotContains(t, run("validate", bad), "\x1b")
}
