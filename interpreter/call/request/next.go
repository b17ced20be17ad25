package request

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// nextRequest builds the request that follows a success (docs/concepts/attempts.md#pages):
// args merge first and the fields that name args are rendered
// again, then params and headers merge per key, a body merges at every depth, and url
// and method replace. scope is the scope of the policy's then.
func (r renderer) nextRequest(previous Request, call *playbook.NextCall, scope *interpreter.Scope) (Request, error) {
	request := previous.cloneRequest()
	if call.Args != nil {
		args, err := renderPresent(call.Args, "args", scope, r.budget)
		if err != nil {
			return Request{}, err
		}
		request.layUnder(request.Args.Data, args)
		if Naming(namesKeys...)(r.action.Args) {
			request.Overlay.Args = expression.Of(expression.Merge(request.Overlay.Args.Data, args))
		}
	}
	if err := request.changeBy(call, scope, r.budget); err != nil {
		return Request{}, err
	}
	if call.Args == nil {
		request.applyOverlay()
		return request, nil
	}
	again := r
	again.scope = r.scope.With(map[string]any{"args": request.Args.Data})
	return request, again.renderFields(&request, Naming("args"))
}

// renderMap renders a section of next_call that is a map, or one template that
// gives one.
func renderMap(node *playbook.Node, word string, scope *interpreter.Scope, budget *expression.Budget) (map[string]any, error) {
	value, err := node.Render(scope, budget)
	if err != nil {
		return nil, err
	}
	m, ok := value.(map[string]any)
	if !ok {
		return nil, &playbook.EvalError{
			Pos: node.Pos, Message: fmt.Sprintf("next_call.%s must be a map, not %s", word, expression.TypeName(value)),
		}
	}
	return m, nil
}

func (r *Request) cloneRequest() Request {
	request := *r
	request.Fields = playbook.CloneMap(r.Fields, 0)
	return request
}

// changeBy adds one next_call to the overlay.
func (r *Request) changeBy(call *playbook.NextCall, scope *interpreter.Scope, budget *expression.Budget) error {
	if call.URL != nil {
		r.showParams()
	}
	params, err := changes(call.Params, playbook.FieldParams, scope, budget)
	if err != nil {
		return err
	}
	r.Overlay.Params = mergeChanges(r.Overlay.Params, params, playbook.FieldParams)
	r.unhideParams(params)
	headers, err := changes(call.Headers, playbook.FieldHeaders, scope, budget)
	if err != nil {
		return err
	}
	r.Overlay.Headers = mergeChanges(r.Overlay.Headers, headers, playbook.FieldHeaders)
	if err = r.replaceField(playbook.FieldMethod, call.Method, scope, budget); err != nil {
		return err
	}
	if err = r.changeBody(call.Body, scope, budget); err != nil {
		return err
	}
	if call.URL == nil {
		return nil
	}
	return r.followURL(call.URL, scope, budget)
}

