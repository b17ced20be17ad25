package render

import (
	"bytes"
	"encoding/json"

	"reprise/interpreter/credential"
	"reprise/interpreter/lists"
)

// masked stands for a value that is not shown.
const masked = "••••"

// MaskSecrets returns a copy of a value in which the values of keys whose names suggest secrets are masked.
func MaskSecrets(value any) any {
	switch of := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(of))
		for key, member := range of {
			_, isMap := member.(map[string]any)
			if credential.MentionsSecret(key) && member != nil && member != "" && !isMap {
				member = masked
			}
			shown[key] = MaskSecrets(member)
		}
		return shown
	case []any:
		return lists.Map(of, MaskSecrets)
	}
	return value
}

// MaskedJSON returns MaskSecrets as indented JSON of at most `most` bytes. cut reports whether something was left out.
func MaskedJSON(value any, most int) (text string, cut bool) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(MaskSecrets(value)); err != nil {
		return err.Error(), false
	}
	text = string(bytes.TrimSpace(b.Bytes()))
	if len(text) <= most {
		return text, false
	}
	return string(bytes.ToValidUTF8([]byte(text[:most]), nil)), true
}
