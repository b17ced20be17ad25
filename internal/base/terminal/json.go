package terminal

import (
	"encoding/json"
	"fmt"
	"io"
)

// PrintJSON writes one indented JSON document, readable as it is: no escapes
// for browsers.
func PrintJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}
