package interpreter

import (
	"errors"
	"fmt"
	"net/url"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// next builds the request that follows a success (language.md, section
// next_call): args merge first and the fields that name args are rendered
// again, then params and headers merge per key and url, method and body
// replace. scope is that of the policy's then.
func (r renderer) next(previous Request, call *playbook.NextCall, scope *Scope) (Request, error) {
	request := previous.clone()
	if call.Args != nil {
		args, err := call.Args.Render(scope, r.budget)
		if err != nil {
			return Request{}, err
		}
		request.Args = expression.Of(expression.Merge(request.Args.Data, args))
	}
	if err := request.change(call, scope, r.budget); err != nil {
		return Request{}, err
	}
	if call.Args == nil {
		return request, request.applyOverlay()
	}
	again := r
	again.scope = r.scope.With(map[string]any{"args": request.Args.Data})
	return request, again.fields(&request, naming("args"))
}

func (r *Request) clone() Request {
	request := *r
	request.Fields = clone(r.Fields, 0)
	return request
}

// change adds one next_call to the overlay.
func (r *Request) change(call *playbook.NextCall, scope *Scope, budget *expression.Budget) error {
	var err error
	if r.Overlay.Params, err = changes(r.Overlay.Params, call.Params, "params", scope, budget); err != nil {
		return err
	}
	if r.Overlay.Headers, err = changes(r.Overlay.Headers, call.Headers, "headers", scope, budget); err != nil {
		return err
	}
	if r.Overlay.Method, err = replacement(r.Overlay.Method, call.Method, scope, budget); err != nil {
		return err
	}
	if r.Overlay.Body, err = replacement(r.Overlay.Body, call.Body, scope, budget); err != nil {
		return err
	}
	if call.URL == nil {
		return nil
	}
	return r.follow(call.URL, scope, budget)
}

// changes merges one map of next_call over what earlier ones changed. A
// literal null removes the key; an expression that gives nil is an error,
// because a page whose cursor is missing must not silently start again.
func changes(
	earlier map[string]expression.Value, node *playbook.Node, word string,
	scope *Scope, budget *expression.Budget,
) (map[string]expression.Value, error) {
	if node == nil {
		return earlier, nil
	}
	merged := clone(earlier, len(node.Entries))
	for _, entry := range node.Entries {
		value, err := entry.Value.Render(scope, budget)
		if err != nil {
			return nil, err
		}
		if value == nil && !entry.Value.Constant() {
			return nil, &playbook.EvalError{
				Pos: entry.Value.Pos,
				Message: fmt.Sprintf("next_call.%s.%s: %s is nil; end the pages in `when` before it is missing, "+
					"or write null to remove the key", word, entry.Key, entry.Value.Raw),
			}
		}
		merged[entry.Key] = expression.Of(value)
	}
	return merged, nil
}

func replacement(
	earlier *expression.Value, node *playbook.Node, scope *Scope, budget *expression.Budget,
) (*expression.Value, error) {
	if node == nil {
		return earlier, nil
	}
	value, err := node.Render(scope, budget)
	if err != nil {
		return nil, err
	}
	wrapped := expression.Of(value)
	return &wrapped, nil
}

// follow resolves next_call.url against the request before it (RFC 3986,
// section 5). Params whose names the new query does not have stay.
func (r *Request) follow(node *playbook.Node, scope *Scope, budget *expression.Budget) error {
	value, err := node.RenderPresent(scope, budget)
	if err != nil {
		return err
	}
	base, err := url.Parse(expression.Text(r.Fields[fieldURL].Data))
	if err == nil {
		base, err = base.Parse(expression.Text(value))
	}
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return &playbook.EvalError{
			Pos: node.Pos, Message: fmt.Sprintf("next_call.url %q is not a URL: %v", expression.Text(value), err),
		}
	}
	r.Overlay.URL = base.String()
	r.Overlay.Params = without(r.Overlay.Params, base.Query())
	return nil
}
