package call

import (
	"errors"
	"fmt"

	"reprise/interpreter"
	"reprise/interpreter/call/page"
	"reprise/interpreter/call/watermark"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// rowSelection selects the rows of a page that count: those at the step's `rows` for which `where` is true, without
// rows that lack a cursor if these are excluded.
type rowSelection struct {
	config *Config
	scope  func() *interpreter.Scope // scope of the policies
	budget *expression.Budget
	// excluded is called with the number of rows that `where` excluded, unmatched with the rows of a page of which it kept
	// some or none, and lacking with a page's contribution before and after rows without a cursor are removed. They may be nil.
	excluded  func(rows int)
	unmatched func(rows []any, matched int)
	lacking   func(page, withCursor any)
}

// rowSelection returns the selection for the last page, with the budget of its decision.
func (r reader) rowSelection(budget *expression.Budget) rowSelection {
	return rowSelection{config: r.config, scope: r.policyScope, budget: budget}
}

// pageExtraction returns the selection in the form that Pages uses. A sink has no pages.
func (c rowSelection) pageExtraction() page.Extraction {
	if c.config.Sink != nil {
		return page.Extraction{}
	}
	of := page.Extraction{Rows: c.config.Step.Rows}
	section := c.config.incrementalSection()
	if section == nil && c.config.Step.Where == nil {
		return of
	}
	of.Select = func(contribution any) (any, error) {
		contribution, err := c.chosenRows(contribution)
		if err != nil || section == nil {
			return contribution, err
		}
		withCursor := watermark.WithoutMissing(section, contribution)
		if c.lacking != nil {
			c.lacking(contribution, withCursor)
		}
		return withCursor, nil
	}
	return of
}

// chosenRows returns a page's contribution without the rows for which `where` is false.
func (c rowSelection) chosenRows(contribution any) (any, error) {
	where := c.config.Step.Where
	rows := incremental.ContributedRows(contribution)
	if where == nil || len(rows) == 0 {
		return contribution, nil
	}
	names := map[string]any{}
	scope := c.scope().With(names)
	matched := make([]any, 0, len(rows))
	for i, row := range rows {
		names[playbook.RowWord] = row
		matches, err := where.EvalCondition(scope, c.budget)
		if err != nil {
			return nil, rowError(i, err)
		}
		if matches {
			matched = append(matched, row)
		}
	}
	if c.unmatched != nil {
		c.unmatched(rows, len(matched))
	}
	if len(matched) == len(rows) {
		return contribution, nil
	}
	if c.excluded != nil {
		c.excluded(len(rows) - len(matched))
	}
	return matched, nil
}

// unmatchedWhere is what is known of members that `where` names and that none of the rows it saw has.
type unmatchedWhere struct {
	// Member names such a member, with a suggestion, as long as `where` kept no row; "" once it kept one, or a row has all members.
	Member string `json:"member,omitempty"`
	// Misspelt names such a member where the rows have another that it certainly means, whichever rows were kept; "" once a row has it.
	Misspelt string `json:"misspelt,omitempty"`
}

// plusPage adds the rows of a page. A where that asks whether a member is there may do without it.
func (u *unmatchedWhere) plusPage(where *playbook.Node, rows []any, matched int) *unmatchedWhere {
	var next unmatchedWhere
	switch {
	case u != nil && *u == unmatchedWhere{}:
		return u
	case where.Template.ProvidesForAbsence():
		return &next
	}
	if matched == 0 && (u == nil || u.Member != "") {
		next.Member = missingMember(where, rows, interpreter.AbsentMember)
	}
	if u == nil || u.Misspelt != "" {
		next.Misspelt = missingMember(where, rows, interpreter.MisspeltMember)
	}
	return &next
}

// missingMember returns the first member that `where` names and that is found to be missing in the rows; "" for none.
func missingMember(where *playbook.Node, rows []any, find func(root string, ref expression.Ref, rows []any) string) string {
	for _, ref := range where.Refs() {
		if member := find(playbook.RowWord, ref, rows); member != "" {
			return member
		}
	}
	return ""
}

// rowError adds the row to the message of an error of `where`.
func rowError(index int, err error) error {
	if eval, ok := errors.AsType[*playbook.EvalError](err); ok {
		return &playbook.EvalError{Pos: eval.Pos, Message: fmt.Sprintf("where: row %d: %s", index+1, eval.Message)}
	}
	return err
}
