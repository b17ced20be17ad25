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

// nextRequest builds the request that follows a success (docs/concepts/attempts.md#pages): first args are merged,
// and fields that use args rendered again, then params and headers are merged per key and a body at every depth,
// and url and method are replaced. scope is the scope of the policy's then.
func (r renderer) nextRequest(previous Request, call *playbook.NextCall, scope *interpreter.Scope) (Request, error) {
	request := previous.cloneRequest()
	if call.Args != nil {
		args, err := renderPresent(call.Args, "args", scope, r.budget)
		if err != nil {
			return Request{}, err
		}
		request.mergeOver(request.Args.Data, args)
		if UsesAny(namesKeys...)(r.action.Args) {
			request.Overlay.Args = expression.Of(expression.MergeMaps(request.Overlay.Args.Data, args))
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
	return request, again.renderFields(&request, UsesAny("args"))
}

// renderMap renders a section of next_call that is a map, or a template that returns one.
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

// changeBy adds the changes of one next_call to the overlay.
func (r *Request) changeBy(call *playbook.NextCall, scope *interpreter.Scope, budget *expression.Budget) error {
	if call.URL != nil {
		r.showParams()
	}
	params, err := renderChanges(call.Params, playbook.FieldParams, scope, budget)
	if err != nil {
		return err
	}
	r.Overlay.Params = mergeChanges(r.Overlay.Params, params, playbook.FieldParams)
	r.unhideParams(params)
	headers, err := renderChanges(call.Headers, playbook.FieldHeaders, scope, budget)
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

// renderPresent renders a section of next_call in which no expression may return nil: a request whose cursor is
// missing must not silently start again at the first page. A literal null is allowed, and so is a null inside a
// value.
func renderPresent(node *playbook.Node, word string, scope *interpreter.Scope, budget *expression.Budget) (map[string]any, error) {
	values, err := renderMap(node, word, scope, budget)
	if err != nil {
		return nil, err
	}
	if node.Entries != nil {
		return values, absentError(node, values, "next_call."+word)
	}
	for _, key := range playbook.SortedKeys(values) { // the whole map is one template
		if err := absentError(node, values[key], "next_call."+word+"."+key); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// absentError returns an error if an expression of the node returned nil.
func absentError(node *playbook.Node, value any, path string) error {
	switch {
	case value == nil && !node.IsConstant():
		return &playbook.EvalError{
			Pos: node.Pos,
			Message: fmt.Sprintf("%s: %s is nil; end the pages in `when` before it is missing, "+
				"or write null to remove the key", path, node.Raw),
		}
	case node.Entries != nil:
		for _, entry := range node.Entries {
			if err := absentError(entry.Value, expression.MapMember(value, entry.Key), path+"."+entry.Key); err != nil {
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

// renderChanges renders one map of next_call; nil if there is none.
func renderChanges(node *playbook.Node, field string, scope *interpreter.Scope, budget *expression.Budget) (map[string]any, error) {
	if node == nil {
		return nil, nil
	}
	return renderPresent(node, field, scope, budget)
}

// mergeChanges merges one map of next_call over earlier changes; a nil value removes its key.
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

// replaceField sets a field, possibly to nil, for this request and later ones.
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

// followURL resolves next_call.url against the previous request (RFC 3986, section 5). Its query replaces params of
// the same name, until a later next_call sets another url or these params.
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

// hasNextURL reports whether a next_call has set the request's url.
func (r *Request) hasNextURL() bool {
	_, has := r.Overlay.Fields[playbook.FieldURL]
	return has
}

// resolveAddress resolves an address against the request's url.
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

// relativeToConnection resolves an address against one that begins below the path of a connection, which only the
// worker knows. The result does not begin with a slash, and may lead out of that path.
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
	below, err := url.Parse("./" + cleaned) // a colon in the first segment must not be read as a scheme
	if err != nil {
		return nil, err
	}
	below.RawQuery, below.Fragment = query, next.Fragment
	return below, nil
}
