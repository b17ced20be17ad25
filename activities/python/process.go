package python

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
	"syscall"
	"time"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// maxLog bounds how much of the end of the code's output is kept, in the worker's memory and in
// the log. Code may print endlessly.
const maxLog = 64 << 10

// shownLog bounds how much of the log is shown in an error without a report.
const shownLog = 2 << 10

// drainTime is how long the pipes of an ended process are read. They end at once, unless a
// program that left the process group holds them open.
const drainTime = time.Second

// endTime is how long the host has to end the processes that the code has started.
const endTime = 1500 * time.Millisecond

// process is one run of the interpreter.
type process struct {
	command   string
	directory string
	input     []byte
	nonce     string // with which the report begins
	limit     int64  // bytes of the report

	output   []byte // the report as it came
	overflow bool   // the report was over the limit
	log      []byte
	state    *os.ProcessState
}

// runProcess starts the process, waits for it and reads what it has to say. The process
// supervises the one with the code, and holds the other end of a pipe, the lifeline. When that
// is closed, because ctx has ended, the report is too large or this worker is dead, it kills
// whatever the code has started, and ends. It leads a process group, which is killed afterwards
// in any case.
func (p *process) runProcess(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reports, logs, lifeline, command, err := p.prepareCommand(ctx)
	if err != nil {
		return err
	}
	defer reports.closeEnds()
	defer logs.closeEnds()
	defer lifeline.closeEnds()
	if err := command.Start(); err != nil {
		return p.startError(err)
	}
	reports.parentOnly()
	logs.parentOnly()
	_ = lifeline.reader.Close()
	group := command.Process.Pid
	go reports.readLimited(p.limit+p.frameSize()+1, cancel)
	go logs.readTail(maxLog)
	_ = command.Wait() // the state says more than the error
	p.state = command.ProcessState
	// If the supervisor did not run to its end, most of what the code has started is in the
	// same group.
	_ = syscall.Kill(-group, syscall.SIGKILL)
	p.output, p.log = reports.drainOutput(), logs.drainOutput()
	p.overflow = int64(len(p.output)) > p.limit+p.frameSize()
	if !p.overflow && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// frameSize is how many bytes the host writes around the report.
func (p *process) frameSize() int64 { return int64(len(p.nonce) + len("\n")) }

func (p *process) prepareCommand(ctx context.Context) (reports, logs, lifeline *outPipe, command *exec.Cmd, err error) {
	var pipes [3]*outPipe
	for i := range pipes {
		if pipes[i], err = newOutPipe(); err != nil {
			for _, made := range pipes[:i] {
				made.closeEnds()
			}
			return nil, nil, nil, nil, &tool.Error{Message: "start python: " + err.Error(), Err: err}
		}
	}
	reports, logs, lifeline = pipes[0], pipes[1], pipes[2]
	command = exec.CommandContext(ctx, p.command, "-I", "-X", "utf8", "-c", hostCode)
	command.Dir = p.directory
	command.Env = cleanEnvironment()
	command.Stdin = bytes.NewReader(p.input)
	command.Stdout, command.Stderr = logs.writer, logs.writer
	command.ExtraFiles = []*os.File{reports.writer, lifeline.reader}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = lifeline.writer.Close
	// Covers supervisors that died or were stopped, and processes that do not read their stdin.
	command.WaitDelay = endTime
	return reports, logs, lifeline, command, nil
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

func (p *process) startError(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return tool.ConfigErrorf("python cannot be started on this worker: %s: %w", filepath.Base(p.command), rootCause(err))
	}
	return &tool.Error{Message: "start python: " + rootCause(err).Error(), Err: err}
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

// readReport reads the host's report; a process that ended without one is an error that says
// how it ended.
func (p *process) readReport() (*report, error) {
	if p.overflow {
		return nil, tool.TooLargeErrorf("the result of main is larger than the limit of %d bytes of JSON", p.limit)
	}
	text, framed := p.unframedReport()
	if !framed && len(p.output) > 0 && p.state.Success() {
		return nil, tool.Errorf("something other than main wrote to the stream of its result, or main returned twice, for example in a forked process")
	}
	report := &report{}
	err := json.Unmarshal(text, report)
	switch {
	case err == nil:
		return report, nil
	case errors.Is(err, expression.ErrInexact):
		return nil, tool.Errorf("the result of main cannot be represented: %w", err)
	}
	if p.state.Success() && len(p.output) > 0 {
		return nil, tool.Errorf("the result of main cannot be read: %w", err)
	}
	tail := p.log
	if len(tail) > shownLog {
		tail = tail[len(tail)-shownLog:]
	}
	return nil, &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: "exit",
		Message: fmt.Sprintf("python ended without a result: %s", p.state),
		Body:    map[string]any{"output": string(bytes.ToValidUTF8(tail, []byte("\uFFFD")))},
	}
}

// unframedReport extracts the only report from the output.
func (p *process) unframedReport() ([]byte, bool) {
	text, begins := bytes.CutPrefix(p.output, []byte(p.nonce))
	text, ends := bytes.CutSuffix(text, []byte("\n"))
	return text, begins && ends && !bytes.Contains(text, []byte("\n"))
}

// outPipe reads what a process writes. exec's own copying would wait for every process that
// holds the other end.
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

// closeEnds frees both ends; closing twice is harmless.
func (o *outPipe) closeEnds() {
	_ = o.reader.Close()
	_ = o.writer.Close()
}

// readLimited keeps the first limit bytes. Once they are full, nobody wants more and
// the process is stopped.
func (o *outPipe) readLimited(limit int64, stop func()) {
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

// drainOutput waits for the end of the pipe, at most drainTime.
func (o *outPipe) drainOutput() []byte {
	_ = o.reader.SetReadDeadline(time.Now().Add(drainTime))
	<-o.done
	return o.content
}
