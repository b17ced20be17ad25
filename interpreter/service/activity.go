// Package service lists the activities of services, which outlive runs, next to those that clean up after a run.
// It is above the packages of all services, none of which knows the others.
package service

import (
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/login"
	"reprise/interpreter/mailbox"
	"reprise/interpreter/partition"
	"reprise/interpreter/queue"
	"reprise/interpreter/tree"
)

// activities are activities with which runs reach other workflows, or clean up. They make no attempt of a step.
var activities = []string{
	interpreter.CheckActivity, interpreter.EndedActivity, interpreter.ForgetActivity, interpreter.PauseRateLimitActivity,
	interpreter.PlanActivity, interpreter.RecallActivity, interpreter.SinksActivity, interpreter.StateActivity,
	interpreter.StateCommandActivity, interpreter.StoppedActivity,
	login.ChallengeActivity, login.ExchangeActivity, login.ProofActivity,
	mailbox.DeliverActivity, mailbox.SettleActivity,
	partition.ClaimActivity, partition.NoteActivity,
	queue.CancelActivity, queue.DeadlockActivity, queue.EndedActivity, queue.EnterActivity,
	tree.AdmitActivity, tree.CancelActivity, tree.MayStartActivity,
}

// IsActivity reports whether the named activity makes no attempt of a step: no tool may have such a name, and no
// event reports it.
func IsActivity(name string) bool { return slices.Contains(activities, name) }
