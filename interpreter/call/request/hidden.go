package request

import (
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// hiddenParam is the value of a param whose name the query of next_call.url also has. The query is sent instead,
// until a later next_call sets another url or this param. Kept in workflow history.
type hiddenParam struct {
	Value    *expression.Value                `json:"value,omitempty"` // nil if params have no such name
	Deferred []interpreter.DeferredExpression `json:"deferred,omitempty"`
}

// hideParams makes the query of a url replace params of the same names.
func (r *Request) hideParams(names []string) {
	r.Overlay.Hidden = nil
	if len(names) == 0 {
		return
	}
	r.Overlay.Hidden = make(map[string]hiddenParam, len(names))
	for _, name := range names {
		r.Overlay.Hidden[name] = hiddenParam{}
	}
}

// showParams undoes hideParams.
func (r *Request) showParams() {
	params := playbook.CloneMap(expression.MapOf(r.Fields[playbook.FieldParams].Data), len(r.Overlay.Hidden))
	for _, name := range playbook.SortedKeys(r.Overlay.Hidden) {
		hidden := r.Overlay.Hidden[name]
		if hidden.Value != nil {
			params[name] = hidden.Value.Data
			r.Fields[playbook.FieldParams] = expression.Of(params)
		}
		r.Deferred = slices.Concat(r.Deferred, hidden.Deferred)
	}
	r.Overlay.Hidden = nil
}

// unhideParams undoes hideParams for params that next_call sets or removes.
func (r *Request) unhideParams(set map[string]any) {
	if len(r.Overlay.Hidden) == 0 {
		return
	}
	r.Overlay.Hidden = playbook.CloneMap(r.Overlay.Hidden, 0)
	for _, name := range playbook.SortedKeys(set) {
		delete(r.Overlay.Hidden, name)
	}
}

// removeHidden removes hidden params from the rendered params and saves their values for showParams. Values that
// were saved before, and not rendered again, stay saved.
func (r *Request) removeHidden() {
	if len(r.Overlay.Hidden) == 0 {
		return
	}
	params := playbook.CloneMap(expression.MapOf(r.Fields[playbook.FieldParams].Data), 0)
	saved := playbook.CloneMap(r.Overlay.Hidden, 0)
	for _, name := range playbook.SortedKeys(saved) {
		value, has := params[name]
		deferred := slices.DeleteFunc(slices.Clone(r.Deferred), func(deferred interpreter.DeferredExpression) bool {
			return deferred.In != interpreter.InFields || len(deferred.Path) < 2 ||
				!slices.Equal(deferred.Path[:2], []string{playbook.FieldParams, name})
		})
		if !has && len(deferred) == 0 {
			continue
		}
		hidden := hiddenParam{Deferred: deferred}
		if has {
			of := expression.Of(value)
			hidden.Value = &of
		}
		saved[name] = hidden
		delete(params, name)
		r.Fields[playbook.FieldParams] = expression.Of(params)
		r.deferNoMore(playbook.FieldParams, name)
	}
	r.Overlay.Hidden = saved
}
