package call

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Request is what goes out in one or more attempts, rendered once; kept in
// workflow history.
type Request struct {
	At     time.Time                   `json:"at,omitzero"` // when it was rendered
	Args   expression.Value            `json:"args,omitzero"`
	Fields map[string]expression.Value `json:"fields,omitempty"`
	Params []expression.Value          `json:"params,omitempty"` // of the statement
	Auth   string                      `json:"auth,omitempty"`
	// Origin is that of the call's first request, where Auth is given: see
	// ToolInput.
	Origin string `json:"origin,omitempty"`
	// Overlay is what next_call changed so far; it is laid over the fields
	// whenever they are rendered again.
	Overlay overlay `json:"overlay,omitzero"`
	// Data is where data stands in the question of an approval.
	Data []expression.Range `json:"data,omitempty"`
	// Deferred are the expressions that only the activity can evaluate.
	Deferred []interpreter.Deferred `json:"deferred,omitempty"`
}

// overlay is the sum of the next_call sections applied so far; kept in
// workflow history. In Params and Headers nil removes a key.
type overlay struct {
	Args    expression.Value            `json:"args,omitzero"`
	Params  map[string]expression.Value `json:"params,omitempty"`
	Headers map[string]expression.Value `json:"headers,omitempty"`
	// Fields are those that are replaced: url, method and body.
	Fields map[string]expression.Value `json:"fields,omitempty"`
	// Body is merged into the body; nil for nothing.
	Body *bodyPatch `json:"body,omitempty"`
}

// IsZero has encoding/json omit an empty overlay.
func (o overlay) IsZero() bool {
	return o.Args.IsZero() && len(o.Params) == 0 && len(o.Headers) == 0 && len(o.Fields) == 0 && o.Body == nil
}

// namesKeys are the names whose values differ between attempts.
var namesKeys = []string{"operation_key", "attempt_key", playbook.CallbackWord}

// renderer renders an action's fields in one scope.
type renderer struct {
	book       *playbook.Playbook
	action     *playbook.Action
	scope      *interpreter.Scope
	budget     *expression.Budget
	asksPeople bool
}

// request renders the action from nothing. before has its args.
func (r renderer) request(before Request) (Request, error) {
	request := Request{Args: before.Args, Fields: map[string]expression.Value{}, Deferred: before.Deferred}
	if err := r.fields(&request, func(*playbook.Node) bool { return true }); err != nil {
		return Request{}, err
	}
	if r.action.Auth != nil {
		auth, err := r.action.Auth.Render(r.scope, r.budget)
		if err != nil {
			return Request{}, err
		}
		request.Auth = expression.Text(auth)
	}
	return request, nil
}

// fields renders the fields that the filter accepts, in the order of the file, and
// lays the overlay over them.
func (r renderer) fields(request *Request, accepts func(*playbook.Node) bool) error {
	for _, field := range r.action.Fields {
		if !accepts(field.Value) {
			continue
		}
		value, err := r.field(field, request)
		if err != nil {
			return err
		}
		request.Fields[field.Key] = expression.Of(value)
	}
	request.applyOverlay()
	return nil
}

func (r renderer) field(field *playbook.Entry, request *Request) (value any, err error) {
	secret := deferring{book: r.book, scope: r.scope, budget: r.budget, in: interpreter.InFields}
	switch {
	case field.Key == playbook.FieldStatement && field.Value.Statement() != nil:
		secret.in = interpreter.InParams
		var params []any
		params, err = secret.params(field.Value)
		if err == nil {
			value, request.Params = field.Value.Raw, expression.Values(params)
			request.deferAnew(secret)
		}
		return value, err
	case r.asksPeople && field.Key == playbook.FieldMessage && len(secret.sealed(field.Value)) == 0:
		value, request.Data, err = field.Value.RenderPlaced(r.scope, r.budget)
	case field.Key == playbook.FieldURL:
		value, err = secret.url(field.Value, playbook.FieldURL)
	case playbook.IsRequestField(field.Key):
		value, err = secret.request(field.Value, field.Key)
	case r.book == nil || !r.book.HasSecrets():
		return field.Value.Render(r.scope, r.budget)
	default:
		value, err = secret.value(field.Value, field.Key)
	}
	if err == nil {
		request.deferAnew(secret, field.Key)
	}
	return value, err
}

// deferAnew replaces what was deferred at a path that was rendered again.
func (r *Request) deferAnew(secret deferring, path ...string) {
	if len(r.Deferred) > 0 || len(secret.found) > 0 {
		r.Deferred = append(without(r.Deferred, secret.in, path...), secret.found...)
	}
}

// naming accepts nodes whose expressions name one of the roots.
func naming(roots ...string) func(*playbook.Node) bool {
	return func(node *playbook.Node) bool { return node.Names(roots...) }
}

// applyOverlay lays what next_call changed over the rendered fields.
func (r *Request) applyOverlay() {
	r.mergeKeys(playbook.FieldParams, r.Overlay.Params)
	r.mergeKeys(playbook.FieldHeaders, r.Overlay.Headers)
	for _, name := range playbook.SortedKeys(r.Overlay.Fields) {
		r.Fields[name] = r.Overlay.Fields[name]
		r.deferNoMore(name)
	}
	r.patchBody()
}

// deferNoMore drops what was deferred at a place that has another value now.
func (r *Request) deferNoMore(path ...string) {
	if len(r.Deferred) > 0 {
		r.Deferred = without(r.Deferred, interpreter.InFields, path...)
	}
}

// origin is where the request goes: the scheme and host of its url, without
// anything else of it. "" where there is no url, or one without a host.
func (r *Request) origin() string {
	target, err := url.Parse(strings.TrimSpace(expression.Text(r.Fields[playbook.FieldURL].Data)))
	if err != nil || target.Scheme == "" || target.Host == "" {
		return ""
	}
	return target.Scheme + "://" + strings.ToLower(target.Host)
}

func (r *Request) mergeKeys(field string, changes map[string]expression.Value) {
	if len(changes) == 0 {
		return
	}
	before, had := r.Fields[field]
	merged := playbook.CloneMap(expression.MapOf(before.Data), len(changes))
	for _, key := range playbook.SortedKeys(changes) {
		for _, dropped := range dropKey(merged, field, key) {
			r.deferNoMore(field, dropped)
		}
		if value := changes[key].Data; value != nil {
			merged[key] = value
		}
	}
	if had || len(merged) > 0 {
		r.Fields[field] = expression.Of(merged)
	}
}

// dropKey removes a key of params or headers. Names of headers are the same in
// upper and lower case (RFC 9110, section 5.1).
// It returns the names that it may have had.
func dropKey[V any](m map[string]V, field, key string) []string {
	delete(m, key)
	dropped := []string{key}
	if field != playbook.FieldHeaders {
		return dropped
	}
	for _, other := range playbook.SortedKeys(m) {
		if strings.EqualFold(other, key) {
			delete(m, other)
			dropped = append(dropped, other)
		}
	}
	return dropped
}

// fingerprint identifies a request of a call for the guard against
// repetition, by what their tool sends.
func (r *Request) fingerprint(tool string) Fingerprints {
	parts := []any{r.sent(tool)}
	if len(r.Deferred) > 0 {
		parts = append(parts, deferredDigest(r.Deferred))
	}
	return expression.Sum(parts...)[:fingerprintSize]
}

// idempotencyKey is what the tool sends as Idempotency-Key: the operation key
// for writes of keyed tools unless the author chose otherwise.
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
