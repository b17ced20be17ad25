package incremental

import (
	"reprise/interpreter/expression"
)

// KnownRow identifies a row that may be read again.
type KnownRow struct {
	Hash     [HashLength]byte // digest of its key and cursor
	Position []byte           // position of its cursor; nil for a row without one
}

// Positions of rows of a source with tokens, which have no cursor. They may come again until the token changes;
// then the floor is AboveToken, and all of them are forgotten.
var (
	belowToken = []byte{0}
	AboveToken = []byte{1}
)

// HashLength is 128 bits: two rows with the same hash would count as one.
const HashLength = 16

// IsCounted reports whether rows have no key, so that equal rows are known as often as they were written.
func (r *RowIdentity) IsCounted() bool { return r.KnownTo != nil && len(r.Key) == 0 }

// IdentifyRow identifies a row of a page by its key, or by the row as written. Its position is appended to
// positions.
func (r *RowIdentity) IdentifyRow(row, written any, positions *[]byte) (known KnownRow) {
	if !r.IsCounted() {
		written = row
	}
	if r.Type == Token { // the whole row: one of the same key may be a newer one
		return KnownRow{Hash: hashParts(nil, written), Position: belowToken}
	}
	cursor, _ := RowValue(row, r.CursorPath)
	if at, ok := (Form{r.Type, r.Format}).appendPosition(positions, cursor); ok {
		known.Position = at
	}
	if len(r.Key) == 0 {
		known.Hash = hashParts(r.rowDigest(known.Position, cursor, written), written)
		return known
	}
	const usual = 4 // columns of a key, and the cursor
	parts := make([]any, 0, usual)
	for _, column := range r.Key {
		value, _ := RowValue(row, column)
		parts = append(parts, value)
	}
	if known.Position == nil {
		parts = append(parts, cursor)
	}
	// The hash includes the position rather than the cursor, so that the same instant in another format is the same
	// row.
	known.Hash = hashParts(known.Position, parts...)
	return known
}

// rowDigest returns what identifies a row in addition to the written values: the position of a cursor that is not
// written.
func (r *RowIdentity) rowDigest(position []byte, cursor, written any) []byte {
	if position == nil {
		return nil
	}
	if has, _ := RowValue(written, r.CursorPath); has == cursor { // which is no list and no map, as it has a position
		return nil
	}
	return position
}

// IdentifyRows identifies all rows that are written, each at its index.
func (r *RowIdentity) IdentifyRows(rows []any, written func(i int) any) []KnownRow {
	known, positions := make([]KnownRow, len(rows)), make([]byte, 0, len(rows)*timeBytes)
	for i, row := range rows {
		known[i] = r.IdentifyRow(row, written(i), &positions)
	}
	return known
}

func hashParts(position []byte, parts ...any) [HashLength]byte {
	digest := expression.SumWith(position, parts...)
	return [HashLength]byte(digest[:HashLength])
}

// LacksColumn returns a column of the key that a row does not have, or one of a key whose values are all nil: such
// rows cannot be distinguished.
func (r *RowIdentity) LacksColumn(row any) (column string, lacks bool) {
	if len(r.Key) == 0 || r.Type == Token {
		return "", false
	}
	empty := true
	for _, column := range r.Key {
		value, found := RowValue(row, column)
		if !found {
			return column, true
		}
		empty = empty && value == nil
	}
	return r.Key[0], empty
}

// KeyText returns the key of a row as text; without a key, the whole row.
func (r *RowIdentity) KeyText(row any) string {
	if len(r.Key) == 0 {
		return expression.Text(row)
	}
	parts := make([]any, len(r.Key))
	for i, column := range r.Key {
		parts[i], _ = RowValue(row, column)
	}
	return expression.Text(parts)
}

// RowValue returns a value in a row: of the column with this exact name, otherwise at a dotted path.
func RowValue(row any, path string) (value any, found bool) {
	if columns, isMap := row.(map[string]any); isMap {
		if value, found = columns[path]; found {
			return value, true
		}
	}
	value, found, err := expression.ValueAtPath(row, path)
	return value, found && err == nil
}

// ContributedRows returns the rows of a page's contribution: the items of a list, none for nil, otherwise the value
// as a single row.
func ContributedRows(page any) []any {
	switch page := page.(type) {
	case nil:
		return nil
	case []any:
		return page
	}
	return []any{page}
}
