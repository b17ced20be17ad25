package http_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// utf16le is a text in UTF-16 with its byte order mark.
func utf16le(text string) string {
	var b strings.Builder

	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b.WriteByte(byte(unit))
		b.WriteByte(byte(unit >> 8))
	}
	return b.String()
}

// TestHTTPCharsets: a body is read as it says it is written.
func TestHTTPCharsets(t *testing.T) {
	t.Parallel()

	cafe := map[string]any{"name": "café €"}

	for name, test := range map[string]struct {
		contentType, body string
		want              any
	}{
		"JSON with a byte order mark": {"application/json", "\xef\xbb\xbf" + `{"name": "café €"}`, cafe},
		"and a charset":               {"application/json; charset=utf-8", "\xef\xbb\xbf" + `{"name": "café €"}`, cafe},
		"the mark says more":          {"application/json; charset=iso-8859-1", "\xef\xbb\xbf" + `{"name": "café €"}`, cafe},
		"JSON in Latin-1":             {"application/json; charset=iso-8859-1", "{\"name\": \"caf\xe9 \x80\"}", cafe},
		"in quotes and capitals":      {`application/json; charset="ISO-8859-15"`, "{\"name\": \"caf\xe9 \xa4\"}", cafe},
		"JSON in UTF-16":              {"application/json", utf16le(`{"name": "café €"}`), cafe},
		"which it says":               {"application/json; charset=utf-16", utf16le(`{"name": "café €"}`), cafe},
		"JSON in Shift JIS":           {"application/json; charset=shift_jis", "{\"name\": \"\x93\xfa\x96\x7b\"}", map[string]any{"name": "日本"}},
		"text with a byte order mark": {"text/plain", "\xef\xbb\xbfa,b\n1,ü", "a,b\n1,ü"},
		"text in UTF-16":              {"text/plain; charset=utf-16le", utf16le("né"), "né"},
		"old text keeps its own":      {"text/plain; charset=windows-1251", "\xcf\xf0\xe8", "При"},
		"UTF-8 of another name":       {"application/json; charset=iso-8859-1", `{"name": "café €"}`, cafe},
		"UTF-8 of no charset":         {"application/json; charset=klingon", `{"name": "café €"}`, cafe},
		"UTF-8 of two":                {"application/json; charset=utf-8; charset=latin1", `{"name": "café €"}`, cafe},
		"UTF-8 that is ASCII":         {"application/json; charset=US-ASCII", `{"name": "café €"}`, cafe},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				_, _ = io.WriteString(w, test.body)
			})
			result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": url})(t))
			require.NoError(t, err)
			require.Equal(t, test.want, result.Data.Data)
		})
	}
}

// TestHTTPBytesThatAreNoText: a byte that is not of its charset is an error with its place; what failed for another reason says
// that one.
func TestHTTPBytesThatAreNoText(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		contentType, body string
		fields            map[string]any
		says              string
	}{
		"JSON":              {"application/json", "{\"a\":\n\"J\xfcrgen\"}", nil, `byte 0xFC at offset 8 (line 2) is not utf-8; set encoding`},
		"one in JSON":       {"application/json; charset=utf-8", `{"a":"ü"}` + "\xff", nil, "byte 0xFF at offset 10 (line 1) is not utf-8"},
		"one in CSV":        {"text/csv", "a\nJürgen\nJ\xfcrgen\n", nil, "byte 0xFC at offset 11 (line 3) is not utf-8"},
		"one in text":       {"text/plain", "Jürgen\nJ\xfcrgen\n", nil, "byte 0xFC at offset 9 (line 2) is not utf-8"},
		"one in lines":      {"application/x-ndjson", "{}\n\"\xfc\"\n", nil, "byte 0xFC at offset 4 (line 2) is not utf-8"},
		"not of Shift_JIS":  {"text/csv; charset=shift_jis", "a\n\xff\n", nil, "byte 0xFF at offset 2 (line 2) is not shift_jis"},
		"an unknown one":    {"text/csv; charset=klingon", "a\n\xff\n", nil, `byte 0xFF at offset 2 (line 2) is not utf-8, and the charset "klingon" is not known`},
		"one that is long":  {"text/csv; charset=" + strings.Repeat("x", 5000), "\xff", nil, "(line 1) is not utf-8, and the charset"},
		"what nobody reads": {"text/csv; charset=iso-2022-kr", "\xff", nil, `"iso-2022-kr" is not known`},
		"not what is said":  {"application/json", `"\xfc"`, map[string]any{"format": "text", "encoding": "us-ascii"}, ""},
		"said to be ASCII":  {"text/plain", "\xfc", map[string]any{"encoding": "us-ascii"}, "byte 0xFC at offset 0 (line 1) is not us-ascii"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				if r.URL.Path == "/missing" {
					w.WriteHeader(http.StatusNotFound)
				}
				_, _ = io.WriteString(w, test.body)
			})
			fields := map[string]any{"url": url}
			maps.Copy(fields, test.fields)
			_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(fields)(t))
			if test.says == "" {
				require.NoError(t, err)
				return
			}
			object := tooltest.ErrorObject(t, err)
			require.Equal(t, [3]string{"http", "final", "charset"}, [3]string{string(object.Kind), string(object.Class), object.Type})
			require.Contains(t, object.Message, test.says)
			require.Less(t, len(object.Message), 500)

			_, err = tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": url + "/missing"})(t))
			require.Equal(t, 404, tooltest.ErrorObject(t, err).Status)

			in := tooltest.Input(map[string]any{"url": url})(t)
			in.Place = "sink"
			_, err = tooltest.Call(t, activities.DefaultCatalogue(), "http.write", "http", in)
			require.NoError(t, err, "it is written, and nobody looks at the answer")
		})
	}
}

