package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/interpreter"
	"reprise/workflows"
)

const (
	// followInterval is how often a run is asked how far it is.
	followInterval = 500 * time.Millisecond
	// cancelPatience is how long a cancelled run may take to end in order.
	cancelPatience = 10 * time.Second
)

// outcome is how a run ended, or why we do not know.
type outcome struct {
	result workflows.Result
	err    error
}

// follow shows a run's progress, waits for its end and reports it.
func (a *app) follow(s *session, run client.WorkflowRun, output string) error {
	ctx, cancel := context.WithCancel(a.interrupts.now)
	defer cancel()
	ended := make(chan outcome, 1)
	go func() {
		result, err := workflows.Outcome(ctx, run)
		ended <- outcome{result, err}
	}()
	screen := newProgress(a.Streams)
	watching := make(chan struct{})
	watchContext, stopWatching := context.WithCancel(ctx)
	go func() {
		defer close(watching)
		watch(watchContext, newObserver(s, run), screen)
	}()
	stop := func() {
		stopWatching()
		<-watching
		screen.close()
	}
	select {
	case end := <-ended:
		stop()
		if s.server != nil && output == "table" {
			defer a.notef("The local server ends here; starter dev keeps one up, to look at runs afterwards.")
		}
		return a.report(s, run, end, output)
	case <-s.lost():
		stop()
		return s.lostError()
	case <-a.interrupts.asked.Done():
		stop()
	}
	if s.server == nil {
		return a.leave(s, run, output)
	}
	a.notef("cancelling the run; Ctrl-C again leaves at once")
	end := cancelled(ctx, s, run, ended)
	if a.interrupts.now.Err() != nil {
		return withStatus(exitInterrupted, errors.New("left before the run had ended"))
	}
	return a.report(s, run, end, output)
}

// cancelled cancels a run and waits for its end, for a while.
func cancelled(ctx context.Context, s *session, run client.WorkflowRun, ended <-chan outcome) outcome {
	ctx, cancel := context.WithTimeout(ctx, cancelPatience)
	defer cancel()
	if err := s.client.CancelWorkflow(ctx, run.GetID(), run.GetRunID()); err != nil {
		return outcome{err: fmt.Errorf("cancel the run: %w", err)}
	}
	select {
	case end := <-ended:
		return end
	case <-s.lost():
		return outcome{err: errors.New("the local Temporal server ended before the cancelled run did")}
	case <-ctx.Done(): // of no interest if the user left
		return outcome{result: workflows.Result{
			Status:   interpreter.Cancelled,
			Warnings: []string{fmt.Sprintf("the run did not end within %s after it was cancelled; its server was stopped", cancelPatience)},
		}}
	}
}

// leave tells how to go on with a run that we no longer follow.
func (a *app) leave(s *session, run client.WorkflowRun, output string) error {
	a.notef("stopped following; the run goes on")
	if link := s.link(run.GetID(), run.GetRunID()); link != "" {
		a.notef("  look on:  %s", link)
	}
	a.notef("  cancel:   temporal workflow cancel --address %s --namespace %s --workflow-id %q", s.address, s.namespace, run.GetID())
	if output == "json" {
		if err := printJSON(a.Out, s.unfinished(run)); err != nil {
			return err
		}
	}
	return withStatus(exitInterrupted, errSaid)
}

// watch shows what the observer sees until ctx ends. Looking at a large loop
// may take long; the pauses grow with it, so that it never is most of the load.
func watch(ctx context.Context, observer *observer, screen progress) {
	for wait := followInterval / 2; pause(ctx, wait); {
		began := time.Now()
		lines, err := observer.look(ctx)
		if err == nil {
			screen.show(lines)
		}
		wait = max(followInterval, 4*time.Since(began))
	}
}
