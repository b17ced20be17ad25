package interpreter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Fields of tools that the language itself knows.
const (
	fieldStatement = "statement"
	fieldParams    = "params"
	fieldHeaders   = "headers"
	fieldURL       = "url"
	fieldMethod    = "method"
	fieldBody      = "body"
)

// Request is what goes out in one or more attempts, rendered once; kept in
// workflow history.
type Request struct {
	Args   expression.Value            `json:"args,omitzero"`
	Fields map[string]expression.Value `json:"fields,omitempty"`
	Params []expression.Value          `json:"params,omitempty"` // of the statement
	Auth   string                      `json:"auth,omitempty"`
	// Overlay is what next_call changed so far; it is laid over the fields
	// whenever they are rendered again.
	Overlay Overlay `json:"overlay,omitzero"`
}

// Overlay is the sum of the next_call sections applied so far; kept in
// workflow history. In Params and Headers nil removes a key.
type Overlay struct {
	Params  map[string]expression.Value `json:"params,omitempty"`
	Headers map[string]expression.Value `json:"headers,omitempty"`
	URL     string                      `json:"url,omitempty"`
	Method  *expression.Value           `json:"method,omitempty"`
	Body    *expression.Value           `json:"body,omitempty"`
}

// IsZero tells encoding/json to leave an empty overlay out.
func (o Overlay) IsZero() bool {
	return len(o.Params) == 0 && len(o.Headers) == 0 && o.URL == "" && o.Method == nil && o.Body == nil
}

// namesKeys are the names whose values differ between attempts.
var namesKeys = []string{"operation_key", "attempt_key"}

// renderer renders an action's fields in one scope.
type renderer struct {
	action *playbook.Action
	tool   string
	scope  *Scope
	budget *expression.Budget
}

// request renders the action from nothing.
func (r renderer) request(args any) (Request, error) {
	request := Request{Args: expression.Of(args), Fields: map[string]expression.Value{}}
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

// fields renders the fields that wanted accepts, in the order of the file, and
// lays the overlay over them.
func (r renderer) fields(request *Request, wanted func(*playbook.Node) bool) error {
	for _, field := range r.action.Fields {
		if !wanted(field.Value) {
			continue
		}
		value, err := r.field(field, request)
		if err != nil {
			return err
		}
		request.Fields[field.Key] = expression.Of(value)
	}
	return request.applyOverlay()
}

func (r renderer) field(field *playbook.Entry, request *Request) (any, error) {
	switch {
	case field.Key == fieldStatement && field.Value.Statement() != nil:
		params, err := field.Value.RenderStatement(r.scope, r.budget)
		if err != nil {
			return nil, err
		}
		request.Params = values(params)
		return field.Value.Raw, nil
	case field.Key == fieldURL:
		return field.Value.RenderPresent(r.scope, r.budget)
	}
	return field.Value.Render(r.scope, r.budget)
}

func values(vs []any) []expression.Value {
	wrapped := make([]expression.Value, len(vs))
	for i, v := range vs {
		wrapped[i] = expression.Of(v)
	}
	return wrapped
}

// naming accepts nodes whose expressions name one of the roots.
func naming(roots ...string) func(*playbook.Node) bool {
	return func(node *playbook.Node) bool {
		for _, ref := range node.Refs() {
			for _, root := range roots {
				if ref.Root == root {
					return true
				}
			}
		}
		return false
	}
}

// applyOverlay lays what next_call changed over the rendered fields.
func (r *Request) applyOverlay() error {
	r.mergeKeys(fieldParams, r.Overlay.Params)
	r.mergeKeys(fieldHeaders, r.Overlay.Headers)
	if r.Overlay.Method != nil {
		r.Fields[fieldMethod] = *r.Overlay.Method
	}
	if r.Overlay.Body != nil {
		r.Fields[fieldBody] = *r.Overlay.Body
	}
	if r.Overlay.URL != "" {
		r.Fields[fieldURL] = expression.Of(r.Overlay.URL)
		return r.dropShadowedParams(r.Overlay.URL)
	}
	return nil
}

func (r *Request) mergeKeys(field string, changes map[string]expression.Value) {
	if len(changes) == 0 {
		return
	}
	merged := clone(asMap(r.Fields[field].Data), len(changes))
	for _, key := range sortedKeys(changes) {
		if value := changes[key].Data; value != nil {
			merged[key] = value
		} else {
			delete(merged, key)
		}
	}
	r.Fields[field] = expression.Of(merged)
}

// dropShadowedParams lets the query of a URL from next_call replace params of
// the same name, unless the same next_call set them.
func (r *Request) dropShadowedParams(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("next_call.url %q is not a URL: %w", address, err)
	}
	params := asMap(r.Fields[fieldParams].Data)
	if len(params) == 0 || parsed.RawQuery == "" {
		return nil
	}
	r.Fields[fieldParams] = expression.Of(without(params, parsed.Query()))
	return nil
}

// without copies the members whose names the query does not have.
func without[V any](params map[string]V, query url.Values) map[string]V {
	kept := make(map[string]V, len(params))
	for _, key := range sortedKeys(params) {
		if !query.Has(key) {
			kept[key] = params[key]
		}
	}
	return kept
}

// fingerprint tells requests of one call apart for the guard against
// repetition.
func (r *Request) fingerprint() string {
	fields := make(map[string]any, len(r.Fields)+1)
	for _, name := range sortedKeys(r.Fields) {
		fields[name] = r.Fields[name].Data
	}
	params := make([]any, len(r.Params))
	for i, param := range r.Params {
		params[i] = param.Data
	}
	return hash(fields, params, r.Args.Data)
}

// hash is a short, stable digest of values.
func hash(vs ...any) string {
	digest := sha256.New()
	for _, v := range vs {
		encoded, err := expression.Encode(v)
		if err != nil {
			encoded = []byte(fmt.Sprint(v))
		}
		fmt.Fprintf(digest, "%d:", len(encoded))
		digest.Write(encoded)
	}
	return hex.EncodeToString(digest.Sum(nil))[:16]
}

// idempotencyKey is what the tool sends as Idempotency-Key: the operation key
// for writes over HTTP unless the author chose otherwise.
func idempotencyKey(action *playbook.Action, tool, method, operation, attempt string) string {
	mode := action.Idempotency
	if mode == "" && tool == "http" {
		switch strings.ToUpper(method) {
		case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
			mode = "operation"
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
