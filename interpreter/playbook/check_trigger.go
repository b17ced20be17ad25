package playbook

import (
	"slices"
	"strings"
)

// checkTriggers refuses triggers by which one delivery could start several runs, or
// tell what proves that another one is genuine.
func checkTriggers(c *checker) {
	for i, trigger := range c.pb.Triggers {
		for _, earlier := range c.pb.Triggers[:i] {
			switch {
			case trigger.Secret != "" && trigger.Secret == earlier.Secret:
				c.errorf(trigger.Pos, codeConflict, "the entry of triggers in line %d has the secret %q too: who has a delivery of one could send it again as the other; give each a secret of its own",
					earlier.Pos.Line, shorten(trigger.Secret))
			case trigger.Identity() == earlier.Identity() && trigger.Sender != earlier.Sender:
				c.errorf(trigger.Pos, codeConflict, "the entry of triggers in line %d is called %q too, and has another sender; give this one another name", earlier.Pos.Line, shorten(trigger.Identity()))
			}
		}
		for _, header := range trigger.Headers {
			if slices.ContainsFunc(c.pb.Triggers, func(t *Trigger) bool { return strings.EqualFold(header, t.SignatureHeader()) }) {
				c.errorf(trigger.Pos, codeConflict, "%s has a signature, which no run is handed: its history can be read", header)
			}
		}
	}
}
