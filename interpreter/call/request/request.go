package request

import (
	"net/url"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Request is a rendered request, sent in one or more attempts; kept in workflow history.
type Request struct {
	At   time.Time        `json:"at,omitzero"` // when it was rendered
	Args expression.Value `json:"args,omitzero"`
	// MapsRows says that Args is the list which the args of a sink map; the attempts do the mapping.
	MapsRows bool                        `json:"maps_rows,omitempty"`
	Fields   map[string]expression.Value `json:"fields,omitempty"`
	Params   []expression.Value          `json:"params,omitempty"` // parameters of the statement
	// After is the place behind the page before, if it was a batch of the rows of a file.
	After *interpreter.SourcePlace `json:"after,omitempty"`
	Auth  string                   `json:"auth,omitempty"`
	// Origin is the origin of the call's first request, if Auth is set: see ToolInput.
	Origin string `json:"origin,omitempty"`
	// Overlay has the changes of all next_call so far; it is applied whenever fields are rendered again.
	Overlay overlay `json:"overlay,omitzero"`
	// Data are the ranges of an approval's message that come from expressions, not from the author.
	Data []expression.Range `json:"data,omitempty"`
	// Deferred are the expressions that only the activity can evaluate.
	Deferred []interpreter.DeferredExpression `json:"deferred,omitempty"`
}

// overlay is the sum of the next_call sections applied so far; kept in workflow history. In Params and Headers, nil
// removes a key.
type overlay struct {
	Args   expression.Value            `json:"args,omitzero"`
	Params map[string]expression.Value `json:"params,omitempty"`
	// Hidden are params that the query of the url replaces.
	Hidden  map[string]hiddenParam      `json:"hidden,omitempty"`
	Headers map[string]expression.Value `json:"headers,omitempty"`
	// Fields are fields that are replaced: url, method, and a body that is not merged.
	Fields map[string]expression.Value `json:"fields,omitempty"`
	// Body is merged into the body; nil for no change.
	Body *bodyPatch `json:"body,omitempty"`
}

// IsZero makes encoding/json omit an empty overlay.
func (o overlay) IsZero() bool {
	return o.Args.IsZero() && len(o.Params) == 0 && len(o.Hidden) == 0 && len(o.Headers) == 0 && len(o.Fields) == 0 && o.Body == nil
}

// mergeOver sets the args to args with over merged over them.
func (r *Request) mergeOver(args, over any) {
	r.Args = expression.Of(expression.MergeMaps(args, over))
	if len(r.Deferred) > 0 {
		r.Deferred = withoutCoveredBy(r.Deferred, over)
	}
}

// deferAnew replaces the deferred expressions at a path that was rendered again.
func (r *Request) deferAnew(secret deferring, path ...string) {
	if len(r.Deferred) > 0 || len(secret.found) > 0 {
		r.Deferred = append(dropDeferred(r.Deferred, secret.in, path...), secret.found...)
	}
}

// applyOverlay applies the changes of next_call to the rendered fields.
func (r *Request) applyOverlay() {
	r.mergeKeys(playbook.FieldParams, r.Overlay.Params)
	r.removeHidden()
	r.mergeKeys(playbook.FieldHeaders, r.Overlay.Headers)
	for _, name := range playbook.SortedKeys(r.Overlay.Fields) {
		r.Fields[name] = r.Overlay.Fields[name]
		r.deferNoMore(name)
	}
	r.patchBody()
}

// deferNoMore drops deferred expressions at a path that now has another value.
func (r *Request) deferNoMore(path ...string) {
	if len(r.Deferred) > 0 {
		r.Deferred = dropDeferred(r.Deferred, interpreter.InFields, path...)
	}
}

// originOf returns the scheme and host of the request's url; "" if it has none.
func (r *Request) originOf() string {
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

// dropKey removes a key of params or headers, and returns the names that it may have had: headers are
// case-insensitive (RFC 9110, section 5.1).
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

// SendsRequest reports whether an attempt sends a request (on_start) before it is awaited.
func (r *Request) SendsRequest() bool {
	_, sends := r.Fields[playbook.FieldOnStart]
	return sends
}

// HTTPMethod returns the HTTP method of the request. Without one it is POST for sinks, which write, and for webhooks,
// which start something.
func (r *Request) HTTPMethod(writes bool) string {
	if start, ok := r.Fields[playbook.FieldOnStart]; ok {
		if method := expression.MapMember(start.Data, playbook.FieldMethod); method != nil {
			return expression.Text(method)
		}
		return "POST"
	}
	if method, ok := r.Fields[playbook.FieldMethod]; ok {
		return expression.Text(method.Data)
	}
	if writes {
		return "POST"
	}
	return "GET"
}

// String returns the request for people, as its method and URL with params; "" for tools without a URL.
func (r *Request) String() string {
	url, has := r.Fields[playbook.FieldURL]
	if !has {
		return ""
	}
	text := r.HTTPMethod(false) + " " + expression.Text(url.Data)
	params := expression.MapOf(r.Fields[playbook.FieldParams].Data)
	for i, name := range playbook.SortedKeys(params) {
		separator := "&"
		if i == 0 {
			separator = "?"
		}
		text += separator + name + "=" + expression.Text(params[name])
	}
	return text
}

// fingerprintFor returns the fingerprint of what the tool sends for the request.
func (r *Request) fingerprintFor(tool string) Fingerprints {
	parts := []any{r.sentParts(tool)}
	if len(r.Deferred) > 0 {
		parts = append(parts, deferredDigest(r.Deferred))
	}
	return expression.DigestBytes(parts...)[:fingerprintSize]
}
