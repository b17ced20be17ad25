package interpreter

import (
	"fmt"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// AbsentMember returns the member of rows that a reference to the root names and that none of them has, with a suggestion. It
// returns "" if a row has it, or is not a map, and for other references.
func AbsentMember(root string, ref expression.Ref, rows []any) string {
	name, known := absentName(root, ref, rows)
	if name == "" {
		return ""
	}
	return root + "." + name + didYouMean(root, expression.Suggest(name, known))
}

// MisspeltMember is AbsentMember for a member where the rows have another that it certainly means, else "".
func MisspeltMember(root string, ref expression.Ref, rows []any) string {
	name, known := absentName(root, ref, rows)
	meant := expression.SuggestCertain(name, known)
	if meant == "" {
		return ""
	}
	return root + "." + name + didYouMean(root, meant)
}

func didYouMean(root, suggested string) string {
	if suggested == "" {
		return ""
	}
	return "; did you mean " + root + "." + suggested + "?"
}

// absentName returns the name that a reference to the root names and that none of the rows has, and the names that the first has.
func absentName(root string, ref expression.Ref, rows []any) (name string, known []string) {
	if ref.Root != root || len(ref.Path) == 0 {
		return "", nil
	}
	name, isName := ref.Path[0].(string)
	if !isName || !expression.AllLack(rows, name) {
		return "", nil
	}
	return name, playbook.SortedKeys(expression.MapOf(rows[0]))
}

// absentMembers returns, for each field, notes about the members of rows that it names and none of the rows has.
func absentMembers(fields []fieldValue, rows []any) [][]string {
	return lists.Map(fields, func(field fieldValue) (notes []string) {
		if !field.ofRow {
			return nil
		}
		for _, ref := range field.template.RequiredRefs() {
			if member := AbsentMember(playbook.RowWord, ref, rows); member != "" {
				notes = append(notes, fmt.Sprintf("fields.%s: no row has %s%s", field.Name, member, field.Places.placeNote(ref.Offset)))
			}
		}
		return notes
	})
}

// absentNotes returns the notes of absentMembers of fields that are empty, false or 0 in all rows: such a member is probably misspelt.
func absentNotes(fields []fieldValue, absent [][]string, shaped []any) (notes []string) {
	for i, field := range fields {
		if len(absent[i]) > 0 && !slices.ContainsFunc(shaped, field.isFilled) {
			notes = append(notes, absent[i]...)
		}
	}
	return notes
}

// misspeltNotes returns notes about fields that a sink excludes and none of its rows has, where the rows have another that the author
// certainly meant: it would be written.
func (w *RowWork) misspeltNotes(rows []any) (notes []string) {
	for _, name := range w.Exclude {
		if !expression.AllLack(rows, name) {
			continue
		}
		others := slices.DeleteFunc(playbook.SortedKeys(expression.MapOf(rows[0])), func(other string) bool { return slices.Contains(w.Exclude, other) })
		if meant := expression.SuggestCertain(name, others); meant != "" {
			notes = append(notes, fmt.Sprintf("exclude: no row has %q; did you mean %q?", name, meant))
		}
	}
	return notes
}

// isFilled reports whether a row has a value for the field. Text around an expression says nothing of it.
func (f fieldValue) isFilled(row any) bool {
	_, single := f.template.SingleProgram()
	return single && expression.Truthy(expression.MapMember(row, f.Name))
}

// AbsentInMap returns notes about members that a mapping names of its elements and that none of these has. evaluated says that the
// evaluation of the mapping has noted those that are certainly misspelt.
func AbsentInMap(mapping *expression.RowMap, places TextPlaces, elements []any, evaluated bool) (notes []string) {
	for _, ref := range mapping.Members() {
		if evaluated && MisspeltMember("#", ref, elements) != "" {
			continue
		}
		if member := AbsentMember("#", ref, elements); member != "" {
			notes = append(notes, fmt.Sprintf("args: no row has %s%s", member, places.placeNote(ref.Offset)))
		}
	}
	return notes
}
