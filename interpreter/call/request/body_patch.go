package request

import (
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// bodyPatch is what next_call changed in a body so far: a new value, a removed key, or changes to members of a map.
// It is applied whenever the body is rendered again. Kept in workflow history.
type bodyPatch struct {
	Keys map[string]*bodyPatch `json:"keys,omitempty"`
	// Set has one element if the value is replaced, which may be nil; otherwise none.
	Set     []expression.Value `json:"set,omitempty"`
	Removed bool               `json:"removed,omitempty"`
}

func setTo(value any) *bodyPatch { return &bodyPatch{Set: []expression.Value{expression.Of(value)}} }

// mergesKeys reports whether the patch changes members of a map.
func (p *bodyPatch) mergesKeys() bool { return !p.Removed && len(p.Set) == 0 }

// changeBody adds a body of next_call to the overlay: a map is merged into a body that is a map, any other value
// replaces the body.
func (r *Request) changeBody(node *playbook.Node, scope *interpreter.Scope, budget *expression.Budget) error {
	if node == nil {
		return nil
	}
	value, err := node.Render(scope, budget)
	if err == nil {
		err = absentError(node, value, "next_call."+playbook.FieldBody)
	}
	if err != nil {
		return err
	}
	_, over := value.(map[string]any)
	if _, under := r.Fields[playbook.FieldBody].Data.(map[string]any); over && under {
		r.Overlay.Body = patchOf(node, value).afterPatch(r.Overlay.Body)
		return nil
	}
	r.Overlay.Body = nil
	r.setField(playbook.FieldBody, value)
	return nil
}

// patchOf returns the patch for a rendered node. A literal null removes its key; a null inside a value that a
// template returned is an ordinary value.
func patchOf(node *playbook.Node, value any) *bodyPatch {
	members, isMap := value.(map[string]any)
	switch {
	case isMap:
		patch := &bodyPatch{Keys: make(map[string]*bodyPatch, len(members))}
		for _, key := range playbook.SortedKeys(members) {
			var inner *playbook.Node
			if node != nil {
				inner = node.Get(key)
			}
			patch.Keys[key] = patchOf(inner, members[key])
		}
		return patch
	case value == nil && node != nil:
		return &bodyPatch{Removed: true}
	}
	return setTo(value)
}

// afterPatch combines an earlier patch and this one, applied after it.
func (p *bodyPatch) afterPatch(earlier *bodyPatch) *bodyPatch {
	switch {
	case earlier == nil || !p.mergesKeys():
		return p
	case !earlier.mergesKeys():
		return setTo(p.applyTo(earlier.applyTo(nil)))
	}
	both := &bodyPatch{Keys: playbook.CloneMap(earlier.Keys, len(p.Keys))}
	for _, key := range playbook.SortedKeys(p.Keys) {
		both.Keys[key] = p.Keys[key].afterPatch(earlier.Keys[key])
	}
	return both
}

// applyTo returns value with the patch applied. value itself is not changed.
func (p *bodyPatch) applyTo(value any) any {
	switch {
	case p.Removed:
		return nil
	case len(p.Set) > 0:
		return p.Set[0].Data
	}
	under, _ := value.(map[string]any)
	merged := playbook.CloneMap(under, len(p.Keys))
	for _, key := range playbook.SortedKeys(p.Keys) {
		if change := p.Keys[key]; change.Removed {
			delete(merged, key)
		} else {
			merged[key] = change.applyTo(merged[key])
		}
	}
	return merged
}

// patchBody applies the changes of next_call to the body. Deferred expressions at the changed places are dropped.
func (r *Request) patchBody() {
	if patch := r.Overlay.Body; patch != nil {
		r.Fields[playbook.FieldBody] = expression.Of(patch.applyTo(r.Fields[playbook.FieldBody].Data))
		r.deferNoMoreBelow(patch, []string{playbook.FieldBody})
	}
}

func (r *Request) deferNoMoreBelow(patch *bodyPatch, path []string) {
	if len(r.Deferred) == 0 || !patch.mergesKeys() {
		r.deferNoMore(path...)
		return
	}
	for _, key := range playbook.SortedKeys(patch.Keys) {
		r.deferNoMoreBelow(patch.Keys[key], append(slices.Clone(path), key))
	}
}
