package check

import (
	"slices"
	"strings"

	"reprise/interpreter/playbook"
)

// checkTriggers reports triggers that would let one delivery start several runs, or would expose the secret that
// proves another delivery genuine.
func checkTriggers(c *checker) {
	for i, trigger := range c.pb.Triggers {
		checkSender(c, trigger, c.pb.Triggers[:i])
		for _, header := range trigger.Headers {
			if slices.ContainsFunc(c.pb.Triggers, func(t *playbook.Trigger) bool { return strings.EqualFold(header, t.SignatureHeader()) }) {
				c.Errorf(trigger.Pos, playbook.CodeConflict, "%s contains a signature, which is never passed to a run, because histories can be read", header)
			}
		}
	}
}

// checkSender compares a trigger with those before it.
func checkSender(c *checker, trigger *playbook.Trigger, earlier []*playbook.Trigger) {
	if trigger.Secret == "" {
		return // decoding has said so
	}
	for _, one := range earlier {
		switch {
		case trigger.Secret == one.Secret:
			c.Errorf(trigger.Pos, playbook.CodeConflict, "the entry of triggers on line %d also has the secret %q: a delivery for one could be sent again to the other; use separate secrets",
				one.Pos.Line, playbook.ShortenText(trigger.Secret))
			return
		case trigger.SignerName() == one.SignerName() && trigger.Sender != one.Sender:
			c.Errorf(trigger.Pos, playbook.CodeConflict, "the entry of triggers on line %d is also called %q but has another sender; choose another name",
				one.Pos.Line, playbook.ShortenText(trigger.SignerName()))
			return
		}
	}
}
