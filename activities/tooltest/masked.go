package tooltest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// RequireMasked fails if an error contains a secret, or ten bytes of it in a row. It reads the
// error as people and programs do: as it is, with the escapes of URLs, JSON and HTML undone, and
// without line breaks. It does not use the code that masks.
func RequireMasked(t *testing.T, object interpreter.ErrorObject, secret string) {
	t.Helper()
	const piece = 10
	encoded, err := json.Marshal(object)
	require.NoError(t, err)
	read := strings.NewReplacer(`\n`, "", `\r`, "", "\n", "", `\"`, `"`, `\'`, `'`, `\/`, `/`, `\\`, `\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\xe9`, "é", `\u00e9`, "é")
	texts := []string{string(encoded)}
	for range 3 {
		last := texts[len(texts)-1]
		texts = append(texts, read.Replace(last), html.UnescapeString(read.Replace(last)))
		if decoded, err := url.QueryUnescape(last); err == nil {
			texts = append(texts, decoded)
		}
	}
	forms := []string{secret, strings.ToUpper(secret), strings.ToLower(secret), hex.EncodeToString([]byte(secret)), url.QueryEscape(secret), url.PathEscape(secret)}
	for offset := range 3 {
		const group = 4
		whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", offset) + secret))
		forms = append(forms, whole[group:len(whole)-group])
	}
	for _, form := range forms {
		for at := 0; at+piece <= len(form); at++ {
			for _, text := range texts {
				require.NotContains(t, text, form[at:at+piece], "%s", encoded)
			}
		}
	}
}
