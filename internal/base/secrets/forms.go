package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"
)

// kind says where a pattern matches.
type kind int

const (
	// anywhere matches wherever the text occurs.
	anywhere kind = iota
	// encoded matches part of a base64 text; the adjacent characters hold bits of the secret.
	encoded
	// word matches only if no letter or digit is adjacent.
	word
)

// pattern is one form of a secret.
type pattern struct {
	text string
	kind kind
	// pieces is set if a prefix of the pattern at the end of a text is masked too.
	pieces bool
}

// Secrets of at least minSecret bytes are masked wherever they occur. Shorter ones, down to minWord, are masked as
// whole words. Masking even shorter secrets would hide ordinary text: they are masked only within longer ones, such
// as user:password and the whole URL.
const (
	minSecret = 6
	minWord   = 3
)

// secretForms returns the patterns of a secret, as it appears in a text whose escapes have been undone. Escapes are
// undone in the text to mask, so they need no patterns, even where only some characters are escaped or one is escaped
// in several ways.
func secretForms(secret string) []pattern {
	seen := map[string]bool{}
	var all []pattern
	add := func(text string, kind kind, least int) {
		if len(text) >= least && !seen[text] {
			seen[text] = true
			all = append(all, pattern{text: text, kind: kind, pieces: kind == anywhere})
		}
	}
	for _, text := range plainForms(secret) {
		if len(secret) < minSecret {
			add(text, word, minWord)
			continue
		}
		add(text, anywhere, minSecret)
	}
	for _, bytes := range writtenForms(secret) {
		for _, core := range base64Parts(bytes) {
			add(core, encoded, minSecret)
		}
	}
	digits := hex.EncodeToString([]byte(secret)) // of bytes, in PostgreSQL and Python, and in SQLite
	add(digits, anywhere, minSecret+2)
	add(strings.ToUpper(digits), anywhere, minSecret+2)
	return all
}

// plainForms returns spellings of a secret that are not escapes.
func plainForms(secret string) []string {
	all := []string{
		secret,
		strings.TrimSpace(secret),
		strings.ReplaceAll(secret, " ", "+"), // in a form
		strings.ReplaceAll(secret, "'", "''"),
		strings.ReplaceAll(secret, `"`, `""`),
	}
	if old, ok := toLatin1(secret); ok {
		all = append(all, old, strings.ToValidUTF8(old, "\uFFFD"))
	}
	all = append(all, misreadForms(secret)...)
	// A secret that itself looks like an escape reads differently in deeper layers.
	for read := (layer{text: secret}); len(all) < 16; {
		under, changed := read.unescapeOnce()
		if !changed {
			break
		}
		all, read = append(all, under.text), layer{text: under.text}
	}
	for _, text := range all { // names of headers, and hosts
		all = append(all, strings.ToLower(text))
		if len(secret) >= minSecret { // and of variables
			all = append(all, strings.ToUpper(text))
		}
	}
	return all
}

// misreadForms returns a UTF-8 secret as it looks if decoded as Latin-1 or Windows-1252, as old web servers do.
func misreadForms(secret string) []string {
	var all []string
	for _, table := range []*charmap.Charmap{charmap.ISO8859_1, charmap.Windows1252} {
		if text, err := table.NewDecoder().String(secret); err == nil {
			all = append(all, text)
		}
	}
	return all
}

// writtenForms returns the byte sequences that base64 of a secret may encode: the secret, in UTF-8 or in Latin-1 as
// clients write logins, escaped as in a JSON message, or as an OAuth 2.0 login (RFC 6749, section 2.3.1).
func writtenForms(secret string) []string {
	quoted, err := json.Marshal(secret)
	all := []string{secret, url.QueryEscape(secret)}
	if err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]), jsonPlain(secret))
	}
	if old, ok := toLatin1(secret); ok {
		all = append(all, old)
	}
	return all
}

// jsonPlain returns a secret as JSON escapes it without escaping for HTML.
func jsonPlain(secret string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(secret)
}

// base64Parts returns the base64 characters that a secret alone determines within a longer encoded text, for each of
// its three positions in a group.
func base64Parts(text string) []string {
	const bits = 6
	all := make([]string, 0, 6)
	for offset := range 3 {
		padded := make([]byte, offset, offset+len(text))
		padded = append(padded, text...)
		first, last := (offset*8+bits-1)/bits, len(padded)*8/bits
		if first >= last {
			continue
		}
		all = append(all, base64.RawStdEncoding.EncodeToString(padded)[first:last],
			base64.RawURLEncoding.EncodeToString(padded)[first:last])
	}
	return all
}

// toLatin1 returns a text in ISO 8859-1; false if that is the same, or cannot represent it.
func toLatin1(text string) (string, bool) {
	old := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			return "", false
		}
		old = append(old, byte(r))
	}
	return string(old), string(old) != text
}

// escapedForHTML returns a secret as it is escaped in a page, and in JSON that may be inside one, where non-ASCII
// characters may be escaped too.
func escapedForHTML(secret string) []string {
	quoted, err := json.Marshal(secret)
	if err != nil {
		return nil
	}
	inJSON := string(quoted[1 : len(quoted)-1])
	ascii := strconv.QuoteToASCII(secret)
	return []string{html.EscapeString(secret), inJSON, ascii[1 : len(ascii)-1]}
}
