package activities

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// watchScript reads "+group" and "-group" until there is nobody to write them,
// and then kills the groups that are left.
const watchScript = `
import os, signal, sys
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
`

// watchPatience is how long the watcher may leave a message unread.
const watchPatience = time.Second

// mostWatchersLost is how many watchers are replaced as soon as they are gone;
// beyond that only when the next group begins.
const mostWatchersLost = 20

// groupWatch is a process that outlives this worker for a moment, whatever
// ends it, and kills the process groups that are under way then: what the code
// of a playbook has started dies with the worker too. It is started with the
// first group, and again when it is gone.
type groupWatch struct {
	command string // python
	logger  *slog.Logger

	mu      sync.Mutex
	groups  map[int]bool
	process *os.Process // nil without a watcher
	pipe    *os.File
	done    chan struct{} // closed once process has ended
	lost    int           // watchers that ended by themselves
}

func newGroupWatch(command string, logger *slog.Logger) *groupWatch {
	return &groupWatch{command: command, logger: logger, groups: map[int]bool{}}
}

// add has a group killed when the worker dies.
func (w *groupWatch) add(group int) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.groups[group] = true

	if w.process != nil && w.tell("+", group) == nil {
		return
	}

	if err := w.start(); err != nil {
		w.logger.Warn("nobody ends what python starts, should this worker be killed", "error", err)
	}
}

// remove takes back add.
func (w *groupWatch) remove(group int) {
	w.mu.Lock()
	defer w.mu.Unlock()

	delete(w.groups, group)

	if w.process != nil {
		_ = w.tell("-", group) // a watcher that is gone kills nothing
	}
}

// close ends the watcher and, with it, the groups that are left.
func (w *groupWatch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.process != nil {
		_ = w.pipe.Close()

		late := time.AfterFunc(watchPatience, func() { _ = w.process.Kill() })
		<-w.done
		late.Stop()

		w.process = nil
	}
}

// ended starts another watcher for the groups that are under way. One that is
// killed may have been told of a group that it never read of.
func (w *groupWatch) ended(process *os.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.process != process {
		return // it was closed, or has been replaced
	}

	_ = w.pipe.Close()
	w.process = nil

	if w.lost++; len(w.groups) == 0 || w.lost > mostWatchersLost {
		return
	}

	if err := w.start(); err != nil {
		w.logger.Warn("nobody ends what python starts, should this worker be killed", "error", err)
	}
}

func (w *groupWatch) tell(sign string, group int) error {
	_ = w.pipe.SetWriteDeadline(time.Now().Add(watchPatience))
	_, err := fmt.Fprintf(w.pipe, "%s%d\n", sign, group)

	return err
}

// start starts a watcher and tells it of all groups. It leads a session of its
// own, as a signal for the worker's group or terminal is not meant for it.
func (w *groupWatch) start() error {
	if w.process != nil { // it does not read; it must not kill either
		_ = w.process.Kill()
		_ = w.pipe.Close()
		w.process = nil
	}

	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reader.Close()

	command := exec.CommandContext(context.Background(), w.command, "-I", "-S", "-c", watchScript)
	command.Env = cleanEnvironment()
	command.Stdin = reader
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	if err := command.Start(); err != nil {
		_ = writer.Close()

		return err
	}

	done := make(chan struct{})
	w.process, w.pipe, w.done = command.Process, writer, done

	go func() {
		_ = command.Wait() // so that no zombie stays
		close(done)
		w.ended(command.Process)
	}()

	for group := range w.groups {
		if err := w.tell("+", group); err != nil {
			return err
		}
	}

	return nil
}
