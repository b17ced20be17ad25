package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"reprise/interpreter/source"
)

// Screen is a standard stream. Data that could act on a terminal, or deceive its
// reader, is shown and has no effect: every character that Visible changes. Colours of
// our own are marked by Paper; what moves the cursor goes past it.
type Screen struct {
	To io.Writer
	// Err is the first error of a write: what is missing then was requested.
	Err error
}

// Write takes whole characters, as all callers have them.
func (s *Screen) Write(p []byte) (int, error) {
	text := Visible(string(p))
	if PaperOf(s.To).Colour {
		text = styles.Replace(text)
	}
	if err := s.Verbatim([]byte(text)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Verbatim writes what is not for eyes alone: the text of a file.
func (s *Screen) Verbatim(text []byte) error {
	_, err := s.To.Write(text)
	if s.Err == nil {
		s.Err = err
	}
	return err
}

// Visible shows the characters that a terminal would obey, or would not show, as the
// escapes of JSON: those that source.IsHidden names but line breaks and tabs. A JSON document has
// them inside strings only, and means the same afterwards. Bytes that are no
// UTF-8 are shown as in Go.
func Visible(text string) string {
	if !strings.ContainsFunc(text, IsUnsafe) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch _, width := utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && width == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r != utf8.RuneError && IsUnsafe(r):
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// IsUnsafe reports whether VisibleText may have to replace the character. RuneError counts,
// because it stands for invalid bytes.
func IsUnsafe(r rune) bool {
	return r != '\n' && r != '\t' && (r == utf8.RuneError || source.IsHidden(r))
}

// PrintJSON writes an indented JSON document without HTML escapes.
func PrintJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}