// renderPresent renders a section of next_call in which no expression may give nil: a
// page whose cursor is missing must not silently start again. A null that is
// written down is meant, and one inside of a value is that value's.
func renderPresent(node *playbook.Node, word string, scope *interpreter.Scope, budget *expression.Budget) (map[string]any, error) {
	values, err := renderMap(node, word, scope, budget)
	if err != nil {
		return nil, err
	}
	if node.Entries != nil {
		return values, absentError(node, values, "next_call."+word)
	}
	for _, key := range playbook.SortedKeys(values) { // of one template that gives the whole map
		if err := absentError(node, values[key], "next_call."+word+"."+key); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// absentError is the error of an expression of the node that gave nil.
func absentError(node *playbook.Node, value any, path string) error {
	switch {
	case value == nil && !node.Constant():
		return &playbook.EvalError{
			Pos: node.Pos,
			Message: fmt.Sprintf("%s: %s is nil; end the pages in `when` before it is missing, "+
				"or write null to remove the key", path, node.Raw),
		}
	case node.Entries != nil:
		for _, entry := range node.Entries {
			if err := absentError(entry.Value, expression.Member(value, entry.Key), path+"."+entry.Key); err != nil {
				return err
			}
		}
	case node.Items != nil:
		items, _ := value.([]any)
		for i, item := range items {
			if err := absentError(node.Items[i], item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// changes renders one map of next_call, nil for none.
func changes(node *playbook.Node, field string, scope *interpreter.Scope, budget *expression.Budget) (map[string]any, error) {
	if node == nil {
		return nil, nil
	}
	return renderPresent(node, field, scope, budget)
}

// mergeChanges merges one map of next_call over earlier changes; nil removes a key.
func mergeChanges(earlier map[string]expression.Value, values map[string]any, field string) map[string]expression.Value {
	if len(values) == 0 {
		return earlier
	}
	merged := playbook.CloneMap(earlier, len(values))
	for _, key := range playbook.SortedKeys(values) {
		dropKey(merged, field, key)
		merged[key] = expression.Of(values[key])
	}
	return merged
}

// replaceField sets a field for this request and the requests after it, to null too.
func (r *Request) replaceField(field string, node *playbook.Node, scope *interpreter.Scope, budget *expression.Budget) error {
	if node == nil {
		return nil
	}
	value, err := node.Render(scope, budget)
	if err != nil {
		return err
	}
	r.setField(field, value)
	return nil
}

func (r *Request) setField(field string, value any) {
	r.Overlay.Fields = playbook.CloneMap(r.Overlay.Fields, 1)
	r.Overlay.Fields[field] = expression.Of(value)
}

// followURL resolves next_call.url against the request before it (RFC 3986,
// section 5). Its query replaces params of the same name, until a later
// next_call names another url, or sets them again.
func (r *Request) followURL(node *playbook.Node, scope *interpreter.Scope, budget *expression.Budget) error {
	value, err := node.RenderURL(scope, budget)
	if err != nil {
		return err
	}
	target, err := r.resolveAddress(expression.Text(value))
	if err != nil {
		if parse, ok := errors.AsType[*url.Error](err); ok {
			err = parse.Err
		}
		return &playbook.EvalError{
			Pos: node.Pos, Message: fmt.Sprintf("next_call.url %q is not a URL: %v", expression.Text(value), err),
		}
	}
	r.setField(playbook.FieldURL, target.String())
	r.hideParams(playbook.SortedKeys(target.Query()))
	return nil
}

// hasNextURL reports whether the request's url comes from a next_call.
func (r *Request) hasNextURL() bool {
	_, has := r.Overlay.Fields[playbook.FieldURL]
	return has
}

// resolveAddress is an address relative to the request's url.
func (r *Request) resolveAddress(address string) (*url.URL, error) {
	before, err := ParseURL(expression.Text(r.Fields[playbook.FieldURL].Data))
	if err != nil {
		return nil, err
	}
	next, err := ParseURL(address)
	if err != nil {
		return nil, err
	}
	fromHost := strings.HasPrefix(before.Path, "/") && r.hasNextURL()
	if before.Host != "" || before.Scheme != "" || next.Host != "" || next.Scheme != "" || fromHost || strings.HasPrefix(next.Path, "/") {
		return before.ResolveReference(next), nil
	}
	return relativeToConnection(before, next)
}

// relativeToConnection is an address relative to one that begins below the path of a connection, which only the worker knows. It does not
// begin with a slash, and may lead out of that path.
func relativeToConnection(before, next *url.URL) (*url.URL, error) {
	folder, last := path.Split(strings.TrimLeft(before.EscapedPath(), "/"))
	query := next.RawQuery
	switch {
	case next.Path != "":
		last = next.EscapedPath()
	case query == "" && !next.ForceQuery:
		query = before.RawQuery
	}
	cleaned := path.Join(folder, last)
	if cleaned != "" && strings.HasSuffix(last, "/") {
		cleaned += "/"
	}
	below, err := url.Parse("./" + cleaned) // a colon in the first segment is no scheme
	if err != nil {
		return nil, err
	}
	below.RawQuery, below.Fragment = query, next.Fragment
	return below, nil
}
