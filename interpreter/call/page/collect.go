package page

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// collectPage adds a page to the data collected so far, and returns the new data and what the page contributed to
// it (docs/concepts/attempts.md#pages). The arguments are not changed. The error is an *playbook.EvalError.
func collectPage(c *playbook.Collect, collected, page any, reading Extraction) (sum, contribution any, err error) {
	if page == nil { // an answer without a body has no rows
		return withoutContribution(c.Strategy, collected), nil, nil
	}
	contribution, has, err := reading.contributionOf(page, c)
	switch {
	case err != nil:
		return nil, nil, atCollect(c, err)
	case !has && c.Optional:
		return withoutContribution(c.Strategy, collected), nil, nil
	case !has:
		return nil, nil, atCollect(c, fmt.Errorf("collect: the page has no %q (%s); "+
			"use a path that it has, or write optional: true if it may be missing", c.Path, pageShape(page)))
	}
	if _, isList := contribution.([]any); c.Lists && !isList && contribution != nil {
		return nil, nil, atCollect(c, fmt.Errorf("a page of the source is not a list (%s); set the path of its elements: "+
			"rows: …, or collect: {path: …} in the policy", pageShape(contribution)))
	}
	switch c.Strategy {
	case playbook.Replace:
		return contribution, contribution, nil
	case playbook.Merge:
		sum, contribution, err = mergePages(collected, contribution)
		return sum, contribution, atCollect(c, err)
	case playbook.Append:
	}
	return appendPage(collected, contribution), contribution, nil
}

// atCollect adds the position of the collect to an error that has none.
func atCollect(c *playbook.Collect, err error) error {
	if _, placed := errors.AsType[*playbook.EvalError](err); placed || err == nil {
		return err
	}
	return &playbook.EvalError{Pos: c.Pos, Message: err.Error()}
}

// withoutContribution returns the collected data after a page, or a whole call, that adds nothing.
func withoutContribution(strategy playbook.Strategy, collected any) any {
	switch {
	case strategy == playbook.Append:
		return appendPage(collected, nil)
	case strategy == playbook.Merge && collected == nil:
		return map[string]any{}
	}
	return collected
}

func mergePages(collected, contribution any) (sum, same any, err error) {
	if _, ok := contribution.(map[string]any); !ok {
		return nil, nil, fmt.Errorf("collect: strategy merge needs maps, but the page is a %s; use append",
			expression.TypeName(contribution))
	}
	if collected == nil {
		collected = map[string]any{}
	}
	return expression.MergeMaps(collected, contribution), contribution, nil
}

// appendPage concatenates a list, adds any other value as one element, and ignores nil. Only the call appends to
// the list, once per page, so earlier views of it keep their length and content, and thousands of pages need no
// copies.
func appendPage(collected, contribution any) any {
	list, ok := collected.([]any)
	if !ok {
		list = []any{}
	}
	switch value := contribution.(type) {
	case nil:
		return list
	case []any:
		return append(list, value...)
	}
	return append(list, contribution)
}

// pageShape describes a page for an error: its type and, for a map, its keys.
func pageShape(page any) string {
	const ellipsis = "…"
	m, ok := page.(map[string]any)
	if !ok {
		return "it is a " + expression.TypeName(page)
	}
	if len(m) == 0 {
		return "it is empty"
	}
	names := playbook.SortedKeys(m)
	const shown = 8
	if len(names) > shown {
		names = append(names[:shown:shown], ellipsis)
	}
	for i, name := range names {
		if name != ellipsis {
			names[i] = strconv.Quote(name)
		}
	}
	return "it has " + strings.Join(names, ", ")
}
