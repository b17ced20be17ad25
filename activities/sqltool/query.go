package sqltool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/statement"
)

// RowReader is a tool that reads the rows of a statement one by one.
type RowReader interface {
	// ReadRows calls each for the rows of the statement of in, and changes nothing. It stops without an error if each
	// returns ErrEnough; any other error of each is returned unchanged. The rows of a page are sorted by its column.
	ReadRows(ctx context.Context, in interpreter.ToolInput, page *QueryPage, each func(QueriedRow) error) error
}

// QueriedRow is a row of a statement.
type QueriedRow struct {
	Value map[string]any
	Bytes int    // of its values on their way
	Note  string // a remark about this row or one before it, "" for none
	Key   []byte // what the column of the page's order is, as its database reads it again; nil where there is no page
}

// ErrEnough ends the reading of rows.
var ErrEnough = errors.New("the rows are enough")

// QueryPage requests some of a statement's rows, in the order of a column with unique values.
type QueryPage struct {
	Column string
	After  []byte // the key of the row before, nil from the first row on
	Most   int    // how many rows at most
}

// The types of errors about the column of a page.
const (
	typeNullKey   = "null_key"
	typeNotUnique = "not_unique"
)

// NullKeyError returns the error of a row without a key: a page that begins after another row would never have it.
func (p *QueryPage) NullKeyError() error {
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: typeNullKey, Final: true,
		Message: fmt.Sprintf("order_by: %s is null in a row of the statement, and a row without a key cannot be ordered; "+
			"leave such rows out, or order by a column that is never null", quoteName(p.Column)),
	}
}

// notUniqueError returns the error of two rows with one key: the next page would skip one of them.
func (p *QueryPage) notUniqueError(key string) error {
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: typeNotUnique, Final: true,
		Message: fmt.Sprintf("order_by: two rows have the %s %q, so a transfer that continues after one of them could lose the other; "+
			"order by a column whose values are unique", quoteName(p.Column), playbook.ShortenText(key)),
	}
}

// PageRows are the rows of a page as they arrive.
type PageRows struct {
	page  *QueryPage
	last  []byte
	same  int // rows that have the key of the row before the page
	given int
}

// NewPageRows begins a page; nil is all rows of a statement.
func NewPageRows(page *QueryPage) *PageRows {
	if page == nil {
		return nil
	}
	return &PageRows{page: page, last: page.After}
}

// AdmitRow reports whether the page has a row, whose key is shown as text in errors. isAfter is false for the row before the page, as
// its database compares keys; that is read again, so that another row with its key is seen.
func (r *PageRows) AdmitRow(key []byte, text string, isAfter bool) (admitted bool, err error) {
	switch {
	case !isAfter:
		if r.same++; r.same > 1 {
			return false, r.page.notUniqueError(text)
		}
		return false, nil
	case r.last != nil && bytes.Equal(r.last, key):
		return false, r.page.notUniqueError(text)
	case r.given == r.page.Most: // the row before the page is not there any more
		return false, nil
	}
	r.last = slices.Clone(key)
	r.given++
	return true, nil
}

// WrapRows puts the SQL of a page around that of its statement, so that nothing but a query can be there. parameter is the text of the
// parameter with the key of the row before. The last column of a page says whether a row comes after that row; the one before it is
// made from the key by more, if it is not "". A page that is nil is all rows.
func (p *QueryPage) WrapRows(parameter, more string) (before, after string) {
	if p == nil {
		return "SELECT reprise_rows.* FROM (\n", "\n) AS reprise_rows"
	}
	column, most := "reprise_rows."+quoteName(p.Column), p.Most
	isAfter, where := "1 = 1", ""
	if p.After != nil {
		isAfter, where, most = column+" > "+parameter, " WHERE "+column+" >= "+parameter, most+1
	}
	if more != "" {
		more = ", " + fmt.Sprintf(more, column)
	}
	return "SELECT reprise_rows.*" + more + ", " + isAfter + " FROM (\n", fmt.Sprintf("\n) AS reprise_rows%s ORDER BY %s LIMIT %d", where, column, most)
}

// WrapNulls wraps a statement in SQL that finds a row without a key.
func (p *QueryPage) WrapNulls() (before, after string) {
	return "SELECT 1 FROM (\n", "\n) AS reprise_rows WHERE reprise_rows." + quoteName(p.Column) + " IS NULL LIMIT 1"
}

// ReadQuery returns the statement whose rows a call reads.
func ReadQuery(in interpreter.ToolInput, dialect statement.Dialect) (*BoundStatement, error) {
	query, _, err := Read(in, dialect)
	switch {
	case err != nil:
		return nil, err
	case query == nil:
		return nil, tool.ConfigErrorf("step %q: from needs statement, which selects the rows", in.Step)
	case !slices.Contains(playbook.SelectVerbs, query.Parsed.Verb()):
		return nil, tool.ConfigErrorf("step %q: the statement of from must begin with %s, because it may only read rows", in.Step, tool.ChoiceText(playbook.SelectVerbs))
	}
	return query, nil
}
