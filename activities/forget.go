package activities

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/call"
)

// forgetTimeout bounds how long a ledger may take to forget. A workflow waits for it.
const forgetTimeout = 3 * time.Second

// Forget is the local activity that has ledgers forget calls whose results are in
// history, so that pages do not stay where they are not needed. It changes nothing
// about the run: what a ledger that is away keeps is deleted with its old notes.
func (c *Catalogue) Forget(ctx context.Context, in call.ForgetInput) error {
	ctx, _ = tool.WithSecrets(ctx, c.res.Secrets)
	ctx, stop := context.WithTimeout(ctx, forgetTimeout)
	defer stop()
	for _, place := range c.notedBy(in) {
		if err := c.ForgetNotes(ctx, place.input, place.calls, in.Again); err != nil {
			tool.Logger(ctx, c.res.Logger, place.input).Warn("entries of a ledger could not be deleted", "error", err)
		}
	}
	return nil
}

// ForgetNotes has the ledger of a sink drop its notes of calls. See [Ledger].
func (c *Catalogue) ForgetNotes(ctx context.Context, in interpreter.ToolInput, calls []string, again bool) error {
	ledger, ok := c.tools[in.Tool].(tool.Ledger)
	if !ok || !ledger.Notes(in) {
		return nil
	}
	return ledger.Forget(ctx, in, calls, again)
}

// notedPlace is a ledger with calls of which it may have notes.
type notedPlace struct {
	input interpreter.ToolInput
	calls []string
}

// notedBy are the ledgers of calls. What cannot be rendered was not written to.
func (c *Catalogue) notedBy(in call.ForgetInput) []*notedPlace {
	book, step, err := in.Task.Load()
	if err != nil {
		return nil
	}
	var all []*notedPlace
	places := map[string]*notedPlace{}
	for _, carried := range in.Calls {
		call := in.Task.Call(book, step, carried, rand.Float64)
		for _, input := range call.View().Ledgers(time.Now()) {
			key, err := json.Marshal([]any{input.Tool, input.Auth, input.Fields})
			if err != nil {
				continue
			}
			place := places[string(key)]
			if place == nil {
				place = &notedPlace{input: input}
				places[string(key)], all = place, append(all, place)
			}
			place.calls = append(place.calls, input.Note.Call)
		}
	}
	return all
}
