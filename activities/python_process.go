package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"reprise/interpreter"
)

// maxLog is how much of what the code prints is kept: the end of it.
const maxLog = 64 << 10

// maxExitLog is how much of it an error shows when there is no report.
const maxExitLog = 2 << 10

// drainTime is how long the pipes of a process that has ended are read. They
// end at once, unless a program that left the process group holds them.
const drainTime = time.Second

// pythonProcess is one run of the interpreter.
type pythonProcess struct {
	command   string
	directory string
	watch     *groupWatch
	input     []byte
	limit     int64 // bytes of the report

	output   []byte // the report as it came
	overflow bool   // the report was over the limit
	log      []byte
	state    *os.ProcessState
}

// run starts the process, waits for it and reads what it has to say. The
// process leads a group of its own, which is killed when ctx ends, when the
// report is too large, and at the end for what the code left running.
func (p *pythonProcess) run(ctx context.Context) error {
	// The kernel ties the child's life to the thread that started it (see
	// dieWithWorker), so this goroutine keeps its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	reports, logs, command, err := p.prepare(ctx)
	if err != nil {
		return err
	}
	defer reports.close()
	defer logs.close()

	if err := command.Start(); err != nil {
		return p.startError(err)
	}

	reports.parentOnly()
	logs.parentOnly()

	group := command.Process.Pid

	p.watch.add(group)
	defer p.watch.remove(group)

	go reports.read(p.limit+1, cancel)
	go logs.readTail(maxLog)

	_ = command.Wait() // the state says more than the error
	p.state = command.ProcessState

	// Whatever the code started and left behind is in the same group.
	_ = syscall.Kill(-group, syscall.SIGKILL)

	p.output, p.log = reports.drain(), logs.drain()
	p.overflow = int64(len(p.output)) > p.limit

	if !p.overflow && ctx.Err() != nil {
		return ctx.Err()
	}

	return nil
}

func (p *pythonProcess) prepare(ctx context.Context) (reports, logs *outPipe, command *exec.Cmd, err error) {
	reports, err = newOutPipe()
	if err != nil {
		return nil, nil, nil, &Error{Message: "start python: " + err.Error(), Err: err}
	}

	logs, err = newOutPipe()
	if err != nil {
		reports.close()

		return nil, nil, nil, &Error{Message: "start python: " + err.Error(), Err: err}
	}

	command = exec.CommandContext(ctx, p.command, "-I", "-X", "utf8", "-c", pythonHost)
	command.Dir = p.directory
	command.Env = cleanEnvironment()
	command.Stdin = bytes.NewReader(p.input)
	command.Stdout, command.Stderr = logs.writer, logs.writer
	command.ExtraFiles = []*os.File{reports.writer}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithWorker(command.SysProcAttr)
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = drainTime // for stdin of a process that reads none of it

	return reports, logs, command, nil
}

// cleanEnvironment leaves out everything a worker is configured with, its
// connections above all.
func cleanEnvironment() []string {
	var env []string

	for _, name := range []string{"PATH", "LANG", "HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}

	return env
}

func (p *pythonProcess) startError(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return configErrorf("python cannot be started on this worker: %s: %w", filepath.Base(p.command), rootCause(err))
	}

	return &Error{Message: "start python: " + rootCause(err).Error(), Err: err}
}

// rootCause leaves out the wrappers that name paths of the worker.
func rootCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}

		err = next
	}
}

// report reads what the host said; a process that ended without a report is an
// error that says how it ended.
func (p *pythonProcess) report() (*pythonReport, error) {
	if p.overflow {
		return nil, tooLargef("what main returned is over the limit of %d bytes of JSON", p.limit)
	}

	report := &pythonReport{}

	err := json.Unmarshal(p.output, report)
	if err == nil {
		return report, nil
	}

	if p.state.Success() && len(p.output) > 0 {
		return nil, toolErrorf("what main returned cannot be read: %w", err)
	}

	tail := p.log
	if len(tail) > maxExitLog {
		tail = tail[len(tail)-maxExitLog:]
	}

	return nil, &Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: "exit",
		Message: fmt.Sprintf("python ended without a result: %s", p.state),
		Body:    map[string]any{"output": string(bytes.ToValidUTF8(tail, []byte("\uFFFD")))},
	}
}

// outPipe carries what a process writes. exec's own copying would wait for
// every process that holds the other end.
type outPipe struct {
	reader, writer *os.File
	done           chan struct{}
	content        []byte
}

func newOutPipe() (*outPipe, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}

	return &outPipe{reader: reader, writer: writer, done: make(chan struct{})}, nil
}

// parentOnly closes the child's end here, so that its end shows.
func (o *outPipe) parentOnly() { _ = o.writer.Close() }

// close frees both ends; closing twice is harmless.
func (o *outPipe) close() {
	_ = o.reader.Close()
	_ = o.writer.Close()
}

// read keeps the first limit bytes. Once they are full, nobody wants more and
// the process is stopped.
func (o *outPipe) read(limit int64, stop func()) {
	defer close(o.done)

	o.content, _ = io.ReadAll(io.LimitReader(o.reader, limit))
	if int64(len(o.content)) == limit {
		stop()
	}
}

// readTail keeps the last limit bytes and reads on, so that the process never
// waits for its prints.
func (o *outPipe) readTail(limit int) {
	defer close(o.done)

	chunk := make([]byte, 32<<10)

	for {
		n, err := o.reader.Read(chunk)

		o.content = append(o.content, chunk[:n]...)
		if len(o.content) > 2*limit {
			o.content = append([]byte(nil), o.content[len(o.content)-limit:]...)
		}

		if err != nil {
			o.content = o.content[max(0, len(o.content)-limit):]

			return
		}
	}
}

// drain waits for the end of the pipe, at most drainTime.
func (o *outPipe) drain() []byte {
	_ = o.reader.SetReadDeadline(time.Now().Add(drainTime))
	<-o.done

	return o.content
}
