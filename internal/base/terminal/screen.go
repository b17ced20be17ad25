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

// Screen is a standard stream. Data that could control a terminal or deceive its reader is shown without effect:
// every character that EscapeInvisible changes. Our own colours are marked by Paper; what moves the cursor bypasses Screen.
type Screen struct {
	To io.Writer
	// Err is the first error of a write: part of the requested output is then missing.
	Err error
}

// Write expects whole characters, as all callers write.
func (s *Screen) Write(p []byte) (int, error) {
	text := EscapeInvisible(string(p))
	if PaperOf(s.To).Colour {
		text = styles.Replace(text)
	}
	if err := s.WriteVerbatim([]byte(text)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteVerbatim writes a text unchanged, such as the text of a file that is not only for people to read.
func (s *Screen) WriteVerbatim(text []byte) error {
	_, err := s.To.Write(text)
	if s.Err == nil {
		s.Err = err
	}
	return err
}

// EscapeInvisible replaces the characters that would control a terminal, or be invisible, by JSON escapes: those that
// source.IsHidden names except line breaks and tabs. A JSON document has them only inside strings, and keeps its
// meaning. Invalid UTF-8 is shown as in Go.
func EscapeInvisible(text string) string {
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

// IsUnsafe reports whether EscapeInvisible may have to replace the character. RuneError counts, because it stands for invalid
// bytes.
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
