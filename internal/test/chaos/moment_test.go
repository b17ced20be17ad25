package chaos_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"

	commandpb "go.temporal.io/api/command/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// momentVariable tells a worker process when to end itself.
const momentVariable = "CHAOS_MOMENT"

// moment is a point in a worker's talk with the server at which it ends itself
// with SIGKILL. Nobody outside could hit it.
type moment struct {
	What string // activity, sink, dead_letter, timer or continue
	When string // before the server is told, or after it has answered
	Nth  int    // from 1
}

func (m moment) String() string { return fmt.Sprintf("%s %s %d", m.When, m.What, m.Nth) }

func (m moment) env() []string { return []string{momentVariable + "=" + m.String()} }

// momentOf reads what env has written; without it the moment never comes.
func momentOf(text string) moment {
	var m moment
	if text != "" {
		if _, err := fmt.Sscan(text, &m.When, &m.What, &m.Nth); err != nil {
			panic(fmt.Sprintf("%s=%q: %v", momentVariable, text, err))
		}
	}
	return m
}

// watch counts what the moment waits for.
type watch struct {
	moment

	mu    sync.Mutex
	seen  int
	sinks map[string]string // what a task that writes is for, by task token
}

// interceptor sees every call that a worker makes.
func interceptor() grpc.UnaryClientInterceptor {
	w, skew := &watch{moment: momentOf(os.Getenv(momentVariable)), sinks: map[string]string{}}, skewer()
	return func(
		ctx context.Context, method string, request, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker,
		options ...grpc.CallOption,
	) error {
		now := w.due(request)
		if now && w.When == "before" {
			die()
		}
		err := invoke(ctx, method, request, reply, c, options...)
		if now && err == nil {
			die()
		}
		w.learn(reply)
		skew(reply)
		return err
	}
}

// die ends the process as the kernel would for somebody else.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// due reports whether the call with this request is the one.
func (w *watch) due(request any) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.seen
	switch r := request.(type) {
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		w.seen += w.commands(r.GetCommands())
	case *workflowservice.RespondActivityTaskCompletedRequest:
		if w.What == "activity" || w.What == w.sinks[string(r.GetTaskToken())] {
			w.seen++
		}
	case *workflowservice.RespondActivityTaskFailedRequest:
		if w.What == "activity" {
			w.seen++
		}
	}
	return before < w.Nth && w.Nth <= w.seen
}

func (w *watch) commands(commands []*commandpb.Command) int {
	var wanted enumspb.CommandType
	switch w.What {
	case "timer":
		wanted = enumspb.COMMAND_TYPE_START_TIMER
	case "continue":
		wanted = enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION
	default:
		return 0
	}
	n := 0
	for _, command := range commands {
		if command.GetCommandType() == wanted {
			n++
		}
	}
	return n
}

// learn notes which activities the server has handed out are sinks. Some come
// with the answer to a workflow task.
func (w *watch) learn(reply any) {
	switch r := reply.(type) {
	case *workflowservice.PollActivityTaskQueueResponse:
		w.note(r)
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		for _, task := range r.GetActivityTasks() {
			w.note(task)
		}
	}
}

func (w *watch) note(task *workflowservice.PollActivityTaskQueueResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, payload := range task.GetInput().GetPayloads() {
		switch {
		case bytes.Contains(payload.GetData(), []byte(`"place":"fetch.loop.dead_letter.sink"`)):
			w.sinks[string(task.GetTaskToken())] = "dead_letter"
		case bytes.Contains(payload.GetData(), []byte(`"place":"fetch.loop.sink"`)):
			w.sinks[string(task.GetTaskToken())] = "sink"
		}
	}
}
