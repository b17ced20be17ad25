package format

import (
	"fmt"
	"slices"

	"reprise/interpreter/playbook"
)

// LoneElements returns notes about elements of XML that occur once in some elements of a list and several times in others. As they are a
// value there and a list here, a column of a table would have texts and JSON. what names the XML in the notes.
func LoneElements(value any, what string) (notes []string) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range playbook.SortedKeys(value) {
			if neighbours, isList := value[name].([]any); isList {
				notes = append(notes, loneMembers(neighbours, name, what)...)
			}
			notes = append(notes, LoneElements(value[name], what)...)
		}
	case []any:
		for _, element := range value {
			notes = append(notes, LoneElements(element, what)...)
		}
	}
	slices.Sort(notes)
	return slices.Compact(notes)
}

// loneMembers returns notes about the members of elements with one name.
func loneMembers(neighbours []any, name, what string) (notes []string) {
	lone, many := map[string]bool{}, map[string]bool{}
	for _, element := range neighbours {
		members, _ := element.(map[string]any)
		for member, value := range members {
			if _, isList := value.([]any); isList {
				many[member] = true
			} else {
				lone[member] = true
			}
		}
	}
	for _, member := range playbook.SortedKeys(many) {
		if lone[member] {
			notes = append(notes, fmt.Sprintf("%s has %s once in some elements %s, where it is a value, and several times in others, where it is a list; to make it a list in all, write xml: {lists: [%s/%s]}",
				what, member, name, name, member))
		}
	}
	return notes
}