// TestHTTPMetaIsBounded: the history has little of an answer with many headers.
// It passes maxRelation, maxRelations and maxRelationBytes.
func TestHTTPMetaIsBounded(t *testing.T) {
	t.Parallel()

	relations := make([]string, 50_000)
	for i := range relations {
		relations[i] = fmt.Sprintf("r%d", i)
	}

	long := strings.Repeat("p", 100_000)

	for name, test := range map[string]struct {
		link  []string
		next  string // path of the next page, "" for none
		count int    // of the relations kept, at most
	}{
		"a long target with many relations": {[]string{"</" + long + `>; rel="` + strings.Join(relations[:20_000], " ") + `"`}, "", 0},
		"many relations of a short one":     {[]string{`</x>; rel="` + strings.Join(relations[:30_000], " ") + `", </2>; rel=next`}, "/2", 101},
		"many links": {
			[]string{strings.Repeat(`<x>;rel="a", `, 15_000), `</2>; rel=next`}, "/2", 2,
		},
		"long relations":         {[]string{`</x>; rel="` + long + `", </2>; rel=next`}, "/2", 1},
		"long targets":           {[]string{"</" + long[:7000] + `>; rel="` + strings.Join(relations[:100], " ") + `", </2>; rel=next`}, "/2", 10},
		"no end of targets":      {[]string{strings.Repeat("<", 200_000)}, "", 0},
		"an open quote":          {[]string{`</2>; rel=next, </x>; title="` + long}, "/2", 1},
		"the longest there is":   {[]string{"</" + long[:8000] + ">; rel=next"}, "/" + long[:8000], 1},
		"the first of them wins": {[]string{`</2>; rel=next, </` + long + `>; rel=next`}, "/2", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, _ *http.Request) { w.Header()["Link"] = test.link })
			result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": url})(t))
			require.NoError(t, err)
			require.LessOrEqual(t, len(result.Meta.Links), test.count)
			require.Equal(t, test.next != "", result.Meta.Links["next"] != "")

			if test.next != "" {
				require.Equal(t, url+test.next, result.Meta.Links["next"])
			}

			bytes := 0
			for relation, address := range result.Meta.Links {
				bytes += len(relation) + len(address)
			}

			require.LessOrEqual(t, bytes, 48<<10)
		})
	}

	url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 1000 {
			w.Header().Set(fmt.Sprintf("A-%04d", i), "v")
		}

		w.Header().Set("X-Long", long)
	})
	result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": url})(t))
	require.NoError(t, err)
	require.Len(t, result.Meta.Headers, 100)
}

// TestHTTPLinkToTheNextPageThatIsTooLong: left out, it would look like the end.
// It passes maxLink.
func TestHTTPLinkToTheNextPageThatIsTooLong(t *testing.T) {
	t.Parallel()

	url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</"+strings.Repeat("p", 9000)+">; rel=next")
	})
	_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": url})(t))
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, [3]string{"http", "final", "link"}, [3]string{string(object.Kind), string(object.Class), object.Type})
	require.Contains(t, object.Message, "the link to the next page is longer than 8192 bytes")
}

// TestHTTPBodiesOfErrorsAreBounded: of one that is long the beginning is kept, in
// whole characters, and no more than that is read.
// It passes maxErrorRead.
func TestHTTPBodiesOfErrorsAreBounded(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		contentType, body, begins string
	}{
		"text":       {"text/plain", "x" + strings.Repeat("é", 4<<20), "xéé"},
		"JSON":       {"application/json", `{"a": "` + strings.Repeat("é", 4<<20) + `"}`, `{"a": "éé`},
		"short JSON": {"application/json", `{"a": "é"}`, ""},
	} {
		url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", test.contentType)
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, test.body)
		})
		_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": url})(t))
		object := tooltest.ErrorObject(t, err)
		require.Equal(t, interpreter.KindHTTP, object.Kind, name)

		if test.begins == "" {
			require.Equal(t, map[string]any{"a": "é"}, object.Body.Data)

			continue
		}

		text, _ := object.Body.Data.(string)
		require.True(t, strings.HasPrefix(text, test.begins), "%s: %.40s", name, text)
		require.LessOrEqual(t, len(text), tool.MaxErrorBody)
		require.NotContains(t, text, "\ufffd", name)
	}
}
