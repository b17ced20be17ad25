package secrets_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/secrets"
)

// xxd is a dump as xxd writes it, hexdump as hexdump -C does.
func xxd(text string) string {
	var b strings.Builder
	for at := 0; at < len(text); at += 16 {
		row := text[at:min(at+16, len(text))]
		fmt.Fprintf(&b, "%08x:", at)
		for i := 0; i < len(row); i += 2 {
			fmt.Fprintf(&b, " %x", row[i:min(i+2, len(row))])
		}
		fmt.Fprintf(&b, "%*s  %s\n", 40-(5*len(row)+1)/2, "", strings.Map(printable, row))
	}
	return b.String()
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '.'
	}
	return r
}

// TestSecretsInOtherClothesAreMasked: in capitals, with other separators, over line
// breaks, in dumps.
func TestSecretsInOtherClothesAreMasked(t *testing.T) {
	t.Parallel()
	const token = "tok-7fA9-Zq31_xYw2.8kLmN0pQ-rest"
	before, after := token[:11], token[11:]
	lines := func(text string, width int) string {
		var b strings.Builder
		for len(text) > width {
			b.WriteString(text[:width] + "\r\n")
			text = text[width:]
		}
		return b.String() + text
	}
	spaced := func(format, separator string) string {
		parts := make([]string, len(token))
		for i := range len(token) {
			parts[i] = fmt.Sprintf(format, token[i])
		}
		return strings.Join(parts, separator)
	}
	wide := ""
	for _, unit := range utf16.Encode([]rune(token)) {
		wide += string([]byte{byte(unit), byte(unit >> 8)})
	}
	var set secrets.Masker
	set.Use(set.AddConnection("bearer:" + token))
	for form, text := range map[string]string{
		"capitals": strings.ToUpper(token), "small": strings.ToLower(token), "title": strings.ToUpper(before) + after,
		"underscores": strings.ReplaceAll(token, "-", "_"), "capitals with underscores": strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(token)),
		"without separators": strings.NewReplacer("-", "", "_", "", ".", "").Replace(token),
		"spaces":             strings.ReplaceAll(token, "-", " "),
		"line break":         before + "\n" + after, "folded": before + "\r\n\t" + after, "quoted": before + "\n> " + after,
		"soft break": before + "=\r\n" + after, "break in JSON": before + `\n` + after, "break in a string": before + `\` + "\n" + after,
		"each on a line": lines(token, 1), "UTF-16": wide, "no width": before + "\u200b" + after,
		"hex": strings.ToUpper(hex.EncodeToString([]byte(token))), "spaced hex": spaced("%02x", " "), "colons": spaced("%02X", ":"),
		"0x": spaced("0x%02x", ", "), "hex over lines": lines(hex.EncodeToString([]byte(token)), 20), "escaped": spaced("%%%02X", ""),
		"base64 over lines": lines(base64.StdEncoding.EncodeToString([]byte(token)), 16),
	} {
		masked := set.Text("the answer was " + text)
		require.Regexp(t, `^the answer was (0x)?\*\*\*[A-Za-z]?[\pP\pS\s\x00]*$`, masked, form)
	}
	for name, dumped := range map[string]string{
		"xxd": xxd("Authorization: Bearer " + token + "\r\nHost: a"), "hexdump": hex.Dump([]byte("Authorization: Bearer " + token + "\r\nHost: a")),
		"one line": hex.Dump([]byte(token[:3])) + hex.Dump([]byte(token)), "indented": strings.ReplaceAll("\n"+hex.Dump([]byte("x"+token)), "\n", "\n   "),
	} {
		masked := set.Text("it sent\n" + dumped)
		require.Contains(t, masked, secrets.Stars, name)
		digits := strings.NewReplacer(" ", "", "\n", "").Replace(masked)
		for at := 0; at+6 < len(token); at++ {
			require.NotContains(t, masked, token[at:at+6], "%s: %s", name, masked)
			require.NotContains(t, digits, hex.EncodeToString([]byte(token[at:at+6])), "%s: %s", name, masked)
		}
	}
}

// TestWordsAreNoSecretsInOtherClothes: what is left of a secret without its separators
// must not be a word.
func TestWordsAreNoSecretsInOtherClothes(t *testing.T) {
	t.Parallel()
	set := masking("pass-word!", "open:sesame", "12-34-56", "ab-12-cd", "2026-11-23", "v1.2.3")
	for _, text := range []string{
		"the password is wrong", "open sesame", "Open Sesame street", "123456 rows", "AB12CD", "at 20261123", "v123", "12 34 56",
		"00000000: not a dump", "deadbeef: face", "0xff 0x", hex.Dump([]byte("nothing of that here")),
	} {
		require.Equal(t, text, set.Text(text))
	}
}

func BenchmarkMaskText(b *testing.B) {
	set := masking("tok-7fA9-Zq31_xYw2.8kLmN0pQ-rest", "another-s3cr3t")
	for name, piece := range map[string]string{
		"words": "an ordinary text of an answer, and more. ", "almost": "tok-7fA9-Zq31_xYw2.8kLmN0pQ-", "dump": hex.Dump([]byte("sixteen bytes..."))[:79],
	} {
		for _, size := range []int{64 << 10, 256 << 10} {
			text := strings.Repeat(piece, size/len(piece))
			b.Run(fmt.Sprintf("%s %d KiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for range b.N {
					set.Text(text)
				}
			})
		}
	}
}
