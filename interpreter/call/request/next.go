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

// next builds the request that follows a success (docs/concepts/attempts.md#pages):
// args merge first and the fields that name args are rendered
// again, then params and headers merge per key, a body merges at every depth, and url
// and method replace. scope is the scope of the policy's then.
func (r renderer) next(previous Request, call *playbook.NextCall, scope *interpreter.Scope) (Request, error) {
	request := previous.clone()
	if call.Args != nil {
		args, err := present(call.Args, "args", scope, r.budget)
		if err != nil {
			return Request{}, err
		}
		request.lay(request.Args.Data, args)
		if Naming(namesKeys...)(r.action.Args) {
			request.Overlay.Args = expression.Of(expression.Merge(request.Overlay.Args.Data, args))
		}
	}
	if err := request.change(call, scope, r.budget); err != nil {
		return Request{}, err
	}
	if call.Args == nil {
		request.applyOverlay()
		return request, nil
	}
	again := r
	again.scope = r.scope.With(map[string]any{"args": request.Args.Data})
	return request, again.fields(&request, Naming("args"))
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

func (r *Request) clone() Request {
	request := *r
	request.Fields = playbook.CloneMap(r.Fields, 0)
	return request
}

// change adds one next_call to the overlay.
func (r *Request) change(call *playbook.NextCall, scope *interpreter.Scope, budget *expression.Budget) error {
	if call.URL != nil {
		r.showParams()
	}
	params, err := changes(call.Params, playbook.FieldParams, scope, budget)
	if err != nil {
		return err
	}
	r.Overlay.Params = changed(r.Overlay.Params, params, playbook.FieldParams)
	r.unhideParams(params)
	headers, err := changes(call.Headers, playbook.FieldHeaders, scope, budget)
	if err != nil {
		return err
	}
	r.Overlay.Headers = changed(r.Overlay.Headers, headers, playbook.FieldHeaders)
	if err = r.replace(playbook.FieldMethod, call.Method, scope, budget); err != nil {
		return err
	}
	if err = r.changeBody(call.Body, scope, budget); err != nil {
		return err
	}
	if call.URL == nil {
		return nil
	}
	return r.follow(call.URL, scope, budget)
}

// present renders a section of next_call in which no expression may give nil: a
// page whose cursor is missing must not silently start again. A null that is
// written down is meant, and one inside of a value is that value's.
func present(node *playbook.Node, word string, scope *interpreter.Scope, budget *expression.Budget) (map[string]any, error) {
	values, err := renderMap(node, word, scope, budget)
	if err != nil {
		return nil, err
	}
	if node.Entries != nil {
		return values, absent(node, values, "next_call."+word)
	}
	for _, key := range playbook.SortedKeys(values) { // of one template that gives the whole map
		if err := absent(node, values[key], "next_call."+word+"."+key); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// absent is the error of an expression of the node that gave nil.
func absent(node *playbook.Node, value any, path string) error {
	switch {
	case value == nil && !node.Constant():
		return &playbook.EvalError{
			Pos: node.Pos,
			Message: fmt.Sprintf("%s: %s is nil; end the pages in `when` before it is missing, "+
				"or write null to remove the key", path, node.Raw),
		}
	case node.Entries != nil:
		for _, entry := range node.Entries {
			if err := absent(entry.Value, expression.Member(value, entry.Key), path+"."+entry.Key); err != nil {
				return err
			}
		}
	case node.Items != nil:
		items, _ := value.([]any)
		for i, item := range items {
			if err := absent(node.Items[i], item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
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
	return present(node, field, scope, budget)
}

// changed is what earlier ones have changed with one map of next_call merged over it; nil removes the key.
func changed(earlier map[string]expression.Value, values map[string]any, field string) map[string]expression.Value {
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

// replace sets a field for this request and the requests after it, to null too.
func (r *Request) replace(field string, node *playbook.Node, scope *interpreter.Scope, budget *expression.Budget) error {
	if node == nil {
		return nil
	}
	value, err := node.Render(scope, budget)
	if err != nil {
		return err
	}
	r.set(field, value)
	return nil
}

func (r *Request) set(field string, value any) {
	r.Overlay.Fields = playbook.CloneMap(r.Overlay.Fields, 1)
	r.Overlay.Fields[field] = expression.Of(value)
}

// follow resolves next_call.url against the request before it (RFC 3986,
// section 5). Its query replaces params of the same name, until a later
// next_call names another url, or sets them again.
func (r *Request) follow(node *playbook.Node, scope *interpreter.Scope, budget *expression.Budget) error {
	value, err := node.RenderURL(scope, budget)
	if err != nil {
		return err
	}
	target, err := r.resolve(expression.Text(value))
	if err != nil {
		if parse, ok := errors.AsType[*url.Error](err); ok {
			err = parse.Err
		}
		return &playbook.EvalError{
			Pos: node.Pos, Message: fmt.Sprintf("next_call.url %q is not a URL: %v", expression.Text(value), err),
		}
	}
	r.set(playbook.FieldURL, target.String())
	r.hideParams(playbook.SortedKeys(target.Query()))
	return nil
}

// hasNextURL reports whether the request's url comes from a next_call.
func (r *Request) hasNextURL() bool {
	_, has := r.Overlay.Fields[playbook.FieldURL]
	return has
}

// resolve is an address relative to the request's url.
func (r *Request) resolve(address string) (*url.URL, error) {
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
	return besides(before, next)
}

// besides is an address relative to one that begins below the path of a connection, which only the worker knows. It does not
// begin with a slash, and may lead out of that path.
func besides(before, next *url.URL) (*url.URL, error) {
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
