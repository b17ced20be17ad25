package expression

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Headers, CSV and many APIs have numbers and booleans as text, which a comparison does not convert. If two such
// texts are ordered by their characters and their numbers have another order, that is an error. A comparison for
// equality that can never be true is noted.

// longestReading is the most bytes of a text that is compared as a number. This work is not charged, so the texts
// have to be short.
const longestReading = textPerStep

// readsAs returns the number that a text contains, or false if it contains none.
func readsAs(text string) (any, bool) {
	return ParseNumber(strings.TrimSpace(text))
}

// orderError returns an error if two texts are ordered differently by their characters and by the numbers in them.
func orderError(name string, x, y string) error {
	if x == y || !mayBeNumber(x) || !mayBeNumber(y) {
		return nil
	}
	a, isNumber := readsAs(x)
	b, bothNumbers := readsAs(y)
	if !isNumber || !bothNumbers || CompareNumbers(a, b) == strings.Compare(x, y) {
		return nil
	}
	return fmt.Errorf("%s would compare the texts %s and %s by their characters, which is not the order of their numbers; "+
		"compare numbers: int(x) converts a text, float(x) one with a fraction", name, describeValue(x), describeValue(y))
}

// mayBeNumber is a quick check that is false for most texts that are not numbers.
func mayBeNumber(text string) bool {
	if len(text) > longestReading {
		return false
	}
	text = strings.TrimSpace(text)
	return text != "" && strings.IndexByte("0123456789+-.", text[0]) >= 0
}

// misorderedKeys is orderError for each two neighbours of sorted keys.
func misorderedKeys(name string, items []item) error {
	before, has := "", false
	for _, one := range items {
		text, isText := one.key.(string)
		if !isText {
			continue
		}
		if !mayBeNumber(text) {
			continue
		}
		if _, isNumber := readsAs(text); !isNumber {
			continue
		}
		if has {
			if err := orderError(name, before, text); err != nil {
				return err
			}
		}
		before, has = text, true
	}
	return nil
}

// note is a remark about questionable data with which an evaluation could still continue. Notes are kept in the
// order in which they were found.
type note struct {
	offset  int
	message string
	placed  bool
}

// mostNotes is the most notes of one decision about missing fields. A predicate over a list may cause one per
// element.
const mostNotes = 20

func (b *Budget) addNote(offset int, message string) {
	same := func(one note) bool { return !one.placed && one.offset == offset && one.message == message }
	if len(b.notes) < mostNotes && !slices.ContainsFunc(b.notes, same) {
		b.notes = append(b.notes, note{offset: offset, message: message})
	}
}

// NoteCount returns the number of notes.
func (b *Budget) NoteCount() int { return len(b.notes) }

// PlaceNotes adds the position to the notes from index from on. place returns the text for an offset in the
// template.
func (b *Budget) PlaceNotes(from int, place func(offset int) string) {
	for i := from; i < len(b.notes); i++ {
		if one := &b.notes[i]; !one.placed {
			one.message, one.placed = one.message+place(one.offset), true
		}
	}
}

// Notes returns the messages without duplicates.
func (b *Budget) Notes() []string {
	var messages []string
	for _, one := range b.notes {
		if one.placed && !slices.Contains(messages, one.message) {
			messages = append(messages, one.message)
		}
	}
	b.notes = nil
	return messages
}

// AddPlaced adds a message that names its place.
func (b *Budget) AddPlaced(message string) {
	if len(b.notes) < mostNotes {
		b.notes = append(b.notes, note{message: message, placed: true})
	}
}

// moveNotes shifts the offsets of the notes from index from on.
func (b *Budget) moveNotes(from, by int) {
	for i := from; i < len(b.notes); i++ {
		b.notes[i].offset += by
	}
}

// noting is an operator that looks for equal values, in the elements of a list if lists is set. none is its result
// if it finds none.
type noting struct {
	op          func(b *Budget, x, y any) (any, error)
	lists, none bool
}

// callNoting calls the operator. If it finds no equal values only because of their types, it adds a note; for a
// list the first element is examined.
func (n noting) callNoting(b *Budget, x, y any, offset int) (any, error) {
	given, err := n.op(b, x, y)
	if err != nil || given != n.none {
		return given, err
	}
	if n.lists {
		x, y = firstElement(x), firstElement(y)
	}
	if what := misreadText(x, y); what != "" {
		b.addNote(offset, what)
	}
	return given, nil
}

func firstElement(v any) any {
	if list, isList := v.([]any); isList && len(list) > 0 {
		return list[0]
	}
	return v
}

// DecideTruth returns Truthy for the value of a condition, and adds a note if the value is a text such as "false", "0" or "null".
func (b *Budget) DecideTruth(v any, offset int) bool {
	if text, isText := v.(string); isText && len(text) < longestReading {
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "false", "0", "null", "none":
			b.addNote(offset, fmt.Sprintf("the text %q is true, as every text but \"\" is; compare with '%s'", text, text))
		}
	}
	return Truthy(v)
}

// misreadText returns a message if one of two values is a text that reads like the other value, and "" if not.
func misreadText(x, y any) string {
	for _, pair := range [][2]any{{x, y}, {y, x}} {
		switch pair[0].(type) {
		case bool:
			switch text := pair[1].(type) {
			case string:
				if len(text) < longestReading && slices.Contains([]string{"true", "false", "1", "0"}, strings.ToLower(strings.TrimSpace(text))) {
					return fmt.Sprintf("a boolean never equals the text %q; compare with '%s'", text, text)
				}
			case int:
				if text == 0 || text == 1 {
					return fmt.Sprintf("a boolean never equals the number %d; compare with %d, or write the value alone: 0 is false", text, text)
				}
			}
		case int, float64, json.Number:
			text, isText := pair[1].(string)
			if !isText || !mayBeNumber(text) {
				continue
			}
			if _, isNumber := readsAs(text); isNumber {
				return "a number never equals a text, even if it looks like a number; int(x) converts a text"
			}
		}
	}
	return ""
}
