package http_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
)

// TestWhatServersRepeatIsMasked goes through the ways by which a server's answer, or the error of a request, has what
// the request was sent with (docs/decisions/0033-forms-of-secrets.md).
func TestWhatServersRepeatIsMasked(t *testing.T) {
	t.Parallel()
	const secret = `Zq8-kN4/w+T2=x"9L'm&v<2>%q\7Rt5 W3h`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { repeatHeader(w, r) }))
	t.Cleanup(server.Close)
	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{
		"header": "header:X-Key: " + secret, "basic": strings.Replace(server.URL, "http://", "http://ana:"+url.PathEscape(secret)+"@", 1),
		"query": `{"query": {"api_key": ` + string(must(json.Marshal(secret))) + `}}`,
	}})
	for _, auth := range []string{"header", "basic", "query"} {
		for _, mode := range []string{
			"text", "JSON", "JSON for HTML", "JSON in JSON", "JSON of a program", "ASCII", "HTML", "PHP", "query", "path", "address in JSON", "header",
			"message queue", "key in small letters", "field of CSV", "cut", "redirect",
		} {
			in := tooltest.Input(map[string]any{"url": server.URL + "/?mode=" + url.QueryEscape(mode)})(t)
			in.Auth = auth
			_, err := tooltest.CallHTTP(t, c, in)
			require.Error(t, err, mode)
			object := tooltest.ErrorObject(t, err)
			if mode == "redirect" {
				require.Contains(t, object.Message, "would send a secret of connection")
			} else {
				require.Contains(t, fmt.Sprint(object), "***", mode)
			}
			tooltest.RequireMasked(t, object, secret)
		}
	}
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

// repeatHeader refuses a request and repeats its credentials in the form that the request names.
func repeatHeader(w http.ResponseWriter, r *http.Request) {
	sent := r.Header.Get("X-Key")
	if _, password, ok := r.BasicAuth(); ok {
		sent = r.Header.Get("Authorization") + " is " + password
	}
	if key := r.URL.Query().Get("api_key"); key != "" {
		sent = key
	}
	quoted := string(must(json.Marshal(map[string]string{"sent": sent})))
	w.Header().Set("Content-Type", "text/plain")
	text := map[string]string{
		"text": "no: " + sent, "JSON for HTML": quoted, "JSON in JSON": string(must(json.Marshal(map[string]string{"upstream": quoted}))),
		"JSON":              `{"sent": "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sent) + `"}`,
		"JSON of a program": `{"sent": "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "/", `\/`).Replace(sent) + `"}`,
		"ASCII":             fmt.Sprintf("%+q", sent), "HTML": "<p>" + html.EscapeString(sent), "PHP": "<p>" + strings.NewReplacer("&", "&amp;", "'", "&#039;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(sent),
		"query": "/?back=" + url.QueryEscape(sent), "path": "/back/" + url.PathEscape(sent), "address in JSON": `{"at": "https:\/\/login.test\/?t=` + url.QueryEscape(sent) + `"}`,
		"message queue":        `{"data": "` + base64.StdEncoding.EncodeToString([]byte(quoted)) + `"}`,
		"key in small letters": "no key " + strings.ToLower(sent),
		"field of CSV":         `"no","` + strings.ReplaceAll(sent, `"`, `""`) + `"`, "cut": strings.Repeat("-", 50) + sent[:len(sent)-5],
	}[r.URL.Query().Get("mode")]
	switch mode := r.URL.Query().Get("mode"); mode {
	case "redirect":
		w.Header().Set("Location", "http://127.0.0.1:1/"+url.PathEscape(sent)+"?t="+url.QueryEscape(sent))
		w.WriteHeader(http.StatusFound)
		return
	case "header":
		w.Header().Set("X-Error", "no: "+sent)
	}
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprint(w, text)
}
