package expression

import (
	"errors"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// RowMap is an expression map(xs, …) in two parts: the list, and the mapping of an element. It can map lists of any
// length, as each element has a budget of its own. It is immutable and safe for concurrent use.
type RowMap struct {
	list, each *Program
	refs       []Ref // of each
	base       int   // runes before the expression in its template
}

// rowsName is the list whose elements are mapped. No author can write it.
const rowsName = "$rows"

// RowMap returns the template as a RowMap if it is map(xs, …) and nothing else; nil if not, or if a mapped element
// depends on its index. List and part together give the same value as the template, within the budgets.
func (t *Template) RowMap() *RowMap { return t.rows }

// rowMap compiles the parts of RowMap.
func (t *Template) rowMap() *RowMap {
	if t.single == nil {
		return nil
	}
	call, isBuiltin := withoutChain(t.single.tree).(*ast.BuiltinNode)
	if !isBuiltin || call.Name != "map" || usesIndex(call.Arguments[1]) {
		return nil
	}
	body, source := call.Arguments[1].Location().From, t.single.source
	list, err := compileTree(source, new(lowering).lowerList(call))
	if err != nil {
		return nil
	}
	of := &lowering{rows: true}
	each, err := compileTree(source, of.loopOver(call, placeNode(&ast.IdentifierNode{Value: rowsName}, call), "map", of.lowerValue))
	if err != nil {
		return nil
	}
	m := &RowMap{base: t.base}
	m.list = &Program{source: source, code: list, tree: call.Arguments[0], builds: t.single.builds}
	m.each = &Program{source: source, code: each, tree: call.Arguments[1], roots: []string{rowsName}}
	for _, ref := range t.single.refs {
		part := m.list
		if ref.Offset >= body {
			part, m.refs = m.each, append(m.refs, ref)
		}
		if !slices.Contains(part.roots, ref.Root) {
			part.roots = append(part.roots, ref.Root)
		}
	}
	return m
}

// usesIndex reports whether a predicate, or one within it, names #index.
func usesIndex(predicate ast.Node) bool {
	found := &indexFinder{}
	ast.Walk(&predicate, found)
	return found.found
}

// indexFinder finds #index.
type indexFinder struct{ found bool }

// Visit implements ast.Visitor.
func (f *indexFinder) Visit(node *ast.Node) {
	if pointer, is := (*node).(*ast.PointerNode); is && pointer.Name == "index" {
		f.found = true
	}
}

// Refs are the names that the part about an element takes from its scope.
func (m *RowMap) Refs() []Ref { return slices.Clone(m.refs) }

// List evaluates the list. The error is an *Error whose offset is in the template's source.
func (m *RowMap) List(scope Scope, b *Budget) (any, error) { return m.list.evalAt(m.base, scope, b) }

// MapRows makes an element of each, every one with all of the budget. at is the element that fails. The error is an *Error whose offset is
// in the template's source.
func (m *RowMap) MapRows(elements []any, scope Scope, b *Budget) (rows []any, at int, err error) {
	noted := b.NoteCount()
	b.row = -1
	value, err := m.each.Eval(&rowsScope{Scope: scope, rows: elements}, b)
	b.moveNotes(noted, m.base)
	if err != nil {
		return nil, max(b.row, 0), moveError(err, m.base)
	}
	rows, isList := value.([]any)
	if !isList {
		return nil, 0, errors.New("map gave no list")
	}
	for i, row := range rows {
		b.Renew()
		if err := checkSize(row, b); err != nil {
			return nil, i, moveError(err, m.base)
		}
	}
	return rows, 0, nil
}

// rowsScope is a scope with the list.
type rowsScope struct {
	Scope

	rows []any
}

// Lookup implements Scope.
func (s *rowsScope) Lookup(name string) (any, bool) {
	if name == rowsName {
		return s.rows, true
	}
	return s.Scope.Lookup(name)
}
