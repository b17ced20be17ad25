package playbook

import (
	"slices"
	"strings"
)

// checkTriggers refuses triggers by which one delivery could start several runs, or
// know what proves that another one is genuine.
func checkTriggers(c *checker) {
	for i, trigger := range c.pb.Triggers {
		c.checkSender(trigger, c.pb.Triggers[:i])
		for _, header := range trigger.Headers {
			if slices.ContainsFunc(c.pb.Triggers, func(t *Trigger) bool { return strings.EqualFold(header, t.SignatureHeader()) }) {
				c.errorf(trigger.Pos, codeConflict, "%s has a signature, which is passed to no run: its history can be read", header)
			}
		}
	}
}

// checkSender holds a trigger against those before it.
func (c *checker) checkSender(trigger *Trigger, earlier []*Trigger) {
	if trigger.Secret == "" {
		return // decoding has said so
	}
	for _, one := range earlier {
		switch {
		case trigger.Secret == one.Secret:
			c.errorf(trigger.Pos, codeConflict, "the entry of triggers in line %d has the secret %q too: anyone with a delivery of one could send it again as the other; give each a secret of its own",
				one.Pos.Line, shorten(trigger.Secret))
			return
		case trigger.Signer() == one.Signer() && trigger.Sender != one.Sender:
			c.errorf(trigger.Pos, codeConflict, "the entry of triggers in line %d is called %q too, and has another sender; give this one another name",
				one.Pos.Line, shorten(trigger.Signer()))
			return
		}
	}
}
