package request

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"reprise/interpreter/playbook"
)

// namesKeys are the names in expressions whose values differ between attempts.
var namesKeys = []string{"operation_key", "attempt_key", playbook.CallbackWord}

// keyCache caches the operation key of a page, and the names of one attempt. Everything else in a key is constant
// for a call.
type keyCache struct {
	page, restarts int
	claim          string
	key            string

	attempt int
	from    any // begin of the slice, nil without one
	names   map[string]any
}

// OperationKey returns the key of a request, the same for all its attempts and redeliveries
// (docs/concepts/keys.md).
func (b *Builder) OperationKey(m Moment) string {
	claim, place := m.Claim, ""
	sink := b.source.Sink
	if sink != nil {
		claim, place = sink.Claim, sink.Place
	}
	if k := &b.cached; k.key != "" && k.page == m.Page && k.restarts == m.Restarts && k.claim == claim {
		return k.key
	}
	if sink != nil && sink.EveryRound {
		if lap := b.source.Run.WholeLap(); lap != "" {
			place += "@" + lap
		}
	}
	parts := []any{b.source.Run.KeyPrefix(), b.source.Step.Name, b.source.Visit, b.source.iterationIndex(), m.Page, place}
	if m.Restarts > 0 {
		parts = append(parts, m.Restarts) // or the server would repeat its response of the previous round
	}
	if sink != nil && sink.Staging != nil {
		parts = append(parts, sink.Staging.ID, sink.Staging.Round, string(sink.Staging.Do)) // a write that is staged again must be carried out again
	}
	if claim != "" {
		parts = append(parts, claim) // under another claim, the same page number is another page
	}
	b.cached = keyCache{page: m.Page, restarts: m.Restarts, claim: claim, key: KeyDigest(parts...)}
	return b.cached.key
}

// AttemptKey returns a key that differs for each attempt, including attempts of a reprocess.
func (b *Builder) AttemptKey(m Moment) string {
	if lap := b.source.Run.WholeLap(); lap != "" {
		return fmt.Sprintf("%s:%s.%d", b.OperationKey(m), lap, m.Attempts+1)
	}
	return b.OperationKey(m) + ":" + strconv.Itoa(m.Attempts+1)
}

// attemptKeys returns the names that exist in expressions only while something is sent. They are cached, because
// many nodes are rendered with them.
func (b *Builder) attemptKeys(m Moment) map[string]any {
	operation, attempt := b.OperationKey(m), m.Attempts+1
	from := m.Incremental["from"] // of the slice, a text or a number
	if sent := &b.cached; sent.names == nil || sent.attempt != attempt || sent.from != from {
		sent.attempt, sent.from = attempt, from
		sent.names = map[string]any{"operation_key": operation, "attempt_key": b.AttemptKey(m)}
		if b.ToolTraits(m.StartedAt).Awaits {
			sent.names[playbook.CallbackWord] = callbackKeys(operation)
		}
		if b.source.Sink != nil {
			sent.names["result"] = b.source.Sink.Result
		}
		if m.Incremental != nil {
			sent.names["incremental"] = m.Incremental
		}
	}
	return b.cached.names
}

// noKeys has a placeholder for each key. It renders requests that are compared without their keys, and is never
// changed.
var noKeys = withoutKeys()

func withoutKeys() map[string]any {
	none := make(map[string]any, len(namesKeys))
	for _, name := range namesKeys {
		none[name] = "-" // which may be a name, too
	}
	none[playbook.CallbackWord] = callbackKeys("")
	return none
}

// callbackKeys returns the value of `callback` in requests, with markers for the address. The worker inserts the
// real address when sending, because its token is a secret that must not be in history.
func callbackKeys(operation string) map[string]any {
	members := make(map[string]any, len(playbook.CallbackMembers))
	for _, name := range playbook.CallbackMembers {
		members[name] = CallbackMarker(operation, name)
	}
	return members
}

// CallbackMarker returns the text that stands for a member of callback until a request is sent. It contains the
// operation key, so that nobody else can write it.
func CallbackMarker(operation, member string) string {
	return "reprise_callback_" + operation + "_" + member
}

// idempotencyKey returns what the tool sends as Idempotency-Key: for writes of keyed tools the operation key,
// unless the author chose otherwise.
func idempotencyKey(action *playbook.Action, tool, method, operation, attempt string) string {
	mode := action.Idempotency
	if keyed := playbook.TraitsOf(tool).Keyed; mode == "" {
		switch strings.ToUpper(strings.TrimSpace(method)) {
		case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
			mode = keyed
		}
	}
	switch mode {
	case "operation":
		return operation
	case "attempt":
		return attempt
	}
	return ""
}
