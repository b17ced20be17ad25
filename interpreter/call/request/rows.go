package request

import (
	"errors"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// mappedList returns the list that the args of a sink map, if the mapping exceeds the budget of a decision. The
// attempts then map it row by row. err is the error of rendering the args.
func (b *Builder) mappedList(err error, scope *interpreter.Scope, budget *expression.Budget) (list any, maps bool) {
	args := b.action.Args
	if failure, ok := errors.AsType[*playbook.EvalError](err); !ok || !failure.TooMuch || b.source.Sink == nil || !b.source.Sink.MapsRows || args.Template == nil {
		return nil, false
	}
	rows := args.Template.RowMap()
	if rows == nil {
		return nil, false
	}
	budget.Renew()
	list, err = rows.List(scope, budget)
	return list, err == nil
}

// noteAbsent notes members that the args of a sink name of the rows that they map and that none of them has; own are the
// args. If those do not show that each member is there, the list is evaluated again, with a budget of its own.
func (b *Builder) noteAbsent(own any, scope *interpreter.Scope, budget *expression.Budget) {
	args := b.action.Args
	if b.source.Sink == nil || args.Template == nil {
		return
	}
	rows := args.Template.RowMap()
	mapped, isList := own.([]any)
	if rows == nil || !isList || rows.ShowsMembers(mapped) {
		return
	}
	list, err := rows.List(scope, budget.Unused())
	if elements, isList := list.([]any); err == nil && isList {
		for _, text := range interpreter.AbsentInMap(rows, interpreter.TextPlacesOf(args), elements, true) {
			budget.AddPlaced(text)
		}
	}
}

// rowWork returns what the attempt does with the rows that a sink writes, or that it moves; nil for nothing. The
// values that its expressions use are included, except a result that the sink writes anyway.
func (b *Builder) rowWork(input *interpreter.ToolInput, request *Request, m Moment) (*interpreter.RowWork, error) {
	of, book := b.action.Rows, b.source.Book
	sink := b.source.Sink
	if of == nil && !request.MapsRows || sink != nil && sink.isPublishing() && (of == nil || of.Path == nil) {
		return nil, nil
	}
	work := &interpreter.RowWork{Now: request.At, File: book.File.Name}
	if of != nil && of.Path != nil {
		work.Path = interpreter.NewRowPath(of.Path)
	}
	if sink != nil && sink.isPublishing() { // which has no rows, and only needs to know that each has a path of its own
		return work, nil
	}
	var named []expression.Ref
	if request.MapsRows {
		work.Map = interpreter.NewRowMap(b.action.Args)
		named = b.action.Args.Template.RowMap().Refs()
	}
	if of != nil {
		work.Fields, work.Exclude, work.Only = interpreter.NewRowFields(of.Fields), of.ExcludedNames(), of.Only
		for _, node := range of.FieldNodes() {
			named = append(named, node.Refs()...)
		}
	}
	captured, err := b.captureForRows(named, sink != nil && input.Result != nil && sink.Says == nil, b.RequestScope(request, m))
	if len(captured) > 0 {
		work.Scope = expression.Of(captured)
	}
	return work, err
}

// captureForRows copies the values that expressions over rows use. hasResult says that the result is sent anyway.
func (b *Builder) captureForRows(named []expression.Ref, hasResult bool, scope *interpreter.Scope) (map[string]any, error) {
	var refs []expression.Ref
	for _, ref := range named {
		if ref.Root == playbook.RowWord || ref.Root == "result" && hasResult {
			continue
		}
		if value, _ := scope.Lookup(ref.Root); interpreter.SealedText(value) != "" {
			return nil, interpreter.RefuseSealed(b.source.Book, whatItWrites, value)
		}
		refs = append(refs, ref)
	}
	capturing := deferring{book: b.source.Book, scope: scope}
	captured := capturing.captureNames(refs)
	return captured, interpreter.RefuseSealed(b.source.Book, whatItWrites, captured)
}
