package tool

import (
	"context"

	"reprise/internal/base/connection"
	"reprise/internal/base/known"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// ConnectionAccess is what a worker knows of itself that decides who may use its connections.
type ConnectionAccess struct {
	// TaskQueue is the one that the worker polls, "" for a program that polls none.
	TaskQueue string
	// Known are the playbooks that the worker knows.
	Known *known.Playbooks
}

// caller is for whom something is done.
type caller struct {
	playbook string
	of       playbook.Attestation
	// exempt says that what a connection is used for does not depend on a playbook, or that each attempt checks it later.
	exempt bool
}

type callerKey struct{}

// WithCaller says for which playbook an attempt is made, unless it depends on none.
func WithCaller(ctx context.Context, in interpreter.ToolInput) context.Context {
	if by, _ := ctx.Value(callerKey{}).(caller); by.exempt {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, caller{playbook: in.Playbook, of: in.Attestation})
}

// ForNoPlaybook marks a context in which connections are used for no playbook: for a person's commands about states.
func ForNoPlaybook(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{exempt: true})
}

// RefuseUse returns the final error of a connection that a tool, the worker of a task queue, or the playbook of the context may not use;
// nil if they may. tool is "" where it is not known yet.
func (a ConnectionAccess) RefuseUse(ctx context.Context, name, configured, tool string) error {
	user := connection.User{Tool: tool, TaskQueue: a.TaskQueue}
	uses := connection.UsesOf(configured)
	if by, _ := ctx.Value(callerKey{}).(caller); !by.exempt && len(uses.Playbooks) > 0 {
		user.Playbook, user.Unknown = by.playbook, a.Known.DoubtReason(by.playbook, by.of)
	}
	reason := uses.DenialReason(user)
	if reason == "" {
		return nil
	}
	denied := ConfigErrorf("connection %q %s", name, reason)
	denied.Type = TypeConnectionDenied
	return denied
}

// RefuseUnknown returns the final error of an attempt for a playbook that the worker does not run, nil for others.
func (a ConnectionAccess) RefuseUnknown(ctx context.Context) error {
	by, _ := ctx.Value(callerKey{}).(caller)
	reason := a.Known.RefusalText(by.playbook, by.of)
	if by.exempt || reason == "" {
		return nil
	}
	refused := ConfigErrorf("%s", reason)
	refused.Type = interpreter.UnknownPlaybook
	return refused
}
