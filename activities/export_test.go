package activities

import (
	"context"

	"reprise/activities/tool"
)

var (
	CheckSinks  = checkSinks
	FirstStates = firstStates
)

// MaskFor resolves a connection as an attempt does and gives what masks its
// secrets.
func MaskFor(ctx context.Context, res Resources, connection string) (context.Context, func(string) string) {
	res = res.withDefaults()

	ctx, secrets := tool.WithSecrets(ctx, res.Secrets)
	if _, err := res.forTools().Connection(ctx, connection, ""); err != nil {
		panic(err)
	}
	return ctx, secrets.MaskText
}

// HasLedger reports whether a tool is a ledger.
func HasLedger(c *Catalogue, name string) bool {
	_, has := c.tools[name].(tool.Ledger)
	return has
}
