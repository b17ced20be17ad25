package interpreter

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// RowWork says how an attempt changes the rows of a sink before they are written. It evaluates the expressions row
// by row, each with the budget of a decision, so that a list may have any length. Kept in workflow history.
type RowWork struct {
	// Map is the mapping map(xs, …) that is applied to the list first; nil for none.
	Map     *RowField  `json:"map,omitempty"`
	Fields  []RowField `json:"fields,omitempty"`
	Exclude []string   `json:"exclude,omitempty"`
	// Only says that rows keep only Fields.
	Only bool `json:"only,omitempty"`
	// Path is evaluated for each row as it is written, and says to which folder below the path of the sink it goes; nil where all
	// rows go to the path.
	Path *RowField `json:"path,omitempty"`
	// Scope has the values of the names in Fields, except the row, and except the result if it is what is written.
	Scope expression.Value `json:"scope,omitzero"`
	// Now is the value of now(): when the request was rendered.
	Now  time.Time `json:"now,omitzero"`
	File string    `json:"file,omitempty"` // name of the playbook's file, for messages
}

// RowField is a field that is added to, or replaces one of, each row. Kept in workflow history.
type RowField struct {
	Name string `json:"name"`
	// Template is the template as the author wrote it; "" for a constant, which is in Value.
	Template string           `json:"template,omitempty"`
	Value    expression.Value `json:"value,omitzero"`
	// Places are the places of Template in the file.
	Places TextPlaces `json:"places,omitempty"`
}

// TextPlaces maps the characters of a text to places in a file: an entry has the place of the character at Offset;
// the following characters, up to the next entry, are on the same line. Kept in workflow history.
type TextPlaces []TextPlace

// TextPlace is an entry of TextPlaces. Line and Column begin at 1.
type TextPlace struct {
	Offset int `json:"offset,omitempty"`
	Line   int `json:"line"`
	Column int `json:"column"`
}

// TextPlacesOf returns the places of the text of a node.
func TextPlacesOf(node *playbook.Node) (places TextPlaces) {
	if node.File() == nil {
		return nil
	}
	next := source.Position{}
	for offset, at := range node.Positions() {
		if at != next {
			places = append(places, TextPlace{Offset: offset, Line: at.Line, Column: at.Column})
		}
		next = source.Position{Line: at.Line, Column: at.Column + 1}
	}
	return places
}

// PositionAt returns the place of a character; zero if unknown.
func (p TextPlaces) PositionAt(offset int) (at source.Position) {
	for _, place := range p {
		if place.Offset <= offset || at.IsZero() {
			at = source.Position{Line: place.Line, Column: place.Column + max(offset-place.Offset, 0)}
		}
	}
	return at
}

// NewRowMap returns the mapping of args that are a template.
func NewRowMap(args *playbook.Node) *RowField {
	return &RowField{Name: "args", Template: args.Raw, Places: TextPlacesOf(args)}
}

// NewRowFields returns the fields of a sink.
func NewRowFields(entries []*playbook.Entry) []RowField {
	return lists.Map(entries, func(entry *playbook.Entry) RowField {
		if entry.Value.Template == nil {
			return RowField{Name: entry.Key, Value: expression.Of(entry.Value.Value)}
		}
		return RowField{Name: entry.Key, Template: entry.Value.Raw, Places: TextPlacesOf(entry.Value)}
	})
}

// ShapedRows has the rows of an attempt after its RowWork.
type ShapedRows struct {
	Args, Result *expression.Value // what replaces those of the attempt; nil if it stays
	// Paths are the folders of the rows, below the path of the sink; nil if it does not name the row.
	Paths []string
	// Columns are those of each row, as in ToolInput.
	Columns []string
	// Notes are warnings of the expressions about questionable data.
	Notes []string
}

// Parts processes rows in parts, perhaps concurrently: it calls part for ranges of indexes, from inclusive and to
// exclusive. It returns the notes of all parts in order, or the error of the first part that fails.
type Parts func(rows int, part func(from, to int) ([]string, error)) ([]string, error)

