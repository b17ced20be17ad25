package activities

import (
	"maps"
	"strings"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// Fields arrive rendered: a template may have given them any type. These
// helpers take what can be meant and refuse the rest in the author's words.

// textField is a field as text; absent and nil are "".
func textField(in interpreter.ToolInput, name string) (string, error) {
	switch v := in.Fields[name].Data.(type) {
	case nil:
		return "", nil
	case []any, map[string]any:
		return "", configErrorf("step %q: %s must be text, this is a %s", in.Step, name, expression.TypeName(v))
	default:
		return expression.Text(v), nil
	}
}

// requiredText is a text field that must not be empty.
func requiredText(in interpreter.ToolInput, name string) (string, error) {
	text, err := textField(in, name)
	if err == nil && strings.TrimSpace(text) == "" {
		err = configErrorf("step %q: %s is empty; it must be text", in.Step, name)
	}
	return text, err
}

// mapField is a field as a map; absent and nil are an empty one.
func mapField(in interpreter.ToolInput, name string) (map[string]any, error) {
	switch v := in.Fields[name].Data.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	default:
		return nil, configErrorf("step %q: %s must be a map, this is a %s", in.Step, name, expression.TypeName(v))
	}
}

// boolField is a field as a boolean; absent and nil are the fallback.
func boolField(in interpreter.ToolInput, name string, fallback bool) (bool, error) {
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
	return false, configErrorf("step %q: %s must be true or false, this is %q", in.Step, name, expression.Text(in.Fields[name].Data))
}

// textList is a field as a list of texts; a single text is a list of one.
func textList(in interpreter.ToolInput, name string) ([]string, error) {
	items, isList := in.Fields[name].Data.([]any)
	if !isList {
		text, err := textField(in, name)
		if err != nil || text == "" {
			return nil, err
		}
		return []string{text}, nil
	}
	texts := make([]string, len(items))
	for i, item := range items {
		switch item.(type) {
		case nil, []any, map[string]any:
			return nil, configErrorf("step %q: %s must be a list of texts, element %d is a %s",
				in.Step, name, i, expression.TypeName(item))
		}
		texts[i] = expression.Text(item)
	}
	return texts, nil
}

// choice is a text field that must be one of the accepted words; absent is the
// fallback.
func choice(in interpreter.ToolInput, name, fallback string, accepted ...string) (string, error) {
	text, err := textField(in, name)
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
	return "", configErrorf("step %q: %s is %q; it must be %s", in.Step, name, text, oneOf(accepted))
}

// oneOf lists words for a message: "a, b or c".
func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// written is what a sink without fields of its own writes: args, else result.
func written(in interpreter.ToolInput) any {
	switch {
	case in.Args != nil:
		return in.Args.Data
	case in.Result != nil:
		return in.Result.Data
	}
	return nil
}

// withField is a copy of fields with one more.
func withField(fields map[string]expression.Value, name string, v any) map[string]expression.Value {
	more := maps.Clone(fields)
	if more == nil {
		more = map[string]expression.Value{}
	}
	more[name] = expression.Of(v)
	return more
}
