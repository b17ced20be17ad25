package request

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// deferring renders values, and records the expressions that use a sealed result for the activity to evaluate.
type deferring struct {
	book   *playbook.Playbook // nil if nothing is deferred
	scope  *interpreter.Scope
	budget *expression.Budget
	in     interpreter.RequestPart
	found  []interpreter.DeferredExpression
}

// renderValue renders the value at a path.
func (d *deferring) renderValue(node *playbook.Node, path ...string) (any, error) {
	steps := d.sealedSteps(node)
	switch {
	case len(steps) == 0:
		return node.Render(d.scope, d.budget)
	case node.Template != nil:
		d.addDeferred(interpreter.DeferredExpression{Path: path, Template: node.Raw}, steps, node.Refs())
		return playbook.Hidden, nil
	case node.Items != nil:
		list := make([]any, len(node.Items))
		for i, item := range node.Items {
			value, err := d.renderValue(item, append(slices.Clip(path), strconv.Itoa(i))...)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	}
	object := make(map[string]any, len(node.Entries))
	for _, entry := range node.Entries {
		value, err := d.renderValue(entry.Value, append(slices.Clip(path), entry.Key)...)
		if err != nil {
			return nil, err
		}
		object[entry.Key] = value
	}
	return object, nil
}

// renderRequest renders a map that is itself a request, and whose url is rendered as a URL.
func (d *deferring) renderRequest(node *playbook.Node, field string) (any, error) {
	if node.Entries == nil {
		return d.renderValue(node, field)
	}
	request := make(map[string]any, len(node.Entries))
	for _, entry := range node.Entries {
		render := d.renderValue
		if entry.Key == playbook.FieldURL {
			render = d.renderURL
		}
		value, err := render(entry.Value, field, entry.Key)
		if err != nil {
			return nil, err
		}
		request[entry.Key] = value
	}
	return request, nil
}

// renderCall renders a map that is a call of a tool, like the fields of that tool. The parameters of its statement
// become those of the request.
func (d *deferring) renderCall(node *playbook.Node, field string, request *Request) (any, error) {
	name, _ := node.AsCall().ToolName()
	traits, call := playbook.TraitsOf(name), make(map[string]any, len(node.Entries))
	for _, entry := range node.Entries {
		render := d.renderValue
		switch {
		case traits.Requests && entry.Key == playbook.FieldURL:
			render = d.renderURL
		case traits.IntoFile && entry.Key == playbook.FieldPath && len(d.sealedSteps(entry.Value)) == 0:
			render = func(path *playbook.Node, _ ...string) (any, error) { return path.RenderPath(d.scope, d.budget) }
		case entry.Value.Statement() != nil:
			render = func(*playbook.Node, ...string) (any, error) { return d.renderStatement(entry.Value, request) }
		}
		value, err := render(entry.Value, field, entry.Key)
		if err != nil {
			return nil, err
		}
		call[entry.Key] = value
	}
	return call, nil
}

// renderStatement returns the text of a statement, and sets the request's parameters to its rendered ones.
func (d *deferring) renderStatement(node *playbook.Node, request *Request) (any, error) {
	secret := deferring{book: d.book, scope: d.scope, budget: d.budget, in: interpreter.InParams}
	params, err := secret.renderParams(node)
	if err != nil {
		return nil, err
	}
	request.Params = expression.Values(params)
	request.deferAnew(secret)
	return node.Raw, nil
}

// renderURL renders the URL at a path, with asterisks in place of sealed values.
func (d *deferring) renderURL(node *playbook.Node, path ...string) (any, error) {
	steps := d.sealedSteps(node)
	if len(steps) == 0 {
		return node.RenderURL(d.scope, d.budget)
	}
	d.addDeferred(interpreter.DeferredExpression{Path: path, Template: node.Raw}, steps, node.Refs())
	return node.RenderURLWithout(func(segment expression.Segment) bool {
		return len(d.sealedOf(segment.Program.Refs())) > 0
	}, d.scope, d.budget)
}

// renderParams renders the parameters of a statement.
func (d *deferring) renderParams(node *playbook.Node) ([]any, error) {
	if len(d.sealedSteps(node)) == 0 {
		return node.RenderStatement(d.scope, d.budget)
	}
	parsed := node.Statement()
	values := make([]any, parsed.Params())
	for i, template := range parsed.Templates() {
		if steps := d.sealedOf(template.Refs()); len(steps) > 0 {
			d.addDeferred(interpreter.DeferredExpression{Path: []string{strconv.Itoa(i)}, Dialect: parsed.Dialect()}, steps, template.Refs())
			values[i] = playbook.Hidden
			continue
		}
		value, err := node.RenderParam(i, d.scope, d.budget)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

func (d *deferring) addDeferred(deferred interpreter.DeferredExpression, steps []string, refs []expression.Ref) {
	deferred.In, deferred.Steps, deferred.Scope = d.in, steps, expression.Of(d.captureNames(refs))
	d.found = append(d.found, deferred)
}

// sealedSteps returns the steps whose sealed results a value uses.
func (d *deferring) sealedSteps(node *playbook.Node) []string {
	if d.book == nil || node == nil || !d.book.HasSecrets() {
		return nil
	}
	return d.sealedOf(node.Refs())
}

func (d *deferring) sealedOf(refs []expression.Ref) []string {
	return slices.DeleteFunc(slices.Clone(d.book.SecretsNamed(refs)), func(name string) bool { return d.scope.SealedResult(name) == "" })
}

// captureNames copies the values that expressions use, so that an activity can evaluate them. A sealed result stays
// sealed.
func (d *deferring) captureNames(refs []expression.Ref) map[string]any {
	whole := map[string]any{}
	var paths [][]string
	for _, ref := range refs {
		value, found := d.scope.Lookup(ref.Root)
		if !found || interpreter.SealedText(value) != "" {
			continue
		}
		whole[ref.Root] = value
		path := append([]string{ref.Root}, playbook.ConstantMembers(ref.Path)...)
		if ref.Root == "steps" {
			path = d.book.DataPath(ref)
		}
		paths = append(paths, path)
	}
	return interpreter.PrunePaths(whole, paths)
}

// dropDeferred drops the deferred expressions below a path that is rendered again.
func dropDeferred(all []interpreter.DeferredExpression, in interpreter.RequestPart, path ...string) []interpreter.DeferredExpression {
	return slices.DeleteFunc(slices.Clone(all), func(deferred interpreter.DeferredExpression) bool {
		return deferred.In == in && len(deferred.Path) >= len(path) && slices.Equal(deferred.Path[:len(path)], path)
	})
}

// withoutCoveredBy drops deferred args that other args replace.
func withoutCoveredBy(all []interpreter.DeferredExpression, args any) []interpreter.DeferredExpression {
	return slices.DeleteFunc(slices.Clone(all), func(deferred interpreter.DeferredExpression) bool {
		if deferred.In != interpreter.InArgs {
			return false
		}
		over := args
		for _, key := range deferred.Path {
			m, isMap := over.(map[string]any)
			if !isMap {
				return over != nil
			}
			value, found := m[key]
			if !found {
				return false
			}
			over = value
		}
		return true
	})
}

// deferredDigest returns a text that differs for requests with different deferred expressions.
func deferredDigest(all []interpreter.DeferredExpression) string {
	encoded, err := json.Marshal(all)
	if err != nil {
		return fmt.Sprint(all)
	}
	return string(encoded)
}