// ShapeRows applies the attempt's RowWork to its rows. The error says where an expression failed, or that a row is
// not a map, or is that of parts.
func (in ToolInput) ShapeRows(parts Parts) (shaped ShapedRows, err error) {
	shaped = ShapedRows{Args: in.Args, Result: in.Result}
	from := in.Result
	if in.Args != nil {
		from = in.Args
	}
	if in.Shape != nil && in.Shape.Path != nil {
		shaped.Paths = []string{}
	}
	if in.Shape == nil || from == nil || from.Data == nil {
		return shaped, nil
	}
	mapping, fields, err := in.Shape.readFields()
	if err != nil {
		return shaped, err
	}
	list, isList := from.Data.([]any)
	if !isList {
		list = []any{from.Data}
	}
	paths, err := in.Shape.readPath(len(list))
	if err != nil {
		return shaped, err
	}
	rows, absent := make([]any, len(list)), absentMembers(fields, list)
	misspelt := in.Shape.misspeltNotes(list)
	shaped.Notes, err = parts(len(list), func(from, to int) ([]string, error) {
		work := rowShaper{work: in.Shape, mapping: mapping, fields: slices.Clone(fields), paths: paths, owned: in.OwnsRows && mapping == nil, scope: rowScope{captured: expression.MapOf(in.Shape.Scope.Data), result: in.Result}}
		return work.shapePart(list, rows, from, to)
	})
	if err != nil {
		return shaped, err
	}
	if mapping != nil {
		shaped.Notes = append(shaped.Notes, AbsentInMap(mapping, in.Shape.Map.Places, list, false)...)
	} else { // of a mapping, the elements of the list are not what fields see
		shaped.Notes = append(shaped.Notes, absentNotes(fields, absent, rows)...)
		shaped.Notes = append(shaped.Notes, misspelt...)
	}
	if paths != nil {
		shaped.Paths = paths.of
	}
	if in.Columns != nil && mapping == nil {
		shaped.Columns = in.Shape.shapedColumns(in.Columns)
	}
	to := &expression.Value{Data: rows}
	if !isList {
		to.Data = rows[0]
	}
	if in.Args != nil || in.distinguishesRows() {
		shaped.Args = to
	} else {
		shaped.Result = to
	}
	return shaped, nil
}

// shapedColumns returns the columns of rows that had these.
func (w *RowWork) shapedColumns(columns []string) []string {
	shaped := []string{}
	if !w.Only {
		shaped = lists.Filter(columns, func(column string) bool { return !slices.Contains(w.Exclude, column) })
	}
	for _, field := range w.Fields {
		shaped = lists.AddUnique(shaped, field.Name)
	}
	return shaped
}

// WithRows returns the attempt with the given rows in place of its own, and without RowWork.
func (in ToolInput) WithRows(of ShapedRows) ToolInput {
	in.Args, in.Result, in.Shape, in.Reshaped, in.RowPaths, in.Columns = of.Args, of.Result, nil, nil, of.Paths, of.Columns
	return in
}

// distinguishesRows reports whether the rows of the page must be kept beside the written ones, because the state
// recognizes rows by them.
func (in ToolInput) distinguishesRows() bool { return in.State != nil && in.State.Rows != nil }

// fieldValue is a field of RowWork during evaluation.
type fieldValue struct {
	*RowField

	template *expression.Template // nil if the value is known
	value    any
	ofRow    bool // whether it depends on the row
}

// readFields parses the mapping and the fields.
func (w *RowWork) readFields() (mapping *expression.RowMap, fields []fieldValue, err error) {
	if w.Map != nil {
		template, problems := expression.ParseTemplate(w.Map.Template)
		if len(problems) == 0 {
			mapping = template.RowMap()
		}
		if mapping == nil {
			return nil, nil, fmt.Errorf("args: %w", errOtherBuild)
		}
	}
	fields = make([]fieldValue, len(w.Fields))
	for i := range w.Fields {
		field := fieldValue{RowField: &w.Fields[i], value: w.Fields[i].Value.Data}
		if field.Template != "" {
			template, problems := expression.ParseTemplate(field.Template)
			if len(problems) > 0 {
				return nil, nil, fmt.Errorf("fields.%s: %w", field.Name, errOtherBuild)
			}
			field.template, field.ofRow = template, template.UsesNames(playbook.RowWord)
		}
		fields[i] = field
	}
	return mapping, fields, nil
}

// errOtherBuild is the error about an expression that this build cannot parse.
var errOtherBuild = errors.New("it was written for another build and cannot be evaluated here")

// rowShaper applies a RowWork to one part of a list.
type rowShaper struct {
	work    *RowWork
	mapping *expression.RowMap // nil for none
	fields  []fieldValue
	paths   *rowPaths // nil where all rows go to the path of the sink
	owned   bool      // rows may be changed, as nobody else has them
	scope   rowScope
	budget  *expression.Budget
}

