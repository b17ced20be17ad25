package expression

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// RowMap is an expression map(xs, …) split into the list and the mapping of an element. It can map lists of any
// length, because each element has its own budget. It is immutable and safe for concurrent use.
type RowMap struct {
	list, each *Program
	refs       []Ref    // references in each
	members    []Ref    // see Members
	keys       []string // the key of the mapped row that has just this member; "" for none
	base       int      // runes before the expression in its template
}

// rowsName is the name of the list that is mapped. An author cannot write it.
const rowsName = "$rows"

// RowMap returns the template as a RowMap if it is exactly map(xs, …). It is nil for other templates, and if the
// mapping depends on the index of the element. Within the budgets, List and MapRows together give the same value as
// the template.
func (t *Template) RowMap() *RowMap { return t.rows }

// rowMap compiles the two parts of a RowMap.
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
	m.addMembers(call.Arguments[1])
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

// usesIndex reports whether #index occurs in a predicate or in one nested in it.
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

// Refs returns the names that the mapping of an element takes from its scope.
func (m *RowMap) Refs() []Ref { return slices.Clone(m.refs) }

// Members returns the members of the element that the mapping of an element names, without those whose absence it
// provides for, as #.a ?? 0 does. Their root is "#", and their offset is that of the member in the template.
func (m *RowMap) Members() []Ref { return slices.Clone(m.members) }

// ShowsMembers reports whether mapped rows show that each of Members is in some element, so that nobody has to look for
// it there: a key of the mapping has just the member, and is not nil in all rows.
func (m *RowMap) ShowsMembers(mapped []any) bool {
	isShown := func(key string) bool {
		return key != "" && slices.ContainsFunc(mapped, func(row any) bool { return MapMember(row, key) != nil })
	}
	return !slices.ContainsFunc(m.keys, func(key string) bool { return !isShown(key) })
}

// addMembers adds the members of the element that a mapping requires.
func (m *RowMap) addMembers(mapping ast.Node) {
	predicate, isPredicate := mapping.(*ast.PredicateNode)
	if !isPredicate {
		return
	}
	keys := keysOfValues(predicate.Node)
	for _, member := range requiredMembers(predicate) {
		at := member.node.Property.Location()
		m.members = append(m.members, Ref{Root: "#", Path: []any{member.name}, Offset: m.base + at.From, End: m.base + at.To})
		m.keys = append(m.keys, keys[member.node])
	}
}

// keysOfValues returns the constant keys of an expression that makes a map, by their values.
func keysOfValues(node ast.Node) map[ast.Node]string {
	keys := map[ast.Node]string{}
	if made, isMap := node.(*ast.MapNode); isMap {
		for _, one := range made.Pairs {
			pair, _ := one.(*ast.PairNode)
			if key, isText := pair.Key.(*ast.StringNode); isText {
				keys[pair.Value] = key.Value
			}
		}
	}
	return keys
}

// elementMember is a member of the element that a predicate names.
type elementMember struct {
	name string
	node *ast.MemberNode
}

// requiredMembers returns the members of the element that a predicate names, without those whose absence it provides for.
func requiredMembers(predicate *ast.PredicateNode) (required []elementMember) {
	named, provided := &elementMembers{}, fallbacksOf(predicate.Node)
	ast.Walk(&predicate.Node, named)
	for _, node := range named.members {
		key, isText := node.Property.(*ast.StringNode)
		if !isText || slices.Contains(named.nested, node) || slices.Contains(provided.roots, node.Node) {
			continue
		}
		required = append(required, elementMember{name: key.Value, node: node})
	}
	return required
}

// elementMembers finds the members of # in a predicate; nested are those in predicates below it, whose # is another one.
type elementMembers struct{ members, nested []*ast.MemberNode }

// Visit implements ast.Visitor.
func (f *elementMembers) Visit(node *ast.Node) {
	switch node := (*node).(type) {
	case *ast.MemberNode:
		if pointer, is := node.Node.(*ast.PointerNode); is && pointer.Name == "" {
			f.members = append(f.members, node)
		}
	case *ast.PredicateNode:
		below := &elementMembers{}
		ast.Walk(&node.Node, below)
		f.nested = append(f.nested, below.members...)
	}
}

// AllLack reports whether there are elements, all of them maps, and none has the member.
func AllLack(elements []any, name string) bool {
	isThere := func(element any) bool {
		fields, isMap := element.(map[string]any)
		_, has := fields[name]
		return has || !isMap
	}
	return len(elements) > 0 && !slices.ContainsFunc(elements, isThere)
}

// noteMisspelt adds a note for each member that none of the elements has, although they have another that it certainly means: the
// predicate would be false, or its value nil, for all of them.
func (b *Budget) noteMisspelt(list any, members []elementMember) {
	elements, _ := list.([]any)
	for _, member := range members {
		if !AllLack(elements, member.name) {
			continue
		}
		if meant := SuggestCertain(member.name, slices.Sorted(maps.Keys(MapOf(elements[0])))); meant != "" {
			b.addNote(member.node.Property.Location().From, fmt.Sprintf("no element has .%s; did you mean .%s?", member.name, meant))
		}
	}
}

// List evaluates the list. The error is an *Error with an offset in the source of the template.
func (m *RowMap) List(scope Scope, b *Budget) (any, error) { return m.list.evalAt(m.base, scope, b) }

// MapRows maps each of the elements with a whole budget of its own. If one fails, at is its index, and the error is
// an *Error with an offset in the source of the template.
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

// rowsScope is a scope that also has the list of elements.
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
