package tool

import (
	"strings"
	"unicode/utf8"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/source"
)

// Fields arrive rendered: a template may have given them any type. These helpers accept values
// with a clear meaning, and refuse others in the author's terms.

// TextField returns a field as text; absent and nil are "".
func TextField(in interpreter.ToolInput, name string) (string, error) {
	switch v := in.Fields[name].Data.(type) {
	case nil:
		return "", nil
	case []any, map[string]any:
		return "", ConfigErrorf("step %q: %s must be text, not a %s", in.Step, name, expression.TypeName(v))
	default:
		return expression.Text(v), nil
	}
}

// RequiredText returns a text field that must not be empty.
func RequiredText(in interpreter.ToolInput, name string) (string, error) {
	text, err := TextField(in, name)
	if err == nil && strings.TrimSpace(text) == "" {
		err = ConfigErrorf("step %q: %s is empty; it must be text", in.Step, name)
	}
	return text, err
}

// MapField returns a field as a map; absent and nil are an empty one.
func MapField(in interpreter.ToolInput, name string) (map[string]any, error) {
	switch v := in.Fields[name].Data.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	default:
		return nil, ConfigErrorf("step %q: %s must be a map, not a %s", in.Step, name, expression.TypeName(v))
	}
}

// BoolField returns a field as a boolean; absent and nil are the fallback.
func BoolField(in interpreter.ToolInput, name string, fallback bool) (bool, error) {
	switch v := in.Fields[name].Data.(type) {
	case nil:
		return fallback, nil
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(v) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, ConfigErrorf("step %q: %s must be true or false, not %q", in.Step, name, expression.Text(in.Fields[name].Data))
}

// TextList returns a field as a list of texts; a single text is a list of one.
func TextList(in interpreter.ToolInput, name string) ([]string, error) {
	items, isList := in.Fields[name].Data.([]any)
	if !isList {
		text, err := TextField(in, name)
		if err != nil || text == "" {
			return nil, err
		}
		return []string{text}, nil
	}
	texts := make([]string, len(items))
	for i, item := range items {
		switch item.(type) {
		case nil, []any, map[string]any:
			return nil, ConfigErrorf("step %q: %s must be a list of texts, but element %d is a %s",
				in.Step, name, i, expression.TypeName(item))
		}
		texts[i] = expression.Text(item)
	}
	return texts, nil
}

// ChoiceField returns a text field that must be one of the accepted words; absent is the
// fallback.
func ChoiceField(in interpreter.ToolInput, name, fallback string, accepted ...string) (string, error) {
	text, err := TextField(in, name)
	if err != nil {
		return "", err
	}
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" {
		return fallback, nil
	}
	for _, word := range accepted {
		if text == word {
			return word, nil
		}
	}
	return "", ConfigErrorf("step %q: %s is %q; it must be %s", in.Step, name, text, ChoiceText(accepted))
}

// ChoiceText lists words for a message: "a, b or c".
func ChoiceText(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// SinkData returns the data that a sink without fields of its own writes: args, or else the result.
func SinkData(in interpreter.ToolInput) any {
	switch {
	case in.Args != nil:
		return in.Args.Data
	case in.Result != nil:
		return in.Result.Data
	}
	return nil
}

// CutText keeps at most limit bytes of text, whole runes, and makes it valid
// UTF-8, which JSON needs.
func CutText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	const mark = " … (cut)"
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// CutEnds keeps at most limit bytes of text, its beginning and its end, as source.CutEnds does.
func CutEnds(text string, limit int) string { return source.CutEnds(text, limit) }
