package page

import (
	"cmp"
	"fmt"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Extraction determines the rows of a page, whatever policy the page matches. With the zero Extraction, a page
// contributes what its collect selects, or itself.
type Extraction struct {
	Rows *playbook.RowPath
	// Select returns a contribution without the rows that must be left out, and does not change it; nil keeps all.
	Select func(contribution any) (any, error)
}

// WholePage returns what a page contributes if no policy collects it. The error is an *playbook.EvalError.
func (e Extraction) WholePage(page any) (contribution any, err error) {
	contribution, _, err = e.contributionOf(page, &playbook.Collect{})
	return contribution, err
}

// contributionOf returns what a page contributes: the value at the path of its collect, or else its rows, without
// the rows that Keep leaves out. has is false if the page lacks the path and the collect is optional.
func (e Extraction) contributionOf(page any, by *playbook.Collect) (contribution any, has bool, err error) {
	contribution = page
	switch {
	case e.Rows != nil:
		rows, missing := rowsOf(page, e.Rows)
		if missing != "" && by.Optional && len(rows) == 0 {
			return nil, false, nil
		}
		if missing != "" && !by.Optional {
			return nil, false, &playbook.EvalError{Pos: e.Rows.Pos, Message: fmt.Sprintf("rows: %s; use a path that every page has", missing)}
		}
		contribution = rows
	case by.Path != "" && page != nil:
		value, found, err := expression.ValueAtPath(page, by.Path)
		if err != nil || !found {
			return nil, false, err
		}
		contribution = value
	}
	if e.Select != nil {
		contribution, err = e.Select(contribution)
	}
	return contribution, true, err
}

// rowsOf returns the rows of a page, and the first part of the path that it lacks. A list is many rows and any
// other value one row; null is no row if the path has no *. A page without a body has no rows.
func rowsOf(page any, path *playbook.RowPath) (rows []any, missing string) {
	found := rowFinder{rows: []any{}}
	if page != nil {
		found.findRows(page, path.Keys, nil)
	}
	return found.rows, found.missing
}

// RowsAt returns the rows of a response that the path leads to.
func RowsAt(page any, path *playbook.RowPath) []any {
	rows, _ := rowsOf(page, path)
	return rows
}

// rowFinder collects rows while it follows a path.
type rowFinder struct {
	rows    []any
	missing string // the first part of the path that is not there
}

// findRows adds the rows at keys below a value; path leads from the page to the value.
func (f *rowFinder) findRows(value any, keys, path []any) {
	for i, key := range keys {
		if _, all := key.(expression.AllOf); all {
			f.findAll(value, keys[i+1:], path)
			return
		}
		next, has := expression.FollowKeys(value, []any{key})
		if !has {
			f.noteMissing(fmt.Sprintf("%s has no %q (%s)", nameOf(path), expression.Text(key), pageShape(value)))
			return
		}
		value, path = next, append(slices.Clip(path), key)
	}
	switch rows := value.(type) {
	case nil:
		if slices.ContainsFunc(path, isElement) {
			f.rows = append(f.rows, nil)
		}
	case []any:
		if len(f.rows) == 0 && len(rows) > 0 {
			f.rows = slices.Clip(rows) // not copied: a snapshot recognizes the list of the page
			return
		}
		f.rows = append(f.rows, rows...)
	default:
		f.rows = append(f.rows, value)
	}
}

// element is a key that matched a * of the path.
type element struct{ key any }

func isElement(key any) bool {
	_, is := key.(element)
	return is
}

// findAll adds the rows below each element of a list, or below each value of a map in the order of its keys.
func (f *rowFinder) findAll(value any, keys, path []any) {
	path = slices.Clip(path)
	switch value := value.(type) {
	case nil: // no elements
	case []any:
		for i, one := range value {
			f.findRows(one, keys, append(path, element{i}))
		}
	case map[string]any:
		for _, name := range playbook.SortedKeys(value) {
			f.findRows(value[name], keys, append(path, element{name}))
		}
	default:
		f.noteMissing(fmt.Sprintf("%s is a %s and has no elements", nameOf(path), expression.TypeName(value)))
	}
}

// noteMissing records a missing part of the path; only the first one is reported.
func (f *rowFinder) noteMissing(missing string) { f.missing = cmp.Or(f.missing, missing) }

// nameOf returns the name of a part of a page for messages.
func nameOf(path []any) string {
	if len(path) == 0 {
		return "the page"
	}
	ref := expression.Ref{Root: "page"}
	for _, key := range path {
		if one, is := key.(element); is {
			key = one.key
		}
		ref.Path = append(ref.Path, key)
	}
	return memberName(ref)
}
