package hosting

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"reprise/activities/attempt"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/call"
)

// forgetTimeout bounds how long a ledger may take to forget. A workflow waits for it.
const forgetTimeout = 3 * time.Second

// Forget is the local activity that deletes the notes of calls whose results are in history, so
// that copies of pages do not stay in ledgers. It does not change the run: notes of an
// unreachable ledger are deleted with its old notes.
func (c *Calls) Forget(ctx context.Context, in call.ForgetInput) error {
	ctx, _ = tool.WithSecrets(ctx, c.Attempts.Resources.Secrets)
	ctx, stop := context.WithTimeout(ctx, forgetTimeout)
	defer stop()
	for _, place := range notedPlaces(in) {
		if err := ForgetNotes(ctx, c.Attempts, place.input, place.calls, in.Again); err != nil {
			tool.Logger(ctx, c.Attempts.Resources.Logger, place.input).Warn("entries of a ledger could not be deleted", "error", err)
		}
	}
	return nil
}

// ForgetNotes has the ledger of a sink drop its notes of calls. See [tool.Ledger].
func ForgetNotes(ctx context.Context, attempts *attempt.Runner, in interpreter.ToolInput, calls []string, again bool) error {
	ledger, ok := attempts.Tools[in.Tool].(tool.Ledger)
	if !ok || !ledger.RecordsWrite(in) {
		return nil
	}
	return ledger.ForgetNotes(ctx, in, calls, again)
}

// RecallNotes asks the ledger of a sink for the notes of a call; a tool that keeps
// none has none. See [tool.Ledger].
func RecallNotes(ctx context.Context, attempts *attempt.Runner, in interpreter.ToolInput) ([]interpreter.LedgerEntry, error) {
	ledger, ok := attempts.Tools[in.Tool].(tool.Ledger)
	if !ok || !ledger.RecordsWrite(in) {
		return nil, nil
	}
	return attempt.CallTool(ctx, attempts, in, ledger.RecallNotes)
}

// notedPlace is a ledger that may contain notes of some calls.
type notedPlace struct {
	input interpreter.ToolInput
	calls []string
}

// notedPlaces returns the ledgers of calls. What cannot be rendered was not written to.
func notedPlaces(in call.ForgetInput) []*notedPlace {
	book, step, err := in.Task.LoadStep()
	if err != nil {
		return nil
	}
	var all []*notedPlace
	places := map[string]*notedPlace{}
	for _, carried := range in.Calls {
		call := in.Task.BuildCall(book, step, carried, rand.Float64)
		for _, input := range call.View().LedgerQueries(time.Now()) {
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