// rowScope is the scope of expressions over rows.
type rowScope struct {
	captured map[string]any
	result   *expression.Value
	row      any
}

// Lookup implements expression.Scope.
func (s *rowScope) Lookup(name string) (any, bool) {
	if name == playbook.RowWord {
		return s.row, true
	}
	if value, found := s.captured[name]; found || name != "result" || s.result == nil {
		return value, found
	}
	return s.result.Data, true
}

// shapePart shapes the rows with indexes from (inclusive) to (exclusive).
func (s *rowShaper) shapePart(list, rows []any, from, to int) ([]string, error) {
	s.budget = expression.DecisionBudget(s.work.Now)
	if err := s.putMapped(list, rows, from, to); err != nil {
		return nil, err
	}
	s.budget.ShareMachine()
	for i := from; i < to && s.changesRows(); i++ {
		shaped, err := s.shapeRow(i, rows[i])
		if err != nil {
			return nil, err
		}
		rows[i] = shaped
	}
	for i := from; i < to && s.paths != nil; i++ {
		if err := s.putPath(i, rows[i]); err != nil {
			return nil, err
		}
	}
	return s.budget.Notes(), nil
}

// changesRows reports whether there is work after the mapping.
func (s *rowShaper) changesRows() bool {
	return len(s.fields) > 0 || len(s.work.Exclude) > 0 || s.work.Only
}

// putMapped sets the rows to the result of the mapping.
func (s *rowShaper) putMapped(list, rows []any, from, to int) error {
	if s.mapping == nil {
		copy(rows[from:to], list[from:to])
		return nil
	}
	made, at, err := s.mapping.MapRows(list[from:to], &s.scope, s.budget)
	s.budget.PlaceNotes(0, s.work.Map.Places.placeNote)
	if err != nil {
		return s.rowError(from+at, s.work.Map, "args", err)
	}
	copy(rows[from:to], made)
	return nil
}

// shapeRow returns the shaped form of the row at an index.
func (s *rowShaper) shapeRow(i int, from any) (any, error) {
	row, isMap := from.(map[string]any)
	if !isMap {
		return nil, fmt.Errorf("row %d is a %s; fields and exclude change rows that are maps of columns to values", i+1, expression.TypeName(from))
	}
	s.scope.row = from
	s.budget.Renew()
	plain := true
	for at := range s.fields {
		field := &s.fields[at]
		if field.template != nil {
			if err := s.evaluateField(i, field); err != nil {
				return nil, err
			}
		}
		plain = plain && isScalar(field.value)
	}
	shaped := row
	switch {
	case s.work.Only:
		shaped = make(map[string]any, len(s.fields))
	case !s.owned || !plain: // a list or a map may have the row in it
		shaped = maps.Clone(row)
	}
	for _, name := range s.work.Exclude {
		delete(shaped, name)
	}
	for at := range s.fields {
		shaped[s.fields[at].Name] = s.fields[at].value
	}
	return shaped, nil
}

// isScalar reports whether a value has no others in it.
func isScalar(value any) bool {
	switch value.(type) {
	case nil, bool, int, float64, string, json.Number:
		return true
	}
	return false
}

// evaluateField sets the value of a field for the row at an index. A value that does not depend on the row is then
// kept for the following rows.
func (s *rowShaper) evaluateField(i int, field *fieldValue) (err error) {
	noted := s.budget.NoteCount()
	field.value, err = field.template.Render(&s.scope, s.budget)
	if s.budget.NoteCount() > noted {
		s.budget.PlaceNotes(noted, field.Places.placeNote)
	}
	if err != nil {
		return s.rowError(i, field.RowField, "fields."+field.Name, err)
	}
	if !field.ofRow {
		field.template = nil
	}
	return nil
}

// placeNote returns a place as the end of a message.
func (p TextPlaces) placeNote(offset int) string {
	at := p.PositionAt(offset)
	return fmt.Sprintf(" (line %d, column %d)", at.Line, at.Column)
}

// rowError returns the error of an expression over a row, with its place.
func (s *rowShaper) rowError(i int, field *RowField, what string, err error) error {
	text, place := err.Error(), field.Places.PositionAt(0)
	if failure, ok := errors.AsType[*expression.Error](err); ok {
		text, place = failure.Message, field.Places.PositionAt(failure.Offset)
	}
	where := ""
	if !place.IsZero() {
		where = fmt.Sprintf(" (%s:%s)", s.work.File, place)
	}
	return fmt.Errorf("row %d, %s: %s%s", i+1, what, text, where)
}
