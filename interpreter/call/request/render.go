package request

import (
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// renderer renders an action's fields in one scope.
type renderer struct {
	book       *playbook.Playbook
	action     *playbook.Action
	scope      *interpreter.Scope
	budget     *expression.Budget
	asksPeople bool
	intoFile   bool
	moves      bool
}

// renderRequest renders the action from scratch. before has its args.
func (r renderer) renderRequest(before Request) (Request, error) {
	request := Request{Args: before.Args, MapsRows: before.MapsRows, Fields: map[string]expression.Value{}, Deferred: before.Deferred}
	if err := r.renderFields(&request, func(*playbook.Node) bool { return true }); err != nil {
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

// renderFields renders the accepted fields in file order, and applies the overlay.
func (r renderer) renderFields(request *Request, accepts func(*playbook.Node) bool) error {
	for _, field := range r.action.Fields {
		if !accepts(field.Value) {
			continue
		}
		value, err := r.renderField(field, request)
		if err != nil {
			return err
		}
		request.Fields[field.Key] = expression.Of(value)
		if field.Key == playbook.FieldParams {
			request.hideParams(playbook.SortedKeys(request.Overlay.Hidden))
		}
	}
	request.applyOverlay()
	return nil
}

func (r renderer) renderField(field *playbook.Entry, request *Request) (value any, err error) {
	secret := deferring{book: r.book, scope: r.scope, budget: r.budget, in: interpreter.InFields}
	switch {
	case field.Key == playbook.FieldStatement && field.Value.Statement() != nil:
		return secret.renderStatement(field.Value, request)
	case r.asksPeople && field.Key == playbook.FieldMessage && len(secret.sealedSteps(field.Value)) == 0:
		value, request.Data, err = field.Value.RenderPlaced(r.scope, r.budget)
	case r.intoFile && field.Key == playbook.FieldPath && len(secret.sealedSteps(field.Value)) == 0:
		value, err = field.Value.RenderPath(r.scope, r.budget)
	case r.moves && field.Value.AsCall() != nil:
		value, err = secret.renderCall(field.Value, field.Key, request)
	case field.Key == playbook.FieldURL:
		value, err = secret.renderURL(field.Value, playbook.FieldURL)
	case playbook.IsRequestField(field.Key):
		value, err = secret.renderRequest(field.Value, field.Key)
	case r.book == nil || !r.book.HasSecrets():
		return field.Value.Render(r.scope, r.budget)
	default:
		value, err = secret.renderValue(field.Value, field.Key)
	}
	if err == nil {
		request.deferAnew(secret, field.Key)
	}
	return value, err
}

// UsesAny returns a filter for nodes whose expressions use one of the roots.
func UsesAny(roots ...string) func(*playbook.Node) bool {
	return func(node *playbook.Node) bool { return node.UsesAny(roots...) }
}
