package e2e_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

// The oracle writes a secret in every way in which other programs may repeat it.
// It is written without a look at what masks them.

// spelling is one way to write a text.
type spelling struct {
	name  string
	write func(string) string
}

func perRune(format func(r rune) string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, r := range s {
			b.WriteString(format(r))
		}
		return b.String()
	}
}

func perByte(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, format, s[i])
		}
		return b.String()
	}
}

func utf16Escapes(format string) func(string) string {
	return perRune(func(r rune) string {
		var b strings.Builder
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, format, unit)
		}
		return b.String()
	})
}

func jsonText(escapeHTML bool) func(string) string {
	return func(s string) string {
		var b strings.Builder
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(escapeHTML)
		if err := encoder.Encode(s); err != nil {
			panic(err)
		}
		text := strings.TrimSpace(b.String())
		return text[1 : len(text)-1]
	}
}

func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

func pythonRepr(s string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s)
}

// after encodes a text that stands behind n others and before some more, as in
// the base64 of a whole message.
func after(n int, encoding *base64.Encoding) func(string) string {
	return func(s string) string { return encoding.EncodeToString([]byte("\x00\xff"[:n] + s + "~\x00")) }
}

var spellings = func() []spelling {
	plain := func(s string) string { return s }
	list := []spelling{
		{"plain", plain},
		{"base64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
		{"base64 raw", func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) }},
		{"base64url", func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) }},
		{"base64url raw", func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }},
		{"base64 inside", after(0, base64.StdEncoding)},
		{"base64 inside, 1 on", after(1, base64.StdEncoding)},
		{"base64 inside, 2 on", after(2, base64.StdEncoding)},
		{"base64url inside, 1 on", after(1, base64.RawURLEncoding)},
		{"base64url inside, 2 on", after(2, base64.RawURLEncoding)},
		{"hex", func(s string) string { return hex.EncodeToString([]byte(s)) }},
		{"HEX", func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }},
		{"query", url.QueryEscape},
		{"path", url.PathEscape},
		{"query, lower case", func(s string) string { return lowerEscapes(url.QueryEscape(s)) }},
		{"percent, all", perByte("%%%02X")},
		{"percent, all, lower case", perByte("%%%02x")},
		{"JSON", jsonText(false)},
		{"JSON for HTML", jsonText(true)},
		{"JSON with slashes", func(s string) string { return strings.ReplaceAll(jsonText(false)(s), "/", `\/`) }},
		{`\u`, utf16Escapes(`\u%04x`)},
		{`\U`, utf16Escapes(`\u%04X`)},
		{`\x`, perByte(`\x%02x`)},
		{"HTML", html.EscapeString},
		{"HTML named", func(s string) string {
			return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;", "/", "&sol;", "ä", "&auml;").Replace(s)
		}},
		{"HTML decimal", perRune(func(r rune) string { return fmt.Sprintf("&#%d;", r) })},
		{"HTML hex", perRune(func(r rune) string { return fmt.Sprintf("&#x%x;", r) })},
		{"HTML HEX", perRune(func(r rune) string { return fmt.Sprintf("&#X%X;", r) })},
		{"%q", func(s string) string { return inner(fmt.Sprintf("%q", s)) }},
		{"%+q", func(s string) string { return inner(fmt.Sprintf("%+q", s)) }},
		{"repr", pythonRepr},
		{"SQL", func(s string) string { return strings.ReplaceAll(s, "'", "''") }},
	}
	over := func(first, second string) {
		a, b := spelled(list, first), spelled(list, second)
		list = append(list, spelling{second + " of " + first, func(s string) string { return b(a(s)) }})
	}
	for _, twice := range [][2]string{
		{"query", "query"},
		{"JSON", "JSON"},
		{"HTML", "JSON"},
		{"HTML", "JSON for HTML"},
		{"JSON", "HTML"},
		{"query", "HTML"},
		{"base64", "query"},
		{"base64", "JSON with slashes"},
		{"base64", "percent, all"},
		{"JSON", "query"},
		{`\u`, "JSON"},
		{"query", "base64"},
		{"JSON", "base64 inside, 1 on"},
		{"HTML", "HTML"},
		{"%q", "%q"},
	} {
		over(twice[0], twice[1])
	}
	return list
}()

func spelled(list []spelling, name string) func(string) string {
	for _, s := range list {
		if s.name == name {
			return s.write
		}
	}
	panic("no spelling " + name)
}

func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
		}
	}
	return string(b)
}

// spelledOut is a secret in every spelling, each once.
func spelledOut(secret string) []string {
	var all []string
	for _, s := range spellings {
		if text := s.write(secret); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// core is the part of a spelling that does not depend on what stands beside the
// secret.
func core(s spelling, secret string) string {
	text := s.write(secret)
	if strings.Contains(s.name, "base64 inside") || strings.Contains(s.name, "base64url inside") {
		return text[3 : len(text)-5]
	}
	return strings.TrimRight(text, "=")
}

const head = 6 // bytes of a pattern by which it is looked up

// trace is a spelling of a canary that must be nowhere.
type trace struct{ canary, spelling, text string }

// hound finds traces of canaries.
type hound struct {
	byHead map[string][]trace
}

func newHound(t *testing.T, canaries []string) *hound {
	t.Helper()
	h := &hound{byHead: map[string][]trace{}}
	seen := map[string]bool{}
	add := func(found trace) {
		require.GreaterOrEqual(t, len(found.text), head, found.spelling)
		if !seen[found.text] {
			seen[found.text] = true
			h.byHead[found.text[:head]] = append(h.byHead[found.text[:head]], found)
		}
	}
	for _, canary := range canaries {
		for _, s := range spellings {
			add(trace{canary, s.name, core(s, canary)})
		}
		add(trace{canary, "its first half", canary[:len(canary)/2]})
		add(trace{canary, "lower case", strings.ToLower(canary)})
	}
	return h
}

// finds are the traces in a text; a place counts once.
func (h *hound) finds(text string) []trace {
	var found []trace
	for i := 0; i+head <= len(text); {
		best := 0
		for _, one := range h.byHead[text[i:i+head]] {
			if len(one.text) > best && strings.HasPrefix(text[i:], one.text) {
				if best == 0 {
					found = append(found, one)
				}
				best, found[len(found)-1] = len(one.text), one
			}
		}
		i += max(best, 1)
	}
	return found
}

// TestHoundFindsWhatItIsToFind: each spelling is found, in the middle of others.
func TestHoundFindsWhatItIsToFind(t *testing.T) {
	t.Parallel()
	secret := `Q7` + `a&<">'/+=%41\n äß😀 zz`
	h := newHound(t, []string{secret})
	for _, s := range spellings {
		require.NotEmpty(t, h.finds("x: "+s.write(secret)+" y"), s.name)
	}
	require.Empty(t, h.finds("an ordinary text"))
}
